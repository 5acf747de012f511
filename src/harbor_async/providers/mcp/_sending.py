"""What is known of one call's way to the server, which the SDK's errors do not say."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

from mcp.shared.message import SessionMessage


class Sending:
    """One call on its way.

    Attributes:
        is_sent: Whether it may have left this process.
        status: The HTTP status of a refusal; None: there was none.
        retry_after: The header of that name in it.
        error: Why no answer could be had over HTTP.
        is_lost: Whether the server has forgotten the session.
    """

    __slots__ = ("error", "is_lost", "is_sent", "retry_after", "status")

    def __init__(self) -> None:
        """Begin, with nothing sent."""
        self.is_sent = False
        self.status: int | None = None
        self.retry_after: str | None = None
        self.error: Exception | None = None
        self.is_lost = False


SENDING: ContextVar[Sending | None] = ContextVar("harbor_async.mcp.sending", default=None)
"""The call that the running code sends. The SDK sends a message, and runs its HTTP request, in its sender's context."""


@asynccontextmanager
async def watched(transport: Any, tell_end: Callable[[], None]) -> AsyncGenerator[tuple[Any, Any]]:
    """Open a ``Transport`` that tells when a call has been sent, and when the other side is gone, or as good as gone.

    Args:
        transport: What is opened.
        tell_end: Called then; it may be called again.
    """
    async with transport as (read, write):
        yield _Read(read, tell_end), _Write(write, tell_end)


class _Stream:
    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Any:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *raised: object) -> Any:
        return await self._inner.__aexit__(*raised)


class _Read(_Stream):
    def __init__(self, inner: Any, tell_end: Callable[[], None]) -> None:
        super().__init__(inner)
        self._tell_end = tell_end

    @property
    def last_context(self) -> Any:
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Any:
        return await self._inner.receive()

    def __aiter__(self) -> Any:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._inner.__anext__()
        except StopAsyncIteration:
            self._tell_end()
            raise


class _Write(_Stream):
    def __init__(self, inner: Any, tell_end: Callable[[], None]) -> None:
        super().__init__(inner)
        self._tell_end = tell_end

    async def send(self, item: SessionMessage, /) -> None:
        is_taken = False
        try:
            await self._inner.send(item)
            is_taken = True
        finally:
            if not is_taken and getattr(item.message, "method", "") == "notifications/cancelled":
                self._tell_end()  # the SDK has waited for seconds: a server that takes nothing will not answer, either
        sending = SENDING.get()
        if sending is not None:
            sending.is_sent = True
