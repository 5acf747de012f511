"""``Runtime.drain``: no further calls, while those that were taken end. Virtual time."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from anyio import from_thread

from harbor_async import HarborError, ToolCall, ToolContext, ToolResult
from harbor_async.errors import InvalidToolError, OverloadedError
from harbor_async.testing import wait_all_tasks_blocked
from tests.unit.limits.support import AWAY, OK, Log, assert_free, call, make, runtime, summary

pytestmark = pytest.mark.virtual
LIMITED = [{}, {"max_running": 1, "max_queued": 9}]
each_limits = pytest.mark.parametrize("limits", LIMITED, ids=["unlimited", "limited"])


@each_limits
async def test_a_draining_runtime_takes_no_more_calls(limits):
    """However it is asked for, a later call is ``rejected`` / ``rate_limited`` at once; those before it end."""
    log = Log()
    tool = make(log.work)
    async with runtime(tool, **limits) as rt, anyio.create_task_group() as group:
        group.start_soon(rt.invoke_many, [call("work", name) for name in "ab"])
        await wait_all_tasks_blocked()
        async with rt.batch() as early:
            group.start_soon(rt.drain)
            await wait_all_tasks_blocked()
            results = [await rt.invoke("work", {"name": "x"}), *await rt.invoke_many([call("work", "y")] * 2)]
            results.append(await early.start(call("work", "z")).result())
            async with rt.stream([call("work", "s")] * 3) as stream:
                results += [result async for result in stream]
            assert [AWAY] * 7 == [*map(summary, results)]
            assert {True} == {result.is_retryable for result in results}
            assert {"the runtime is draining and takes no more calls"} == {result.error.message for result in results}
            with pytest.raises(OverloadedError, match="draining"):
                await rt.call(tool, "c")
            assert 0 == anyio.current_time()
    assert {"a", "b"} == {*log.spans}


async def test_a_call_that_is_wrong_in_itself_says_so_also_then():
    """An unknown tool is ``not_found``; of one that is known nothing is looked at."""
    async with runtime(make(Log().work)) as rt:
        await rt.drain()
        assert "not_found" == (await rt.invoke("other")).error.category
        assert AWAY == summary(await rt.invoke("work", {"wrong": 1}))


async def test_running_and_queued_calls_end_in_their_time():
    """Calls that run, wait for a place, for a tool, between attempts or for an approval all end, and then it does."""
    log = Log()
    runs = 0

    async def flaky() -> str:
        nonlocal runs
        runs += 1
        if runs < 3:
            raise ConnectionError
        return "third"

    async def approve(*_: object) -> bool:
        await anyio.sleep(2)
        return True

    tools = (
        make(log.work, "a", max_running=1),
        make(flaky, attempts=3),
        make(log.work, "asked", approve=approve),
    )
    async with runtime(*tools, max_running=3) as rt:
        results: list[ToolResult] = []

        async def ask() -> None:
            calls = [call("a", "a0"), call("a", "a1"), ToolCall("", "flaky"), call("asked", "k")]
            results.extend(await rt.invoke_many(calls))

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await wait_all_tasks_blocked()
            assert 0 == await rt.drain()
            assert 3 == anyio.current_time()
        assert_free(rt)
    assert ["succeeded"] * 4 == [result.outcome for result in results]
    assert [1, 1, 3, 1] == [result.attempts for result in results]


Ask = Callable[[Any, ToolContext], Awaitable[Any]]


async def by_invoke(rt: Any, _: ToolContext) -> Any:
    return (await rt.invoke("inner")).value


async def by_call(rt: Any, _: ToolContext) -> Any:
    return await rt.call(rt.catalog.resolve("inner"))


async def by_context(rt: Any, context: ToolContext) -> Any:
    return await context.call(rt.catalog.resolve("inner"))


async def by_batch(rt: Any, _: ToolContext) -> Any:
    return [result.value for result in await rt.invoke_many([ToolCall("", "inner")] * 2)][1]


async def by_stream(rt: Any, _: ToolContext) -> Any:
    async with rt.stream([ToolCall("", "inner")] * 2) as stream:
        return [result.value async for result in stream][1]


async def by_child_task(rt: Any, context: ToolContext) -> Any:
    found: list[Any] = []

    async def ask() -> None:
        await anyio.sleep(0.125)
        found.append(await by_invoke(rt, context))

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
    return found[0]


async def by_grandchild(rt: Any, _: ToolContext) -> Any:
    return (await rt.invoke("middle")).value


async def in_scopes(rt: Any, context: ToolContext) -> Any:
    with anyio.CancelScope(shield=True), anyio.fail_after(60):
        return await by_invoke(rt, context)


WAYS = [by_invoke, by_call, by_context, by_batch, by_stream, by_child_task, by_grandchild, in_scopes]


@each_limits
@pytest.mark.parametrize("attempt", [1, 2])
@pytest.mark.parametrize("outer_way", ["invoke", "invoke_many", "stream", "call", "handle"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_calls_from_within_are_taken(way: Ask, outer_way, attempt, limits):
    """A call that runs gets what it asks for by itself, in whatever attempt and however it was asked for itself."""

    async def inner() -> str:
        await anyio.sleep(1)
        return "answer"

    async def middle() -> str:
        await anyio.sleep(0.5)
        return (await rt.invoke("inner")).value

    async def outer(context: ToolContext) -> str:
        await anyio.sleep(0.5)
        if context.attempt < attempt:
            raise ConnectionError
        return await way(rt, context)

    async def stream() -> list[Any]:
        async with rt.stream([ToolCall("", "outer")]) as results:
            return [result.value async for result in results]

    async def handle() -> Any:
        async with rt.batch() as batch:
            return (await batch.start(ToolCall("", "outer")).result()).value

    tools = make(inner), make(middle), make(outer, attempts=2)
    async with runtime(*tools, **limits) as rt:
        answers: list[Any] = []

        async def ask() -> None:
            if outer_way == "invoke":
                answers.append((await rt.invoke("outer")).value)
            elif outer_way == "call":
                answers.append(await rt.call(tools[2]))
            elif outer_way == "invoke_many":
                answers.extend(result.value for result in await rt.invoke_many([ToolCall("", "outer")]))
            else:
                answers.extend(await stream() if outer_way == "stream" else [await handle()])

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await anyio.sleep(0.25)
            assert 0 == await rt.drain()
            assert AWAY == summary(await rt.invoke("inner"))
        assert_free(rt)
    assert ["answer"] == answers


@each_limits
@pytest.mark.virtual(grace=0.05)
async def test_calls_from_a_thread_are_taken(limits):
    """A synchronous tool that runs gets what it asks for from its thread."""
    begun, drains = anyio.Event(), anyio.Event()

    async def inner() -> str:
        await anyio.sleep(1)
        return "answer"

    def outer() -> str:
        from_thread.run_sync(begun.set)
        from_thread.run(drains.wait)
        return from_thread.run(rt.invoke, "inner").value

    async with runtime(make(inner), make(outer), **limits) as rt, anyio.create_task_group() as group:
        answers: list[str] = []

        async def ask() -> None:
            answers.append((await rt.invoke("outer")).value)

        group.start_soon(ask)
        await begun.wait()
        with anyio.move_on_after(0):
            await rt.drain()
        drains.set()
        assert 0 == await rt.drain()
        assert ["answer"] == answers


@each_limits
async def test_an_approval_may_use_the_runtime(limits):
    """A call that was taken and waits for its approval gets it, though the approval asks a tool of the runtime."""

    async def ask_policy(*_: object) -> bool:
        await anyio.sleep(1)
        return (await rt.invoke("policy")).value

    async def policy() -> bool:
        await anyio.sleep(1)
        return True

    tools = make(policy), make(Log().work, approve=ask_policy)
    async with runtime(*tools, **limits) as rt, anyio.create_task_group() as group:
        results: list[ToolResult] = []

        async def ask() -> None:
            results.append(await rt.invoke("work", {"name": "a"}))

        group.start_soon(ask)
        await wait_all_tasks_blocked()
        assert 0 == await rt.drain()
        assert [OK] == [*map(summary, results)]
        assert 3 == anyio.current_time()


async def test_a_timeout_tells_how_many_still_run():
    """It returns after its timeout, nothing is canceled, and a later one waits for the rest."""
    log = Log()
    async with runtime(make(log.work)) as rt, anyio.create_task_group() as group:
        group.start_soon(rt.invoke_many, [call("work", str(n), n) for n in range(1, 5)])
        await wait_all_tasks_blocked()
        assert 4 == await rt.drain(0)
        assert 2 == await rt.drain(2.5)
        assert 2.5 == anyio.current_time()
        assert 0 == await rt.drain(2)
        assert 4 == anyio.current_time()
    assert {str(n): (0, n) for n in range(1, 5)} == log.spans


async def test_an_idle_runtime_is_drained_at_once():
    """With nothing in flight it returns 0 without any time, and stays so."""
    async with runtime(make(Log().work)) as rt:
        assert [0, 0, 0] == [await rt.drain(), await rt.drain(0), await rt.drain(5)]
        assert 0 == anyio.current_time()


async def test_a_drain_that_is_canceled_leaves_the_runtime_closed():
    """The cancellation leaves as itself, calls go on, and no others are taken."""
    log = Log()
    async with runtime(make(log.work)) as rt, anyio.create_task_group() as group:
        group.start_soon(rt.invoke, "work", {"name": "a", "seconds": 2})
        await wait_all_tasks_blocked()
        with anyio.move_on_after(1) as scope:
            await rt.drain()
            raise AssertionError("it was drained")
        assert scope.cancelled_caught
        assert AWAY == summary(await rt.invoke("work", {"name": "b"}))
        assert 0 == await rt.drain()
    assert {"a": (0, 2)} == log.spans


async def test_several_drains_at_once_end_together():
    """Each of them waits for all, and one that times out does not end the others."""
    log = Log()
    ends: list[tuple[float, int]] = []
    async with runtime(make(log.work)) as rt, anyio.create_task_group() as group:
        group.start_soon(rt.invoke, "work", {"name": "a", "seconds": 2})
        await wait_all_tasks_blocked()

        async def drain(timeout: float | None) -> None:
            left = await rt.drain(timeout)
            ends.append((anyio.current_time(), left))

        for timeout in (None, 1, 5):
            group.start_soon(drain, timeout)
    assert [(1, 1), (2, 0), (2, 0)] == ends


async def test_a_drained_runtime_can_be_opened_again():
    """Once closed and entered again it takes calls as before."""
    log = Log()
    rt = runtime(make(log.work), max_running=1)
    async with rt:
        await rt.drain()
    async with rt:
        assert OK == summary(await rt.invoke("work", {"name": "a"}))


@pytest.mark.parametrize("timeout", [-1, float("nan"), float("inf"), "1", True])
async def test_nonsense_is_refused_and_closes_nothing(timeout):
    """A timeout that is none is refused before the runtime stops taking calls; so is one that is not open."""
    rt = runtime(make(Log().work))
    async with rt:
        with pytest.raises(InvalidToolError, match="timeout"):
            await rt.drain(timeout)
        assert OK == summary(await rt.invoke("work", {"name": "a"}))
    with pytest.raises(HarborError, match="not open"):
        await rt.drain()


async def test_calls_that_are_cut_end_the_drain():
    """Deadlines, handles and callers that are canceled end their calls, and with them the drain."""
    log = Log()
    async with runtime(make(log.work, max_running=2)) as rt, anyio.create_task_group() as group:

        async def hang_up() -> None:
            with anyio.move_on_after(1):
                await rt.invoke("work", {"name": "hung up", "seconds": 99})

        async def by_handle() -> None:
            async with rt.batch() as batch:
                handle = batch.start(call("work", "canceled", 99))
                await anyio.sleep(2)
                handle.cancel()

        group.start_soon(hang_up)
        group.start_soon(by_handle)
        await wait_all_tasks_blocked()
        group.start_soon(lambda: rt.invoke("work", {"name": "timed out", "seconds": 99}, timeout=3))
        await wait_all_tasks_blocked()
        assert 0 == await rt.drain()
        assert 3 == anyio.current_time()
        assert_free(rt)
