"""One server: a task that owns the session, and the calls that use it."""

import logging
import math
from collections.abc import Callable
from importlib.metadata import version
from threading import get_ident
from typing import Any, Final

import anyio
import anyio.lowlevel
from mcp import Client, ClientSession, types as wire
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.exceptions import MCPError

from ..._catalog import Catalog
from ..._categories import Delivery, ErrorCategory, ErrorClass
from ..._classify import describe
from ..._context import ToolContext
from ..._policy import Wait
from ...errors import ToolError
from ._call import call_tool
from ._endpoint import Endpoint
from ._error import closed, unreachable
from ._sending import Sending, watched
from ._tools import Naming, Shelf

_LOG: Final = logging.getLogger("harbor_async.providers.mcp")

_CLOSE_TIMEOUT: Final = 5.0
"""Seconds that saying goodbye may take; a process that does not end is killed some seconds later."""

_SOON: Final = 0.01
"""Seconds: a call that was told to come back then is not told so again for a rounding error."""

_MOST_PAGES: Final = 200


_OLD_TOOL: Final = frozenset({ErrorCategory.VALIDATION, ErrorCategory.CONFLICT})
"""Refusals after which the tool may be another than the one that was listed."""


class RemoteServer:
    """A server whose tools are in a catalog. ``RemoteServers.connect`` makes it.

    Its session belongs to one task, which opens and closes it, and opens it again when it is lost. Everybody else only
    uses it, from any task of the same event loop.
    """

    def __init__(
        self,
        catalog: Catalog,
        endpoint: Endpoint,
        naming: Naming,
        *,
        wait: Wait,
        connect_timeout: float,
        random: Callable[[], float],
    ) -> None:
        """Prepare it; ``run`` opens the session."""
        self._name = naming.server
        self._endpoint = endpoint
        self._wait = wait
        self._connect_timeout = connect_timeout
        self._random = random
        self._shelf = Shelf(catalog, naming, self._call)
        self._thread = get_ident()
        self._session: ClientSession | None = None
        self._error: Exception | None = None
        self._next_try: float | None = None
        self._is_closing = False
        self._is_stale = False
        self._is_lost = False
        self._is_doubtful = False
        self._in_flight = 0
        self._scope = anyio.CancelScope()
        self._turned = anyio.Event()
        self._ended = anyio.Event()

    @property
    def name(self) -> str:
        """What messages call it."""
        return self._name

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of its tools in the catalog."""
        return self._shelf.names

    @property
    def is_connected(self) -> bool:
        """Whether there is a session just now."""
        return self._session is not None

    @property
    def is_closed(self) -> bool:
        """Whether the session has ended for good."""
        return self._ended.is_set()

    @property
    def error(self) -> Exception | None:
        """Why there is no session, or why the last one ended; None: there was no trouble."""
        return self._error

    async def wait_ready(self) -> None:
        """Wait until there is a session and its tools are in the catalog. A checkpoint.

        Raises:
            ToolError: The attempt to connect that is under way fails, the last one has and the next is not due, or the
                server is closed.
        """
        await self._connected()
        await anyio.lowlevel.checkpoint()

    def close(self) -> None:
        """Ask for the end of the session, from whatever task; ``wait_closed`` waits for it.

        Calls in flight fail, their delivery unknown. The tools leave the catalog.
        """
        if self._is_closing:
            return
        self._is_closing = True
        if self._session is None:
            self._scope.cancel()
        else:
            self._scope.deadline = anyio.current_time() + _CLOSE_TIMEOUT
        self._turn()

    async def wait_closed(self) -> None:
        """Wait until the session has ended and the tools have left the catalog."""
        await self._ended.wait()

    async def aclose(self) -> None:
        """End the session, from whatever task and in whatever order with others."""
        self.close()
        await self.wait_closed()

    async def run(self) -> None:
        """Own the session until the server is closed: the body of its task."""
        failures = 0
        try:
            while not self._is_closing:
                began = anyio.current_time()
                await self._live()
                has_lived = anyio.current_time() - began > self._connect_timeout + _CLOSE_TIMEOUT
                failures = 1 if has_lived else failures + 1
                pause = self._wait.delay(failures, self._random())
                if self._error is not None and not self._is_closing:
                    _LOG.warning("MCP server %r: %s; again in %.3g s", self.name, describe(self._error), pause)
                await self._rest(pause)
        finally:
            self._is_closing = True
            self._shelf.clear()
            self._turn()
            self._ended.set()

    async def _live(self) -> None:
        """Open a session and keep it until it is lost or the server is closed; errors are noted."""
        self._is_lost = self._is_stale = self._is_doubtful = False
        error: Exception | None = None
        was_connected = False
        with anyio.CancelScope(deadline=anyio.current_time() + self._connect_timeout) as self._scope:
            try:
                async with self._client() as client:
                    await self._list(client)
                    self._scope.deadline = math.inf
                    self._session, self._error, was_connected = client.session, None, True
                    self._turn()
                    try:
                        await self._attend(client)
                    finally:
                        self._session = None
                        self._scope.deadline = min(self._scope.deadline, anyio.current_time() + _CLOSE_TIMEOUT)
            except Exception as exc:  # noqa: BLE001 - of a transport, a server or the SDK: whatever it is, try again
                error = exc
        if self._is_closing:
            return
        if error is None and self._scope.cancelled_caught and not was_connected:
            error = TimeoutError(f"no answer within {self._connect_timeout:g} s")
        self._error = error or ConnectionError("the connection was lost")

    def _client(self) -> Client:
        info = wire.Implementation(name="harbor-async", version=version("harbor-async"))
        transport: Any = watched(self._endpoint.open(), self._lose)
        # Its cache of listings would hide what has changed.
        return Client(transport, message_handler=self._hear, client_info=info, cache=None)

    async def _attend(self, client: Client) -> None:
        """List the tools again whenever they change, until the session is lost or the server is closed."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._listen, client)
            while not (self._is_closing or self._is_lost):
                if self._is_stale:
                    self._is_stale = False
                    await self._list(client)
                    continue
                await self._turned.wait()
            group.cancel_scope.cancel()

    async def _list(self, client: Client) -> None:
        """Put the tools of the server into the catalog.

        Raises:
            MCPError: It does not tell them.
            ToolError: The list has no end.
        """
        capabilities = client.server_capabilities
        tools: list[wire.Tool] = []
        cursor: str | None = None
        if capabilities.tools is not None:
            for _ in range(_MOST_PAGES):
                page = await client.list_tools(cursor=cursor)
                tools += page.tools
                cursor = page.next_cursor
                if cursor is None:
                    break
            else:
                msg = f"the MCP server {self.name!r} lists its tools on more than {_MOST_PAGES} pages"
                raise ToolError(msg, error_class=ErrorClass.PERMANENT)
        self._shelf.put(tools)

    async def _listen(self, client: Client) -> None:
        """Hear of changed tools where the protocol has a request for that: since 2026-07-28."""
        tools = client.server_capabilities.tools
        failures = 0
        while tools is not None and tools.list_changed:
            try:
                async with client.listen(tools_list_changed=True) as changes:
                    failures = 0
                    async for _ in changes:
                        self._mark_stale()
            except ListenNotSupportedError:
                return
            except (MCPError, SubscriptionLost) as exc:
                _LOG.debug("MCP server %r: no word of changed tools: %s", self.name, exc)
            await anyio.sleep(self._wait.delay(failures := failures + 1, self._random()))
            self._mark_stale()  # what changed meanwhile was not told

    async def _hear(self, message: Any) -> None:
        if isinstance(message, wire.ToolListChangedNotification):
            self._mark_stale()
        await anyio.lowlevel.checkpoint()

    async def _rest(self, pause: float) -> None:
        """Wait before the next attempt; ``close`` ends it."""
        if self._is_closing:
            return
        self._next_try = anyio.current_time() + pause
        self._turn()
        with anyio.CancelScope() as self._scope:
            await anyio.sleep(pause)
        self._next_try = None

    async def _call(self, name: str, args: dict[str, Any], context: ToolContext) -> Any:
        """Call a tool; what the descriptors' functions do."""
        session = await self._connected()
        sending = Sending()
        self._in_flight += 1
        try:
            return await call_tool(session, self.name, name, args, context, sending)
        except ToolError as exc:
            if exc.category in _OLD_TOOL and exc.delivery is Delivery.REFUSED:
                self._mark_stale()
            raise
        finally:
            self._in_flight -= 1
            if session is self._session:
                self._doubt(sending)

    def _doubt(self, sending: Sending) -> None:
        """Give up a session over HTTP that the server has forgotten, or one to a server that could not be reached.

        The latter hears of no changes any more; but others may still wait for answers in it, and are let finish.
        """
        self._is_doubtful = self._is_doubtful or (sending.error is not None and not sending.is_sent)
        if sending.is_lost or (self._is_doubtful and not self._in_flight):
            self._lose()

    async def _connected(self) -> ClientSession:
        """Return the session, once there is one; two calls wait for the same.

        Raises:
            ToolError: As ``wait_ready``, or the call comes from another event loop.
        """
        if get_ident() != self._thread:
            msg = f"the MCP server {self.name!r} was connected in another thread's event loop; call it there"
            raise ToolError(msg, error_class=ErrorClass.PERMANENT, delivery=Delivery.NOT_SENT)
        while self._session is None or self._is_lost:
            if self._is_closing:
                raise closed(self.name)
            if self._next_try is not None and (left := self._next_try - anyio.current_time()) > _SOON:
                raise unreachable(self.name, self._error, left)
            await self._turned.wait()
        return self._session

    def _lose(self) -> None:
        self._is_lost = True
        self._turn()

    def _mark_stale(self) -> None:
        self._is_stale = True
        self._turn()

    def _turn(self) -> None:
        """Wake all who wait for something to change."""
        turned, self._turned = self._turned, anyio.Event()
        turned.set()
