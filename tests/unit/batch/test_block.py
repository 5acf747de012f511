"""The block of a batch: what may be done when, and how it is left, in virtual time."""

import asyncio

import anyio
import anyio.lowlevel
import pytest
from anyio.lowlevel import checkpoint

from harbor_async import HarborError, Runtime, ToolCall
from harbor_async.errors import InvalidToolError
from harbor_async.testing import wait_all_tasks_blocked
from tests.unit.batch.support import Log, canceled, make, runtime, succeeded, summary, work, working

pytestmark = pytest.mark.virtual


async def test_the_block_waits_for_every_call():
    """After the block every call has ended, and its results stand in the order in which calls were started."""
    log = Log()
    async with working(log) as rt:
        async with rt.batch() as batch:
            handles = [batch.start(work(name, seconds)) for name, seconds in (("a", 3), ("b", 1), ("c", 2))]
            assert [None] * 3 == batch.results
        assert list(map(succeeded, "abc")) == list(map(summary, batch.results))
        assert [True] * 3 == [handle.done for handle in handles]
        assert ["a", "b", "c"] == [handle.call.id for handle in handles]
    assert ["b", "c", "a"] == log.ended
    assert 3 == anyio.current_time()


async def test_an_empty_batch_ends_at_once():
    """A block that starts nothing waits for nothing."""
    async with working(Log()) as rt:
        async with rt.batch(timeout=0) as batch:
            pass
        assert [] == batch.results == await rt.invoke_many([])
    assert 0 == anyio.current_time()


async def test_calls_may_share_an_id():
    """Handles and results go by place, not by id."""
    async with working(Log()) as rt, rt.batch() as batch:
        handles = [batch.start(ToolCall("same", "work", {"name": name})) for name in "ab"]
        assert [succeeded("a"), succeeded("b")] == [summary(await handle.result()) for handle in handles]


async def test_a_refused_call_is_done_at_once():
    """An unknown name, wrong arguments and a full queue are results of handles like any other."""
    async with working(Log(), max_running=1, max_queued=0) as rt, rt.batch() as batch:
        running = batch.start(work("a"))
        refused = [
            batch.start(ToolCall("", "unknown")),
            batch.start(ToolCall("", "work", '{"nam": 1}')),
            batch.start(work("b")),
        ]
        assert [True] * 3 == [handle.done for handle in refused]
        assert [
            ("failed", "not_found", 0, "invalid"),
            ("failed", "validation", 0, "invalid"),
            ("rejected", "rate_limited", 0, "rejected"),
        ] == [summary(await handle.result()) for handle in refused]
        assert not running.done


@pytest.mark.parametrize("call", [None, "work", ("1", "work", "{}"), {"name": "work"}, object()])
async def test_what_is_no_call_leaves_as_a_type_error(call):
    """It is refused before anything is done for it, and what was started before goes on."""
    log = Log()
    async with working(log) as rt, rt.batch() as batch:
        handle = batch.start(work("a"))
        with pytest.raises(TypeError, match=r"expected a ToolCall\(id, name, arguments\)"):
            batch.start(call)
        assert succeeded("a") == summary(await handle.result())
        assert 1 == len(batch.results)


async def test_calls_start_inside_the_block_alone():
    """Before the block and after it nothing starts, and no place is taken."""
    log = Log()
    async with working(log, max_running=1, max_queued=0) as rt:
        batch = rt.batch()
        with pytest.raises(HarborError, match="async with"):
            batch.start(work("a"))
        async with batch:
            assert succeeded("b") == summary(await batch.start(work("b")).result())
        with pytest.raises(HarborError, match="async with"):
            batch.start(work("c"))
        assert 1 == len(batch.results)
        assert "succeeded" == (await rt.invoke("work", {"name": "d"})).outcome
    assert ["b", "d"] == log.begun


async def test_a_batch_is_entered_once():
    """Entering it again, inside or after its block, is refused, and the block goes on."""
    async with working(Log()) as rt:
        batch = rt.batch()
        async with batch:
            handle = batch.start(work("a"))
            with pytest.raises(HarborError, match="once"):
                async with batch:
                    pass
            assert succeeded("a") == summary(await handle.result())
            assert succeeded("b") == summary(await batch.start(work("b")).result())
        with pytest.raises(HarborError, match="once"):
            async with batch:
                pass
        assert 2 == len(batch.results)


