"""The soak, in a form of two seconds."""

import re
from collections import Counter

import pytest
from attrs import evolve

from bench import soak
from harbor_async import EventType, Outcome, Statistics, ToolCall, ToolEvent, ToolResult


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_short_soak_leaves_nothing(backend, capsys):
    """Every call is answered once, and no task, thread or place is left."""
    status = soak.main(["--backend", backend, "--seconds", "2", "--in-flight", "200"])
    told = capsys.readouterr().out
    assert 0 == status, told
    calls = re.search(r"^([\d,]+) calls", told, re.MULTILINE)
    assert calls is not None
    assert int(calls[1].replace(",", "")) > 100


def finished(**seen):
    """Return a run of an hour in which nothing went wrong but what is given."""
    ledger = soak.Ledger(sent=2, answers=Counter(succeeded=1), abandoned=1)
    nothing = Statistics(
        **dict.fromkeys(("running", "queued", "threads", "background", "dropped_events"), 0),
        running_by_tool={},
        queued_by_tool={},
    )
    return soak.Soak(**{"ledger": ledger, "seconds": 3600.0, "samples": [1] * 20, "statistics": nothing} | seen)


def test_a_run_in_which_all_went_well():
    """Every call answered or given up, and nothing left, is no fault."""
    assert [] == finished().faults(threads=0)


def test_a_lost_answer_is_seen():
    """A call that was sent and neither answered nor given up is a fault."""
    (fault,) = finished(ledger=soak.Ledger(sent=1)).faults(threads=0)
    assert fault.startswith("1 calls were sent and 0 answered")


@pytest.mark.parametrize(
    ("samples", "is_fault"),
    [([9, 9, *[1] * 16, 1, 1], False), ([1, 1, 100, 100, *[1] * 14, 105, 105], False), ([*[100] * 18, 106, 106], True)],
    ids=["start does not count", "five in a hundred", "six in a hundred"],
)
def test_growing_memory_is_seen(samples, is_fault):
    """More than 1.05 times the memory of the second tenth in the last one is a fault."""
    assert is_fault == bool(finished(samples=samples).faults(threads=0))


def test_what_is_left_is_seen():
    """A task, a thread, and a place that are left are a fault each."""
    running = evolve(finished().statistics, running=1)
    assert 3 == len(finished(tasks_left=1, statistics=running).faults(threads=1))


async def test_a_call_that_ends_twice_is_seen():
    """Each call begins once and ends once, in this order; whatever else a sink hears is a fault."""
    ledger = soak.Ledger()
    for type in (EventType.INVOKED, EventType.ATTEMPT, EventType.COMPLETED):
        await ledger.emit(ToolEvent(type=type, call_id="1", tool="t", time=0.0))
    assert [] == ledger.faults
    assert set() == ledger.open
    await ledger.emit(ToolEvent(type=EventType.FAILED, call_id="1", tool="t", time=0.0))
    assert ["1: tool.failed after its end"] == ledger.faults


def test_answers_in_another_order_are_seen():
    """The answers of a batch are those of its calls, in their order."""
    ledger = soak.Ledger()
    calls = [ToolCall("1", "t"), ToolCall("2", "t")]
    results = [ToolResult(call.id, "t", Outcome.SUCCEEDED) for call in calls]
    ledger.take(calls, results)
    assert [] == ledger.faults
    ledger.take(calls, results[::-1])
    assert ["answers of 1 to 2 are missing or mixed up"] == ledger.faults
