"""Calls made from within calls, under the limits of tools, groups and tenants. Virtual time, in which none can hang."""

from typing import Any

import anyio
import pytest

from harbor_async import Backoff, ToolCall, ToolContext, ToolPolicy, describe
from harbor_async.errors import OverloadedError
from harbor_async.testing import wait_all_tasks_blocked
from tests.unit.limits.support import AWAY, OK, Log, X, Y, assert_free, call, make, runtime, summary

pytestmark = pytest.mark.virtual


def calls(tool: str, count: int, prefix: str = "n") -> list[ToolCall]:
    return [call(tool, f"{prefix}{n}") for n in range(count)]


SAME: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "same group": ({"exclusive": "g"}, {"exclusive": "g"}),
    "same group by function": ({"exclusive": lambda *_: "g"}, {"exclusive": "g"}),
    "same group, caller limited": ({"exclusive": "g", "max_running": 1}, {"exclusive": "g"}),
    "same group, both limited": ({"exclusive": "g", "max_running": 1}, {"exclusive": "g", "max_running": 1}),
    "same group, child limited": ({"exclusive": "g"}, {"exclusive": "g", "max_running": 1}),
    "limit of the child": ({"exclusive": "g"}, {"max_running": 1}),
}


@pytest.mark.parametrize(("of_outer", "of_inner"), SAME.values(), ids=SAME)
@pytest.mark.parametrize("how", ["invoke_many", "call", "stream", "context"])
async def test_children_of_one_caller_run_one_by_one(of_outer, of_inner, how):
    """Calls from within a group take turns in it, in their order, while calls from elsewhere wait outside."""
    log = Log()
    inner = make(log.work, "inner", **of_inner)

    async def outer(name: str, seconds: float, context: ToolContext) -> list[str]:
        if how == "invoke_many":
            results = await rt.invoke_many(calls("inner", 3))
        elif how == "stream":
            async with rt.stream(calls("inner", 3)) as stream:
                results = [result async for result in stream]
        else:
            ask = rt.call if how == "call" else context.call
            async with anyio.create_task_group() as group:
                for n in range(3):
                    group.start_soon(ask, inner, f"n{n}")
                    await anyio.lowlevel.checkpoint()
            return []
        return [str(result.outcome) for result in results]

    async with runtime(inner, make(outer, **of_outer)) as rt, rt.batch() as batch:
        handle = batch.start(call("outer", "outer"))
        await wait_all_tasks_blocked()
        batch.start(call("inner", "elsewhere"))
        assert OK == summary(await handle.result())
        assert (await handle.result()).value in ([], ["succeeded"] * 3)
    spans = {name: log.spans[name] for name in ("n0", "n1", "n2")}
    assert {"n0": (0, 1), "n1": (1, 2), "n2": (2, 3)} == spans
    assert (3, 4) == log.spans["elsewhere"]


async def test_a_tool_may_call_itself():
    """A tool of which one runs at a time calls itself five levels deep, and twice at once on each of three."""
    depths: list[int] = []
    now = 0

    async def deep(depth: int, width: int = 1) -> int:
        nonlocal now
        now += 1
        depths.append(now)
        if depth:
            results = await rt.invoke_many([ToolCall("", "deep", {"depth": depth - 1, "width": width})] * width)
            assert [OK] * width == [*map(summary, results)]
        await anyio.sleep(1)
        now -= 1
        return depth

    tool = make(deep, max_running=1, exclusive="g", weight=2)
    async with runtime(tool, max_running=2, max_queued=10) as rt:
        assert 5 == await rt.call(tool, 5)
        assert 6 == anyio.current_time()
        assert [1, 2, 3, 4, 5, 6] == depths
        depths.clear()
        assert 2 == await rt.call(tool, 2, width=2)
        assert [1, 2, 3, 3, 2, 3, 3] == depths
        assert_free(rt)


async def test_calls_of_a_tool_from_within_it_run_one_by_one_whatever_its_limit_is():
    """A tool that may run three times lets each of its calls make one of it at a time: they are not counted outside."""
    spans: list[tuple[str, float]] = []

    async def work(name: str, is_nested: bool = False) -> None:
        spans.append((name, anyio.current_time()))
        await anyio.sleep(1)
        if not is_nested:
            inner = [ToolCall("", "work", {"name": f"{name}{n}", "is_nested": True}) for n in range(2)]
            assert [OK] * 2 == [*map(summary, await rt.invoke_many(inner))]

    async with runtime(make(work, max_running=3)) as rt:
        results = await rt.invoke_many([ToolCall("", "work", {"name": name}) for name in "abcd"])
        assert_free(rt)
    assert [OK] * 4 == [*map(summary, results)]
    first = {(name, 0) for name in "abc"} | {(f"{name}{n}", 1 + n) for name in "abc" for n in range(2)}
    assert first | {("d", 3), ("d0", 4), ("d1", 5)} == set(spans)


