"""The ways of asking for one call, and small tools that end in every way there is."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from harbor_async import Backoff, Catalog, Runtime, ToolCall, ToolDescriptor, ToolPolicy, ToolResult, describe

Ask = Callable[..., Awaitable[ToolResult]]


async def invoke(tool: ToolDescriptor[..., Any], **options: Any) -> ToolResult:
    async with Runtime(Catalog([tool])) as runtime:
        return await runtime.invoke(tool.name, **options)


async def invoke_many(tool: ToolDescriptor[..., Any], **options: Any) -> ToolResult:
    async with Runtime(Catalog([tool])) as runtime:
        (result,) = await runtime.invoke_many([ToolCall("", tool.name)], **options)
        return result


async def stream(tool: ToolDescriptor[..., Any], **options: Any) -> ToolResult:
    async with (
        Runtime(Catalog([tool])) as runtime,
        runtime.stream([ToolCall("", tool.name)], **options) as results,
    ):
        (result,) = [result async for result in results]
        return result


async def bare(tool: ToolDescriptor[..., Any], **options: Any) -> ToolResult:
    return await tool.invoke(**options)


WAYS = [invoke, invoke_many, stream, bare]
each_way = pytest.mark.parametrize("ask", WAYS, ids=lambda way: way.__name__)
WAIT = Backoff(initial=0.5, factor=2, jitter=0)
"""The waits before retries are 0.5, 1, 2, … seconds."""


def make(function: Callable[..., Awaitable[Any]], timeout: float | None = 1.0, attempts: int = 3, **options: Any):
    """Make a tool of a local function; by default it may take 1 s and is tried three times."""
    return describe(function, policy=ToolPolicy(timeout, attempts, WAIT), **options)


async def steal_cancellation() -> BaseException:
    """Return a cancellation that belongs to no scope which is still open, as a library may raise one."""
    kept: BaseException | None = None
    with anyio.CancelScope() as scope:
        scope.cancel()
        try:
            await anyio.sleep(1)
        except anyio.get_cancelled_exc_class() as exc:
            kept = exc
            raise
    assert kept is not None
    return kept


def summary(result: ToolResult) -> tuple[str, str | None, int, str | None]:
    """Return outcome, category, attempts and why there were no more."""
    return result.outcome, result.error and result.error.category, result.attempts, result.stop_reason
