"""Cancellation that no cancel scope knows: ``task.cancel()`` and asyncio's own timeouts, in virtual time."""

import asyncio

import anyio
import pytest
from anyio.lowlevel import checkpoint

from harbor_async import Catalog, Runtime, ToolCall
from harbor_async.testing import block, run_virtual
from tests.cancellation.ways import WAYS, invoke, make, summary
from tests.support.loops import ASYNCIO

each_way = pytest.mark.parametrize("ask", WAYS, ids=lambda way: way.__name__)
on_asyncio = pytest.mark.parametrize("options", ASYNCIO, ids=str)


async def hang():
    await anyio.sleep(9)


async def swallow():
    try:
        await anyio.sleep(9)
    except asyncio.CancelledError:
        return "late"


async def convert():
    try:
        await anyio.sleep(9)
    except asyncio.CancelledError as exc:
        raise ConnectionError("db lost") from exc


@each_way
@on_asyncio
@pytest.mark.parametrize("function", [hang, swallow, convert])
@pytest.mark.parametrize("at", [0.5, 1.25, 2.0])
@pytest.mark.parametrize("before", [0, 1, 2])
def test_task_cancel_leaves_as_a_cancellation(ask, options, function, at, before):
    """A native cancel in attempt 1, in the wait after it and in attempt 2 leaves at once (N05).

    Whatever the tool makes of it, and however many cancellations were pending before.
    """

    async def main():
        times = []

        async def caller():
            task = asyncio.current_task()
            for _ in range(before):
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await asyncio.sleep(1)
            assert before == task.cancelling()
            task.get_loop().call_at(at, task.cancel)
            try:
                await ask(make(function))
            finally:
                times.append(anyio.current_time())

        task = asyncio.create_task(caller())
        await asyncio.wait([task])
        assert task.cancelled()
        assert [at] == times
        assert {asyncio.current_task()} == asyncio.all_tasks()

    run_virtual(main, **options)


@each_way
@on_asyncio
@pytest.mark.parametrize("function", [hang, swallow, convert])
@pytest.mark.parametrize("by", ["wait_for", "timeout"])
def test_asyncios_own_timeouts_work_round_a_call(ask, options, function, by):
    """``wait_for`` and ``timeout`` end a call in time, as ``TimeoutError``, and the task can go on (N06)."""

    async def main():
        with pytest.raises(TimeoutError):  # noqa: PT012 - a timeout leaves from its block
            if by == "wait_for":
                await asyncio.wait_for(ask(make(function)), 0.25)
            else:
                async with asyncio.timeout(0.25):
                    await ask(make(function))
        assert 0.25 == anyio.current_time()
        assert 0 == asyncio.current_task().cancelling()

    run_virtual(main, **options)


@each_way
@on_asyncio
@pytest.mark.parametrize("function", [hang, swallow, convert])
def test_a_retry_rule_that_says_yes_to_all_never_sees_a_cancellation(ask, options, function):
    """``retry_on`` and ``classify`` that always say yes cannot eat a cancellation (N06)."""
    from harbor_async import ErrorClass, ToolPolicy, describe

    seen = []
    policy = ToolPolicy(
        1.0, 3, retry_on=lambda exc: not seen.append(exc), classify=lambda exc: seen.append(exc) or ErrorClass.TRANSIENT
    )

    async def main():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(ask(describe(function, policy=policy)), 0.25)
        assert [] == seen

    run_virtual(main, **options)


@each_way
@on_asyncio
@pytest.mark.parametrize("first", ["cancel", "deadline", "same"])
@pytest.mark.parametrize("blocked", [False, True])
def test_a_native_cancel_wins_over_a_deadline_in_the_same_tick(ask, options, first, blocked):
    """Canceled and timed out at once, in each order, the loop blocked past both or not, is canceled (N29)."""
    cancel_at = {"cancel": 0.75, "deadline": 1.25, "same": 1.0}[first]

    async def busy():
        if blocked:
            await anyio.sleep(0.5)
            block(5)
            await checkpoint()
        await anyio.sleep(9)

    async def main():
        async def caller():
            await ask(make(busy, timeout=None), timeout=1.0)

        task = asyncio.create_task(caller())
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_at(cancel_at, task.cancel)
        await asyncio.wait([task])
        if blocked or first != "deadline":
            assert task.cancelled()
        else:
            assert not task.cancelled()  # the call had its answer at 1, before the cancel

    run_virtual(main, **options)


@on_asyncio
@pytest.mark.parametrize("scope_first", [True, False])
def test_a_native_cancel_and_a_scope_at_once_both_count(options, scope_first):
    """Canceled natively and by a scope of the caller's in one tick, the native one passes through the scope."""

    async def main():
        scope = anyio.CancelScope()

        async def caller():
            with scope:
                await invoke(make(hang))

        task = asyncio.create_task(caller())
        await asyncio.sleep(0.5)
        for cut in (scope.cancel, task.cancel) if scope_first else (task.cancel, scope.cancel):
            cut()
        await asyncio.wait([task])
        assert task.cancelled()

    run_virtual(main, **options)


