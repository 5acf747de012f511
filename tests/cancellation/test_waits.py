"""Cancellation while a call of ours waits: for a place, between attempts, for the next call or result."""

import anyio
import pytest
from anyio.lowlevel import checkpoint

from harbor_async import Catalog, Limits, Runtime, ToolCall
from harbor_async.testing import block, wait_all_tasks_blocked
from tests.cancellation.ways import make, summary

pytestmark = pytest.mark.virtual


def counting(runs):
    async def counted(name: str, seconds: float = 1.0):
        runs.append(name)
        await anyio.sleep(seconds)
        return name

    return make(counted, timeout=None)


async def test_a_call_that_is_canceled_in_the_queue_never_runs():
    """It leaves the queue, its caller leaves as canceled, and the place goes to who is next."""
    runs = []
    async with (
        Runtime(Catalog([counting(runs)]), limits=Limits(max_running=1)) as runtime,
        anyio.create_task_group() as group,
    ):
        scope = anyio.CancelScope()
        ends = {}

        async def ask(name, scope):
            with scope:
                await runtime.invoke("counted", {"name": name})
            ends[name] = (anyio.current_time(), scope.cancelled_caught)

        for name in "abc":
            group.start_soon(ask, name, scope if name == "b" else anyio.CancelScope())
            await wait_all_tasks_blocked()
        await anyio.sleep(0.5)
        scope.cancel()
    assert ["a", "c"] == runs
    assert {"a": (1, False), "b": (0.5, True), "c": (2, False)} == ends


async def test_a_deadline_in_the_queue_is_timed_out_and_never_runs():
    """A call whose deadline passes while it waits for a place is ``timed_out`` after no attempt."""
    runs = []
    async with Runtime(Catalog([counting(runs)]), limits=Limits(max_running=1)) as runtime:
        calls = [ToolCall(name, "counted", {"name": name}) for name in "ab"]
        first, second = await runtime.invoke_many(calls, timeout=0.5)
    assert ("timed_out", "timeout", 1, "deadline") == summary(first)
    assert ("timed_out", "timeout", 0, "deadline") == summary(second)
    assert "not_sent" == second.error.delivery
    assert ["a"] == runs


async def test_waiting_for_a_place_does_not_count_against_the_timeout():
    """Ten calls of 0.75 s in one place all succeed with a timeout of 1 s an attempt (R006)."""

    async def slow():
        await anyio.sleep(0.75)

    async with Runtime(Catalog([make(slow)]), limits=Limits(max_running=1)) as runtime:
        results = await runtime.invoke_many([ToolCall(str(number), "slow") for number in range(10)])
    assert ["succeeded"] * 10 == [result.outcome for result in results]
    assert [0.75 * n for n in range(1, 11)] == [result.elapsed for result in results]


async def test_a_place_is_free_again_after_every_kind_of_end():
    """Value, error, timeout, deadline, foreign cancellation and the caller's cancellation give the place back."""

    async def ends(how: str):
        await anyio.sleep(0.125)
        if how == "raises":
            raise ValueError
        if how == "hangs":
            await anyio.sleep(9)

    async with Runtime(Catalog([make(ends, attempts=1)]), limits=Limits(max_running=1, max_queued=0)) as runtime:
        outcomes = []
        for how, timeout in (("returns", None), ("raises", None), ("hangs", None), ("hangs", 0.5), ("returns", 0)):
            outcomes.append((await runtime.invoke("ends", {"how": how}, timeout=timeout)).outcome)
        assert ["succeeded", "failed", "failed", "timed_out", "timed_out"] == outcomes
        with anyio.move_on_after(0.25) as scope:
            await runtime.invoke("ends", {"how": "hangs"})
        assert scope.cancelled_caught
        assert "succeeded" == (await runtime.invoke("ends", {"how": "returns"})).outcome


