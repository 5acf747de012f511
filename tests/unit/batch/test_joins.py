"""When a batch has enough, and batches of which all calls begin or none, in virtual time."""

import anyio
import attrs
import pytest

from harbor_async import HarborError, Join, ToolCall, ToolResult
from harbor_async.errors import InvalidToolError
from tests.unit.batch.support import Log, canceled, make, runtime, succeeded, summary, work, working

pytestmark = pytest.mark.virtual
FAILED = ("failed", "unknown", 1, "permanent")


async def gather(rt, calls, **options):
    """Ask by ``invoke_many``, and by a batch with handles; both must say the same."""
    results = await rt.invoke_many(calls, **options)
    if not options.pop("atomic", False):
        async with rt.batch(**options) as batch:
            handles = [batch.start(call) for call in calls]
        assert list(map(summary, results)) == list(map(summary, batch.results))
        assert batch.results == [await handle.result() for handle in handles]
    return list(map(summary, results))


async def test_all_is_what_a_batch_waits_for():
    """Without a join, and with ``Join.ALL``, every call ends by itself."""
    calls = [work("a", 2), work("b", 1, fails=True), work("c", 3)]
    async with working(Log()) as rt:
        expected = [succeeded("a"), FAILED, succeeded("c")]
        assert expected == await gather(rt, calls)
        assert expected == await gather(rt, calls, join=Join.ALL)
    assert 12 == anyio.current_time()


async def test_the_first_success_cancels_the_rest():
    """A failure is no success; the first success ends the batch at once, and results keep the calls' order."""
    calls = [work("a", 3), work("b", 1, fails=True), work("c", 2), ToolCall("d", "unknown")]
    log = Log()
    async with working(log) as rt:
        results = await gather(rt, calls, join=Join.FIRST_SUCCESS)
    assert [canceled(1), FAILED, succeeded("c"), ("failed", "not_found", 0, "invalid")] == results
    assert 4 == anyio.current_time()
    assert ["a", "a"] == log.cut


async def test_what_waits_for_a_place_never_runs_after_the_last_success():
    """The place of the success that was enough goes to nobody: no further tool begins, not even for a step."""
    log = Log()
    async with working(log, max_running=1) as rt:
        results = await rt.invoke_many([work(name) for name in "abcd"], join=Join.at_least(2))
    assert [succeeded("a"), succeeded("b"), canceled(0), canceled(0)] == list(map(summary, results))
    assert ["a", "b"] == log.begun
    assert 2 == anyio.current_time()


async def test_enough_successes_cancel_the_rest():
    """``at_least(2)`` ends with the second success."""
    calls = [work("a", 4), work("b", 1), work("c", 2, fails=True), work("d", 3)]
    async with working(Log()) as rt:
        results = await gather(rt, calls, join=Join.at_least(2))
    assert [canceled(1), succeeded("b"), FAILED, succeeded("d")] == results
    assert 6 == anyio.current_time()


async def test_successes_that_cannot_be_had_are_waited_for_all_the_same():
    """With too few calls or too many failures every call ends by itself: more calls could still be started."""
    async with working(Log()) as rt:
        assert [succeeded("a"), succeeded("b")] == await gather(rt, [work("a"), work("b", 2)], join=Join.at_least(3))
        calls = [work("a", fails=True), work("b", 2)]
        assert [FAILED, succeeded("b")] == await gather(rt, calls, join=Join.at_least(2))
        assert [FAILED] == await gather(rt, [work("a", fails=True)], join=Join.FIRST_SUCCESS)
        assert [] == await gather(rt, [], join=Join.FIRST_SUCCESS)


async def test_a_call_that_starts_after_enough_is_canceled():
    """A batch that has enough begins nothing more."""
    log = Log()
    async with working(log) as rt, rt.batch(join=Join.FIRST_SUCCESS) as batch:
        await batch.start(work("a")).result()
        assert canceled(0) == summary(await batch.start(work("b")).result())
    assert ["a"] == log.begun