async def test_a_batch_needs_an_open_runtime():
    """A runtime that is not entered, or was left, makes no batch."""
    rt = Runtime(working(Log()).catalog)
    with pytest.raises(HarborError, match="not open"):
        rt.batch()
    async with rt:
        pass
    with pytest.raises(HarborError, match="not open"):
        rt.batch()


@pytest.mark.parametrize("timeout", [-1, float("nan"), float("inf"), True, "1"])
async def test_a_timeout_of_nonsense_is_refused(timeout):
    """A batch's timeout is a finite number of seconds of at least 0."""
    async with working(Log()) as rt:
        with pytest.raises(InvalidToolError, match="timeout: expected a finite number of seconds"):
            rt.batch(timeout=timeout)


async def test_a_batch_may_be_made_far_from_where_it_is_entered():
    """The scopes that count are those round the block, not those in which ``rt.batch()`` was called."""
    log = Log()
    async with working(log) as rt:
        with anyio.move_on_after(0.25):
            batch = rt.batch()
            await anyio.sleep(1)
        async with batch:
            batch.start(work("a"))
        assert succeeded("a") == summary(batch.results[0])
        batch = rt.batch()
        with anyio.move_on_after(0.5) as scope:
            async with batch:
                batch.start(work("b", 0.25))
                with anyio.CancelScope(shield=True):
                    await anyio.sleep(1)
                    late = batch.start(work("c"))
                    await anyio.sleep(1)
                    assert late.done
        assert scope.cancelled_caught
    assert ["a", "b"] == log.begun


@pytest.mark.parametrize("error", [LookupError("mine"), ExceptionGroup("mine", [LookupError("mine")])])
async def test_an_error_of_the_block_leaves_as_itself(error):
    """What the block raises comes out, not in a group, after what still ran was canceled and has tidied up."""
    log, handles = Log(), []

    async def caller():
        async with batch:
            handles.extend(map(batch.start, [work("a", 0.25), work("b", 5, tidies=2), work("c", 5)]))
            await anyio.sleep(0.5)
            raise error

    async with working(log, max_running=2) as rt:
        batch = rt.batch()
        with pytest.raises(type(error)) as caught:
            await caller()
        assert error is caught.value
        assert [succeeded("a"), canceled(1), canceled(1)] == list(map(summary, batch.results))
        assert ["b", "c"] == sorted(log.cut)
        assert 2.5 == anyio.current_time()
        assert [True] * 3 == [handle.done for handle in handles]
        assert batch.results == [await handle.result() for handle in handles]
        assert list(map(succeeded, "xy")) == [summary(r) for r in await rt.invoke_many([work("x"), work("y")])]


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("waits", ["at the end", "for a result", "for something else"])
async def test_an_interrupt_in_a_tool_leaves_the_block_bare(interrupt, waits):
    """Ctrl-C in a tool ends the block wherever it waits; siblings were canceled and awaited, and nothing is left."""
    log = Log()

    async def interrupts():
        await anyio.sleep(1)
        raise interrupt

    async def caller():
        async with batch:
            handle = batch.start(work("a", 9, tidies=1))
            batch.start(ToolCall("", "interrupts"))
            batch.start(work("queued", 9))
            if waits == "for a result":
                await handle.result()
            elif waits == "for something else":
                await anyio.sleep(99)

    async with working(log, make(interrupts), max_running=2) as rt:
        batch = rt.batch()
        with pytest.raises(interrupt):
            await caller()
        assert 2 == anyio.current_time()
        assert ["a"] == log.begun == log.cut
        assert [canceled(1), canceled(1), canceled(0)] == list(map(summary, batch.results))
        await checkpoint()  # no cancellation is left behind
        assert list(map(succeeded, "xy")) == [summary(r) for r in await rt.invoke_many([work("x"), work("y")])]
    if anyio.get_cancelled_exc_class() is asyncio.CancelledError:
        assert 0 == asyncio.current_task().cancelling()


@pytest.fixture(params=["scope", "deadline", "native"])
def cut(request, anyio_backend):
    """How a caller is canceled."""
    if request.param == "native" and anyio_backend[0] != "asyncio":
        pytest.skip("trio has no cancellation without a scope")
    return request.param