async def test_a_deadline_over_a_batch_keeps_what_is_finished():
    """Of ten calls of 0.125 s in two places, six have ended at 0.4375 s; the others are ``timed_out`` (R022)."""

    async def slow():
        await anyio.sleep(0.125)

    async with Runtime(Catalog([make(slow)]), limits=Limits(max_running=2)) as runtime:
        calls = [ToolCall(str(number), "slow") for number in range(10)]
        results = await runtime.invoke_many(calls, timeout=0.4375)
    assert ["succeeded"] * 6 + ["timed_out"] * 4 == [result.outcome for result in results]
    assert [1] * 8 + [0] * 2 == [result.attempts for result in results]
    assert [str(number) for number in range(10)] == [result.call_id for result in results]
    assert 0.4375 == anyio.current_time()


async def test_a_deadline_that_the_caller_moves_is_moved_for_the_children():
    """A scope round a stream whose deadline is put off with every result ends nothing as long as results come."""
    async with Runtime(Catalog([counting([])])) as runtime:
        calls = [ToolCall(str(n), "counted", {"name": "x", "seconds": n}) for n in range(1, 7)]
        outcomes = []
        with anyio.move_on_after(1.5) as scope:
            async with runtime.stream(calls) as results:
                async for result in results:
                    outcomes.append(result.outcome)
                    scope.deadline = anyio.current_time() + 1.5
    assert ["succeeded"] * 6 == outcomes
    assert not scope.cancelled_caught


async def test_a_caller_that_moves_its_deadline_in_the_last_moment_gets_its_answer():
    """A passed deadline that is put off before anybody was canceled ends nothing, and nobody waits for ever."""

    async def blocks():
        await anyio.sleep(0.5)
        block(1)
        return "value"

    async with Runtime(Catalog([make(blocks, timeout=None)])) as runtime:
        for ask in (runtime.invoke("blocks"), runtime.invoke_many([ToolCall("", "blocks")])):
            with anyio.CancelScope(deadline=anyio.current_time() + 1) as scope:
                async with anyio.create_task_group() as group:
                    started = anyio.current_time()

                    async def put_off(scope=scope, started=started):
                        await anyio.sleep(0.5)
                        while anyio.current_time() < started + 1:
                            await checkpoint()
                        scope.deadline = 99

                    group.start_soon(put_off)
                    await ask
            assert anyio.current_time() < 50


async def test_results_that_a_shielded_consumer_takes_all_come():
    """A consumer that shields itself from its caller's cancellation gets an answer to every call."""
    async with Runtime(Catalog([counting([])])) as runtime:
        calls = [ToolCall(str(n), "counted", {"name": "x", "seconds": n}) for n in (1, 2)]
        seen = []
        with anyio.CancelScope(deadline=1.5) as scope:
            async with runtime.stream(calls) as results:
                with anyio.CancelScope(shield=True):
                    seen += [result.call_id async for result in results]
        assert ["1", "2"] == seen
        assert scope.cancel_called
    assert anyio.current_time() <= 2


async def test_leaving_a_stream_cancels_the_rest_and_waits_for_it():
    """After the block nothing of it runs: the cleanup of what was running has ended."""
    ends = []

    async def tidy():
        try:
            await anyio.sleep(9)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.25)
            ends.append(anyio.current_time())

    calls = [ToolCall("1", "tidy"), ToolCall("2", "tidy")]
    async with Runtime(Catalog([make(tidy)])) as runtime, runtime.stream(calls):
        await anyio.sleep(0.5)
    assert [0.75, 0.75] == ends
    assert 0.75 == anyio.current_time()


async def test_an_error_of_the_body_leaves_the_stream_as_itself():
    """What the body of the block raises comes out, after the rest was canceled."""
    async with Runtime(Catalog([counting([])])) as runtime:
        with pytest.raises(LookupError, match="mine"):  # noqa: PT012 - it leaves from the block
            async with runtime.stream([ToolCall("1", "counted", {"name": "x"})]):
                await anyio.sleep(0.5)
                raise LookupError("mine")
    assert 0.5 == anyio.current_time()
