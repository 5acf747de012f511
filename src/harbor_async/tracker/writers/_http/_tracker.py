"""What all writers over HTTP have in common: a transport, and one way to ask."""

from collections.abc import Callable
from typing import Self, TypeAlias, TypeVar

from ..._writer import TrackerError
from ._request import Request, Response, Transport, redacted
from ._transport import HTTPTransport

T = TypeVar("T")

Classify: TypeAlias = Callable[[Response], TrackerError | None]
"""Says what went wrong; None for a success."""


class HTTPTracker:
    """A writer over HTTP. A subclass builds requests, and says with ``classify`` what an answer means.

    ::

        async with GitHub("octocat/hello", token=os.environ["GITHUB_TOKEN"]) as tracker:
            await tracker.comment("1", "Done.", key="7f3a")

    Without a transport of the user's it opens a pool of connections with ``async with``, and closes it with that.
    """

    def __init__(self, transport: Transport | None, classify: Classify) -> None:
        """Use ``transport``; None: an ``HTTPTransport`` of its own.

        Raises:
            MissingExtraError: httpx2 is missing, and no transport was given.
        """
        self._pool = HTTPTransport() if transport is None else None
        self._transport: Transport = transport or self._pool  # type: ignore[assignment]  # one of them is there
        self._classify = classify

    async def __aenter__(self) -> Self:
        """Open the pool of connections.

        Raises:
            InvalidToolError: It is open already.
        """
        if self._pool is not None:
            await self._pool.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close all connections."""
        if self._pool is not None:
            await self._pool.__aexit__()

    async def _ask(self, request: Request, read: Callable[[Response], T], *, proves: bool = False) -> T:
        """Send a request, and return what ``read`` makes of its answer.

        Args:
            request: What to send.
            read: Reads an answer that is a success; it may raise ``TrackerError``.
            proves: Whether it reads what a write has done, so that its failure leaves that in doubt. The failure of any
                other request that only reads leaves no doubt: ``not_sent``.

        Raises:
            TrackerError: No answer, or one that is no success; with no token in message or traceback.
        """
        failure: TrackerError | None
        try:
            response = await self._transport.send(request)
            failure = self._classify(response)
            if failure is None:
                return read(response)
        except TrackerError as exc:
            failure = exc
        # Here, where no exception is being handled, and anew: the frames below hold the request as it was sent, and
        # what this one no longer holds cannot be shown with it.
        failure = redacted(failure, request, is_safe=request.is_read and not proves)
        raise failure
