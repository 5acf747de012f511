"""What a runtime tells of its calls, and how it reaches those who listen."""

import logging
from collections import deque
from collections.abc import Iterable
from enum import StrEnum
from types import TracebackType
from typing import Any, Final, Protocol, Self

import anyio
import attrs

from ._backend import Backend, find_interrupt
from ._categories import ErrorCategory, ErrorClass, Outcome, Transport
from ._context import Identity
from ._crew import Crew, make_crew
from ._results import StopReason

_LOG: Final = logging.getLogger("harbor_async")
_PATIENCE: Final = 1.0
"""Seconds that a sink may take for one event, and that the end of a runtime waits for what is still to be told."""
_MOST_WAITING: Final = 10_000
"""Events that wait for one sink; further ones are dropped."""


class EventType(StrEnum):
    """What happened. Each call begins with ``tool.invoked``; one of those that are marked last ends it."""

    INVOKED = "tool.invoked"
    ATTEMPT = "tool.attempt"
    """The function is run, for the time that ``attempts`` says."""
    RETRY = "tool.retry"
    """An attempt has failed, and the next one begins in ``wait`` seconds."""
    PROGRESS = "tool.progress"
    """The tool has reported progress."""
    CANCEL_IGNORED = "tool.cancel_ignored"
    """The tool was told to stop, and goes on."""
    COMPLETED = "tool.completed"
    """Last: there is a value."""
    FAILED = "tool.failed"
    """Last: there is none, for another reason than those below."""
    INVALID_ARGS = "tool.invalid_args"
    """Last: the arguments do not fit: nothing was run, or the tool itself has refused them."""
    POLICY_EXHAUSTED = "tool.policy_exhausted"
    """Last: what would be retried has failed in every attempt."""
    CANCELED = "tool.canceled"
    """Last: canceled by its handle, its batch, its caller or from within."""
    REJECTED = "tool.rejected"
    """Last: not allowed, not approved, or no place in the queue."""


@attrs.frozen(kw_only=True)
class ToolEvent:
    """Something that happened to a call. It holds no argument, no value and no text of an exception.

    Attributes:
        type: What happened.
        call_id: The id of the call, as its sender wrote it.
        tool: The tool's name.
        transport: Where the tool runs.
        time: When, in seconds on the event loop's clock.
        identity: On whose behalf the call is made; None: the program's own.
        attempts: Runs of the function so far, the present one included.
        elapsed: Seconds since the call began.
        outcome: How the call ended, where this is its last event and it has an answer.
        category: Why it, or the attempt, has no value.
        error_class: What the retry policy saw of that.
        stop_reason: Why no attempt followed.
        wait: Seconds until the next attempt begins.
        done: What a tool said of its progress: how much of ``total`` is done.
        total: How much there is to do; None: not known.
        message: What a tool said of its progress.
        late: The value came after the call's end, and stands since the effect has happened.
    """

    type: EventType
    call_id: str
    tool: str
    transport: Transport = Transport.INPROCESS
    time: float
    identity: Identity | None = None
    attempts: int = 0
    elapsed: float = 0.0
    outcome: Outcome | None = None
    category: ErrorCategory | None = None
    error_class: ErrorClass | None = None
    stop_reason: StopReason | None = None
    wait: float | None = None
    done: float | None = None
    total: float | None = None
    message: str = ""
    late: bool = False


class EventSink(Protocol):
    """Whoever listens."""

    async def emit(self, event: ToolEvent) -> None:
        """Take an event. Called with one after the other, in their order, in a task of the runtime.

        Nothing that it does changes a call: what it raises is logged, once for each sink; after a second it is
        canceled; and where 10,000 events wait for it, further ones are dropped, which is logged and counted.
        """
        ...


class _Outlet:
    """The events for one sink, and the task that takes them there."""

    scope: anyio.CancelScope | None = None

    def __init__(self, sink: EventSink) -> None:
        self.sink = sink
        self.waiting: deque[ToolEvent] = deque()
        self.news = anyio.Event()
        self.ended = anyio.Event()
        self.is_ending = False
        self.is_reported = False
        self.dropped = 0

    def put(self, event: ToolEvent) -> None:
        if len(self.waiting) >= _MOST_WAITING:
            self.dropped += 1
            self.report("is too slow: events are dropped", None)
            return
        self.waiting.append(event)
        self.news.set()

    async def wait(self) -> None:
        self.news = anyio.Event()
        await self.news.wait()

    def report(self, what: str, error: BaseException | None) -> None:
        if not self.is_reported:
            self.is_reported = True
            _LOG.error("event sink %r %s; further faults of it are not reported", self.sink, what, exc_info=error)

    def end(self) -> None:
        self.is_ending = True
        self.news.set()


class Outlets:
    """Takes events to any number of sinks. An async context manager; leaving it waits a second for what is left."""

    def __init__(self, backend: Backend, sinks: Iterable[EventSink]) -> None:
        """Prepare; made inside the event loop that uses it."""
        self._backend = backend
        self._outlets = [_Outlet(sink) for sink in sinks]
        self._crew: Crew = make_crew(backend, self._end)

    async def __aenter__(self) -> Self:
        """Begin to listen."""
        await self._crew.__aenter__()
        for outlet in self._outlets:
            self._crew.spawn(self._deliver, outlet)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait a second, whatever happens meanwhile, until all is told; then stop."""
        with anyio.CancelScope(shield=True, deadline=self._backend.time() + _PATIENCE):
            for outlet in self._outlets:
                outlet.end()
            for outlet in self._outlets:
                await outlet.ended.wait()
        for outlet in self._outlets:
            if outlet.scope is not None:
                outlet.scope.cancel()
        await self._crew.__aexit__(kind, error, trace)

    @property
    def dropped(self) -> int:
        """How many events were dropped, of all sinks."""
        return sum(outlet.dropped for outlet in self._outlets)

    def put(self, event: ToolEvent) -> None:
        """Have ``event`` told to every sink; in the event loop's thread."""
        for outlet in self._outlets:
            outlet.put(event)

    async def _deliver(self, outlet: _Outlet) -> None:
        # Shielded, so that a canceled caller can still be told of.
        with anyio.CancelScope(shield=True) as scope:
            outlet.scope = scope
            while not (outlet.is_ending and not outlet.waiting):
                try:
                    await (_emit(outlet, outlet.waiting.popleft()) if outlet.waiting else outlet.wait())
                except BaseException as exc:
                    # A sink may also have canceled this task, which strikes at its next wait.
                    is_ours = scope.cancel_called and isinstance(exc, self._backend.canceled)
                    if is_ours or isinstance(exc, GeneratorExit) or find_interrupt(exc) is not None:
                        raise
                    outlet.report("failed", exc)

    def _end(self, outlet: Any, _: Any) -> None:
        outlet.scope = None
        outlet.ended.set()


async def _emit(outlet: _Outlet, event: ToolEvent) -> None:
    with anyio.move_on_after(_PATIENCE) as scope:
        await outlet.sink.emit(event)
    if scope.cancelled_caught or anyio.current_time() >= scope.deadline:
        outlet.report(f"took more than {_PATIENCE:g} s for an event", None)
