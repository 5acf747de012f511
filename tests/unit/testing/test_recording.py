"""``RecordingSink``: what it keeps, what it finds, and how it is waited for."""

import anyio
import pytest

from harbor_async import Backoff, Catalog, EventType, Runtime, ToolCall, ToolPolicy
from harbor_async.testing import Fault, RecordingSink, scripted_tool, wait_all_tasks_blocked

FLAKY = scripted_tool(
    "flaky", [ConnectionResetError, Fault(delay=5.0, value="found")], policy=ToolPolicy(wait=Backoff(1.0, jitter=0))
)
pytestmark = pytest.mark.virtual


async def record():
    """Return the sink of a runtime that has answered two calls and is closed."""
    sink = RecordingSink()
    async with Runtime(Catalog([FLAKY]), sinks=[sink]) as runtime:
        await runtime.invoke_many([ToolCall("1", "flaky"), ToolCall("2", "none")])
    return sink


async def test_everything_is_kept_when_the_runtime_is_closed():
    """Each call's events are there in their order once the runtime's block is left."""
    sink = await record()
    assert ["tool.invoked", "tool.attempt", "tool.retry", "tool.attempt", "tool.completed"] == [
        event.type for event in sink.select(call_id="1")
    ]
    assert ["tool.invoked", "tool.failed"] == [event.type for event in sink.select(call_id="2")]
    assert 7 == len(sink.events)


async def test_events_are_selected_by_type_and_field():
    """Any of the types and all of the fields; without either, everything."""
    sink = await record()
    assert sink.events == sink.select()
    assert [1, 2] == [event.attempts for event in sink.select(EventType.ATTEMPT)]
    assert ["1"] == [event.call_id for event in sink.select("tool.attempt", attempts=2)]
    ends = sink.select("tool.completed", "tool.failed")
    assert {("1", "succeeded", None), ("2", "failed", "not_found")} == {
        (event.call_id, event.outcome, event.category) for event in ends
    }
    assert [] == sink.select("tool.completed", call_id="2")
    assert [] == sink.select("tool.canceled")


async def test_a_question_that_makes_no_sense_is_refused():
    """A word that is no type, and a field that no event has, are refused: they would find nothing for ever."""
    sink = RecordingSink()
    with pytest.raises(ValueError, match=r"tool\.retried"):
        sink.select("tool.retried")
    with pytest.raises(TypeError, match="no attempt"):
        sink.select("tool.retry", attempt=1)
    with pytest.raises(TypeError, match="no attempt"):
        await sink.wait_for("tool.retry", attempt=1)


async def test_an_event_is_waited_for():
    """The wait ends when the event has come, at its time; the second of a kind is waited for by ``count``."""
    sink = RecordingSink()
    async with Runtime(Catalog([FLAKY]), sinks=[sink]) as runtime, runtime.batch() as batch:
        batch.start(ToolCall("1", "flaky"))
        retry = await sink.wait_for(EventType.RETRY)
        assert (0.0, 1.0) == (anyio.current_time(), retry.wait)
        second = await sink.wait_for("tool.attempt", count=2, tool="flaky")
        assert (1.0, 2) == (anyio.current_time(), second.attempts)
        assert 1 == (await sink.wait_for("tool.attempt")).attempts  # it has come already


async def test_many_may_wait():
    """Each of those who wait is told of its own event, and one that is canceled waits no more."""
    sink = RecordingSink()
    told = []

    async def wait(type):
        told.append((await sink.wait_for(type)).type)

    async with Runtime(Catalog([FLAKY]), sinks=[sink]) as runtime, anyio.create_task_group() as group:
        for type in ("tool.completed", "tool.retry", "tool.retry"):
            group.start_soon(wait, type)
        with anyio.move_on_after(0.5) as scope:
            await sink.wait_for("tool.canceled")
        assert scope.cancelled_caught
        await wait_all_tasks_blocked()
        await runtime.invoke("flaky")
    assert ["tool.retry", "tool.retry", "tool.completed"] == told


async def test_a_wait_is_a_checkpoint():
    """A wait for what has come already still lets others run, and can be canceled."""
    sink = await record()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await sink.wait_for("tool.invoked")
    assert scope.cancelled_caught
