"""A synchronous tool that calls a tool through the runtime, from its thread."""

import anyio
import anyio.from_thread
from anyio.lowlevel import checkpoint

import harbor_async as ha


async def test_a_call_from_a_tools_thread_is_nested_too() -> None:
    """A tool that calls back from its thread uses its own place, so that one place is enough (N16)."""
    held: list[ha.Runtime] = []

    @ha.tool
    async def inner(name: str) -> str:
        await checkpoint()
        return name

    @ha.tool
    def from_thread(name: str) -> str:
        return anyio.from_thread.run(held[0].call, inner, name)

    async with ha.Runtime(ha.Catalog([inner, from_thread]), limits=ha.Limits(max_running=1, max_queued=0)) as rt:
        held.append(rt)
        result = await rt.invoke("from_thread", {"name": "t"})
    assert ("succeeded", "t") == (result.outcome, result.value)