async def test_a_nested_call_weighs_nothing():
    """Any number of nested calls of any weight run at once in the place of their caller."""
    log = Log()

    async def outer() -> list[str]:
        return [str(result.outcome) for result in await rt.invoke_many(calls("heavy", 20))]

    async with runtime(make(log.work, "heavy", weight=5), make(outer), max_running=1, max_queued=0) as rt:
        assert ["succeeded"] * 20 == (await rt.invoke("outer")).value
        assert_free(rt)
    assert {(0, 1)} == {*log.spans.values()}


async def test_what_is_nested_in_a_nested_call_uses_the_same_place():
    """Levels between, in tools without a limit, through batches and child tasks, lose nothing."""
    log = Log()

    async def middle() -> str:
        async with anyio.create_task_group() as group:
            group.start_soon(rt.invoke_many, calls("inner", 2))
        return "done"

    async def outer() -> str:
        (result,) = await rt.invoke_many([ToolCall("", "middle")])
        return result.value

    tools = make(log.work, "inner", exclusive="g"), make(middle), make(outer, exclusive="g")
    async with runtime(*tools, max_running=1, max_queued=1) as rt:
        assert "done" == (await rt.invoke("outer", timeout=10)).value
        assert_free(rt)
    assert {"n0": (0, 1), "n1": (1, 2)} == log.spans


async def test_a_nested_call_waits_for_a_group_that_a_stranger_has():
    """A caller that has nothing but its place waits in it for the group, and so does not deadlock with any place."""
    log = Log()
    inner = make(log.work, "inner", exclusive="g")

    async def outer() -> str:
        return (await rt.invoke("inner", {"name": "nested"})).outcome

    async with runtime(inner, make(outer), max_running=2) as rt, rt.batch() as batch:
        batch.start(call("inner", "stranger", 3))
        outer_handle = batch.start(ToolCall("", "outer"))
        batch.start(call("inner", "queued"))
        assert "succeeded" == (await outer_handle.result()).value
    # The nested call came last and is next all the same: who needs no place goes before those who do.
    assert {"stranger": (0, 3), "nested": (3, 4), "queued": (4, 5)} == log.spans


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    "group, group": ({"exclusive": "mine"}, {"exclusive": "theirs"}, "group 'theirs'", "group 'mine'"),
    "tool, group": ({"max_running": 2}, {"exclusive": "theirs"}, "group 'theirs'", "limit of the tool 'outer'"),
    "group, tool": ({"exclusive": "mine"}, {"max_running": 1}, "limit of the tool 'inner'", "group 'mine'"),
    "both, both": (
        {"exclusive": "both", "max_running": 1},
        {"exclusive": "both", "max_running": 1},
        "limit of the tool 'inner'",
        "limit of the tool 'outer'",
    ),
}


@pytest.mark.parametrize(("of_outer", "of_inner", "wanted", "had"), REFUSED.values(), ids=REFUSED)
async def test_one_that_could_wait_for_ever_is_refused_at_once(of_outer, of_inner, wanted, had):
    """A nested call does not wait for what a stranger has where its caller has something; it names both."""
    log = Log()
    # The stranger has what the nested call needs, by another tool where that is a group.
    tools = [make(log.work, "inner", **of_inner)]
    if of_inner.get("exclusive") == "theirs":
        tools.append(make(log.work, "stranger", exclusive="theirs"))
    inner = tools[0]

    async def outer() -> list[Any]:
        result = await rt.invoke("inner", {"name": "nested"})
        with pytest.raises(OverloadedError) as caught:
            await rt.call(inner, "nested")
        assert result.error.message == str(caught.value)
        return [*summary(result), result.error.message, result.error.delivery, result.is_retryable]

    if of_outer.get("exclusive") == "both":
        tools[0] = inner = make(
            log.work, "inner", max_running=1, exclusive=lambda name, *_: {"nested": "both"}.get(name)
        )
    async with runtime(*tools, make(outer, **of_outer), max_running=5) as rt, rt.batch() as batch:
        batch.start(call(tools[-1].name, "stranger", 3))
        await wait_all_tasks_blocked()
        result = await batch.start(ToolCall("", "outer")).result()
        assert 0 == anyio.current_time()
        *answer, message, delivery, is_retryable = result.value
        assert AWAY == tuple(answer)
        assert ("not_sent", True) == (delivery, is_retryable)
        for word in (wanted, had, "'inner'", "'outer'"):
            assert word in message
    assert {"stranger": (0, 3)} == log.spans