async def test_successes_at_the_same_time_are_kept():
    """What had succeeded when the batch had enough stays a success."""

    async def quick():
        pass

    async with runtime(make(quick)) as rt:
        results = await rt.invoke_many([ToolCall(str(n), "quick") for n in range(3)], join=Join.FIRST_SUCCESS)
    outcomes = [summary(result) for result in results]
    assert succeeded(None) in outcomes
    assert set(outcomes) <= {succeeded(None), canceled(0)}


async def test_a_late_effect_counts_as_a_success():
    """A write that finished after the cancel has happened, and is one more success than was asked for."""

    async def sends(seconds: float):
        with anyio.CancelScope(shield=True):
            await anyio.sleep(seconds)

    async with runtime(make(sends, side_effect="write")) as rt:
        calls = [ToolCall(str(n), "sends", {"seconds": n}) for n in (1, 2)]
        first, second = await rt.invoke_many(calls, join=Join.FIRST_SUCCESS)
    assert [succeeded(None), succeeded(None)] == [summary(first), summary(second)]
    assert [False, True] == [first.late, second.late]


async def test_a_deadline_ends_a_join_that_has_not_enough():
    """Deadline and join together: partial results, in order."""
    async with working(Log()) as rt:
        calls = [work("a", 1), work("b", 3), work("c", 4)]
        results = await gather(rt, calls, join=Join.at_least(2), timeout=2)
    late = ("timed_out", "timeout", 1, "deadline")
    assert [succeeded("a"), late, late] == results


@pytest.mark.parametrize("successes", [0, -1, True, 1.0, "1", float("nan")])
def test_a_join_of_nonsense_is_refused_when_it_is_made(successes):
    """``Join.at_least`` and ``Join`` take an int of at least 1, and say so."""
    with pytest.raises(InvalidToolError, match="an int of at least 1"):
        Join.at_least(successes)
    with pytest.raises(InvalidToolError, match="an int of at least 1"):
        Join(successes)


def test_a_join_of_none_is_refused():
    """``Join.at_least(None)`` is no way to say ``Join.ALL``."""
    with pytest.raises(InvalidToolError, match="an int of at least 1"):
        Join.at_least(None)


def test_joins_are_values():
    """Equal joins are equal, hash alike and cannot be changed."""
    assert Join.FIRST_SUCCESS == Join.at_least(1)
    assert Join.ALL == Join()
    assert 3 == len({Join.ALL, Join.FIRST_SUCCESS, Join.at_least(1), Join.at_least(2)})
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        Join.ALL.successes = 1


@pytest.mark.parametrize("join", [None, "all", 1, Join, True])
async def test_what_is_no_join_is_refused(join):
    """A batch with another join says what it expected, before anything begins."""
    log = Log()
    async with working(log) as rt:
        with pytest.raises(InvalidToolError, match=r"Join\.at_least"):
            rt.batch(join=join)
        with pytest.raises(InvalidToolError, match=r"Join\.at_least"):
            await rt.invoke_many([work("a")], join=join)
    assert [] == log.begun


REFUSED = [
    (ToolCall("x", "unknown"), ("failed", "not_found", 0, "invalid")),
    (ToolCall("x", "work", '{"name": 1}'), ("failed", "validation", 0, "invalid")),
    (ToolCall("x", "work", "{"), ("failed", "validation", 0, "invalid")),
]


@pytest.mark.parametrize(("refused", "expected"), REFUSED, ids=["unknown", "arguments", "syntax"])
@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("limits", [{}, {"max_running": 1}, {"max_running": 3, "max_queued": 0}])
async def test_one_call_at_fault_keeps_all_from_beginning(refused, expected, place, limits):
    """Atomic: the faulty call is answered with its fault, each other is canceled, none begins, no place is lost."""
    log = Log()
    calls = [work("a"), work("b")]
    calls.insert(place, refused)
    async with working(log, **limits) as rt:
        results = await rt.invoke_many(calls, atomic=True)
        assert [call.id for call in calls] == [result.call_id for result in results]
        outcomes = list(map(summary, results))
        assert expected == outcomes.pop(place)
        assert [canceled(0)] * 2 == outcomes
        assert ["not_sent"] * 2 == [r.error.delivery for r in results if r.error.category == "canceled"]
        assert [] == log.begun
        assert 0 == anyio.current_time()
        await all_places_are_free(rt, limits.get("max_running", 2))


