"""MCP over HTTP: the ASGI application, who may ask, and the server that runs it.

Never with ``json_response``, and never stateless for the versions before 2026-07-28: there a cancellation would not
reach its tool (measured with SDK 2.3).
"""

import socket
from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from ipaddress import ip_address
from typing import Any, Final, TypeAlias

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ... import _backend
from ..._context import Identity
from ...errors import InvalidToolError, MissingExtraError

Authenticate: TypeAlias = Callable[[str], Awaitable[Identity | None]]
"""Takes a bearer token and says on whose behalf it asks; None: it is not valid."""

IDENTITY: Final = "harbor_async.identity"
"""The key of an ASGI scope under which stands on whose behalf a request is."""

_LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")
_BACKLOG: Final = 1024
_LAST_BYTES: Final = 1
"""Seconds that connections have to take the last answers when the server ends."""


class BearerAuth:
    """Lets pass who has a valid bearer token. Source: RFC 6750."""

    def __init__(self, app: ASGIApp, authenticate: Authenticate) -> None:
        """Guard ``app``."""
        self._app = app
        self._authenticate = authenticate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401, or pass the request on with its identity."""
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        kind, _, token = given[0].decode("latin-1").partition(" ") if len(given) == 1 else ("", "", "")
        is_bearer = kind.lower() == "bearer" and bool(token.strip())
        identity = await self._authenticate(token.strip()) if is_bearer else None
        if identity is None:
            error = ' error="invalid_token"' if is_bearer else ""
            refused = PlainTextResponse("Unauthorized", 401, {"WWW-Authenticate": f"Bearer{error}"})
            await refused(scope, receive, send)
            return
        # A session of an older version belongs to whoever has opened it; the SDK compares these two.
        user = AuthenticatedUser(
            AccessToken(token="", client_id=identity.tenant, subject=identity.user, scopes=sorted(identity.scopes))
        )
        await self._app({**scope, "user": user, IDENTITY: identity}, receive, send)


def is_loopback(host: str) -> bool:
    """Say whether only this machine can reach ``host``."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def make_app(
    server: Server[Any],
    *,
    path: str,
    authenticate: Authenticate | None,
    allowed_hosts: Iterable[str] | None,
    allowed_origins: Iterable[str] | None,
    max_body_bytes: int,
    max_sessions: int | None,
) -> Starlette:
    """Return the ASGI application; it is for one start."""
    hosts = _LOOPBACK if allowed_hosts is None else tuple(allowed_hosts)
    if allowed_origins is None:
        allowed_origins = [f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")]
    manager = StreamableHTTPSessionManager(
        server,
        security_settings=TransportSecuritySettings(
            allowed_hosts=_with_ports(hosts), allowed_origins=_with_ports(allowed_origins)
        ),
        max_request_body_size=max_body_bytes,
        max_sessions=max_sessions,
    )
    endpoint: ASGIApp = StreamableHTTPASGIApp(manager)
    if authenticate is not None:
        endpoint = BearerAuth(endpoint, authenticate)
    return Starlette(routes=[Route(path, endpoint)], lifespan=lambda _: manager.run())


def _with_ports(names: Iterable[str]) -> list[str]:
    """Return names as the SDK compares them: with any port, and with none."""
    return [each for name in names for each in (name, f"{name}:*")]


async def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens.

    Raises:
        OSError: The system does not let it.
    """
    found = await anyio.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    family, kind, proto, _, address = found[0]
    listener = socket.socket(family, kind, proto)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


async def run_app(app: Starlette, listener: socket.socket, ended: anyio.Event) -> None:
    """Serve ``app`` on ``listener``, which is closed, until ``ended`` is set.

    By uvicorn on asyncio, and by hypercorn on trio. Hypercorn runs on both; on asyncio it took a tenth more CPU time a
    call, and left tasks behind when it ended.

    Raises:
        MissingExtraError: The server is missing.
    """
    run = _with_hypercorn if _backend.current().loop is None else _with_uvicorn
    try:
        serve = run(app, listener, ended)
    except ImportError as exc:
        feature = "serving MCP over HTTP"
        raise MissingExtraError(feature, "mcp") from exc

    async def serve_whole() -> None:
        with anyio.CancelScope(shield=True):
            await serve()
        group.cancel_scope.cancel()

    # Canceled in its midst a server leaves tasks behind; so it is told to end instead.
    async with anyio.create_task_group() as group:
        group.start_soon(serve_whole)
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()


def _with_uvicorn(app: Starlette, listener: socket.socket, ended: anyio.Event) -> Callable[[], Awaitable[None]]:
    import uvicorn  # noqa: PLC0415 - only HTTP needs it, and only on asyncio

    class Server(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Generator[None]:
            yield  # they are the program's

    config = uvicorn.Config(
        app,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=_LAST_BYTES,
    )
    server = Server(config)

    async def end() -> None:
        await ended.wait()
        server.should_exit = True

    async def serve() -> None:
        # The lifespan is entered here, since uvicorn does not wait for its task.
        async with app.router.lifespan_context(app), anyio.create_task_group() as group:
            group.start_soon(end)
            await server.serve([listener])
            group.cancel_scope.cancel()

    return serve


def _with_hypercorn(app: Starlette, listener: socket.socket, ended: anyio.Event) -> Callable[[], Awaitable[None]]:
    from hypercorn.config import Config  # noqa: PLC0415 - only HTTP needs it, and only on trio

    hypercorn: Any = import_module("hypercorn.trio")
    config = Config()
    config.bind = [f"fd://{listener.detach()}"]
    config.accesslog = None
    config.errorlog = None
    config.include_server_header = False
    config.graceful_timeout = _LAST_BYTES
    return partial(hypercorn.serve, app, config, shutdown_trigger=ended.wait)


def check_hosts(host: str, allowed_hosts: Iterable[str] | None) -> None:
    """Refuse to be reached from elsewhere without knowing under which names.

    Raises:
        InvalidToolError: ``host`` is no loopback address, and no host is allowed.
    """
    if allowed_hosts is None and not is_loopback(host):
        msg = f"serve_http: {host} can be reached from elsewhere: expected allowed_hosts, the names that clients use"
        raise InvalidToolError(msg)