async def test_one_that_finds_it_free_is_not_refused():
    """A nested call takes a group beside that of its caller, when nobody has it."""
    log = Log()

    async def outer() -> str:
        return (await rt.invoke("inner", {"name": "nested"})).outcome

    async with runtime(make(log.work, "inner", exclusive="theirs"), make(outer, exclusive="mine")) as rt:
        assert "succeeded" == (await rt.invoke("outer")).value
        assert_free(rt)


async def test_siblings_wait_for_what_one_of_them_has():
    """Nested calls of one caller wait for each other in another group than its own: that ends by itself."""
    log = Log()

    async def outer() -> list[str]:
        return [str(result.outcome) for result in await rt.invoke_many(calls("inner", 3))]

    async with runtime(make(log.work, "inner", exclusive="theirs"), make(outer, exclusive="mine")) as rt:
        assert ["succeeded"] * 3 == (await rt.invoke("outer")).value
        assert_free(rt)
    assert {"n0": (0, 1), "n1": (1, 2), "n2": (2, 3)} == log.spans


async def test_calls_that_need_what_both_of_their_callers_have_do_not_deadlock():
    """One caller has the group and the other the tool that both of their calls need: one is refused, both end."""

    async def work(group: str | None) -> str:
        await anyio.sleep(1)
        if group is not None:
            return "worked"
        return (await rt.invoke("work", {"group": "g"})).outcome

    async def lead() -> str:
        await anyio.sleep(0.5)
        return (await rt.invoke("work", {"group": "g"})).outcome

    tools = make(work, max_running=1, exclusive=lambda group: group), make(lead, exclusive="g")
    async with runtime(*tools) as rt:
        results = await rt.invoke_many([ToolCall("", "lead"), ToolCall("", "work", {"group": None})])
        assert_free(rt)
    assert ["rejected", "succeeded"] == [result.value for result in results]


@pytest.mark.parametrize("count", [2, 3, 4])
async def test_a_ring_of_groups_ends(count):
    """Each of several callers has one group and asks for that of the next, all at once: all of them end."""

    async def hold(number: int, is_nested: bool = False) -> str:
        await anyio.sleep(1)
        if is_nested:
            return "nested"
        return (await rt.invoke("hold", {"number": (number + 1) % count, "is_nested": True})).outcome

    tool = make(hold, exclusive=lambda number, *_: str(number))
    async with runtime(tool) as rt:
        results = await rt.invoke_many([ToolCall("", "hold", {"number": number}) for number in range(count)])
        assert_free(rt)
    assert [OK] * count == [*map(summary, results)]
    assert "rejected" in [result.value for result in results]


async def test_a_chain_through_every_place_ends():
    """As many callers as there are places wait for a group that is had by one of their own kind."""
    log = Log()

    async def outer(name: str, seconds: float) -> str:
        return (await rt.invoke("inner", {"name": name})).outcome

    async with runtime(make(log.work, "inner", exclusive="g"), make(outer), max_running=5) as rt:
        results = await rt.invoke_many(calls("outer", 10))
        assert_free(rt)
    assert ["succeeded"] * 10 == [result.value for result in results]
    assert (1, 10) == (log.at_once("n"), anyio.current_time())


async def test_another_runtime_has_limits_of_its_own():
    """A nested call through another runtime takes a place, a tool and a group there, and waits for them."""
    log = Log()
    inner = make(log.work, "inner", exclusive="g", max_running=1)

    async def outer(name: str, seconds: float) -> str:
        return (await other.invoke("inner", {"name": name})).outcome

    tool = make(outer, exclusive="g")
    async with runtime(tool) as rt, runtime(inner, max_running=1) as other, anyio.create_task_group() as group:
        group.start_soon(other.invoke, "inner", {"name": "first", "seconds": 2})
        await wait_all_tasks_blocked()
        assert "succeeded" == (await rt.invoke("outer", {"name": "nested", "seconds": 0})).value
        assert_free(rt)
        assert_free(other)
    assert {"first": (0, 2), "nested": (2, 3)} == log.spans


