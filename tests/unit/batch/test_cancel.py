"""Canceling one call of a batch, or all of it, at every stage of a call's life, in virtual time."""

import anyio
import anyio.lowlevel
import pytest
from anyio.lowlevel import checkpoint

from harbor_async import Delivery, ToolCall
from harbor_async.testing import block, wait_all_tasks_blocked
from tests.unit.batch.support import Log, canceled, make, runtime, succeeded, summary, work, working

pytestmark = pytest.mark.virtual
each_cancel = pytest.mark.parametrize("whole", [False, True], ids=["handle", "batch"])


def cancel(batch, handle, *, whole):
    (batch if whole else handle).cancel()


async def test_a_canceled_batch_keeps_what_is_finished():
    """Done, running and queued when the batch is canceled: value, canceled after 1 attempt, after none (R003)."""
    log = Log()
    async with working(log, max_running=1) as rt:
        async with rt.batch() as batch:
            handles = [batch.start(work(name)) for name in "abc"]
            await anyio.sleep(1.5)
            assert [True, False, False] == [handle.done for handle in handles]
            batch.cancel()
        assert [succeeded("a"), canceled(1), canceled(0)] == [summary(result) for result in batch.results]
        assert ["a", "b", "c"] == [result.call_id for result in batch.results]
        assert batch.results == [await handle.result() for handle in handles]
    assert ["a", "b"] == log.begun
    assert 1.5 == anyio.current_time()


async def test_one_failing_call_takes_nothing_from_the_others():
    """What A did and returned is in the result of the batch though B raised (R004)."""
    log = Log()
    async with working(log) as rt:
        async with rt.batch() as batch:
            batch.start(work("a"))
            batch.start(work("b", fails=True))
        assert [succeeded("a"), ("failed", "unknown", 1, "permanent")] == [summary(r) for r in batch.results]
    assert ["a", "b"] == sorted(log.ended)


async def test_a_canceled_handle_harms_no_sibling():
    """A handle cancels its own call at once and no other (R011a)."""
    log = Log()
    async with working(log) as rt, rt.batch() as batch:
        first, second = batch.start(work("a", 2)), batch.start(work("b", 2))
        await anyio.sleep(0.5)
        first.cancel()
        assert canceled(1) == summary(await first.result())
        assert 0.5 == anyio.current_time() == (await first.result()).elapsed
        assert not second.done
        assert succeeded("b") == summary(await second.result())
        assert second.done
    assert ["a"] == log.cut
    assert 2 == anyio.current_time()


async def test_a_canceled_call_is_answered_after_it_has_tidied_up():
    """The result of a canceled call comes when the tool has ended: nothing of it runs any more."""
    log = Log()
    async with working(log) as rt, rt.batch() as batch:
        handle = batch.start(work("a", tidies=3))
        await anyio.sleep(0.5)
        handle.cancel()
        assert not handle.done
        assert canceled(1) == summary(await handle.result())
    assert 3.5 == anyio.current_time()


@each_cancel
@pytest.mark.parametrize(("side_effect", "is_ambiguous"), [("write", True), ("stateful", True), ("read", False)])
async def test_a_declared_effect_that_is_cut_is_ambiguous(whole, side_effect, is_ambiguous):
    """A write that a cancel cut in mid-attempt may have happened; a read has not changed a thing."""

    async def sends():
        await anyio.sleep(1)

    async with runtime(make(sends, side_effect=side_effect)) as rt, rt.batch() as batch:
        handle = batch.start(ToolCall("", "sends"))
        await anyio.sleep(0.5)
        cancel(batch, handle, whole=whole)
        result = await handle.result()
    assert canceled(1) == summary(result)
    assert is_ambiguous is result.error.ambiguous
    assert Delivery.UNKNOWN is result.error.delivery
    assert not result.is_retryable


