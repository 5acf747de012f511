"""Small tools for batches, and short words for what became of their calls."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import attrs

from harbor_async import Backoff, Catalog, Limits, Runtime, ToolCall, ToolDescriptor, ToolPolicy, ToolResult, describe


def make(
    function: Callable[..., Awaitable[Any]], attempts: int = 1, classify: Any = None, **options: Any
) -> ToolDescriptor[..., Any]:
    """Make a tool of a local function, without a timeout; the waits before its retries are 1, 2, … seconds."""
    wait = Backoff(initial=1, factor=2, jitter=0)
    return describe(function, policy=ToolPolicy(None, attempts, wait, classify=classify), **options)


@attrs.define
class Log:
    """A tool ``work``, and what its runs did: who began, who ended and how often each was cut."""

    begun: list[str] = attrs.field(factory=list)
    ended: list[str] = attrs.field(factory=list)
    cut: list[str] = attrs.field(factory=list)

    async def work(self, name: str, seconds: float = 1.0, fails: bool = False, tidies: float = 0.0) -> str:
        """Take some time."""
        self.begun.append(name)
        try:
            await anyio.sleep(seconds)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await anyio.sleep(tidies)
            self.cut.append(name)
            raise
        self.ended.append(name)
        if fails:
            raise ValueError("no luck")
        return name


def runtime(*tools: ToolDescriptor[..., Any], **limits: int) -> Runtime:
    return Runtime(Catalog(tools), limits=Limits(**limits))


def working(log: Log, *tools: ToolDescriptor[..., Any], **limits: int) -> Runtime:
    """Make a runtime whose tool ``work`` writes to ``log``."""
    return runtime(make(log.work), *tools, **limits)


def work(name: str, seconds: float = 1.0, **arguments: Any) -> ToolCall:
    return ToolCall(name, "work", {"name": name, "seconds": seconds, **arguments})


Summary = tuple[str, Any, int, Any]


def summary(result: ToolResult | None) -> Summary | None:
    """Return outcome, value or category, attempts and why there were no more."""
    if result is None:
        return None
    return result.outcome, result.error.category if result.error else result.value, result.attempts, result.stop_reason


def canceled(attempts: int) -> Summary:
    return "failed", "canceled", attempts, "canceled"


def succeeded(value: Any, attempts: int = 1) -> Summary:
    return "succeeded", value, attempts, None
