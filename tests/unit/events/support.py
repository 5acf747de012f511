"""A sink that keeps what it is told, what must hold of the events of any call, and tools that end in known ways."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest

from harbor_async import (
    Backoff,
    Catalog,
    EventSink,
    EventType,
    Limits,
    Runtime,
    ToolCall,
    ToolDescriptor,
    ToolEvent,
    ToolPolicy,
    ToolResult,
    describe,
)

WAIT = Backoff(initial=0.5, factor=2, jitter=0)
"""The waits before retries are 0.5, 1, 2, … seconds."""

LAST = {
    *(EventType.COMPLETED, EventType.FAILED, EventType.INVALID_ARGS),
    *(EventType.POLICY_EXHAUSTED, EventType.CANCELED, EventType.REJECTED),
}


class Recorder:
    """A sink that keeps its events."""

    def __init__(self) -> None:
        self.events: list[ToolEvent] = []

    async def emit(self, event: ToolEvent) -> None:
        self.events.append(event)

    def told(self, call_id: str | None = None) -> list[str]:
        """Return type and attempts of each event, as ``"attempt 1"``, of one call or of all."""
        return [
            f"{event.type.removeprefix('tool.')} {event.attempts}"
            for event in self.events
            if call_id in {None, event.call_id}
        ]

    def calls(self) -> dict[str, list[ToolEvent]]:
        """Return the events by the ids of their calls, after a look at what must hold of each call."""
        calls: dict[str, list[ToolEvent]] = {}
        for event in self.events:
            calls.setdefault(event.call_id, []).append(event)
        for events in calls.values():
            check(events)
        return calls


def check(events: list[ToolEvent]) -> None:
    """See that these are the events of one call that has ended, in their order, with true counts and times."""
    types = [event.type for event in events]
    assert EventType.INVOKED == types[0]
    assert types[-1] in LAST
    assert 1 == types.count(EventType.INVOKED) == sum(type in LAST for type in types)
    runs = [event.attempts for event in events if event.type is EventType.ATTEMPT]
    assert [*range(1, len(runs) + 1)] == runs
    assert (0, len(runs)) == (events[0].attempts, events[-1].attempts)
    before = events[0]
    for event in events:
        assert (before.call_id, before.tool, before.identity) == (event.call_id, event.tool, event.identity)
        assert before.time <= event.time
        assert 0 <= before.elapsed <= event.elapsed
        assert pytest.approx(events[0].time - events[0].elapsed) == event.time - event.elapsed
        assert event.attempts - before.attempts in ({1} if event.type is EventType.ATTEMPT else {0})
        assert (event.outcome is None) or event is events[-1]
        assert (event.wait is not None) == (event.type is EventType.RETRY)
        assert (event.done is not None) == (event.type is EventType.PROGRESS)
        before = event


def last(event: ToolEvent) -> tuple[Any, ...]:
    """Return how a last event says that its call has ended."""
    return event.type.removeprefix("tool."), event.outcome, event.category, event.error_class, event.stop_reason


def of_result(result: ToolResult) -> tuple[Any, ...]:
    """Return what the last event must say of ``result``, but for its type."""
    error = result.error
    return result.outcome, error and error.category, error and error.error_class, result.stop_reason


def make(
    function: Callable[..., Any], timeout: float | None = 1.0, attempts: int = 3, **options: Any
) -> ToolDescriptor[..., Any]:
    """Make a tool of a local function; by default it may take 1 s and is tried three times."""
    return describe(function, policy=ToolPolicy(timeout, attempts, WAIT), **options)


def listen(*tools: ToolDescriptor[..., Any], sinks: Iterable[EventSink], **limits: int) -> Runtime:
    return Runtime(Catalog(tools), sinks=sinks, limits=Limits(**limits))


async def invoke(rt: Runtime, tool: str, arguments: Any = "", **options: Any) -> None:
    await rt.invoke(tool, arguments, id="c", **options)


async def invoke_many(rt: Runtime, tool: str, arguments: Any = "", **options: Any) -> None:
    await rt.invoke_many([ToolCall("c", tool, arguments)], **options)


async def batch(rt: Runtime, tool: str, arguments: Any = "", **options: Any) -> None:
    async with rt.batch(**options) as started:
        await started.start(ToolCall("c", tool, arguments)).result()


async def stream(rt: Runtime, tool: str, arguments: Any = "", **options: Any) -> None:
    async with rt.stream([ToolCall("c", tool, arguments)], **options) as results:
        _ = [result async for result in results]


Ask = Callable[..., Awaitable[None]]
WAYS: list[Ask] = [invoke, invoke_many, batch, stream]
