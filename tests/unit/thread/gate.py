"""A gate that holds worker threads, so that a test says when each goes on, and what is the same in all tests."""

import threading
from collections.abc import Callable
from typing import Any

from anyio import from_thread
from anyio.lowlevel import checkpoint
from anyio.to_thread import run_sync

from harbor_async import Backoff, Catalog, Limits, Runtime, ToolCall, ToolDescriptor, ToolPolicy, ToolResult, describe
from harbor_async.testing import block, wait_all_tasks_blocked

PATIENCE = 15.0
"""Real seconds for what comes at once; more than a loaded machine takes, and less than a test may."""


class Gate:
    """Holds the threads that come to it until it is opened, and counts them.

    Attributes:
        live: Threads that are in it now.
        peak: The most that were in it at once.
        runs: Threads that have come.
    """

    def __init__(self) -> None:
        self.live = 0
        self.peak = 0
        self.runs = 0
        self._lock = threading.Lock()
        self._opened = threading.Event()
        self._came = threading.Semaphore(0)
        self._went = threading.Semaphore(0)

    def hold(self, seconds: float = PATIENCE) -> None:
        """Wait in a worker thread until the gate is opened, ``seconds`` at the most."""
        with self._lock:
            self.runs += 1
            self.live += 1
            self.peak = max(self.peak, self.live)
        self._came.release()
        self._opened.wait(seconds)
        with self._lock:
            self.live -= 1
        self._went.release()

    def open(self) -> None:
        """Let all go on, those that are held and those that come later."""
        self._opened.set()

    async def came(self, count: int = 1) -> None:
        """Wait until ``count`` more threads have come."""
        await self._wait(self._came, count)

    async def went(self, count: int = 1) -> None:
        """Wait until ``count`` more threads have gone on."""
        await self._wait(self._went, count)

    async def _wait(self, semaphore: threading.Semaphore, count: int) -> None:
        # In a thread of anyio's own limiter, which the runtime does not touch: no timer, so that virtual time stands.
        for _ in range(count):
            assert await run_sync(semaphore.acquire, True, PATIENCE), "a thread did not come, or did not go on"


def make(function: Callable[..., Any], timeout: float | None = None, attempts: int = 1, **options: Any):
    """Make a tool of a local function; by default it has no timeout, and is tried once."""
    return describe(function, policy=ToolPolicy(timeout, attempts, Backoff(initial=0, jitter=0)), **options)


async def invoke(tool: ToolDescriptor[..., Any], **options: Any) -> ToolResult:
    async with Runtime(Catalog([tool])) as runtime:
        return await runtime.invoke(tool.name, **options)


def calls_of(tool: ToolDescriptor[..., Any], count: int) -> list[ToolCall]:
    return [ToolCall(str(number), tool.name) for number in range(count)]


async def pass_time(seconds: float) -> None:
    """Let virtual time pass at once, though threads are under way, and what follows from it happen."""
    block(seconds)
    await checkpoint()
    await wait_all_tasks_blocked()


def limited(*tools: ToolDescriptor[..., Any], threads: int = 1, **limits: Any) -> Runtime:
    """Return a runtime with so many threads, that has a tool ``meet`` besides; see ``assert_free``."""
    condition = threading.Condition()
    count = 0

    def meet() -> None:
        """Wait until so many threads are here at once."""
        nonlocal count
        with condition:
            needed = count - count % threads + threads
            count += 1
            condition.notify_all()
            for _ in range(int(PATIENCE / 0.05)):
                if condition.wait_for(lambda: count >= needed, 0.05):
                    return
                from_thread.check_cancelled()
        raise AssertionError("a place for a thread was lost")

    return Runtime(Catalog([*tools, make(meet)]), limits=Limits(max_threads=threads, **limits))


async def assert_free(runtime: Runtime) -> None:
    """Take every place for a thread at once: without one that was lost they never meet."""
    places = runtime.limits.max_threads
    results = await runtime.invoke_many([ToolCall("", "meet")] * places)
    assert ["succeeded"] * places == [result.outcome for result in results]


def ways(runtime: Runtime, tool: ToolDescriptor[..., Any]) -> dict[str, Callable[[], Any]]:
    """Return every way of asking ``runtime`` for one call of ``tool``."""

    async def stream() -> list[ToolResult]:
        async with runtime.stream(calls_of(tool, 1)) as results:
            return [result async for result in results]

    async def batch() -> ToolResult:
        async with runtime.batch() as started:
            return await started.start(ToolCall("", tool.name)).result()

    return {
        "invoke": lambda: runtime.invoke(tool.name),
        "invoke_many": lambda: runtime.invoke_many(calls_of(tool, 1)),
        "stream": stream,
        "batch": batch,
        "call": lambda: runtime.call(tool),
    }


WAYS = ["invoke", "invoke_many", "stream", "batch", "call"]
