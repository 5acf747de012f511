"""Tools that log when they begin and end in virtual time, and ways to ask for them."""

from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import attrs

from harbor_async import (
    Backoff,
    Catalog,
    Identity,
    Limits,
    Runtime,
    ToolCall,
    ToolDescriptor,
    ToolPolicy,
    ToolResult,
    describe,
)

X, Y, Z = (Identity(tenant, "user", "session") for tenant in "xyz")
WAIT = Backoff(initial=1, factor=2, jitter=0)


def make(
    function: Callable[..., Any], name: str = "", timeout: float | None = None, attempts: int = 1, **options: Any
) -> ToolDescriptor[..., Any]:
    """Make a tool of a local function, without timeout and retries."""
    options = {"name": name, **options} if name else options
    return describe(function, policy=ToolPolicy(timeout, attempts, WAIT), **options)


def runtime(*tools: ToolDescriptor[..., Any], **limits: int) -> Runtime:
    return Runtime(Catalog(tools), limits=Limits(**limits))


@attrs.define
class Log:
    """When runs began and ended.

    Attributes:
        spans: Name to begin and end, in the order in which they began; the end is None while it runs.
    """

    spans: dict[str, tuple[float, float | None]] = attrs.field(factory=dict)

    async def work(self, name: str, seconds: float = 1.0, group: str | None = None) -> str:
        """Take some time."""
        begun = anyio.current_time()
        assert name not in self.spans
        self.spans[name] = (begun, None)
        try:
            await anyio.sleep(seconds)
        finally:
            self.spans[name] = (begun, anyio.current_time())
        return name

    @property
    def order(self) -> str:
        """The names in the order in which they began."""
        return " ".join(self.spans)

    def at_once(self, *prefixes: str) -> int:
        """Return how many at most ran at once, of those whose name begins so."""
        spans = [
            (begun, end) for name, (begun, end) in self.spans.items() if name.startswith(prefixes) and end is not None
        ]
        return max(sum(begun <= at < end for begun, end in spans) for at, _ in spans)


def call(tool: str, name: str, seconds: float = 1.0, **arguments: Any) -> ToolCall:
    return ToolCall(name, tool, {"name": name, "seconds": seconds, **arguments})


async def ask_all(rt: Runtime, *calls: tuple[ToolCall, Identity | None], gap: float = 0.0) -> dict[str, ToolResult]:
    """Ask for calls, each on behalf of somebody, in this order; return the results by the calls' ids."""
    results: dict[str, ToolResult] = {}

    async def ask(one: ToolCall, identity: Identity | None) -> None:
        results[one.id] = await rt.invoke(one.name, one.arguments, id=one.id, identity=identity)

    async with anyio.create_task_group() as group:
        for one, identity in calls:
            group.start_soon(ask, one, identity)
            await anyio.sleep(gap)
            await anyio.lowlevel.checkpoint()
    return results


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what a thread brings about; it comes at once, but nobody says when. The test's timeout bounds it."""
    while not condition():
        await anyio.lowlevel.checkpoint()


def summary(result: ToolResult) -> tuple[str, str | None, int, str | None]:
    """Return outcome, category, attempts and why there were no more."""
    return result.outcome, result.error and result.error.category, result.attempts, result.stop_reason


OK = ("succeeded", None, 1, None)
AWAY = ("rejected", "rate_limited", 0, "rejected")
LATE = ("timed_out", "timeout", 0, "deadline")
CANCELED = ("failed", "canceled", 0, "canceled")


def assert_free(rt: Runtime) -> None:
    """See that nothing is taken and nobody waits, in the limiter itself, which has no public name."""
    limiter = rt._host.limiter
    assert (0, 0, {}) == (limiter.running, limiter.queued, limiter._lanes)
    assert ([], {}) == (limiter._ready.nested, dict(limiter._ready.turns))
    assert (0, 0) == (rt.statistics().running, rt.statistics().queued)
