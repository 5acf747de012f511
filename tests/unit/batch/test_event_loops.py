"""Batches on every event loop, uvloop among them, in real time: nothing here takes any."""

import anyio
import anyio.lowlevel
import pytest
from anyio.lowlevel import checkpoint

from harbor_async import Join, ToolCall
from tests.unit.batch.support import Log, canceled, make, runtime, succeeded, summary, work, working


async def double(number: int) -> int:
    await checkpoint()
    return 2 * number


async def hangs():
    await anyio.sleep_forever()


@pytest.mark.parametrize("limits", [{}, {"max_running": 100}], ids=["free", "limited"])
async def test_ten_thousand_handles_each_have_their_result(limits, anyio_backend):
    """Each handle has the result of its own call, in order, and every seventh is the canceled one."""
    many = 1_000 if anyio_backend[1].get("debug") else 10_000  # debug mode takes 1 ms a call
    async with runtime(make(double), **limits) as rt:
        async with rt.batch() as batch:
            calls = (ToolCall(str(n), "double", {"number": n}) for n in range(many))
            handles = [batch.start(call) for call in calls]
            for handle in handles[::7]:
                handle.cancel()
            results = [await handle.result() for handle in handles]
        assert results == batch.results
    assert [str(n) for n in range(many)] == [result.call_id for result in results]
    assert [canceled(0) if n % 7 == 0 else succeeded(2 * n) for n in range(many)] == list(map(summary, results))


@pytest.mark.parametrize("whole", [False, True])
async def test_a_running_call_is_canceled(whole):
    """``handle.cancel()`` and ``batch.cancel()`` end a tool that would wait for ever."""
    async with runtime(make(hangs)) as rt, rt.batch() as batch:
        handle = batch.start(ToolCall("", "hangs"))
        await anyio.wait_all_tasks_blocked()
        (batch if whole else handle).cancel()
        assert canceled(1) == summary(await handle.result())


async def test_many_tasks_await_one_result():
    """A hundred waiters, before and after the end of the call, get the very same result."""
    seen, goes_on = [], anyio.Event()

    async def waits() -> str:
        await goes_on.wait()
        return "value"

    async with runtime(make(waits)) as rt, anyio.create_task_group() as group:
        async with rt.batch() as batch:
            handle = batch.start(ToolCall("", "waits"))

            async def wait():
                seen.append(await handle.result())

            for _ in range(50):
                group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            goes_on.set()
        for _ in range(50):
            group.start_soon(wait)
    assert 100 == len(seen)
    assert {id(batch.results[0])} == set(map(id, seen))


async def test_batches_nest_without_limits():
    """A tool that runs a batch whose tools run batches ends with all of them."""

    async def tree(depth: int) -> int:
        if depth == 0:
            return 1
        calls = [ToolCall("", "tree", {"depth": depth - 1}) for _ in range(3)]
        async with rt.batch() as batch:
            handles = [batch.start(call) for call in calls]
        return sum([(await handle.result()).value for handle in handles])

    async with runtime(make(tree)) as rt:
        assert 81 == (await rt.invoke("tree", {"depth": 4})).value


async def test_a_success_ends_calls_that_hang_at_every_depth():
    """The first success cancels a call that waits in a batch of its own for one that hangs."""

    async def nests():
        await rt.invoke_many([ToolCall("", "hangs"), ToolCall("", "hangs")])

    async with runtime(make(nests), make(hangs), make(double)) as rt:
        calls = [ToolCall("", "nests"), ToolCall("", "double", {"number": 4})]
        results = await rt.invoke_many(calls, join=Join.FIRST_SUCCESS)
    assert succeeded(8) == summary(results[1])
    assert "canceled" == results[0].error.category


async def test_the_callers_cancellation_leaves():
    """A scope round a batch of calls that hang ends it, and leaves as a cancellation."""
    async with runtime(make(hangs), max_running=1) as rt:
        with anyio.CancelScope() as scope:
            async with rt.batch() as batch, anyio.create_task_group() as group:
                handles = [batch.start(ToolCall("", "hangs")) for _ in range(2)]
                group.start_soon(handles[1].result)
                await anyio.wait_all_tasks_blocked()
                scope.cancel()
        assert scope.cancelled_caught
        assert [canceled(1), canceled(0)] == [summary(await handle.result()) for handle in handles]


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
async def test_an_interrupt_leaves_bare(interrupt):
    """Ctrl-C in a tool leaves the block as itself."""

    async def interrupts():
        await checkpoint()
        raise interrupt

    async def caller():
        async with rt.batch() as batch:
            batch.start(ToolCall("", "hangs"))
            batch.start(ToolCall("", "interrupts"))
            await anyio.sleep_forever()

    async with runtime(make(interrupts), make(hangs)) as rt:
        with pytest.raises(interrupt):
            await caller()


async def test_one_call_at_fault_keeps_all_from_beginning():
    """Atomic setup on every loop."""
    log = Log()
    async with working(log, max_running=1) as rt:
        await rt.invoke_many([work("a", 0), ToolCall("", "unknown"), work("b", 0)], atomic=True)
        assert [] == log.begun
        assert succeeded("c") == summary((await rt.invoke_many([work("c", 0)], atomic=True))[0])