async def test_a_full_queue_keeps_all_from_beginning():
    """Atomic: four calls for one place and two turns begin not at all, and hold neither place nor turn."""
    log = Log()
    async with working(log, max_running=1, max_queued=2) as rt:
        results = await rt.invoke_many([work(name) for name in "abcd"], atomic=True)
        rejected = ("rejected", "rate_limited", 0, "rejected")
        assert [canceled(0)] * 3 + [rejected] == list(map(summary, results))
        assert [] == log.begun
        results = await rt.invoke_many([work(name) for name in "abc"], atomic=True)
        assert list(map(succeeded, "abc")) == list(map(summary, results))
        await all_places_are_free(rt, 1)


async def test_a_withdrawn_call_leaves_its_turn_to_others():
    """What an atomic batch gives back goes to who waits, in order, though another caller holds the only place."""
    log = Log()
    async with working(log, max_running=1, max_queued=2) as rt, rt.batch() as other:
        first = other.start(work("a"))
        assert [canceled(0), ("failed", "not_found", 0, "invalid")] == [
            summary(result) for result in await rt.invoke_many([work("x"), ToolCall("y", "unknown")], atomic=True)
        ]
        handles = [first, other.start(work("b")), other.start(work("c"))]
        assert list(map(succeeded, "abc")) == [summary(await handle.result()) for handle in handles]
    assert ["a", "b", "c"] == log.begun
    assert 3 == anyio.current_time()


async def test_an_atomic_batch_without_a_fault_runs_like_any_other():
    """Atomic with calls that can all begin: failures later on harm nobody."""
    async with working(Log(), max_running=2) as rt:
        results = await rt.invoke_many([work("a"), work("b", fails=True), work("c")], atomic=True)
    assert [succeeded("a"), FAILED, succeeded("c")] == list(map(summary, results))


async def test_a_fault_in_an_ordinary_batch_keeps_nobody_from_beginning():
    """Not atomic: each call is answered for itself."""
    async with working(Log()) as rt:
        for refused, expected in REFUSED:
            results = await rt.invoke_many([work("a"), refused, work("b")])
            assert [succeeded("a"), expected, succeeded("b")] == list(map(summary, results))


class _Interrupts(dict):
    def items(self):
        raise KeyboardInterrupt

    __iter__ = keys = __getitem__ = items


async def test_an_interrupt_while_calls_are_prepared_loses_no_place():
    """Ctrl-C in the midst of decoding leaves as itself, and the calls before it have given their places back."""
    log = Log()
    async with working(log, max_running=2, max_queued=0) as rt:
        with pytest.raises(KeyboardInterrupt):
            await rt.invoke_many([work("a"), work("b"), ToolCall("c", "work", _Interrupts(name="c"))])
        assert [] == log.begun
        await all_places_are_free(rt, 2)


async def test_an_iterable_of_calls_that_breaks_begins_nothing():
    """An iterable that raises, or gives something that is no call, leaves as that; nothing has begun."""
    log = Log()

    def breaks():
        yield work("a")
        raise LookupError("mine")

    async with working(log) as rt:
        with pytest.raises(LookupError, match="mine"):
            await rt.invoke_many(breaks())
        with pytest.raises(TypeError, match="expected a ToolCall"):
            await rt.invoke_many([work("a"), ("b", "work", "{}")])
    assert [] == log.begun


async def all_places_are_free(rt, places):
    """Fill all places at once; where one was lost, a call would have to wait, and the clock would show it."""
    before = anyio.current_time()
    results: list[ToolResult] = await rt.invoke_many([work(str(n)) for n in range(places)])
    assert [succeeded(str(n)) for n in range(places)] == list(map(summary, results))
    assert 1 == anyio.current_time() - before


def test_errors_of_the_border_are_ours():
    """Whoever catches ``HarborError`` catches what a join is refused with."""
    assert issubclass(InvalidToolError, HarborError)
