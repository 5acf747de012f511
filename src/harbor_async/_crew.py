"""The child tasks of a batch or a stream: an anyio group on trio, plain tasks on asyncio."""

import math
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from heapq import heapify, heappop, heappush
from itertools import count
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias, TypeVar, cast

import anyio

from ._backend import Backend, find_interrupt


class Child(Protocol):
    """What a crew has to know of a child: the scope that it waits in just now, if any."""

    scope: anyio.CancelScope | None


C = TypeVar("C", bound=Child)
Done: TypeAlias = Callable[[Any, Any], None]


def make_crew(backend: Backend, done: Done) -> "Crew":
    """Make a crew for the running task; see ``Crew`` for ``done``."""
    return Crew(backend, done) if backend.loop is None else TaskCrew(backend, done)


class Fault:
    """What a child raised all the same, or what kept it from being run.

    Attributes:
        error: The exception.
    """

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        """Keep it."""
        self.error = error


class Crew:
    """The child tasks of one batch. Leaving it waits for every child, whatever happens.

    A child never raises. It ends without a result when ``is_canceled`` is set, and hands an interrupt
    (``KeyboardInterrupt``, ``SystemExit``) to ``interrupt_with``, which leaves the crew bare once all have ended.

    Attributes:
        is_canceled: Whether the crew was told to stop.
        place: In which scope it was made, if its children are outside of that; else None.
    """

    place: Any = None

    def __init__(self, backend: Backend, done: Done) -> None:
        """Make a crew for the running task.

        Args:
            backend: The running event loop.
            done: Called once for each child, with it and with what its run gave, or a ``Fault``.
        """
        self._backend = backend
        self._done = done
        self._pending = backend.cancelling()
        self._group = anyio.create_task_group()
        self._size = 0
        self._is_leaving = False
        self._interrupt: BaseException | None = None
        self.is_canceled: bool = False

    @property
    def deadline(self) -> float:
        """When the scopes round the crew end, for children that are outside of those scopes."""
        return math.inf

    @property
    def is_closed(self) -> bool:
        """Whether the crew is being left and its last child has ended: then there can be no more."""
        return self._is_leaving and not self._size

    async def __aenter__(self) -> Self:
        """Open the crew."""
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for all children; cancel them first when the body raised.

        Raises:
            KeyboardInterrupt, SystemExit: What a child or this task was interrupted with.
        """
        self._is_leaving = True
        if error is not None:
            self.cancel()
        try:
            await self._group.__aexit__(kind, error, trace)
        except BaseExceptionGroup as group:
            # trio delivers Ctrl-C to this task while it waits here, and the nursery wraps it.
            self._interrupt = self._interrupt or find_interrupt(group)
            if self._interrupt is None and error is None:
                raise
        await self._end(error, None)

    async def _end(self, error: BaseException | None, cut: BaseException | None) -> None:
        del self._done  # what it belongs to holds this crew: a cycle that would keep all results for the collector
        if self._interrupt is not None:
            raise self._interrupt
        if error is None and self._backend.is_canceled(self._pending):
            await self._backend.leave(self._pending, cut)

    def spawn(self, run: Callable[[C], Coroutine[Any, Any, Any]], child: C) -> None:
        """Start ``run(child)`` as a task."""
        self._size += 1
        self._group.start_soon(self._run, run, child)

    async def _run(self, run: Callable[[C], Coroutine[Any, Any, Any]], child: C) -> None:
        try:
            ended = await run(child)
        except Exception as exc:  # noqa: BLE001 - a fault of ours must not take the other children with it
            ended = Fault(exc)
        self._size -= 1
        self._done(child, ended)

    def cancel(self) -> None:
        """Tell every child to stop, and those that start later."""
        self.is_canceled = True
        self._group.cancel_scope.cancel()

    def enter_scope(self, child: Child, deadline: float) -> anyio.CancelScope:
        """Enter a scope for ``child`` in its task."""
        scope = child.scope = self._backend.scope(deadline=deadline)
        return scope.__enter__()

    def has_canceled(self, pending: int) -> bool:
        """Say whether the running child was canceled from outside, as ``Backend.is_canceled`` does."""
        return self.is_canceled or self._backend.is_canceled(pending)

    def check(self) -> None:
        """Raise the interrupt that a child handed over, if any."""
        if self._interrupt is not None:
            raise self._interrupt

    def interrupt_with(self, error: BaseException) -> None:
        """Stop all, and raise ``error`` when they have ended."""
        self._interrupt = self._interrupt or error
        self.cancel()


class TaskCrew(Crew):
    """A crew of plain asyncio tasks, each canceled through its own scope so that shields hold.

    anyio's group costs 2.3 times asyncio's own spawn, and a good part of the whole at 10,000 calls. One timer serves
    all deadlines: a timer for each is a third of what a scope costs, and the loop's heap compares them in Python.
    """

    def __init__(self, backend: Backend, done: Done) -> None:
        self._backend = backend
        self._done = done
        self._pending = backend.cancelling()
        self.place: Any = backend.enter()[0] if backend.steps_first else None
        self._body = backend.scope()
        self._interrupt = None
        self._is_leaving = False
        self.is_canceled = False
        self._loop = backend.loop
        self._children: dict[Any, Child] = {}
        # One of each for all children: for the garbage collector, which has them all in hand at once.
        self._ended = self._end_child
        self._context = copy_context()
        self._idle: Any = None
        self._due: list[tuple[float, int, Child]] = []
        self._order = count()
        self._timer: Any = None
        self._timer_due = math.inf  # uvloop's handle of a timer that is due at once does not tell

    @property
    def deadline(self) -> float:
        # Asked anew each time, for the caller may move a deadline of its own.
        deadline, scope = math.inf, self.place
        while scope is not None:
            if scope.cancel_called:
                return -math.inf
            deadline = min(deadline, scope.deadline)
            scope = None if scope.shield else scope._parent_scope  # noqa: SLF001 - anyio has no public word for it
        return deadline

    @property
    def is_closed(self) -> bool:
        return self._is_leaving and not self._children

    async def __aenter__(self) -> Self:
        self._body.__enter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_leaving = True
        self._body.__exit__(None, None, None)
        if error is not None:
            self.cancel()
        cut: BaseException | None = None
        with self._backend.scope() as wait:
            while self._children:
                self._idle = self._loop.create_future()
                try:
                    await self._idle
                except self._backend.canceled as exc:
                    wait.shield = True  # or anyio delivers again at every turn until the last child has ended
                    self.cancel()
                    cut = exc
        if self._timer is not None:
            self._timer.cancel()
        del self._ended  # a cycle, as in _end
        await self._end(error, cut)

    def spawn(self, run: Callable[[C], Coroutine[Any, Any, Any]], child: C) -> None:
        task = self._loop.create_task(run(child))
        self._children[task] = child
        task.add_done_callback(self._ended, context=self._context)

    def _end_child(self, task: Any) -> None:
        # A callback, and no last line of the task: a task that is canceled before its first step runs no line at all.
        child = self._children.pop(task)
        error = self._backend.canceled() if task.cancelled() else task.exception()
        try:
            self._done(child, task.result() if error is None else Fault(error))
        finally:
            if not self._children and self._idle is not None and not self._idle.done():
                self._idle.set_result(None)

    def cancel(self) -> None:
        self.is_canceled = True
        for child in self._children.values():
            if child.scope is not None:
                child.scope.cancel()

    def enter_scope(self, child: Child, deadline: float) -> anyio.CancelScope:
        if deadline == math.inf or not self._backend.steps_first:
            return super().enter_scope(child, deadline)
        scope: Any = self._backend.scope()
        child.scope = scope
        scope.__enter__()
        scope._deadline = deadline  # noqa: SLF001 - told to those who ask, without the timer that the setter sets
        if len(self._due) > 2 * len(self._children) + _MANY:
            self._due = [due for due in self._due if due[2].scope is not None]
            heapify(self._due)
        heappush(self._due, (deadline, next(self._order), child))
        if deadline < self._timer_due:
            self._set_timer()
        return cast("anyio.CancelScope", scope)

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due = self._due[0][0] if self._due else math.inf
        self._timer = self._loop.call_at(self._timer_due, self._cut) if self._due else None

    def _cut(self) -> None:
        """Cancel the scopes whose time has come."""
        now = self._loop.time()
        while self._due and self._due[0][0] <= now:
            scope = heappop(self._due)[2].scope
            if scope is not None and scope.deadline <= now:
                scope.cancel()
        self._set_timer()

    def has_canceled(self, pending: int) -> bool:  # noqa: ARG002 - who cancels this task natively is no caller of ours
        return self.is_canceled or (self.place is not None and self.deadline <= self._loop.time())

    def interrupt_with(self, error: BaseException) -> None:
        super().interrupt_with(error)
        self._body.cancel()


_MANY = 64
"""Deadlines of calls that have ended which a crew keeps before it looks for them."""