async def test_a_way_back_from_another_runtime_is_nested():
    """A call that comes back through a second runtime uses the place and the group of the first caller."""
    log = Log()
    inner = make(log.work, "inner", exclusive="g")

    async def there() -> str:
        return (await rt.invoke("inner", {"name": "back"})).outcome

    async def outer() -> str:
        return (await other.invoke("there")).value

    async with runtime(inner, make(outer, exclusive="g"), max_running=1) as rt:
        for limits in ({}, {"max_running": 1}):
            async with runtime(make(there), **limits) as other:
                assert "succeeded" == (await rt.invoke("outer", timeout=5)).value
            log.spans.clear()
        assert_free(rt)


async def test_a_call_is_nested_in_each_attempt():
    """The second attempt of a caller has the place and the group as the first one has."""
    log = Log()
    runs = 0

    async def outer() -> str:
        nonlocal runs
        runs += 1
        answer = (await rt.invoke("inner", {"name": f"n{runs}"})).outcome
        if runs < 3:
            raise ConnectionError
        return answer

    async with runtime(
        make(log.work, "inner", exclusive="g"), make(outer, attempts=3, exclusive="g"), max_running=1
    ) as rt:
        for ask in (rt.invoke, lambda name: rt.call(rt.catalog.resolve(name))):
            runs = 0
            log.spans.clear()
            await ask("outer")
            assert "n1 n2 n3" == log.order
        runs = 0
        log.spans.clear()
        (result,) = await rt.invoke_many([ToolCall("", "outer")])
        assert "succeeded" == result.value
        assert_free(rt)


async def test_a_nested_call_that_waits_has_its_own_deadline():
    """A nested call's own deadline, and its caller's timeout, end its wait for a group, and nothing is left."""
    log = Log()
    inner = make(log.work, "inner", exclusive="g")

    async def outer(timeout: float | None) -> str:
        result = await rt.invoke("inner", {"name": "nested"}, timeout=timeout)
        return f"{result.outcome} {result.attempts}"

    tool = describe(outer, policy=ToolPolicy(2.0, 1, Backoff()))
    async with runtime(inner, tool, max_running=2) as rt, rt.batch() as batch:
        batch.start(call("inner", "stranger", 9))
        await wait_all_tasks_blocked()
        assert "timed_out 0" == (await rt.invoke("outer", {"timeout": 1})).value
        assert 1 == anyio.current_time()
        assert ("failed", "timeout", 1, "attempts") == summary(await rt.invoke("outer", {"timeout": None}))
        assert 3 == anyio.current_time()
        assert (1, 0) == (rt.statistics().running, rt.statistics().queued)
        batch.cancel()
    assert ["stranger"] == [*log.spans]


async def test_nested_calls_that_wait_count_in_the_queue():
    """``max_queued`` bounds nested calls that wait for a group, too; those that need but a place never wait."""
    log = Log()

    async def outer() -> list[str]:
        results = await rt.invoke_many([*calls("inner", 4), *calls("free", 9, "f")])
        return [str(result.outcome) for result in results]

    tools = make(log.work, "inner", exclusive="g"), make(log.work, "free"), make(outer)
    async with runtime(*tools, max_running=1, max_queued=2) as rt:
        outcomes = (await rt.invoke("outer")).value
        assert_free(rt)
    assert ["succeeded"] * 3 + ["rejected"] + ["succeeded"] * 9 == outcomes


async def test_tenants_are_no_reason_to_refuse():
    """A caller that has but a place and a turn of its tenant may wait for a group."""
    log = Log()

    async def outer() -> str:
        return (await rt.invoke("inner", {"name": "nested"}, identity=Y)).outcome

    tools = make(log.work, "inner", exclusive="g"), make(outer)
    rt = runtime(*tools, max_running=3, max_running_per_tenant=1)
    async with rt, anyio.create_task_group() as group:
        group.start_soon(rt.invoke, "inner", {"name": "stranger"})
        await wait_all_tasks_blocked()
        assert "succeeded" == (await rt.invoke("outer", identity=X)).value
    assert {"stranger": (0, 1), "nested": (1, 2)} == log.spans


async def test_a_caller_that_has_ended_has_nothing():
    """A task that a caller left behind, outside of it, asks as anybody: it needs a place and waits for the group."""
    log = Log()

    async def outer() -> None:
        outside.start_soon(later)

    async def later() -> None:
        await anyio.sleep(1)
        await rt.invoke("inner", {"name": "later"})

    async with runtime(make(log.work, "inner", exclusive="g"), make(outer, exclusive="g"), max_running=1) as rt:
        async with anyio.create_task_group() as outside:
            await rt.invoke("outer")
            outside.start_soon(rt.invoke, "inner", {"name": "now", "seconds": 3})
        assert_free(rt)
    assert {"now": (0, 3), "later": (3, 4)} == log.spans
