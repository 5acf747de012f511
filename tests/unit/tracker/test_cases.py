"""Reported faults of writing to trackers, by the ids under which they were collected."""

import anyio
import pytest

from harbor_async import Backoff, Catalog, Delivery, ErrorCategory, Runtime, ToolCall, ToolPolicy
from harbor_async.tracker import NAME, TrackerError, TrackerResult, tracker_write
from tests.unit.tracker import memory
from tests.unit.tracker.memory import EFFECT, POLICY, Memory, Readable

CLOSE = {"op": "close", "id": "T-1"}
COMMENT = {"op": "comment", "id": "T-1", "body": "done"}


@pytest.mark.virtual
@pytest.mark.parametrize("kind", [Memory, Readable])
async def test_r104_close_that_hangs_after_its_effect(kind: type[Memory]) -> None:
    """One write; then a timeout that is said to be unclear, or the success that a look at the issue shows."""
    tracker = kind(memory.hang, EFFECT, times=1)
    tool = tracker_write(tracker, policy=ToolPolicy(0.05, 4, Backoff(initial=0)))
    async with Runtime(Catalog([tool])) as runtime:
        result = await runtime.invoke(NAME, CLOSE)
    assert ([("close", "T-1", "")], 1) == (tracker.effects, len(tracker.keys))
    if kind is Readable:
        assert ("succeeded", 2) == (result.outcome, result.attempts)
    else:
        assert ("failed", "timeout", True) == (result.outcome, result.error.category, result.error.ambiguous)


class Forgetful(Memory):
    """A tracker that takes a state, works, and writes what it made of it: two at once lose one write."""

    async def write(self, op: str, id: str, value: str, key: str) -> None:
        before = list(self.effects)
        await anyio.sleep(0.1)
        self.effects[:] = [*before, (op, id, value)]


@pytest.mark.virtual
async def test_r112_writer_that_loses_writes_made_at_once() -> None:
    """Eight comments on one issue through a writer that loses writes made at once: all eight are there, in order."""
    tracker = Forgetful()
    calls = [ToolCall(str(i), NAME, {**COMMENT, "body": str(i)}) for i in range(8)]
    async with Runtime(Catalog([tracker_write(tracker, policy=POLICY)])) as runtime:
        results = await runtime.invoke_many(calls)
    assert {"succeeded"} == {result.outcome for result in results}
    assert [str(i) for i in range(8)] == [body for _, _, body in tracker.effects]


@pytest.mark.virtual
async def test_r113_database_is_locked_twice() -> None:
    """A lock that was not got has sent nothing: three attempts, and one comment."""
    tracker = Memory(memory.fail_before, point=0, times=2)
    async with Runtime(Catalog([tracker_write(tracker, policy=POLICY)])) as runtime:
        result = await runtime.invoke(NAME, COMMENT)
    assert ("succeeded", 3, 1) == (result.outcome, result.attempts, len(tracker.effects))


class Keyed(Memory):
    """A tracker that knows its keys, and has seen the next one with another body."""

    async def write(self, op: str, id: str, value: str, key: str) -> None:
        self.keys.append(key)
        raise TrackerError("this key came with another body", category="conflict", delivery="refused")


async def test_r115_key_that_came_with_another_body() -> None:
    """What a tracker says of a key that it knows is a conflict, once, and not the success of the old call."""
    tracker = Keyed()
    async with Runtime(Catalog([tracker_write(tracker, policy=POLICY)])) as runtime:
        result = await runtime.invoke(NAME, COMMENT)
    assert ("failed", "conflict", 1, False) == (
        result.outcome,
        result.error.category,
        result.attempts,
        result.is_retryable,
    )


@pytest.mark.virtual
@pytest.mark.parametrize("strike", [memory.hang, memory.lose_connection])
async def test_n26_comment_that_may_have_landed(strike) -> None:
    """The envelope keeps the seed's verdict for agent loops that know it, and the result says better: unclear."""
    tracker = Memory(strike, EFFECT, times=1)
    async with Runtime(Catalog([tracker_write(tracker, policy=POLICY)])) as runtime:
        result = await runtime.invoke(NAME, COMMENT)
    assert TrackerResult.from_json(result.content).is_retryable
    assert (True, False, 1) == (result.error.ambiguous, result.is_retryable, result.attempts)
    assert [("comment", "T-1", "done")] == tracker.effects


@pytest.mark.parametrize(
    ("arguments", "category"),
    [
        ({"op": "shut", "id": "T-1"}, "validation"),
        ({"op": "close", "id": " "}, "validation"),
        ({"op": "comment", "id": "T-1"}, "canceled"),
        ({"op": "link_pr", "id": "T-1"}, "canceled"),
    ],
)
async def test_n27_cancel_before_the_write(arguments: dict[str, str], category: str) -> None:
    """Operation and issue are looked at first, then the cancel, and only then the tracker and the field."""
    tracker = Memory()
    async with Runtime(Catalog([tracker_write(tracker)])) as runtime, runtime.batch() as batch:
        handle = batch.start(ToolCall("1", NAME, arguments))
        handle.cancel()
        result = await handle.result()
    assert (category, []) == (result.error.category, tracker.keys)


async def test_n27_capability_before_field() -> None:
    """What the tracker cannot do is unsupported, whether its field is there or not."""

    class CanClose:
        async def close(self, id: str, reason: str, *, key: str) -> None: ...

    async with Runtime(Catalog([tracker_write(CanClose())])) as runtime:
        result = await runtime.invoke(NAME, {"op": "comment", "id": "T-1"})
    assert ErrorCategory.UNSUPPORTED_OP == result.error.category
    assert Delivery.NOT_SENT == result.error.delivery