@each_cancel
@pytest.mark.parametrize("side_effect", ["write", "external", "stateful"])
async def test_a_declared_effect_that_finishes_after_a_cancel_has_happened(whole, side_effect):
    """A write that shields itself and ends after the cancel is a success, flagged late."""

    async def sends() -> str:
        with anyio.CancelScope(shield=True):
            await anyio.sleep(1)
        return "sent"

    async with runtime(make(sends, side_effect=side_effect)) as rt, rt.batch() as batch:
        handle = batch.start(ToolCall("", "sends"))
        await anyio.sleep(0.5)
        cancel(batch, handle, whole=whole)
        result = await handle.result()
    assert succeeded("sent") == summary(result)
    assert result.late
    assert 1 == anyio.current_time()


@each_cancel
async def test_a_late_value_without_an_effect_is_dropped(whole):
    """A tool that declares no effect and returns after the cancel is canceled."""

    async def reads() -> str:
        with anyio.CancelScope(shield=True):
            await anyio.sleep(1)
        return "read"

    async with runtime(make(reads)) as rt, rt.batch() as batch:
        handle = batch.start(ToolCall("", "reads"))
        await anyio.sleep(0.5)
        cancel(batch, handle, whole=whole)
        assert canceled(1) == summary(await handle.result())


@each_cancel
async def test_a_cancel_that_the_tool_turns_into_an_error_is_canceled(whole):
    """What a tool makes of its cancellation is the cause of the answer and not the answer."""

    async def converts():
        try:
            await anyio.sleep(1)
        except anyio.get_cancelled_exc_class():
            raise LookupError("of its own") from None

    async with runtime(make(converts, attempts=3)) as rt, rt.batch() as batch:
        handle = batch.start(ToolCall("", "converts"))
        await anyio.sleep(0.5)
        cancel(batch, handle, whole=whole)
        result = await handle.result()
    assert canceled(1) == summary(result)
    assert isinstance(result.error.cause, LookupError)


@each_cancel
async def test_a_call_that_is_canceled_in_the_queue_never_runs(whole):
    """It is answered at once, has made no attempt, and leaves the queue to who is next."""
    log = Log()
    async with working(log, max_running=1, max_queued=1) as rt, rt.batch() as other:
        first = other.start(work("a"))
        async with rt.batch() as batch:
            handle = batch.start(work("b"))
            await anyio.sleep(0.5)
            cancel(batch, handle, whole=whole)
            result = await handle.result()
            assert 0.5 == anyio.current_time()
            assert canceled(0) == summary(result)
            assert (Delivery.NOT_SENT, False) == (result.error.delivery, result.error.ambiguous)
        third = other.start(work("c"))  # which is refused when the queue is still full
        assert succeeded("c") == summary(await third.result())
        assert succeeded("a") == summary(await first.result())
    assert ["a", "c"] == log.begun
    assert 2 == anyio.current_time()


@each_cancel
async def test_a_call_that_is_canceled_before_its_task_has_queued_waits_for_no_place(whole):
    """Started and canceled in one step while the house is full: answered at once, not when a place is free."""
    log = Log()
    async with working(log, max_running=1) as rt, rt.batch() as other:
        other.start(work("a", 5))
        async with rt.batch() as batch:
            handle = batch.start(work("b"))
            cancel(batch, handle, whole=whole)
        assert canceled(0) == summary(batch.results[0])
        assert 0 == anyio.current_time()
    assert ["a"] == log.begun


@each_cancel
async def test_a_call_that_is_canceled_before_its_first_step_never_runs(whole, request):
    """Started and canceled in one step, a call has made no attempt; an eager task has begun already."""
    log = Log()
    async with working(log) as rt, rt.batch() as batch:
        handle = batch.start(work("a"))
        cancel(batch, handle, whole=whole)
        assert canceled(len(log.begun)) == summary(await handle.result())
    assert (["a"] if "eager" in request.node.name else []) == log.begun


