"""What an event sink must do."""

import logging
from collections.abc import Generator
from contextlib import AbstractAsyncContextManager
from inspect import isawaitable
from time import perf_counter
from types import coroutine
from typing import Any, Final

import anyio

from .._catalog import Catalog
from .._categories import ErrorCategory, ErrorClass, Outcome
from .._context import Identity
from .._events import EventSink, EventType, ToolEvent
from .._policy import Backoff, ToolPolicy
from .._results import ToolCall
from .._runtime import Runtime
from ._rules import MAKE, no_error, opened, require
from ._scripted import scripted_tool

_PATIENCE: Final = 1.0
"""Seconds after which a runtime gives an event up."""
_BLOCKED: Final = 0.01
"""Seconds for which a sink must not keep the event loop."""
_TRIES: Final = 5


def _bare(type: EventType) -> ToolEvent:
    return ToolEvent(type=type, call_id="", tool="a", time=0.0)


def _full(type: EventType) -> ToolEvent:
    return ToolEvent(
        type=type,
        call_id="1",
        tool="weather.lookup",
        time=12.5,
        identity=Identity("tenant", "user", "session", "run", scopes={"weather:read"}),
        attempts=2,
        elapsed=0.25,
        outcome=Outcome.FAILED,
        category=ErrorCategory.TIMEOUT,
        error_class=ErrorClass.TIMEOUT,
        stop_reason="attempts",
        wait=0.5,
        done=1.0,
        total=3.0,
        message="one of three",
        late=True,
    )


_USUAL: Final = ToolEvent(
    type=EventType.COMPLETED, call_id="1", tool="a", time=0.0, attempts=1, outcome=Outcome.SUCCEEDED
)


class SinkConformance:
    """Checks an event sink, in pytest with anyio's plugin.

    ::

        pytestmark = pytest.mark.anyio


        class TestMySink(SinkConformance):
            def make(self):
                return MySink()
    """

    def make(self) -> EventSink | AbstractAsyncContextManager[EventSink]:
        """Return a new sink, or an async context manager that gives one and closes it."""
        raise NotImplementedError(MAKE)

    async def test_emit_is_async(self) -> None:
        """Give something to await, and nothing else."""
        async with opened(self.make()) as sink:
            result: Any = sink.emit(_USUAL)
            require(isawaitable(result), f"emit() returned a {type(result).__name__}, which cannot be awaited")
            result = await result
            require(result is None, f"emit() gave a {type(result).__name__}; nobody reads it")

    async def test_every_event_is_taken(self) -> None:
        """Take an event of each type, with every field and with none, in the second that a runtime waits for it."""
        async with opened(self.make()) as sink:
            for event in (make(type) for type in EventType for make in (_bare, _full)):
                fields = "every field" if event.identity else "no field but the needed ones"
                what = f"emit() of {event.type.value} with {fields}"
                with no_error(what), anyio.move_on_after(_PATIENCE) as scope:
                    await sink.emit(event)
                require(not scope.cancelled_caught, f"{what} took more than {_PATIENCE:g} s")

    async def test_the_loop_is_not_blocked(self) -> None:
        """Wait without keeping the event loop: every call of the process would wait too."""
        async with opened(self.make()) as sink:
            # The least of some, since whatever else keeps the machine busy does not do so each time.
            kept = min([await _longest_step(sink.emit(_USUAL)) for _ in range(_TRIES)])
        require(kept < _BLOCKED, f"emit() kept the event loop for {kept:.3f} s each time; the bound is {_BLOCKED} s")

    async def test_a_cancellation_leaves(self) -> None:
        """End when canceled, by the cancellation or in time, and make no other exception of it."""
        async with opened(self.make()) as sink:
            with no_error("emit() in a canceled scope"), anyio.CancelScope() as scope:
                scope.cancel()
                await sink.emit(_USUAL)

    async def test_no_task_is_left(self) -> None:
        """Leave no task behind that ``emit`` has started, once the sink is closed where it can be."""
        before = {task.id for task in anyio.get_running_tasks()}
        async with opened(self.make()) as sink:
            await sink.emit(_USUAL)
        left = [str(task.name) for task in anyio.get_running_tasks() if task.id not in before]
        require(not left, f"emit() has left tasks behind: {', '.join(left)}")

    async def test_a_runtime_has_nothing_to_report(self) -> None:
        """Serve a runtime whose calls succeed, fail, are tried again, refused and canceled; it logs no fault."""
        policy = ToolPolicy(attempts=2, wait=Backoff(initial=0))
        catalog = Catalog(
            [
                scripted_tool("good", ["value"]),
                scripted_tool("flaky", [ConnectionResetError, "value"], policy=policy),
                scripted_tool("down", [ConnectionRefusedError], policy=policy),
                scripted_tool("guarded", ["value"], scopes=["x"]),
                scripted_tool("bad", [ValueError("no")]),
            ]
        )
        names = ["good", "flaky", "down", "guarded", "bad", "missing"]
        calls = [*(ToolCall(name, name) for name in names), ToolCall("invalid", "good", "[]")]
        heard = _Heard()
        log = logging.getLogger("harbor_async")
        log.addHandler(heard)
        try:
            async with (
                opened(self.make()) as sink,
                Runtime(catalog, sinks=[sink], identity=Identity("t", "u", "s")) as runtime,
            ):
                await runtime.invoke_many(calls)
                async with runtime.batch() as batch:
                    batch.start(ToolCall("canceled", "good"))
                    batch.cancel()
        finally:
            log.removeHandler(heard)
        require(not heard.faults, f"the runtime logged: {'; '.join(heard.faults)}")


class _Heard(logging.Handler):
    """Keeps what is logged as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.faults: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.faults.append(record.getMessage())


@coroutine
def _longest_step(awaitable: Any) -> Generator[Any, Any, float]:
    """Await and return the longest time, in seconds, for which the event loop was kept."""
    steps = awaitable.__await__()
    go_on, sent = steps.send, None
    longest = 0.0
    while True:
        begun = perf_counter()
        try:
            step = go_on(sent)
        except StopIteration:
            return max(longest, perf_counter() - begun)
        longest = max(longest, perf_counter() - begun)
        try:
            go_on, sent = steps.send, (yield step)
        except BaseException as exc:  # noqa: BLE001 - handed on, as await does
            go_on, sent = steps.throw, exc
