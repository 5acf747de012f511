"""Where a server is, and how it is reached."""

import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, Protocol, TextIO, cast

import attrs
import httpx2
import msgspec
from mcp import StdioServerParameters
from mcp.client import Transport
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import INTERNAL_ERROR

from ...errors import InvalidToolError, words
from ._sending import SENDING, Sending

_CONNECT_TIMEOUT: Final = 30.0
_NOTICE_TIMEOUT: Final = 5.0
"""Seconds that the server may take to accept what has no answer; until then the SDK sends no other message."""

_REFUSED: Final = 400
_NOT_FOUND: Final = 404
_UNAVAILABLE: Final = 503


class Endpoint(Protocol):
    """A server that can be reached, again and again."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    def open(self) -> Transport | AbstractAsyncContextManager[Any]:
        """Return a new transport of the ``mcp`` SDK, not yet entered."""
        ...


def _command(command: Iterable[str]) -> tuple[str, ...]:
    parts = words("Stdio.command", command)
    if not parts:
        msg = "Stdio.command: expected the program and its arguments, as ['python', 'server.py']; got nothing"
        raise InvalidToolError(msg)
    return parts


@attrs.frozen
class Stdio:
    """A server that is a child process, spoken to over its standard input and output.

    Its standard error is that of this process. When it is closed its input ends first; after two seconds it is
    terminated with all its children, after two more killed.

    Attributes:
        command: The program and its arguments.
        env: Variables besides ``PATH``, ``HOME`` and the few others that are safe to inherit.
        cwd: Where it runs; None: here.

    Raises:
        InvalidToolError: ``command`` is empty, or no list of text.
    """

    command: tuple[str, ...] = attrs.field(converter=_command)
    env: Mapping[str, str] | None = attrs.field(default=None, kw_only=True, repr=False)
    cwd: "str | os.PathLike[str] | None" = attrs.field(default=None, kw_only=True)

    @property
    def name(self) -> str:
        """The name of the program, or of the script that an interpreter runs."""
        last = next((part for part in self.command[1:] if not part.startswith("-")), self.command[0])
        return os.path.basename(last)  # noqa: PTH119 - text, and perhaps no path

    def open(self) -> Transport:
        """Return a transport that starts the process."""
        program, *args = self.command
        cwd = None if self.cwd is None else os.fspath(self.cwd)
        env = None if self.env is None else dict(self.env)
        parameters = StdioServerParameters(command=program, args=args, env=env, cwd=cwd)
        return stdio_client(parameters, errlog=cast("TextIO", None))  # None: inherited, as subprocess has it


@attrs.frozen
class StreamableHTTP:
    """A server that is reached over HTTP.

    Attributes:
        url: Its MCP endpoint, as ``https://example.com/mcp``.
        headers: Sent with each request, an ``Authorization`` say.
        auth: What authenticates requests, such as an OAuth provider of the ``mcp`` SDK.

    Raises:
        InvalidToolError: ``url`` is no URL of http or https.
    """

    url: str
    headers: Mapping[str, str] | None = attrs.field(default=None, kw_only=True, repr=False)
    auth: httpx2.Auth | None = attrs.field(default=None, kw_only=True, repr=False)

    def __attrs_post_init__(self) -> None:
        """Check the URL."""
        try:
            url = httpx2.URL(self.url)
        except (TypeError, httpx2.InvalidURL):
            url = httpx2.URL()
        if url.scheme not in {"http", "https"} or not url.host:
            msg = "StreamableHTTP.url: expected a URL as https://example.com/mcp"
            raise InvalidToolError(msg)

    @property
    def name(self) -> str:
        """The host."""
        return httpx2.URL(self.url).host

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Any]:
        """Return a transport with a connection pool of its own."""
        # Reading is bounded by the attempt's timeout, and so is the wait for a place in the pool.
        timeout = httpx2.Timeout(_CONNECT_TIMEOUT, read=None, pool=None)
        async with (
            _Client(headers=dict(self.headers or {}), auth=self.auth, timeout=timeout) as client,
            streamable_http_client(self.url, http_client=client) as streams,
        ):
            yield streams


class _Client(httpx2.AsyncClient):
    """A client in which a request that fails ends its own call alone.

    An exception would leave through the task group of the SDK's transport and end all calls of the session; so it
    becomes an answer, and what it was is noted in ``Sending``.
    """

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        sending = SENDING.get()
        if request.method == "POST" and not _is_request(request.content):
            request.extensions["timeout"] = httpx2.Timeout(_NOTICE_TIMEOUT).as_dict()
        if sending is None or request.method != "POST":
            return await super().send(request, **options)
        try:
            response = await super().send(request, **options)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as exc:
            sending.is_sent = False
            return _bounce(request, sending, exc)
        except httpx2.TransportError as exc:
            return _bounce(request, sending, exc)
        if response.status_code >= _REFUSED:
            sending.status = response.status_code
            sending.retry_after = response.headers.get("retry-after")
            sending.is_lost = response.status_code == _NOT_FOUND and "mcp-session-id" in request.headers
        response.stream = _Body(response.stream, sending)
        return response


class _Head(msgspec.Struct):
    id: Any = None
    method: str | None = None


def _is_request(content: bytes) -> bool:
    """Say whether a message waits for an answer."""
    head = msgspec.json.decode(content, type=_Head)
    return head.id is not None and head.method is not None


def _bounce(request: httpx2.Request, sending: Sending, error: Exception) -> httpx2.Response:
    sending.error = error
    told = {"jsonrpc": "2.0", "id": None, "error": {"code": INTERNAL_ERROR, "message": type(error).__name__}}
    return httpx2.Response(_UNAVAILABLE, json=told, request=request)


class _Body(httpx2.AsyncByteStream):
    """The body of an answer; one that breaks off raises what the SDK takes for an answer that it cannot read."""

    def __init__(self, inner: Any, sending: Sending) -> None:
        self._inner = inner
        self._sending = sending

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._inner:
                yield chunk
        except httpx2.TransportError as exc:
            self._sending.error = exc
            raise httpx2.StreamError(type(exc).__name__) from exc

    async def aclose(self) -> None:
        await self._inner.aclose()
