"""Reported faults of concurrency limits: how many run at once, who waits, and what the wait counts against."""

import anyio
import pytest

from harbor_async import Catalog, Limits, Runtime
from tests.conformance.support import SUCCEEDED, call, make, settle, summary


@pytest.mark.parametrize("way", ["invoke", "invoke_many", "call"])
async def test_n16_limiter_nesting(way):
    """With one place a tool that calls another through the runtime ends: the child uses its parent's place."""
    running = peak = 0

    async def child() -> str:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        await settle()
        running -= 1
        return "child"

    inner = make(child)

    async def parent() -> str:
        if way == "invoke":
            return (await runtime.invoke("child")).value
        if way == "call":
            return await runtime.call(inner)
        return ",".join(result.value for result in await runtime.invoke_many([call(inner), call(inner)]))

    tools = make(parent), inner
    async with Runtime(Catalog(tools), limits=Limits(max_running=1)) as runtime:
        results = await runtime.invoke_many([call(tool) for tool in tools])
        assert [SUCCEEDED] * 2 == [*map(summary, results)]
        assert ["child,child" if way == "invoke_many" else "child", "child"] == [result.value for result in results]
        assert (2 if way == "invoke_many" else 1) == peak  # and the second call waited for the place


async def test_n16_limiter_nesting_of_groups():
    """A nested call that would wait for a group while its caller has another is refused at once, and names both."""
    release = anyio.Event()

    async def holds() -> None:
        await release.wait()

    async def waits() -> str:
        return "had its turn"

    nested = make(waits, exclusive="editor")

    async def caller() -> str:
        result = await runtime.invoke("waits")
        return f"{result.outcome} {result.error.category}: {result.error.message}"

    tools = make(holds, exclusive="editor"), nested, make(caller, exclusive="browser")
    async with Runtime(Catalog(tools)) as runtime, runtime.batch() as batch:
        batch.start(call(tools[0]))
        await settle()
        handle = batch.start(call(tools[2]))
        await settle()
        assert handle.done  # at once, while the group is still taken
        refused = (await handle.result()).value
        assert refused.startswith("rejected rate_limited: ")
        for word in ("'editor'", "'browser'", "'waits'", "'caller'"):
            assert word in refused
        release.set()
        await settle()
        assert "had its turn" == (await runtime.invoke("waits")).value


async def test_n16_limiter_nesting_crosswise():
    """Two tools of two groups that call each other at once do not wait for each other for ever."""
    inside = [anyio.Event(), anyio.Event()]

    async def first(is_nested: bool = False) -> str:
        return await visit(0, is_nested)

    async def second(is_nested: bool = False) -> str:
        return await visit(1, is_nested)

    async def visit(number: int, is_nested: bool) -> str:
        if is_nested:
            return "nested"
        inside[number].set()
        await inside[1 - number].wait()
        return (await runtime.invoke(["second", "first"][number], {"is_nested": True})).outcome

    tools = make(first, exclusive="one"), make(second, exclusive="two")
    async with Runtime(Catalog(tools)) as runtime:
        results = await runtime.invoke_many([call(tool) for tool in tools])
    assert [SUCCEEDED] * 2 == [*map(summary, results)]
    # The first to ask is refused; the other may find the group free again by then.
    assert {result.value for result in results} in ({"rejected"}, {"rejected", "succeeded"})


@pytest.mark.timed
async def test_r054_exclusive_and_free(pace):
    """Of a batch the calls of an exclusive tool run one by one in their order, those of a free one all at once."""
    log = []
    free = 0
    all_free = anyio.Event()

    async def browse(n: int) -> int:
        log.append(f"{n} begins")
        await anyio.sleep(pace(1.0, 0.005))
        log.append(f"{n} ends")
        return n

    async def think(n: int) -> int:
        nonlocal free
        free += 1
        if free == 3:
            all_free.set()
        await all_free.wait()
        return n

    tools = make(browse, exclusive="browser"), make(think)
    async with Runtime(Catalog(tools)) as runtime:
        results = await runtime.invoke_many([call(tool, n=n) for n in (1, 2, 3) for tool in tools])
    assert [SUCCEEDED] * 6 == [*map(summary, results)]
    assert [1, 1, 2, 2, 3, 3] == [result.value for result in results]
    assert [f"{n} {what}" for n in (1, 2, 3) for what in ("begins", "ends")] == log
    for n, result in enumerate(results[::2], start=1):
        pace.check(n * pace(1.0, 0.005), result.elapsed)
    for result in results[1::2]:
        pace.check(0, result.elapsed)


async def test_r072_weights():
    """Of tools of weight four no more than two run in a house of eight places, and lighter ones fill what is left."""
    running = {"heavy": 0, "light": 0}
    seen = set()

    async def run(kind: str) -> None:
        running[kind] += 1
        seen.add((running["heavy"], running["light"]))
        await settle()
        running[kind] -= 1

    async def heavy() -> None:
        await run("heavy")

    async def light() -> None:
        await run("light")

    tools = make(heavy, weight=4), make(light)
    async with Runtime(Catalog(tools), limits=Limits(max_running=8)) as runtime:
        results = await runtime.invoke_many([call(tools[0])] * 6)
        assert [SUCCEEDED] * 6 == [*map(summary, results)]
        assert {(1, 0), (2, 0)} == seen
        seen.clear()
        results = await runtime.invoke_many([call(tools[n % 5 > 0]) for n in range(30)])
        assert [SUCCEEDED] * 30 == [*map(summary, results)]
    assert 8 == max(4 * heavies + lights for heavies, lights in seen)


@pytest.mark.timed
async def test_r006_many_calls_through_a_small_limit(pace):
    """Of 800 calls eight run at once and all are answered; their wait counts against the deadline alone."""
    running = peak = 0
    step = pace(0.005, 0.0)

    async def work(hangs: bool = False) -> None:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        try:
            await (anyio.sleep_forever() if hangs else anyio.sleep(step))
        finally:
            running -= 1

    # The last call waits for 0.495 s, and a timeout of 0.01 s is enough for it.
    tool = make(work, timeout=pace(0.01, 60.0))
    async with Runtime(Catalog([tool]), limits=Limits(max_running=8)) as runtime:
        started = anyio.current_time()
        results = await runtime.invoke_many([call(tool)] * 800)
        pace.check(100 * step, anyio.current_time() - started)
        assert [SUCCEEDED] * 800 == [*map(summary, results)]
        assert (8, 0) == (peak, running)
        # In virtual time fifty rounds of eight end before the deadline; in real time none does.
        calls = [call(tool, hangs=not pace.is_virtual)] * 800
        results = await runtime.invoke_many(calls, timeout=pace(0.2525, 0.4))
    begun, done = ("timed_out", "timeout", 1, "deadline"), 400 if pace.is_virtual else 0
    waited = ("timed_out", "timeout", 0, "deadline")
    assert [SUCCEEDED] * done + [begun] * 8 + [waited] * (792 - done) == [*map(summary, results)]
    assert 8 == peak
