"""Small words for tools, calls and their ends."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from anyio.lowlevel import checkpoint

from harbor_async import (
    Backoff,
    Catalog,
    EventType,
    Runtime,
    ToolCall,
    ToolDescriptor,
    ToolEvent,
    ToolPolicy,
    ToolResult,
    describe,
)

LONG = 600.0
"""Seconds that never pass: what waits for so long is cut."""

Summary = tuple[str, str | None, int, str | None]


def make(
    function: Callable[..., Any], timeout: float | None = LONG, attempts: int = 1, wait: float = 0.0, **options: Any
) -> ToolDescriptor[..., Any]:
    """Make a tool of a local function, with waits of ``wait``, twice that and so on between its attempts."""
    return describe(
        function, policy=ToolPolicy(timeout, attempts, Backoff(initial=wait, maximum=None, jitter=0)), **options
    )


async def invoke(tool: ToolDescriptor[..., Any], arguments: Any = "", **options: Any) -> ToolResult:
    async with Runtime(Catalog([tool])) as runtime:
        return await runtime.invoke(tool.name, arguments, **options)


async def invoke_many(*tools: ToolDescriptor[..., Any], **options: Any) -> list[ToolResult]:
    """Call each tool once, all at once."""
    async with Runtime(Catalog(tools)) as runtime:
        return await runtime.invoke_many([call(tool) for tool in tools], **options)


def call(tool: ToolDescriptor[..., Any], **arguments: Any) -> ToolCall:
    return ToolCall("", tool.name, arguments)


def summary(result: ToolResult) -> Summary:
    """Return outcome, category, attempts and why there were no more."""
    return result.outcome, result.error and result.error.category, result.attempts, result.stop_reason


SUCCEEDED = ("succeeded", None, 1, None)


def canceled(attempts: int = 1) -> Summary:
    return "failed", "canceled", attempts, "canceled"


class Listener:
    """An event sink that keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[ToolEvent] = []

    async def emit(self, event: ToolEvent) -> None:
        self.events.append(event)

    def types(self, tool: str) -> list[EventType]:
        """Return the types of the events of a tool's calls, in their order."""
        return [event.type for event in self.events if event.tool == tool]


LAST = {
    *(EventType.COMPLETED, EventType.FAILED, EventType.INVALID_ARGS),
    *(EventType.POLICY_EXHAUSTED, EventType.CANCELED, EventType.REJECTED),
}
"""The events that end a call."""


async def settle() -> None:
    """Let every other task come to where it waits for something; no thread is waited for."""
    for _ in range(_TURNS):
        await checkpoint()


_TURNS = 30
"""Turns of the event loop; a call takes three or four to its first wait. In place of ``anyio.wait_all_tasks_blocked``,
which sleeps for 0.1 s on asyncio."""


def is_asyncio() -> bool:
    return anyio.get_cancelled_exc_class() is asyncio.CancelledError


def cuts() -> list[str]:
    """Return the ways in which a caller can be canceled in the running event loop."""
    return ["scope", "native"] if is_asyncio() else ["scope"]


class Caller:
    """Somebody who asks, and is canceled by a scope round it or, on asyncio, by ``task.cancel()``."""

    def __init__(self, by: str) -> None:
        self._scope = anyio.CancelScope()
        self._is_native = by == "native"
        self._task: asyncio.Future[Any]

    async def run(self, ask: Callable[[], Awaitable[Any]], when: Callable[[], Awaitable[Any]] | None = None) -> Any:
        """Return what ``ask()`` gives, or ``CANCELED`` when only the cancellation came out; cancel ``when`` is over."""
        got: list[Any] = []

        async def cut() -> None:
            await when()
            self.cancel()

        async def in_scope() -> None:
            with self._scope:
                got.append(await ask())
            got.append(CANCELED)

        async with anyio.create_task_group() as group:
            if when is not None:
                group.start_soon(cut)
            if self._is_native:
                self._task = asyncio.ensure_future(ask())
                await asyncio.wait([self._task])
                return CANCELED if self._task.cancelled() else self._task.result()
            group.start_soon(in_scope)
        return got[0] if got else "canceled, past the caller's own scope"

    def cancel(self) -> None:
        if self._is_native:
            self._task.cancel()
        else:
            self._scope.cancel()

    def cancel_later(self, seconds: float) -> None:
        if self._is_native:
            asyncio.get_running_loop().call_later(seconds, self._task.cancel)
        else:
            self._scope.deadline = anyio.current_time() + seconds


CANCELED = "canceled, without an answer"
