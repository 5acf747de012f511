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


async def test_a_thread_does_not_wait_for_itself() -> None:
    """A nested call that needs a thread is refused where its parent has the last one, and the place comes back."""
    held: list[ha.Runtime] = []

    @ha.tool
    def inner(name: str) -> str:
        return name

    @ha.tool(policy=ha.ToolPolicy(attempts=1))
    def outer(name: str) -> str:
        return anyio.from_thread.run(held[0].call, inner, name)

    async with ha.Runtime(ha.Catalog([inner, outer]), limits=ha.Limits(max_threads=1)) as rt:
        held.append(rt)
        result = await rt.invoke("outer", {"name": "a"})
        after = await rt.invoke("inner", {"name": "b"})
    assert ("failed", "rate_limited", "attempts") == (result.outcome, result.error.category, result.stop_reason)
    assert "every worker thread is taken" in result.error.message
    assert "b" == after.value


async def test_a_nested_call_takes_a_thread_that_is_free() -> None:
    """With a second thread the nested call of a synchronous tool runs in it."""
    held: list[ha.Runtime] = []

    @ha.tool
    def inner(name: str) -> str:
        return name

    @ha.tool
    def outer(name: str) -> str:
        return anyio.from_thread.run(held[0].call, inner, name)

    async with ha.Runtime(ha.Catalog([inner, outer]), limits=ha.Limits(max_threads=2)) as rt:
        held.append(rt)
        assert "a" == (await rt.invoke("outer", {"name": "a"})).value
