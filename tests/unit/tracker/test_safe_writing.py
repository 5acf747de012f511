"""A write that goes wrong at any point happens once, or is said to be unknown; one issue's writes keep their order."""

from typing import Any

import anyio
import pytest

from harbor_async import Backoff, Catalog, Delivery, ErrorCategory, Runtime, ToolCall, ToolPolicy, ToolResult
from harbor_async.testing import cancel_sweep
from harbor_async.tracker import NAME, TrackerError, TrackerResult, tracker_write
from tests.unit.tracker import memory
from tests.unit.tracker.memory import EFFECT, POINTS, POLICY, Memory, Readable

OPERATIONS = {
    "comment": {"op": "comment", "id": "T-1", "body": "done"},
    "transition": {"op": "transition", "id": "T-1", "toState": " In Review "},
    "close": {"op": "close", "id": "T-1"},
    "link_pr": {"op": "link_pr", "id": "T-1", "prURL": " https://example.org/pull/1\n"},
}
UNKNOWN = [memory.hang, memory.lose_connection, memory.answer_nonsense]
each_op = pytest.mark.parametrize("op", OPERATIONS)


def effect(op: str) -> tuple[str, str, str]:
    """Return what is in the tracker after an operation has happened once."""
    op, id, *value = OPERATIONS[op].values()
    return op, id, "".join(value).strip()


async def invoke(tracker: Memory, op: str, policy: ToolPolicy = POLICY, **options: Any) -> ToolResult:
    async with Runtime(Catalog([tracker_write(tracker, policy=policy)])) as runtime:
        return await runtime.invoke(NAME, OPERATIONS[op], **options)


# --- one failure, and more --------------------------------------------------------------------------------------------


@pytest.mark.virtual
@each_op
async def test_a_write_that_can_be_looked_for_happens_once(op: str) -> None:
    """Whatever goes wrong, wherever and up to three times of four, the operation succeeds and has happened once."""
    for strike in UNKNOWN:
        for point in POINTS:
            for times in (1, 2, 3):
                tracker = Readable(strike, point, times)
                result = await invoke(tracker, op)
                attempts = 2 if point >= EFFECT else times + 1  # what has happened is seen, and not done again
                assert ("succeeded", attempts, [effect(op)]) == (result.outcome, result.attempts, tracker.effects)
                assert 1 == len(set(tracker.keys))


@pytest.mark.virtual
@each_op
async def test_a_write_that_cannot_be_looked_for_is_not_repeated(op: str) -> None:
    """Without a reader a write whose fate is unknown is the last one, and the answer says that it may have happened."""
    for strike in UNKNOWN:
        for point in POINTS:
            tracker = Memory(strike, point, times=1)
            result = await invoke(tracker, op)
            assert ("failed", 1, "unsafe") == (result.outcome, result.attempts, result.stop_reason)
            assert (True, False) == (result.error.ambiguous, result.is_retryable)
            assert "may have happened" in result.content
            assert ([effect(op)] if point >= EFFECT else []) == tracker.effects


class Finds(Memory):
    """A tracker that can be asked for comments alone."""

    find_comment = Readable.find_comment


class Reads(Memory):
    """A tracker that can be asked for issues alone, which tell nothing of comments."""

    get = Readable.get


@pytest.mark.virtual
@each_op
async def test_each_look_serves_its_own_operations(op: str) -> None:
    """A tracker that finds comments repeats comments, one that reads issues the rest; the others end unclear."""
    for kind, can_look in ((Finds, op == "comment"), (Reads, op != "comment")):
        tracker = kind(memory.lose_connection, point=0, times=1)
        result = await invoke(tracker, op)
        if can_look:
            assert ("succeeded", 2, [effect(op)]) == (result.outcome, result.attempts, tracker.effects)
        else:
            assert ("failed", 1, True) == (result.outcome, result.attempts, result.error.ambiguous)