@each_cancel
async def test_a_call_that_is_canceled_between_its_attempts_makes_no_other(whole):
    """A cancel in the wait before a retry ends the call at once, after the attempts that it has made."""
    starts = []

    async def fails():
        starts.append(anyio.current_time())
        raise ConnectionError

    async with runtime(make(fails, attempts=5)) as rt, rt.batch() as batch:
        handle = batch.start(ToolCall("", "fails"))
        await anyio.sleep(2)
        cancel(batch, handle, whole=whole)
        result = await handle.result()
    assert canceled(2) == summary(result)
    assert 2 == result.elapsed
    assert Delivery.NOT_SENT is result.error.delivery
    assert [0, 1] == starts


@each_cancel
async def test_a_retry_rule_that_cancels_its_call_is_obeyed(whole):
    """A cancel that comes between an attempt and the wait after it is noticed before the wait."""
    kept = []

    async def fails():
        await anyio.sleep(0.5)
        raise ConnectionError

    def classify(error):
        cancel(*kept, whole=whole)

    async with runtime(make(fails, attempts=5, classify=classify)) as rt:
        async with rt.batch() as batch:
            kept += [batch, batch.start(ToolCall("", "fails"))]
        assert canceled(1) == summary(batch.results[0])
    assert 0.5 == anyio.current_time()


async def test_any_task_may_cancel():
    """A task outside, a sibling, and the tool of the call itself cancel like the block."""
    log = Log()
    handles = {}

    async def cancels(name: str):
        handles[name].cancel()
        await anyio.sleep(1)

    async with (
        working(log, make(cancels)) as rt,
        anyio.create_task_group() as group,
        rt.batch() as batch,
    ):
        handles["a"] = batch.start(work("a"))
        handles["b"] = batch.start(work("b"))
        await anyio.sleep(0.25)
        group.start_soon(cancels, "a")
        sibling = batch.start(ToolCall("", "cancels", {"name": "b"}))
        assert canceled(1) == summary(await handles["a"].result())
        assert canceled(1) == summary(await handles["b"].result())
        assert 0.25 == anyio.current_time()
        assert succeeded(None) == summary(await sibling.result())


@pytest.mark.parametrize("how", ["handle", "batch", "batch in the first step"])
async def test_a_tool_that_cancels_its_own_call_ends_at_its_next_wait(how):
    """A tool is canceled through its own handle or batch like by anybody else: after its next wait nothing is done."""
    kept, after = {}, []

    async def cancels():
        if how in kept:
            await anyio.sleep(0.5)
        kept.get(how, kept["batch"]).cancel()
        await anyio.sleep(1)
        after.append(1)

    async with runtime(make(cancels)) as rt:
        async with rt.batch() as batch:
            kept["handle"] = kept["batch"] = batch
            kept["handle"] = batch.start(ToolCall("", "cancels"))
        assert canceled(1) == summary(batch.results[0])
    assert [] == after


async def test_a_cancel_is_not_undone_and_not_repeated():
    """Canceling twice is canceling once, also while the tool tidies up; a tool in a new wait is left alone."""
    log = Log()
    async with working(log) as rt, rt.batch() as batch:
        handle = batch.start(work("a", tidies=1))
        await anyio.sleep(0.5)
        handle.cancel()
        await anyio.sleep(0.5)
        handle.cancel()
        batch.cancel()
        assert canceled(1) == summary(await handle.result())
    assert ["a"] == log.cut
    assert 1.5 == anyio.current_time()


async def test_canceling_what_has_ended_changes_nothing():
    """A value, a failure and a refusal stay what they are, inside the block and after it."""
    log = Log()
    async with working(log) as rt:
        async with rt.batch() as batch:
            handles = [batch.start(call) for call in (work("a"), work("b", fails=True), ToolCall("c", "unknown"))]
            results = [await handle.result() for handle in handles]
            for handle in handles:
                handle.cancel()
            batch.cancel()
            assert results == [await handle.result() for handle in handles]
        for handle in handles:
            handle.cancel()
        batch.cancel()
        assert results == batch.results == [await handle.result() for handle in handles]
    assert [succeeded("a"), ("failed", "unknown", 1, "permanent"), ("failed", "not_found", 0, "invalid")] == [
        summary(result) for result in results
    ]


