"""The server: what it answers, whichever way a client has come."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version as find_version
from typing import Any, Final

from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    NotificationParams,
    PaginatedRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from ..._catalog import CatalogFilter
from ..._context import Identity
from ..._policy import check_seconds
from ..._results import ToolResult
from ..._runtime import Runtime
from ...errors import InvalidToolError, clip
from ...export import mcp as dialect
from ._changes import Changes
from ._content import Content
from ._http import IDENTITY
from ._listing import Entry, Listing
from ._progress import invoke_with_progress

_COMPLETE: Final = {"resultType": "complete"}
"""That a result is all there is to say; older versions do not know it, and the SDK leaves it out for them."""

Context = ServerRequestContext[Changes, Any]


class LowLevelServer(Server[Changes]):
    """The SDK's server, which says that the list of tools changes also where nobody asks it by argument."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Return what ``initialize`` answers."""
        options = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(options, experimental_capabilities, extensions)


class Answerer:
    """Answers the requests of MCP clients from a runtime."""

    def __init__(
        self,
        runtime: Runtime,
        *,
        name: str = "harbor-async",
        version: str | None = None,
        instructions: str | None = None,
        filter: CatalogFilter | None = None,
        page_size: int = 100,
        timeout: float | None = None,
    ) -> None:
        """Prepare; see ``MCPServer``."""
        if not isinstance(runtime, Runtime):
            msg = f"MCPServer: expected a Runtime; got {type(runtime).__name__}"
            raise InvalidToolError(msg)
        if isinstance(page_size, bool) or not isinstance(page_size, int) or page_size < 1:
            msg = f"MCPServer: page_size: expected an int of at least 1; got {page_size!r}"
            raise InvalidToolError(msg)
        check_seconds("MCPServer: timeout", timeout)
        self.runtime = runtime
        self._filter = filter
        self._page_size = page_size
        self._timeout = timeout
        self._listing: tuple[object, Listing] | None = None
        self._age = object()  # another one after each change of the catalog
        self.changes: Changes | None = None
        self.server = LowLevelServer(
            name,
            version=find_version("harbor-async") if version is None else version,
            instructions=instructions,
            cache_hints={"tools/list": CacheHint()},
            lifespan=self._listen,
            get_tool_input_schema=self._find_schema,
            on_list_tools=self._list,  # type: ignore[arg-type] # a dict is as good, as HandlerResult says
            on_call_tool=self._call,  # type: ignore[arg-type] # as above
            on_subscriptions_listen=self._subscribe,
        )
        self.server.add_notification_handler("notifications/initialized", NotificationParams, self._begin)

    @asynccontextmanager
    async def _listen(self, _: Server[Changes]) -> AsyncGenerator[Changes]:
        """Follow the catalog while clients are served."""
        catalog = self.runtime.catalog
        forget = catalog.subscribe(self._forget)
        self._forget()
        try:
            async with Changes(catalog) as changes:
                self.changes = changes
                yield changes
        finally:
            self.changes = None
            forget()

    def _forget(self) -> None:
        self._age = object()

    def _look(self) -> Listing:
        age, kept = self._age, self._listing
        if kept is None or kept[0] is not age:
            kept = self._listing = (age, Listing(self.runtime.catalog, self._filter))
        return kept[1]

    def _find_schema(self, name: str) -> dict[str, Any] | None:
        """Return an input schema, for the headers that repeat arguments; the SDK would list all tools at each call."""
        entry = self._look().find(name)
        schema: dict[str, Any] | None = None if entry is None else entry.wire["inputSchema"]
        return schema

    async def _begin(self, context: Context, _: NotificationParams) -> None:
        # The SDK has no public way to know when a session ends.
        connection = context.session._connection  # noqa: SLF001 - as said # pyright: ignore[reportPrivateUsage]
        connection.exit_stack.callback(context.lifespan_context.add(connection))

    async def _subscribe(self, context: Context, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        return await context.lifespan_context.listen(context, params)

    async def _list(self, context: Context, params: PaginatedRequestParams | None) -> dict[str, Any]:
        cursor = None if params is None else params.cursor
        try:
            page, after = self._look().page(cursor, self._page_size, _identity(context), wrap=_is_old(context))
        except ValueError:
            raise MCPError(INVALID_PARAMS, "cursor: expected one that tools/list has given") from None
        return {"tools": page, **_COMPLETE} if after is None else {"tools": page, "nextCursor": after, **_COMPLETE}

    async def _call(self, context: Context, params: CallToolRequestParams) -> dict[str, Any]:
        entry = self._look().find(params.name)
        if entry is None:
            raise MCPError(INVALID_PARAMS, f"there is no tool {clip(params.name, 200)!r}")
        invoke = partial(
            self.runtime.invoke,
            entry.tool.name,
            params.arguments or {},
            id=str(context.request_id),
            timeout=self._timeout,
            identity=_identity(context),
        )
        if context.meta is not None and context.meta.get("progress_token") is not None:
            result = await invoke_with_progress(context.session, lambda hear: invoke(on_progress=hear))
        else:
            result = await invoke()
        return _answer(result, entry, wrap=_is_old(context))

    async def drain(self, timeout: float | None) -> int:
        """Take no more calls, and wait for those that run; then end the streams of those who wait for changes."""
        left = await self.runtime.drain(timeout)
        if self.changes is not None:
            self.changes.close()
        return left


def _answer(result: ToolResult, entry: Entry, *, wrap: bool) -> dict[str, Any]:
    if isinstance(result.value, Content):
        return {"content": result.value.to_wire(), "isError": False, **_COMPLETE}
    return dialect.answer(result, None if entry.is_content else entry.tool, wrap=wrap) | _COMPLETE


def _is_old(context: Context) -> bool:
    return context.protocol_version not in MODERN_PROTOCOL_VERSIONS


def _identity(context: Context) -> Identity | None:
    request = context.request
    return None if request is None else request.scope.get(IDENTITY)