@pytest.mark.virtual
@each_op
@pytest.mark.parametrize("kind", [Memory, Readable])
async def test_a_write_that_surely_had_no_effect_is_repeated(op: str, kind: type[Memory]) -> None:
    """What the writer says was not sent is tried again, with or without a reader, and then happens once."""
    for point in range(EFFECT):
        tracker = kind(memory.fail_before, point, times=2)
        result = await invoke(tracker, op)
        assert ("succeeded", 3, [effect(op)]) == (result.outcome, result.attempts, tracker.effects)


@pytest.mark.virtual
@each_op
async def test_a_write_that_never_gets_through_does_not_happen(op: str) -> None:
    """After four failures before the effect the answer is a failure, and the tracker is as it was."""
    tracker = Readable(memory.lose_connection, point=0, times=4)
    result = await invoke(tracker, op)
    assert ("failed", "api_request", 4) == (result.outcome, result.error.category, result.attempts)
    assert [] == tracker.effects


class Blind(Readable):
    """A tracker that cannot be asked just now."""

    async def find_comment(self, id: str, *, key: str) -> bool:
        raise TrackerError("busy", category=ErrorCategory.RATE_LIMITED, delivery=Delivery.REFUSED)

    async def get(self, id: str) -> Any:
        raise TrackerError("busy", category=ErrorCategory.RATE_LIMITED, delivery=Delivery.REFUSED)


@pytest.mark.virtual
@each_op
async def test_without_a_look_there_is_no_second_write(op: str) -> None:
    """While the look fails nothing is written again, and what was written once stays once."""
    tracker = Blind(memory.lose_connection, point=EFFECT, times=1)
    result = await invoke(tracker, op)
    assert ("failed", "rate_limited", 4) == (result.outcome, result.error.category, result.attempts)
    assert ([effect(op)], 1) == (tracker.effects, len(tracker.keys))


@pytest.mark.virtual
@pytest.mark.parametrize(("kind", "times"), [(Readable, 4), (Blind, 1)], ids=["always", "once"])
async def test_a_comment_that_may_be_there_at_the_end_is_not_to_be_sent_again(kind: type[Memory], times: int) -> None:
    """By the key of a new call no comment of an old one is found: so an end that is not clear says that it is not."""
    tracker = kind(memory.hang, point=0, times=times)
    result = await invoke(tracker, "comment")
    assert ("failed", 4, True, False) == (
        result.outcome,
        result.attempts,
        result.error.ambiguous,
        result.is_retryable,
    )


@pytest.mark.virtual
async def test_two_calls_have_two_keys() -> None:
    """Two comments with the same words are two comments: each call has a key of its own."""
    tracker = Readable()
    tool = tracker_write(tracker, policy=POLICY)
    async with Runtime(Catalog([tool])) as runtime:
        await runtime.invoke_many([ToolCall("same", NAME, OPERATIONS["comment"])] * 2)
    assert ([effect("comment")] * 2, 2) == (tracker.effects, len(set(tracker.keys)))


# --- deadlines and cancels --------------------------------------------------------------------------------------------


@pytest.mark.virtual
@each_op
@pytest.mark.parametrize("kind", [Memory, Readable])
async def test_a_deadline_at_any_time_leaves_at_most_one(op: str, kind: type[Memory]) -> None:
    """A deadline that cuts a write says so: nothing happened before it began, nobody knows once it has."""
    for tenths in range(0, 42, 3):
        tracker = kind(memory.hang, EFFECT, times=1, step=0.1)
        result = await invoke(tracker, op, timeout=tenths / 10)
        assert tracker.effects in ([], [effect(op)])
        if result.outcome == "succeeded":
            assert [effect(op)] == tracker.effects
        else:
            envelope = TrackerResult.from_json(result.content)
            assert ("failed", "timeout") == (envelope.outcome, envelope.error.category)
            if result.attempts == 0:
                assert ([], False) == (tracker.effects, result.error.ambiguous)
            elif kind is Memory:
                assert result.error.ambiguous


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@each_op
def test_a_cancel_at_any_step_leaves_at_most_one(op: str, backend: Any) -> None:
    """Canceled by its caller at any step, a write and its repeat have happened once or not at all."""

    async def scenario() -> None:
        tracker = Readable(memory.lose_connection, EFFECT, times=1)
        try:
            await invoke(tracker, op, ToolPolicy(1.0, 4, Backoff(initial=0)))
        finally:
            assert tracker.effects in ([], [effect(op)])

    assert cancel_sweep(scenario, backend=backend) >= 4  # two points, the wait for the second attempt, the look