@each_cancel
@pytest.mark.parametrize("first", ["canceler", "tool"])
@pytest.mark.parametrize("side_effect", ["read", "write"])
async def test_a_cancel_in_the_tick_of_completion_has_one_end(whole, first, side_effect):
    """Timers of the tool and the canceler are due at once: one result, which never changes afterwards (R037)."""
    runs, seen = [], []

    async def ends() -> str:
        runs.append(1)
        await anyio.sleep(1)
        return "value"

    async def canceler():
        await anyio.sleep(1)
        cancel(*kept, whole=whole)

    async with runtime(make(ends, side_effect=side_effect)) as rt, anyio.create_task_group() as group:
        async with rt.batch() as batch:
            kept = [batch, None]

            async def start():
                kept[1] = batch.start(ToolCall("", "ends"))
                await wait_all_tasks_blocked()

            if first == "tool":
                await start()
            group.start_soon(canceler)
            await wait_all_tasks_blocked()
            if first == "canceler":
                await start()
            seen.append(await kept[1].result())
        seen += [batch.results[0], await kept[1].result()]
        assert 1 == len(batch.results)
    assert 1 == len(runs)
    assert seen[0] is seen[1] is seen[2]
    assert summary(seen[0]) in (succeeded("value"), canceled(1))
    if summary(seen[0]) == canceled(1):
        assert (side_effect == "write") is seen[0].error.ambiguous


async def test_a_cancel_wins_over_a_deadline_and_a_deadline_over_completion():
    """In a loop that was blocked past everything, cancel and deadline have both come: the cancel is the answer."""

    async def blocks():
        block(2)

    async with runtime(make(blocks)) as rt:
        async with rt.batch(timeout=1) as batch:
            batch.start(ToolCall("", "blocks"))
        assert ("timed_out", "timeout", 1, "deadline") == summary(batch.results[0])
        kept = []

        async def both():
            await checkpoint()
            kept[0].cancel()
            block(2)

    async with runtime(make(both)) as rt:
        async with rt.batch(timeout=1) as batch:
            kept.append(batch.start(ToolCall("", "both")))
        assert canceled(1) == summary(batch.results[0])


async def test_calls_that_start_in_a_canceled_batch_are_canceled():
    """After ``batch.cancel()``, even before the block, each call that starts is canceled and never runs."""
    log = Log()
    async with working(log, max_running=1) as rt:
        batch = rt.batch()
        batch.cancel()
        async with batch:
            handles = [batch.start(work(name)) for name in "abc"]
            assert [canceled(0)] * 3 == [summary(await handle.result()) for handle in handles]
            refused = batch.start(ToolCall("", "unknown"))
            assert ("failed", "not_found", 0, "invalid") == summary(await refused.result())
    assert [] == log.begun
    assert 0 == anyio.current_time()


async def test_a_deadline_leaves_what_is_finished():
    """At the deadline of a batch: done, cut in an attempt, and never begun; and one that starts after it (R022)."""
    log = Log()
    async with working(log, max_running=1) as rt:
        async with rt.batch(timeout=1.5) as batch:
            handles = [batch.start(work(name)) for name in "abc"]
            for handle in handles:
                await handle.result()
            assert 1.5 == anyio.current_time()
            late = batch.start(work("d"))
        assert [
            succeeded("a"),
            ("timed_out", "timeout", 1, "deadline"),
            ("timed_out", "timeout", 0, "deadline"),
            ("timed_out", "timeout", 0, "deadline"),
        ] == [summary(result) for result in batch.results]
        assert batch.results[3] is await late.result()
    assert ["a", "b"] == log.begun
