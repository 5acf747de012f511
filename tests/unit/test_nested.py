"""Tools that call tools through the runtime."""

import anyio
import pytest

import harbor_async as ha

pytestmark = pytest.mark.virtual

WAIT = ha.Backoff(initial=0.1, jitter=0.0)


def make_catalog(rt: list[ha.Runtime], log: list[str]) -> ha.Catalog:
    @ha.tool
    async def inner(name: str) -> str:
        log.append(f"{name} begins")
        await anyio.sleep(1)
        log.append(f"{name} ends")
        return name

    @ha.tool
    async def outer(name: str) -> str:
        return await rt[0].call(inner, f"{name}.inner")

    @ha.tool
    async def outer_many(count: int) -> int:
        results = await rt[0].invoke_many([ha.ToolCall("", "inner", {"name": str(n)}) for n in range(count)])
        return sum(result.outcome is ha.Outcome.SUCCEEDED for result in results)

    attempts: list[str] = []

    @ha.tool(policy=ha.ToolPolicy(wait=WAIT))
    async def flaky(name: str) -> str:
        attempts.append(name)
        if attempts.count(name) == 1:
            raise ConnectionError
        return await rt[0].call(inner, name)

    return ha.Catalog([inner, outer, outer_many, flaky])


@pytest.mark.parametrize("ask", ["invoke", "batch"])
@pytest.mark.parametrize("tool", ["outer", "flaky"])
async def test_a_nested_call_uses_the_place_of_its_parent(tool: str, ask: str) -> None:
    """N16: with one place a tool that calls another through the runtime ends, in any of its attempts."""
    held: list[ha.Runtime] = []
    log: list[str] = []
    async with ha.Runtime(make_catalog(held, log), limits=ha.Limits(max_running=1, max_queued=0)) as rt:
        held.append(rt)
        if ask == "invoke":
            result = await rt.invoke(tool, {"name": "a"}, timeout=10)
        else:
            (result,) = await rt.invoke_many([ha.ToolCall("", tool, {"name": "a"})], timeout=10)
    assert "succeeded" == result.outcome
    assert pytest.approx(1 if tool == "outer" else 1.1) == result.elapsed


async def test_calls_that_are_not_nested_still_wait_their_turn() -> None:
    """The place of a parent serves its own calls alone: a second parent begins when the first has ended."""
    held: list[ha.Runtime] = []
    log: list[str] = []
    async with ha.Runtime(make_catalog(held, log), limits=ha.Limits(max_running=1)) as rt:
        held.append(rt)
        results = await rt.invoke_many([ha.ToolCall(name, "outer", {"name": name}) for name in "ab"])
        assert ["a.inner", "b.inner"] == [result.value for result in results]
        assert ["a.inner begins", "a.inner ends", "b.inner begins", "b.inner ends"] == log
        # The caller's own context knows nothing of a place afterwards.
        await rt.invoke_many([ha.ToolCall(name, "inner", {"name": name}) for name in "cd"])
    assert ["c begins", "c ends", "d begins", "d ends"] == log[4:]


async def test_a_nested_batch_needs_no_places_either() -> None:
    """A batch within a tool ends under a limit of one place."""
    held: list[ha.Runtime] = []
    async with ha.Runtime(make_catalog(held, []), limits=ha.Limits(max_running=1)) as rt:
        held.append(rt)
        result = await rt.invoke("outer_many", {"count": 5}, timeout=10)
    assert 5 == result.value


async def test_another_runtime_has_places_of_its_own() -> None:
    """A nested call through another runtime waits for a place there."""
    held: list[ha.Runtime] = []
    catalog = make_catalog(held, [])
    async with (
        ha.Runtime(catalog, limits=ha.Limits(max_running=1)) as first,
        ha.Runtime(catalog, limits=ha.Limits(max_running=1)) as second,
    ):
        held.append(second)
        results = await first.invoke_many([ha.ToolCall(name, "outer", {"name": name}) for name in "a"])
        both = await anyio_gather(first, second)
    assert ["a.inner"] == [result.value for result in results]
    assert [1, 2] == sorted(round(result.elapsed) for result in both)


async def anyio_gather(first: ha.Runtime, second: ha.Runtime) -> list[ha.ToolResult]:
    results: list[ha.ToolResult] = []

    async def ask(rt: ha.Runtime, name: str) -> None:
        results.append(await rt.invoke(name, {"name": "x"}))

    async with anyio.create_task_group() as group:
        group.start_soon(ask, first, "outer")
        group.start_soon(ask, second, "inner")
    return results


async def test_a_nested_call_ends_with_its_parent() -> None:
    """R052: when the outer call is cut, the inner one is canceled with no code of the user's."""
    held: list[ha.Runtime] = []
    log: list[str] = []
    async with ha.Runtime(make_catalog(held, log)) as rt:
        held.append(rt)
        result = await rt.invoke("outer", {"name": "a"}, timeout=0.5)
    assert ("timed_out", ["a.inner begins"]) == (result.outcome, log)
