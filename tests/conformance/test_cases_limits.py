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
        results = await runtime.invoke_many(calls, timeout=pace(0.2525, 0.05))
    begun, done = ("timed_out", "timeout", 1, "deadline"), 400 if pace.is_virtual else 0
    waited = ("timed_out", "timeout", 0, "deadline")
    assert [SUCCEEDED] * done + [begun] * 8 + [waited] * (792 - done) == [*map(summary, results)]
    assert 8 == peak