@pytest.mark.virtual
@each_op
async def test_a_write_that_ends_after_a_cancel_has_happened(op: str) -> None:
    """A writer that finishes in spite of a cancel has changed the tracker, so the answer is a success."""
    tracker = Readable(step=0.1)

    async def in_peace(*args: Any) -> None:
        with anyio.CancelScope(shield=True):
            await Memory.write(tracker, *args)

    tracker.write = in_peace
    async with Runtime(Catalog([tracker_write(tracker, policy=POLICY)])) as runtime, runtime.batch() as batch:
        handle = batch.start(ToolCall("1", NAME, OPERATIONS[op]))
        await anyio.sleep(0.15)
        handle.cancel()
        result = await handle.result()
    assert ("succeeded", True, [effect(op)]) == (result.outcome, result.late, tracker.effects)
    assert f'{{"outcome":"succeeded","op":"{op}","id":"T-1"}}' == result.content


# --- one issue, many writes -------------------------------------------------------------------------------------------


@pytest.mark.virtual
async def test_writes_on_one_issue_keep_the_order_of_their_calls() -> None:
    """Fifty comments on one issue are written one after the other, in the order of the calls."""
    tracker = Readable(step=0.1)
    calls = [ToolCall(str(i), NAME, {"op": "comment", "id": "T-1", "body": str(i)}) for i in range(50)]
    async with Runtime(Catalog([tracker_write(tracker, policy=POLICY)])) as runtime:
        results = await runtime.invoke_many(calls)
    assert {"succeeded"} == {result.outcome for result in results}
    assert [("comment", "T-1", str(i)) for i in range(50)] == tracker.effects
    assert [] == tracker.overlaps


@pytest.mark.virtual
async def test_writes_on_different_issues_run_side_by_side() -> None:
    """Fifty issues take as long as one: four points, a tenth of a second each."""
    tracker = Readable(step=0.1)
    calls = [ToolCall(str(i), NAME, {"op": "comment", "id": f"T-{i}", "body": "x"}) for i in range(50)]
    began = anyio.current_time()
    async with Runtime(Catalog([tracker_write(tracker, policy=POLICY)])) as runtime:
        await runtime.invoke_many(calls)
    assert 50 == len(tracker.effects)
    assert pytest.approx(0.4) == anyio.current_time() - began


@pytest.mark.virtual
async def test_a_write_waits_for_the_retries_of_the_one_before() -> None:
    """The second move waits until the first has come through, so that the issue ends where the last call says."""
    tracker = Readable(memory.hang, point=0, times=2)
    moves = [
        ToolCall(state, NAME, {"op": "transition", "id": "T-1", "toState": state}) for state in ("In Review", "Done")
    ]
    async with Runtime(Catalog([tracker_write(tracker, policy=POLICY)])) as runtime:
        results = await runtime.invoke_many(moves)
    assert [3, 1] == [result.attempts for result in results]
    assert [("transition", "T-1", "In Review"), ("transition", "T-1", "Done")] == tracker.effects


@pytest.mark.virtual
async def test_two_trackers_do_not_wait_for_each_other() -> None:
    """The same id in two trackers is two issues."""
    trackers = {name: Readable(step=0.1) for name in ("one", "two")}
    tools = [tracker_write(tracker, name=name, policy=POLICY) for name, tracker in trackers.items()]
    began = anyio.current_time()
    async with Runtime(Catalog(tools)) as runtime:
        await runtime.invoke_many([ToolCall("", name, OPERATIONS["comment"]) for name in trackers])
    assert pytest.approx(0.4) == anyio.current_time() - began
