"""Timers that a loop makes something else of."""

import anyio

from harbor_async import Backoff, Catalog, Runtime, ToolCall, ToolPolicy, describe


async def test_a_batch_of_timeouts_that_pass_at_once():
    """Timeouts of next to nothing are timeouts on every loop; uvloop makes a timer that is due at once no timer."""

    async def hangs() -> None:
        await anyio.sleep(60)

    described = describe(hangs, policy=ToolPolicy(0.0001, 2, Backoff(initial=0)))
    async with Runtime(Catalog([described])) as runtime:
        results = await runtime.invoke_many([ToolCall("", "hangs")] * 20)
    assert [("failed", "timeout", 2, "attempts")] * 20 == [
        (result.outcome, result.error.category, result.attempts, result.stop_reason) for result in results
    ]
