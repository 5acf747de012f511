"""Tells every client that the list of tools is another one."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Final, Self

import anyio
from mcp.server.connection import Connection
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

from ... import _backend
from ..._catalog import Catalog

_PATIENCE: Final = 5.0
"""Seconds that a client may take for the news; then it goes without."""


class Changes:
    """Listens to a catalog and tells the clients. An async context manager, entered in the event loop that serves.

    Clients of 2026-07-28 have asked for it by ``subscriptions/listen``; of an older one each session is told. Several
    changes in a row are one piece of news.
    """

    def __init__(self, catalog: Catalog) -> None:
        """Prepare to listen to ``catalog``."""
        self._catalog = catalog
        self._bus = InMemorySubscriptionBus()
        self._sessions: set[Connection] = set()
        self._news = anyio.Event()
        self._closing = AsyncExitStack()
        self.listen = ListenHandler(self._bus)

    async def __aenter__(self) -> Self:
        """Begin to listen."""
        backend = _backend.current()

        def hear() -> None:  # in whichever thread has changed the catalog
            backend.run_sync_soon(self._hear)

        group = await self._closing.enter_async_context(anyio.create_task_group())
        self._closing.callback(group.cancel_scope.cancel)
        self._closing.callback(self._catalog.subscribe(hear))
        group.start_soon(self._tell_all)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        await self._closing.__aexit__(kind, error, trace)

    def add(self, session: Connection) -> Callable[[], None]:
        """Tell a session from now on, until what is returned is called."""
        self._sessions.add(session)
        return lambda: self._sessions.discard(session)

    def close(self) -> None:
        """End the streams of all who listen, in words that say so."""
        self.listen.close()

    def _hear(self) -> None:
        self._news.set()

    async def _tell_all(self) -> None:
        while True:
            await self._news.wait()
            self._news = anyio.Event()
            await self._bus.publish(ToolsListChanged())
            async with anyio.create_task_group() as group:
                for session in tuple(self._sessions):
                    group.start_soon(_tell, session)


async def _tell(session: Connection) -> None:
    with anyio.move_on_after(_PATIENCE):
        await session.notify("notifications/tools/list_changed", None)
