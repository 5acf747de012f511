"""The server that users make."""

from collections.abc import Iterable
from contextlib import nullcontext

import anyio
from anyio.abc import TaskStatus
from starlette.applications import Starlette

from ..._catalog import CatalogFilter
from ..._policy import check_seconds
from ..._runtime import Runtime
from ._answerer import Answerer
from ._http import Authenticate, bind, check_hosts, make_app, run_app
from ._stdio import claim, serve_stdio

_ESCAPED = 4
"""A message may be so many times as long as the arguments in it: these may be escaped."""


class MCPServer:
    """Serves a runtime's catalog to MCP clients.

    ::

        async with Runtime(catalog) as runtime:
            await MCPServer(runtime).serve_stdio()

    It speaks protocol 2026-07-28 and the versions with a handshake from 2025-11-25 down to 2024-11-05, side by side.
    Calls run in the runtime: its limits, policies, approvals and sinks hold, and a client that cancels a call cancels
    the tool. One server is for one ``serve_…`` at a time.
    """

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
        """Prepare a server.

        Args:
            runtime: Answers the calls; it must be open while this serves.
            name: What clients are told that they talk to.
            version: Its version; None: that of this package.
            instructions: What a client may tell its model of the tools together; None: nothing.
            filter: Which tools are offered: a client can neither list nor call another one. None: all, deferred ones
                included.
            page_size: Most tools in one answer to ``tools/list``; at least 1.
            timeout: The deadline of each call, in seconds. None: no deadline.

        Raises:
            InvalidToolError: A value makes no sense.
        """
        self._answerer = Answerer(
            runtime,
            name=name,
            version=version,
            instructions=instructions,
            filter=filter,
            page_size=page_size,
            timeout=timeout,
        )

    async def serve_stdio(
        self,
        *,
        stop: anyio.Event | None = None,
        drain: float | None = 10.0,
        descriptors: tuple[int, int] | None = None,
    ) -> int:
        """Serve one client on standard input and output, until it closes its side.

        What is written to standard output meanwhile, by a tool that prints or a child of it, goes to standard error.

        Args:
            stop: Nothing more is read once it is set.
            drain: Seconds that calls which were read have when nothing more is read; then they are canceled.
                None: as long as it takes.
            descriptors: What to read and what to write in place of standard input and output.

        Returns:
            How many requests were cut off when ``drain`` had passed.

        Raises:
            InvalidToolError: ``drain`` is no finite number of seconds ≥ 0.
            HarborError: The runtime is not open.
        """
        check_seconds("drain", drain)
        runtime = self._answerer.runtime
        runtime.statistics()  # raises unless it is open
        with claim() if descriptors is None else nullcontext(descriptors) as (source, sink):
            return await serve_stdio(
                self._answerer.server,
                source,
                sink,
                max_line_bytes=self._max_message_bytes,
                patience=drain,
                stop=stop,
            )

    def http_app(
        self,
        *,
        path: str = "/mcp",
        authenticate: Authenticate | None = None,
        allowed_hosts: Iterable[str] | None = None,
        allowed_origins: Iterable[str] | None = None,
        max_sessions: int | None = 10_000,
    ) -> Starlette:
        """Return an ASGI application, for a server of your own; it must run its lifespan, and once.

        Args:
            path: Where it answers.
            authenticate: Takes the bearer token of each request and says on whose behalf it asks: the tools that are
                listed and called are those for which the identity has the scopes. None as its answer is 401. Without
                it everybody may ask, as the runtime's own identity.
            allowed_hosts: Names in ``Host`` headers that are answered, as ``tools.example.org``, with any port.
                None: those of this machine itself.
            allowed_origins: ``Origin`` headers that are answered, as ``https://example.org``, with any port.
                None: those of the hosts.
            max_sessions: Most sessions of clients with a handshake; None: no limit.
        """
        return make_app(
            self._answerer.server,
            path=path,
            authenticate=authenticate,
            allowed_hosts=allowed_hosts,
            allowed_origins=allowed_origins,
            max_body_bytes=self._max_message_bytes,
            max_sessions=max_sessions,
        )

    async def serve_http(
        self,
        host: str = "127.0.0.1",
        port: int = 8000,
        *,
        path: str = "/mcp",
        authenticate: Authenticate | None = None,
        allowed_hosts: Iterable[str] | None = None,
        allowed_origins: Iterable[str] | None = None,
        max_sessions: int | None = 10_000,
        stop: anyio.Event | None = None,
        drain: float | None = 10.0,
        task_status: TaskStatus[int] = anyio.TASK_STATUS_IGNORED,
    ) -> int:
        """Serve over HTTP, until ``stop`` is set or the caller is canceled.

        Args:
            host: The address to listen at.
            port: The port to listen at; 0: one that is free.
            path: As for ``http_app``.
            authenticate: As for ``http_app``.
            allowed_hosts: As for ``http_app``; not None where ``host`` can be reached from elsewhere.
            allowed_origins: As for ``http_app``.
            max_sessions: As for ``http_app``.
            stop: Once it is set, the runtime is drained: further calls are rejected, and those that run end.
            drain: Seconds that those have; then they are canceled. None: as long as it takes.
            task_status: Told the port when it listens.

        Returns:
            How many calls were cut off when ``drain`` had passed.

        Raises:
            InvalidToolError: ``drain`` is no finite number of seconds ≥ 0, or the server could be reached from
                elsewhere and ``allowed_hosts`` does not say under which names.
            MissingExtraError: hypercorn is missing.
            OSError: The system does not let it listen there.
            HarborError: The runtime is not open.
        """
        check_seconds("drain", drain)
        check_hosts(host, allowed_hosts)
        self._answerer.runtime.statistics()  # raises unless it is open
        app = self.http_app(
            path=path,
            authenticate=authenticate,
            allowed_hosts=allowed_hosts,
            allowed_origins=allowed_origins,
            max_sessions=max_sessions,
        )
        listener = await bind(host, port)
        ended = anyio.Event()
        cut = 0

        async def end(stop: anyio.Event) -> None:
            nonlocal cut
            await stop.wait()
            cut = await self._answerer.drain(drain)
            ended.set()

        async with anyio.create_task_group() as group:
            if stop is not None:
                group.start_soon(end, stop)
            task_status.started(listener.getsockname()[1])
            await run_app(app, listener, ended)
            group.cancel_scope.cancel()
        return cut

    @property
    def _max_message_bytes(self) -> int:
        return _ESCAPED * self._answerer.runtime.limits.max_arguments_bytes
