"""Many calls, each answered as it comes."""

import math
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Coroutine, Iterable
from contextvars import copy_context
from types import TracebackType
from typing import Any, Self, cast

import anyio
from anyio.lowlevel import checkpoint, checkpoint_if_cancelled

from ._answer import finish
from ._batch import Begin, Run, check_call
from ._call import Call, Function, Host
from ._crew import Crew, Fault, make_crew
from ._policy import ToolPolicy
from ._results import ToolCall, ToolResult
from ._settle import guard
from ._trouble import Trouble
from .errors import HarborError


class _Source:
    """The iterable of calls, where a call has a function: pulling it can be canceled like a call."""

    name = "the source of the calls"
    policy = ToolPolicy(timeout=None, attempts=1)


class Stream:
    """Results of many calls, each as it ends. An async context manager and an async iterator.

    Calls are pulled only when there is room: no more of them are in hand, waiting, running or answered but not yet
    taken, than ``Limits.max_running``. Leaving the block cancels what still runs and waits for it. An exception of
    the iterable leaves from the iteration, after the results of all calls that came before it.
    """

    def __init__(
        self,
        host: Host,
        calls: "Iterable[ToolCall] | AsyncIterable[ToolCall]",
        begin: Begin,
        run: Run,
        deadline: float,
    ) -> None:
        """Prepare; nothing is pulled before the block is entered."""
        if not isinstance(calls, (Iterable, AsyncIterable)):
            msg = f"expected an iterable or an async iterable of ToolCall; got {type(calls).__name__}"
            raise TypeError(msg)
        self._host = host
        self._calls = calls
        self._begin = begin
        self._run = run
        self._window = math.inf if host.limits.max_running is None else host.limits.max_running
        self._deadline = deadline
        self._in_hand = 0
        self._ended: deque[ToolResult] = deque()
        self._is_exhausted = False
        self._error: Exception | None = None
        self._news = anyio.Event()
        self._room = anyio.Event()
        self._crew: Crew | None = None

    async def __aenter__(self) -> Self:
        """Begin to pull and to run."""
        if self._crew is not None:
            msg = "a stream can be entered once"
            raise HarborError(msg)
        crew = self._crew = make_crew(self._host.backend, self._end)
        await crew.__aenter__()
        # An async source may wait for ever, so that the deadline must end it; any other has its calls ready, and
        # each of them gets an answer.
        deadline = self._deadline if isinstance(self._calls, AsyncIterable) else math.inf
        source = Call(self._host, cast("Function", _Source()), "", None, deadline, crew)
        crew.spawn(self._pull, source)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Cancel what still runs, and wait for it.

        Raises:
            KeyboardInterrupt, SystemExit: A tool was interrupted with it.
        """
        assert self._crew is not None  # noqa: S101 - entered
        self._crew.cancel()
        await self._crew.__aexit__(kind, error, trace)

    def __aiter__(self) -> AsyncIterator[ToolResult]:
        """Iterate over the results."""
        return self

    async def __anext__(self) -> ToolResult:
        """Return the next result. A checkpoint for cancellation each time; it waits only when there is none yet.

        Raises:
            Exception: What the iterable of calls raised, once.
            StopAsyncIteration: Every call has its result.
        """
        crew = self._crew
        if crew is None:
            msg = "enter the stream first: async with runtime.stream(calls) as stream"
            raise HarborError(msg)
        await checkpoint_if_cancelled()
        crew.check()
        while not self._ended:
            if self._is_exhausted and not self._in_hand:
                error, self._error = self._error, None
                raise StopAsyncIteration if error is None else error
            if self._news.is_set():  # else another consumer waits for it already
                self._news = anyio.Event()
            await self._news.wait()
            crew.check()
        self._in_hand -= 1
        self._room.set()
        if self._is_exhausted and not self._in_hand:
            self._news.set()  # the end, for other consumers
        return self._ended.popleft()

    def _pull(self, source: Call) -> Coroutine[Any, Any, Any]:
        return guard(source, self._pull_all)

    def _end(self, call: Call, ended: Any) -> None:
        if isinstance(call.function, _Source):
            if type(ended) is Fault or (type(ended) is Trouble and ended.stop_reason != "deadline"):
                self._error = HarborError("the source of the calls was canceled from within")
            self._is_exhausted = True
        else:
            self._ended.append(finish(call, ended))
        self._news.set()

    async def _pull_all(self, _: Call) -> None:
        try:
            if isinstance(self._calls, AsyncIterable):
                await self._pull_async(self._calls)
            else:
                await self._pull_sync(self._calls)
        except Exception as exc:  # noqa: BLE001 - the consumer gets it
            self._error = exc

    async def _pull_async(self, calls: AsyncIterable[ToolCall]) -> None:
        iterator = aiter(calls)
        try:
            await self._wait_room()
            async for call in iterator:
                self._take(call)
                await self._wait_room()
        finally:
            if isinstance(iterator, AsyncGenerator):
                await cast("AsyncGenerator[ToolCall, None]", iterator).aclose()

    async def _pull_sync(self, calls: Iterable[ToolCall]) -> None:
        await self._wait_room()
        for count, call in enumerate(calls, 1):
            self._take(call)
            if count % _PULLS_A_TURN == 0:
                await checkpoint()
            await self._wait_room()

    async def _wait_room(self) -> None:
        while self._in_hand >= self._window:
            self._room = anyio.Event()
            await self._room.wait()

    def _take(self, tool_call: ToolCall) -> None:
        assert self._crew is not None  # noqa: S101 - entered
        call = check_call(tool_call)
        begun = self._begin(call.id, call.name, call.arguments, self._deadline, self._crew, is_bounded=False)
        self._in_hand += 1
        if isinstance(begun, ToolResult):
            self._put(begun)
        else:
            begun.context = copy_context()
            self._crew.spawn(self._run, begun)

    def _put(self, result: ToolResult) -> None:
        self._ended.append(result)
        self._news.set()


_PULLS_A_TURN = 64
"""How many calls an iterable may give before the event loop has its turn, however fast it is."""
