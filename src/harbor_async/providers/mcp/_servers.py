"""Servers whose tools are in one catalog, and the tasks that own their sessions."""

from collections.abc import Callable
from random import Random
from types import TracebackType
from typing import Self, Unpack

import anyio
from anyio.abc import TaskGroup

from ..._catalog import Catalog
from ..._declaration import ToolOptions
from ..._policy import Backoff, Wait, check_seconds
from ...errors import HarborError, InvalidToolError
from ._endpoint import Endpoint
from ._server import RemoteServer
from ._tools import Filter, Naming


class RemoteServers:
    """Keeps the tools of MCP servers in a catalog. Enter it with ``async with``.

    Each server has a task of its own in there, which opens, keeps and closes its session. So servers may be connected
    and closed from any task of the event loop, and in any order. Leaving the block closes those that are left.
    """

    def __init__(
        self,
        catalog: Catalog,
        *,
        wait: Wait = Backoff(initial=0.5, maximum=30.0),
        random: Callable[[], float] | None = None,
    ) -> None:
        """Prepare it.

        Args:
            catalog: Where tools come and go.
            wait: Seconds before a lost session is opened again; they grow with each failure.
            random: Uniform numbers in [0, 1) for the jitter of waits; None: a generator of its own.

        Raises:
            InvalidToolError: ``catalog`` is no ``Catalog``, or ``wait`` has no ``delay``.
        """
        if not isinstance(catalog, Catalog):
            msg = f"RemoteServers: expected a Catalog; got {type(catalog).__name__}"
            raise InvalidToolError(msg)
        if not callable(getattr(wait, "delay", None)):
            msg = f"RemoteServers: expected a Backoff, or an object with delay(retry, u), for wait=; got {wait!r}"
            raise InvalidToolError(msg)
        self.catalog = catalog
        self._wait = wait
        self._random = Random().random if random is None else random  # noqa: S311 - jitter, no secret
        self._servers: list[RemoteServer] = []
        self._group: TaskGroup | None = None

    async def __aenter__(self) -> Self:
        """Open it in the running event loop.

        Raises:
            HarborError: It is open already.
        """
        if self._group is not None:
            msg = "these servers are open already"
            raise HarborError(msg)
        self._group = await anyio.create_task_group().__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every server and wait for that."""
        group, self._group = self._group, None
        for server in self._servers:
            server.close()
        self._servers = []
        if group is not None:
            await group.__aexit__(None, None, None)  # what the block raised leaves as it is, in no group

    def start(
        self,
        endpoint: Endpoint,
        *,
        prefix: str = "",
        filter: Filter | None = None,
        trusted: bool = False,
        connect_timeout: float = 30.0,
        **options: Unpack[ToolOptions],
    ) -> RemoteServer:
        """Begin to connect a server, and do not wait for it; it is tried again until it is there.

        Args:
            endpoint: Where it is: ``Stdio`` or ``StreamableHTTP``.
            prefix: Stands before the name of each of its tools in the catalog.
            filter: Which tools are taken: a ``CatalogFilter``, or a function of a ``Tool``. None: all.
            trusted: Whether the server is believed when it says that a tool only reads, or may be repeated. Only then
                are such tools retried where the first attempt may have reached the server.
            connect_timeout: Seconds that connecting may take, listing the tools included.
            **options: What is said of each of its tools, as of ``describe``: ``policy``, ``scopes``, ``side_effect``.
                ``source`` is also what messages call the server; if it is left out, that is the endpoint's name.

        Raises:
            InvalidToolError: A value makes no sense.
            HarborError: The servers are not open.
        """
        if self._group is None:
            msg = "the servers are not open: use them inside 'async with RemoteServers(catalog) as servers'"
            raise HarborError(msg)
        check_seconds("connect_timeout", connect_timeout, optional=False)
        naming = Naming(options.get("source", endpoint.name), prefix, filter, trusted, options)
        server = RemoteServer(
            self.catalog,
            endpoint,
            naming,
            wait=self._wait,
            connect_timeout=connect_timeout,
            random=self._random,
        )
        self._servers = [each for each in self._servers if not each.is_closed] + [server]
        self._group.start_soon(server.run, name=f"MCP server {server.name}")
        return server

    async def connect(
        self,
        endpoint: Endpoint,
        *,
        prefix: str = "",
        filter: Filter | None = None,
        trusted: bool = False,
        connect_timeout: float = 30.0,
        **options: Unpack[ToolOptions],
    ) -> RemoteServer:
        """Connect a server and wait until its tools are in the catalog.

        Args:
            endpoint: As for ``start``.
            prefix: As for ``start``.
            filter: As for ``start``.
            trusted: As for ``start``.
            connect_timeout: As for ``start``.
            **options: As for ``start``.

        Raises:
            ToolError: It cannot be reached; it is not tried again.
            InvalidToolError: A value makes no sense.
            HarborError: The servers are not open.
        """
        server = self.start(
            endpoint,
            prefix=prefix,
            filter=filter,
            trusted=trusted,
            connect_timeout=connect_timeout,
            **options,
        )
        try:
            await server.wait_ready()
        except BaseException:
            server.close()
            with anyio.CancelScope(shield=True):
                await server.wait_closed()
            raise
        return server
