"""The transport on httpx2: one pool of connections, and for each failure what was delivered."""

import ssl
from collections.abc import Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, Self

import anyio
from anyio.lowlevel import checkpoint_if_cancelled
from anyio.to_thread import run_sync

from ...._categories import Delivery, ErrorCategory
from ...._policy import check_seconds
from ....errors import InvalidToolError, MissingExtraError
from ..._writer import TrackerError
from ._request import Request, Response

if TYPE_CHECKING:
    import httpx2

_MARGIN: Final = 0.05
"""Seconds before a deadline at which waiting for a connection ends, so that the caller hears that nothing was sent."""
_IDLE: Final = 2.0
"""Seconds for which an idle connection is kept: less than servers keep theirs, for a write on one that is being closed
is lost, and nobody knows whether it was read."""
_SENDING: Final = ".send_request_headers.started"


class HTTPTransport:
    """Sends requests through httpx2, over connections of its own that live as long as ``async with``.

    No redirect is followed, nothing is retried, and no compressed answer is asked for. A request that gets no
    connection before its deadline ends 50 ms before it, as ``not_sent``; once a request is on its way only an answer,
    a failure or the deadline ends it.
    """

    def __init__(
        self,
        *,
        timeout: float = 30.0,
        max_connections: int = 10,
        max_body_bytes: int = 10_000_000,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Prepare; nothing is opened yet.

        Args:
            timeout: Most seconds of one exchange, from the wait for a connection to the end of the answer. It counts
                where no deadline comes before.
            max_connections: Connections at once; more requests wait.
            max_body_bytes: Most bytes of an answer that are read.
            tls: How servers are verified; None: by the certificates of the system.

        Raises:
            InvalidToolError: A number that makes no sense.
            MissingExtraError: httpx2 is missing.
        """
        check_seconds("timeout", timeout)
        if not all(type(number) is int and number > 0 for number in (max_connections, max_body_bytes)):
            msg = "max_connections, max_body_bytes: expected whole numbers above 0"
            raise InvalidToolError(msg)
        try:
            import httpx2  # noqa: PLC0415 - whoever brings another transport does not need it
        except ModuleNotFoundError as exc:
            feature = "writing to a tracker over HTTP"
            raise MissingExtraError(feature, "http") from exc
        self._httpx2 = httpx2
        self._failures = (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, OSError)
        self._timeout = timeout
        self._max_connections = max_connections
        self._max_body_bytes = max_body_bytes
        self._tls = tls
        self._client: httpx2.AsyncClient | None = None

    async def __aenter__(self) -> Self:
        """Make the pool.

        Raises:
            InvalidToolError: It is open already.
        """
        if self._client is not None:
            msg = "this transport is open already; make one for each place that opens it"
            raise InvalidToolError(msg)
        # In a thread: reading the certificates takes 70 ms.
        self._client = await run_sync(self._make_client)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close all connections."""
        client, self._client = self._client, None
        if client is not None:
            with anyio.CancelScope(shield=True):  # it only closes sockets, and they must not outlive this
                await client.aclose()

    def _make_client(self) -> "httpx2.AsyncClient":
        limits = self._httpx2.Limits(
            max_connections=self._max_connections,
            max_keepalive_connections=self._max_connections,
            keepalive_expiry=_IDLE,
        )
        headers = {"User-Agent": f"harbor-async/{version('harbor-async')}", "Accept-Encoding": "identity"}
        verify = True if self._tls is None else self._tls
        return self._httpx2.AsyncClient(limits=limits, headers=headers, timeout=None, verify=verify)

    async def send(self, request: Request, /) -> Response:
        """Send ``request`` and return what was answered, whatever its status.

        Raises:
            TrackerError: No answer came. ``not_sent``: there was no connection. ``unknown``: the request was on its
                way.
        """
        client = self._client
        if client is None:
            msg = "the writer is not open: use it inside 'async with'"
            raise TrackerError(msg, category=ErrorCategory.UNSUPPORTED, delivery=Delivery.NOT_SENT)
        await checkpoint_if_cancelled()
        left = anyio.current_effective_deadline() - anyio.current_time() - _MARGIN
        sent: list[bool] = []

        async def note(event: str, _: Mapping[str, Any]) -> None:
            if event.endswith(_SENDING):
                sent.append(True)

        kind: type[BaseException] = TimeoutError
        text = ""
        with anyio.move_on_after(self._timeout):
            try:
                return await self._exchange(client, request, max(0.0, min(self._timeout, left)), note)
            except self._failures as exc:
                # Raised below, where no exception is being handled: one of httpx2's holds the request, token included.
                kind = type(exc)
                text = f" ({request.redact(str(exc))})" if isinstance(exc, self._httpx2.ConnectError) else ""
        raise self._explain(kind, text, is_sent=bool(sent))

    async def _exchange(self, client: "httpx2.AsyncClient", request: Request, patience: float, note: Any) -> Response:
        timeout = self._httpx2.Timeout(None, connect=patience, pool=patience)
        stream = client.stream(
            request.method,
            request.url,
            headers=request.reveal_headers(),
            content=request.body or None,
            timeout=timeout,
            extensions={"trace": note},
        )
        async with stream as answer:
            body = bytearray()
            with anyio.CancelScope() as enough:
                async for chunk in answer.aiter_raw():
                    body += chunk
                    if len(body) > self._max_body_bytes:
                        # Not a break: the generators below would be left open, and closed when it pleases the loop.
                        enough.cancel()
            is_whole = len(body) <= self._max_body_bytes
            return Response(answer.status_code, answer.headers, bytes(body[: self._max_body_bytes]), is_whole)

    def _explain(self, kind: type[BaseException], text: str, *, is_sent: bool) -> TrackerError:
        delivery = Delivery.UNKNOWN if is_sent else Delivery.NOT_SENT
        category = ErrorCategory.API_REQUEST
        if issubclass(kind, (self._httpx2.TimeoutException, TimeoutError)):
            category = ErrorCategory.TIMEOUT
            what = "the tracker did not answer in time" if is_sent else "no connection to the tracker in time"
        elif is_sent:
            what = "the connection to the tracker was lost before its answer had come"
        elif issubclass(
            kind, (self._httpx2.UnsupportedProtocol, self._httpx2.LocalProtocolError, self._httpx2.InvalidURL)
        ):
            category = ErrorCategory.UNSUPPORTED
            what = "the request is none that HTTP can carry"
        else:
            what = "the tracker cannot be reached"
        return TrackerError(f"{what}{text}", category=category, delivery=delivery)