each_wait = pytest.mark.parametrize("waits", ["at the end", "for a result", "for a result that is there"])


async def cut_after(seconds, cut, function):
    """Run ``function`` and cancel it after ``seconds``; say whether it left as canceled."""
    if cut == "native":
        task = asyncio.ensure_future(function())
        await anyio.sleep(seconds)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()
    async with anyio.create_task_group() as group:
        with anyio.CancelScope(deadline=anyio.current_time() + (seconds if cut == "deadline" else 99)) as scope:

            async def cancel():
                await anyio.sleep(seconds)
                scope.cancel()

            if cut == "scope":
                group.start_soon(cancel)
            await function()
    return scope.cancelled_caught


@each_wait
@pytest.mark.parametrize("with_handle", [False, True])
async def test_the_callers_cancellation_leaves_the_block(cut, waits, with_handle):
    """It leaves as itself from every wait of the block, also when a handle is canceled in the same step (R011bc)."""
    log, batches, reached = Log(), [], []

    async def caller():
        async with rt.batch() as batch:
            batches.append(batch)
            handles = [batch.start(work("a", 0.25)), batch.start(work("b", 9, tidies=1)), batch.start(work("c", 9))]
            batch.start(work("queued"))
            if with_handle:
                group.start_soon(cancel_at, 0.5, handles[1])
            if waits == "for a result":
                await handles[1].result()
                await anyio.sleep(9)
            elif waits == "for a result that is there":
                while True:
                    await handles[0].result()
                    await anyio.sleep(0.125)
        reached.append(1)

    async def cancel_at(seconds, handle):
        await anyio.sleep(seconds)
        handle.cancel()

    async with working(log, max_running=3) as rt, anyio.create_task_group() as group:
        assert await cut_after(0.5, cut, caller)
        assert 1.5 == anyio.current_time()
        assert [] == reached
        assert ["b", "c", "queued"] == sorted(log.cut)
        assert succeeded("a") == summary(batches[0].results[0])
        assert [canceled(1)] * 3 == list(map(summary, batches[0].results[1:]))
        assert [succeeded(name) for name in "xyz"] == [summary(r) for r in await rt.invoke_many(map(work, "xyz"))]


async def test_a_waiter_in_another_task_gets_an_answer(cut):
    """When the caller of the batch was canceled, who waits outside for a result learns that its call was canceled."""
    handles, ends = [], []

    async def caller():
        async with rt.batch() as batch:
            handles.extend([batch.start(work("a", 9, tidies=1)), batch.start(work("b"))])

    async def waiter(handle):
        ends.append((summary(await handle.result()), anyio.current_time()))

    async def waiters():
        await anyio.sleep(0.25)
        for handle in handles * 2:
            group.start_soon(waiter, handle)

    async with working(Log(), max_running=1) as rt, anyio.create_task_group() as group:
        group.start_soon(waiters)
        assert await cut_after(0.5, cut, caller)
    assert [(canceled(0), 0.5)] * 2 + [(canceled(1), 1.5)] * 2 == ends


async def test_a_waiter_that_is_canceled_harms_nobody(cut):
    """Canceling a wait for a result cancels neither the call nor the other waits."""
    log, seen = Log(), []
    async with working(log) as rt, anyio.create_task_group() as group, rt.batch() as batch:
        handle = batch.start(work("a"))

        async def waiter():
            seen.append(await handle.result())

        group.start_soon(waiter)
        assert await cut_after(0.5, cut, handle.result)
        assert 0.5 == anyio.current_time()
        assert succeeded("a") == summary(await handle.result())
    assert [batch.results[0]] == seen
    assert [] == log.cut


async def test_a_result_is_a_place_to_be_canceled():
    """A canceled scope leaves from ``result()`` although the result is there."""
    async with working(Log()) as rt, rt.batch() as batch:
        handle = batch.start(work("a"))
        await handle.result()
        with anyio.CancelScope() as scope:
            scope.cancel()
            await handle.result()
        assert scope.cancelled_caught