@on_asyncio
def test_a_future_that_somebody_else_cancels_is_a_failure(options):
    """A tool that awaits a canceled future fails as ``canceled``, once; the caller was not canceled (R015)."""

    async def main():
        future = asyncio.get_running_loop().create_future()

        async def waits():
            return await future

        asyncio.get_running_loop().call_later(0.25, future.cancel)
        for ask in WAYS:
            assert ("failed", "canceled", 1, "canceled") == summary(await ask(make(waits)))
        assert 0 == asyncio.current_task().cancelling()
        await asyncio.sleep(1)

    run_virtual(main, **options)


@each_way
@on_asyncio
@pytest.mark.parametrize("inner", ["task group", "gather", "timeout"])
def test_a_cut_tool_of_asyncios_own_structures_is_a_timeout(ask, options, inner):
    """Inside ``TaskGroup``, ``except*``, ``gather`` or ``timeout`` of asyncio an attempt's timeout holds (R089)."""

    async def works():
        if inner == "task group":
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(asyncio.sleep(9))
                    await asyncio.sleep(9)
            except* ValueError:
                pass
        elif inner == "gather":
            await asyncio.gather(asyncio.sleep(9), asyncio.sleep(9))
        else:
            async with asyncio.timeout(5):
                await asyncio.sleep(9)

    async def main():
        assert ("failed", "timeout", 3, "attempts") == summary(await ask(make(works)))
        assert 0 == asyncio.current_task().cancelling()
        assert {asyncio.current_task()} == asyncio.all_tasks()

    run_virtual(main, **options)


@each_way
@on_asyncio
def test_a_child_that_fails_in_asyncios_group_is_that_error(ask, options):
    """``TaskGroup`` cancels its own task when a child fails; that is no cancellation of the call (R089)."""

    async def fails():
        raise ConnectionError("reset")

    async def works():
        async with asyncio.TaskGroup() as group:
            group.create_task(fails())
            await asyncio.sleep(9)

    async def main():
        assert ("failed", "api_request", 3, "attempts") == summary(await ask(make(works)))
        assert 0 == asyncio.current_task().cancelling()

    run_virtual(main, **options)


@on_asyncio
def test_a_call_that_is_closed_awaits_nothing(options):
    """Closing the coroutine of a call, as the collector does, ends it at once, even where its caller was canceled."""
    ends = []

    async def tidies():
        try:
            await anyio.sleep(9)
        finally:
            ends.append(anyio.current_time())

    async def main():
        with anyio.CancelScope() as scope:  # noqa: ASYNC100 - the call awaits
            call = make(tidies).invoke()
            call.send(None)
            scope.cancel()
            call.close()
        assert [0] == ends

    run_virtual(main, **options)


# --- the child tasks of a batch ---------------------------------------------------------------------------------


async def cancel_itself():
    asyncio.current_task().cancel()
    await asyncio.sleep(9)


async def quick():
    await asyncio.sleep(0.25)
    return "done"


CALLS = [ToolCall("1", "quick"), ToolCall("2", "cancel_itself"), ToolCall("3", "quick")]


@on_asyncio
@pytest.mark.parametrize("limit", [None, 1])
def test_a_tool_that_cancels_its_child_task_loses_no_answer(options, limit):
    """A library that cancels the current task, which is ours, ends that call as ``canceled`` and no other."""
    from harbor_async import Limits

    async def main():
        catalog = Catalog([make(quick), make(cancel_itself)])
        async with Runtime(catalog, limits=Limits(max_running=limit)) as runtime:
            results = await runtime.invoke_many(CALLS)
            assert ["1", "2", "3"] == [result.call_id for result in results]
            assert ("failed", "canceled", 1, "canceled") == summary(results[1])
            assert ["done", "done"] == [results[0].value, results[2].value]
            async with runtime.stream(CALLS) as stream:
                assert {"1": "succeeded", "2": "failed", "3": "succeeded"} == {
                    result.call_id: result.outcome async for result in stream
                }
        assert {asyncio.current_task()} == asyncio.all_tasks()

    run_virtual(main, **options)


@on_asyncio
@pytest.mark.parametrize("turns", range(4))
def test_a_loop_that_cancels_every_task_comes_to_its_end(options, turns):
    """When all tasks are canceled at once, as ``asyncio.run`` does at its end, a batch ends, started or not."""

    async def main():
        async with Runtime(Catalog([make(quick)])) as runtime:

            async def streams():
                async with runtime.stream([ToolCall("1", "quick")]) as results:
                    async for _ in results:
                        pass

            tasks = [
                asyncio.create_task(runtime.invoke_many([ToolCall("1", "quick")])),
                asyncio.create_task(streams()),
            ]
            for _ in range(turns):
                await asyncio.sleep(0)
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
            await asyncio.wait(tasks)
            assert [True, True] == [task.cancelled() for task in tasks]
        assert {asyncio.current_task()} == asyncio.all_tasks()

    run_virtual(main, **options)


@on_asyncio
@pytest.mark.parametrize("turns", range(4))
def test_a_child_task_that_is_canceled_alone_loses_no_answer(options, turns):
    """A child task that somebody found and canceled, started or not, is one answered call."""

    async def main():
        async with Runtime(Catalog([make(quick)])) as runtime:
            before = asyncio.all_tasks()
            parent = asyncio.create_task(runtime.invoke_many([ToolCall("1", "quick"), ToolCall("2", "quick")]))
            for _ in range(turns):
                await asyncio.sleep(0)
            for task in asyncio.all_tasks() - before - {parent}:
                task.cancel()
            assert ["1", "2"] == [result.call_id for result in await parent]

    run_virtual(main, **options)
