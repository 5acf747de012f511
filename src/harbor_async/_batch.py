"""Many calls at once: a handle for each, and all answers in order."""

from collections.abc import Callable, Coroutine, Iterable
from contextvars import copy_context
from types import TracebackType
from typing import Any, ClassVar, Self

import anyio
import attrs
from anyio.lowlevel import checkpoint_if_cancelled

from ._answer import abandon, answer, finish
from ._backend import Backend
from ._call import Call
from ._categories import Outcome
from ._crew import Crew, make_crew
from ._results import ToolCall, ToolResult
from ._trouble import canceled
from ._waiters import Waiters
from .errors import HarborError, InvalidToolError, ToolCanceledError

Begin = Callable[..., "Call | ToolResult"]
"""Makes the parts of a ``ToolCall`` a ``Call`` in flight, or answers it at once; see ``Runtime``."""
Run = Callable[[Call], Coroutine[Any, Any, Any]]
"""Runs such a ``Call``; the answers are those of the shell's ``run``."""


def _check_successes(successes: object) -> None:
    if isinstance(successes, bool) or not isinstance(successes, int) or successes < 1:
        msg = f"Join: expected an int of at least 1, the number of successes; got {successes!r}"
        raise InvalidToolError(msg)


@attrs.frozen
class Join:
    """When a batch has enough: then what still runs is canceled.

    Attributes:
        successes: So many calls that have succeeded are enough; None: every call ends by itself.

    Raises:
        InvalidToolError: ``successes`` is no int of at least 1.
    """

    successes: int | None = None

    ALL: ClassVar["Join"]
    """Every call ends by itself."""
    FIRST_SUCCESS: ClassVar["Join"]
    """One success is enough."""

    def __attrs_post_init__(self) -> None:
        """Refuse nonsense."""
        if self.successes is not None:
            _check_successes(self.successes)

    @classmethod
    def at_least(cls, successes: int) -> "Join":
        """Have enough with so many successes.

        Raises:
            InvalidToolError: ``successes`` is no int of at least 1.
        """
        _check_successes(successes)
        return cls(successes)


Join.ALL = Join()
Join.FIRST_SUCCESS = Join(1)


class CallHandle:
    """One call of a batch, while it runs and afterwards.

    Attributes:
        call: The call.
    """

    __slots__ = ("_batch", "_index", "call")

    def __init__(self, batch: "Batch", index: int, call: ToolCall) -> None:
        """Stand for the call number ``index`` of ``batch``."""
        self._batch = batch
        self._index = index
        self.call: ToolCall = call

    @property
    def done(self) -> bool:
        """Whether the call has ended."""
        return self._batch.is_done(self._index)

    def cancel(self) -> None:
        """Cancel the call: its result will be ``failed`` / ``canceled``. Nothing happens when it has ended."""
        self._batch.cancel_one(self._index)

    async def result(self) -> ToolResult:
        """Wait for the result. Canceling this wait does not cancel the call.

        Raises:
            ToolCanceledError: The batch was closed without waiting for its calls, as a coroutine that is thrown away
                in mid-wait is, so that there is no result.
        """
        await checkpoint_if_cancelled()
        await self._batch.wait_done(self._index)
        result = self._batch.results[self._index]
        if result is None:
            msg = "the call has no result: its batch was closed before it had ended"
            raise ToolCanceledError(msg)
        return result