async def test_a_batch_inside_a_tool_ends_with_its_call():
    """Canceling the outer call cancels the inner batch; inner answers are the tool's own, and the call has one."""
    log, inner = Log(), {}

    async def nests(seconds: float) -> str:
        async with rt.batch() as batch:
            inner[seconds] = batch
            handles = [batch.start(work("a", seconds)), batch.start(work("b", seconds, fails=True))]
        return " ".join([(await handle.result()).outcome for handle in handles])

    async with working(log, make(nests)) as rt, rt.batch() as batch:
        quick, slow = (batch.start(ToolCall("", "nests", {"seconds": seconds})) for seconds in (0.25, 9))
        assert succeeded("succeeded failed") == summary(await quick.result())
        slow.cancel()
        assert canceled(1) == summary(await slow.result())
    assert [canceled(1)] * 2 == list(map(summary, inner[9].results))
    assert ["a", "b"] == sorted(log.cut)
    assert 0.25 == anyio.current_time()


async def test_a_tool_may_start_a_sibling():
    """A running call starts another in its batch, in its first step and later, though the block has come to its end."""
    log, handles = Log(), []

    async def starts(seconds: float):
        handles.append(batch.start(work("a")))
        await anyio.sleep(seconds)
        handles.append(batch.start(work("b")))

    async with working(log, make(starts)) as rt:
        async with rt.batch() as batch:
            parent = batch.start(ToolCall("", "starts", {"seconds": 0.5}))
        assert succeeded(None) == summary(await parent.result())
        assert list(map(succeeded, "ab")) == [summary(await handle.result()) for handle in handles]
        assert 3 == len(batch.results)
    assert 1.5 == anyio.current_time()


async def test_a_batch_is_over_when_its_block_is_left_and_its_last_call_has_ended():
    """Who starts one more at that moment, from another task, is refused, and no place is lost."""
    log, ends = Log(), []

    async def starts_another():
        await handles[0].result()
        with pytest.raises(HarborError, match="async with"):
            batch.start(work("b"))
        ends.append(anyio.current_time())

    async with working(log, max_running=1, max_queued=0) as rt, anyio.create_task_group() as group:
        async with rt.batch() as batch:
            handles = [batch.start(work("a"))]
            group.start_soon(starts_another)
            await wait_all_tasks_blocked()
        await wait_all_tasks_blocked()
        assert [1] == ends
        assert [succeeded("a")] == list(map(summary, batch.results))
        assert "succeeded" == (await rt.invoke("work", {"name": "c"})).outcome
    assert ["a", "c"] == log.begun


async def test_a_task_outside_may_start_calls_while_the_block_waits():
    """As long as a call runs, another task can start more, and the block waits for these, too."""
    async with working(Log()) as rt, anyio.create_task_group() as group:
        async with rt.batch() as batch:
            batch.start(work("a"))

            async def starts():
                await anyio.sleep(0.5)
                batch.start(work("b"))

            group.start_soon(starts)
        assert list(map(succeeded, "ab")) == list(map(summary, batch.results))
    assert 1.5 == anyio.current_time()


async def test_a_runtime_that_closes_under_a_batch_takes_no_further_call():
    """Calls that run then end by themselves; a new one is refused."""
    log = Log()
    rt = working(log)
    await rt.__aenter__()
    async with rt.batch() as batch:
        handle = batch.start(work("a"))
        await rt.__aexit__(None, None, None)
        with pytest.raises(HarborError, match="not open"):
            batch.start(work("b"))
        assert succeeded("a") == summary(await handle.result())
    assert 1 == len(batch.results)


async def test_two_batches_share_the_limits():
    """Places are the runtime's: calls of two batches take turns in the order in which they came."""
    log = Log()
    async with working(log, max_running=1) as rt, rt.batch() as one, rt.batch() as two:
        for name, batch in zip("abcd", (one, two, one, two), strict=True):
            batch.start(work(name))
    assert ["a", "b", "c", "d"] == log.ended
    assert 4 == anyio.current_time()


async def test_a_runtime_without_tools_answers():
    """Every call of a batch is answered, though nothing can run."""
    async with runtime() as rt:
        async with rt.batch() as batch:
            batch.start(ToolCall("a", "work"))
        assert [("failed", "not_found", 0, "invalid")] == list(map(summary, batch.results))
