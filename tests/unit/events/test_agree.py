"""Results and events agree, whatever happens: random batches in virtual time."""

from typing import Any

import anyio
import attrs
import pytest
from hypothesis import given, settings, strategies as st

from harbor_async import Join, SideEffect, ToolCall, ToolContext, ToolDescriptor, ToolResult
from harbor_async.testing import run_virtual
from tests.unit.events.support import Recorder, listen, make, of_result

RAISED: list[type[BaseException]] = [ValueError, ConnectionError, TimeoutError, GeneratorExit]


@attrs.frozen
class Planned:
    """A call: what each of its attempts does, and when its handle is canceled."""

    tool: str
    steps: list[str]
    seconds: list[float]
    canceled_at: float | None


SECONDS = st.sampled_from([0, 0.25, 0.5, 1.0, 1.5])
CALLS = st.lists(
    st.builds(
        Planned,
        tool=st.sampled_from(["plain", "write", "limited", "strict", "unknown"]),
        steps=st.lists(
            st.sampled_from(["value", "value", "bad", "shield", *[kind.__name__ for kind in RAISED]]),
            min_size=3,
            max_size=3,
        ),
        seconds=st.lists(SECONDS, min_size=3, max_size=3),
        canceled_at=st.none() | SECONDS,
    ),
    min_size=1,
    max_size=6,
)


async def work(steps: list[str], seconds: list[float], context: ToolContext) -> int:
    """Do what was planned for this attempt."""
    step, duration = steps[context.attempt - 1], seconds[context.attempt - 1]
    context.report_progress(context.attempt)
    with anyio.CancelScope(shield=step == "shield"):
        await anyio.sleep(duration)
    for kind in RAISED:
        if kind.__name__ == step:
            raise kind
    return "bad" if step == "bad" else 1  # type: ignore[return-value]


TOOLS: list[ToolDescriptor[..., Any]] = [
    make(work, name="plain"),
    make(work, name="write", side_effect=SideEffect.WRITE),
    make(work, name="limited", max_running=1, exclusive=lambda steps, _: steps[0]),
    make(work, name="strict", attempts=1, scopes=set()),
]


async def run_batch(calls: list[Planned], timeout: float | None, join: Join, places: int) -> None:
    sink = Recorder()
    async with (
        listen(*TOOLS, sinks=[sink], max_running=places, max_queued=3) as rt,
        rt.batch(timeout=timeout, join=join) as batch,
        anyio.create_task_group() as group,
    ):

        async def start(number: int, planned: Planned) -> None:
            handle = batch.start(
                ToolCall(str(number), planned.tool, {"steps": planned.steps, "seconds": planned.seconds})
            )
            if planned.canceled_at is not None:
                await anyio.sleep(planned.canceled_at)
                handle.cancel()

        for number, planned in enumerate(calls):
            group.start_soon(start, number, planned)
    told = sink.calls()
    assert {str(number) for number in range(len(calls))} == {*told}
    for result in batch.results:
        assert result is not None
        agree(result, told[result.call_id])


def agree(result: ToolResult, events: list[Any]) -> None:
    last = events[-1]
    assert of_result(result) == (last.outcome, last.category, last.error_class, last.stop_reason)
    assert (result.attempts, result.late, result.tool) == (last.attempts, last.late, last.tool)
    assert result.elapsed == last.elapsed or result.tool == "unknown"
    assert last.type == expected_type(result)
    assert max(0, result.attempts - 1) <= sum(event.type == "tool.retry" for event in events) <= result.attempts


def expected_type(result: ToolResult) -> str:
    """Return the last event that the design names for this result."""
    if result.error is None:
        return "tool.completed"
    if result.outcome == "rejected":
        return "tool.rejected"
    if result.error.category in {"canceled", "validation"}:
        return {"canceled": "tool.canceled", "validation": "tool.invalid_args"}[result.error.category]
    return "tool.policy_exhausted" if result.stop_reason == "attempts" else "tool.failed"


@pytest.mark.parametrize("backend", [{}, {"backend": "trio"}], ids=["asyncio", "trio"])
@settings(max_examples=60, deadline=None)
@given(CALLS, st.none() | SECONDS, st.sampled_from([Join.ALL, Join.FIRST_SUCCESS]), st.integers(1, 3))
def test_the_last_event_says_what_the_result_says(backend, calls, timeout, join, places) -> None:
    """Outcome, category, class, reason, attempts, time and lateness are the same, and each call has its one end."""
    run_virtual(run_batch, calls, timeout, join, places, **backend, seed=0)