class Batch:
    """Calls that run at once and end together. An async context manager.

    Leaving the block waits for every call; leaving it with an exception cancels them first. Until the last of them
    has ended, other tasks may start more.

    Attributes:
        results: The result of each call, in the order in which they were started; None where there is none yet.
    """

    def __init__(self, backend: Backend, begin: Begin, run: Run, deadline: float, join: Join) -> None:
        """Prepare an empty batch."""
        if not isinstance(join, Join):
            msg = f"join: expected Join.ALL, Join.FIRST_SUCCESS or Join.at_least(n); got {join!r}"
            raise InvalidToolError(msg)
        self._backend = backend
        self._begin = begin
        self._run = run
        self._deadline = deadline
        self._missing = join.successes
        self._crew: Crew | None = None
        self._running: list[Call | None] = []
        self._waiting: dict[int, anyio.Event] = {}
        self._is_open = False
        self._is_canceled = False
        self.results: list[ToolResult | None] = []

    async def __aenter__(self) -> Self:
        """Open the batch.

        Raises:
            HarborError: It was opened before.
        """
        if self._crew is not None:
            msg = "a batch can be entered once"
            raise HarborError(msg)
        self._crew = make_crew(self._backend, self._end)
        self._waiters = Waiters(self._crew, self._run)
        await self._crew.__aenter__()
        self._is_open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for every call; cancel them first when the block raised.

        Raises:
            KeyboardInterrupt, SystemExit: A tool was interrupted with it.
        """
        assert self._crew is not None  # noqa: S101 - entered
        try:
            await self._crew.__aexit__(kind, error, trace)
        finally:
            self._is_open = False
            self._running = [None] * len(self._running)
            for event in self._waiting.values():
                event.set()

    def start(self, call: ToolCall) -> CallHandle:
        """Start a call; what is wrong with it is its result.

        Raises:
            TypeError: ``call`` is no ``ToolCall``.
            HarborError: The block was not entered, or was left and its last call has ended.
        """
        return CallHandle(self, self.start_all((call,)), call)

    def start_all(self, calls: Iterable[ToolCall], *, is_atomic: bool = False) -> int:
        """Start calls together.

        Args:
            calls: The calls.
            is_atomic: Whether none is begun when one is answered at once; the others are then ``canceled``.

        Returns:
            Where the result of the first will be.

        Raises:
            TypeError: An item is no ``ToolCall``; then none has begun.
            HarborError: As ``start``.
        """
        checked = [check_call(call) for call in calls]
        crew = self._crew
        if crew is None or not self._is_open or crew.is_closed:
            msg = "start calls inside 'async with runtime.batch() as batch'"
            raise HarborError(msg)
        begun: list[Call | ToolResult] = []
        try:
            for call in checked:
                item = self._begin(call.id, call.name, call.arguments, self._deadline, crew)
                begun.append(item)  # one by one: it must be known when the next one raises
        finally:
            if len(begun) < len(checked):  # an interrupt while it decoded
                for item in begun:
                    if isinstance(item, Call):
                        abandon(item)
        if is_atomic and any(isinstance(item, ToolResult) for item in begun):
            begun = [_withdraw(item) if isinstance(item, Call) else item for item in begun]
        first = len(self.results)
        context = copy_context()
        for item in begun:
            if isinstance(item, Call):
                item.context = context
                item.index = len(self.results)  # not before: an eager task has run, and may have started others
                self._running.append(item)
                self.results.append(None)
                item.is_canceled = self._is_canceled
                if item.bound is None or item.ticket is None or item.ticket.is_granted or self._is_canceled:
                    crew.spawn(self._run, item)
                else:
                    self._waiters.add(item)
            else:
                self._running.append(None)
                self.results.append(item)
        return first

    def cancel(self) -> None:
        """Cancel every call that has not ended, and each that is started later; results that are there stay."""
        self._is_canceled = True
        for index in range(len(self._running)):
            self.cancel_one(index)

    def cancel_one(self, index: int) -> None:
        """Cancel call number ``index``, unless it has ended."""
        call = self._running[index]
        if call is not None:
            call.is_canceled = True
            if call.scope is not None:
                call.scope.cancel()
            elif self._waiters.drop(call):
                self._end(call, canceled(call, None, in_attempt=False))

    def is_done(self, index: int) -> bool:
        """Say whether call number ``index`` has ended."""
        return self._running[index] is None

    async def wait_done(self, index: int) -> None:
        """Wait until call number ``index`` has ended."""
        if not self.is_done(index):
            await self._waiting.setdefault(index, anyio.Event()).wait()

    def _end(self, call: Call, ended: Any) -> None:
        if self._waiters.take_end(call, ended, self._end):
            return
        self._running[call.index] = None
        is_first = self._waiters.hold()  # no call starts in the place of this one before it is known whether it must
        try:
            result = self.results[call.index] = finish(call, ended)
            if self._missing is not None and result.outcome is Outcome.SUCCEEDED:
                self._missing -= 1
                if self._missing == 0:
                    self.cancel()
        finally:
            if is_first:
                self._waiters.release()
        if self._waiting and (event := self._waiting.pop(call.index, None)) is not None:
            event.set()


def _withdraw(call: Call) -> ToolResult:
    """Answer a call that is not begun, since another of its batch is at fault."""
    message = (
        f"{call.function.name!r} was not begun: another call of the batch cannot be, and all or none were asked for"
    )
    return answer(call, canceled(call, None, in_attempt=False, message=message))


def check_call(call: object) -> ToolCall:
    """Refuse what is no ``ToolCall``.

    Raises:
        TypeError: It is something else.
    """
    if not isinstance(call, ToolCall):
        msg = f"expected a ToolCall(id, name, arguments); got {type(call).__name__}"
        raise TypeError(msg)
    return call
