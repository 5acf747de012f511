"""What goes to a tracker and what comes back, as plain values, so that a writer is tested without a network."""

from collections.abc import Mapping
from typing import Any, Final, Protocol, Self, TypeVar, runtime_checkable
from urllib.parse import urlsplit

import attrs
import msgspec

from ...._categories import Delivery, ErrorCategory
from ....errors import InvalidToolError, clip
from ..._writer import TrackerError
from ._secret import SHOWN, Secret

T = TypeVar("T")

_MOST_TEXT: Final = 500
"""Characters of a message. A model needs the reason, and not a page."""


@attrs.frozen
class Request:
    """One HTTP request.

    Attributes:
        method: ``GET``, ``POST``, …
        url: The whole address. It holds no token: addresses stand in logs.
        headers: Names and values; a ``Secret`` where the value is one.
        body: What is sent, or empty.
        is_read: Whether it changes nothing, so that no failure of it leaves a doubt.
    """

    method: str
    url: str
    headers: Mapping[str, "str | Secret"] = attrs.field(factory=dict[str, "str | Secret"])
    body: bytes = b""
    is_read: bool = False

    @classmethod
    def json(
        cls,
        method: str,
        url: str,
        headers: Mapping[str, "str | Secret"],
        document: object = None,
        *,
        is_read: bool | None = None,
    ) -> Self:
        """Make a request that sends ``document``, unless that is None, and asks for JSON.

        Args:
            method: As the attribute.
            url: As the attribute.
            headers: What is sent besides ``Accept`` and ``Content-Type``; it may replace those.
            document: What becomes JSON.
            is_read: As the attribute; None: whether ``method`` is ``GET``.

        Raises:
            TrackerError: A text in it has half of a surrogate pair (``validation``).
        """
        read = method == "GET" if is_read is None else is_read
        named: dict[str, str | Secret] = {"Accept": "application/json", **headers}
        if document is None:
            return cls(method, url, named, is_read=read)
        try:
            body = msgspec.json.encode(document)
        except UnicodeEncodeError:
            body = b""
        if not body:
            msg = "half of a surrogate pair is no text"
            raise TrackerError(msg, category=ErrorCategory.VALIDATION, delivery=Delivery.NOT_SENT)
        return cls(method, url, {"Content-Type": "application/json", **named}, body, read)

    def reveal_headers(self) -> dict[str, str]:
        """Return the headers as they go on the wire, tokens included. Keep them out of variables and logs."""
        return {name: value.reveal() if isinstance(value, Secret) else value for name, value in self.headers.items()}

    def redact(self, text: str) -> str:
        """Return ``text`` without the tokens of this request."""
        for value in self.headers.values():
            if isinstance(value, Secret):
                text = value.redact(text)
        return text

    def show(self) -> str:
        """Return the request as a reader may see it: method and address, headers with ``***`` for a token, body."""
        lines = [f"{self.method} {self.url}"]
        lines += [
            f"{name}: {self._shown(value) if isinstance(value, Secret) else value}"
            for name, value in self.headers.items()
        ]
        text = self.redact("\n".join(lines))
        return f"{text}\n\n{self.redact(self.body.decode(errors='replace'))}" if self.body else text

    @staticmethod
    def _shown(value: Secret) -> str:
        scheme, space, _ = value.reveal().rpartition(" ")  # a token has no space, so what is before one is the scheme
        return f"{scheme}{space}{SHOWN}"


def _lowered(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


@attrs.frozen
class Response:
    """The answer to a request.

    Attributes:
        status: The HTTP status.
        headers: By their names in small letters.
        body: What came, decoded by no encoding but that of the transfer.
        is_whole: Whether the body ended before the most that is read.
    """

    status: int
    headers: Mapping[str, str] = attrs.field(factory=dict[str, str], converter=_lowered)
    body: bytes = attrs.field(default=b"", repr=False)
    is_whole: bool = True

    @property
    def is_success(self) -> bool:
        """Whether the status is one of 200 to 299."""
        return 200 <= self.status < 300  # noqa: PLR2004 - RFC 9110 §15.3

    def document(self) -> Any:
        """Return the body read as JSON; None where it is none, for the sake of what it may say of a failure."""
        try:
            return msgspec.json.decode(self.body)
        except (ValueError, RecursionError):
            return None

    def read(self, kind: type[T]) -> T:
        """Return the body as a ``kind``; fields that it does not name are passed over.

        Raises:
            TrackerError: It is something else (``api_status``), or longer than is read. What was asked for may have
                happened.
        """
        msg = f"the tracker answered {self.status} with more than is read"
        if self.is_whole:
            try:
                return msgspec.json.decode(self.body, type=kind)
            except (ValueError, RecursionError):  # its words hold values
                msg = f"the tracker answered {self.status} with something else than was expected"
        raise TrackerError(msg, category=ErrorCategory.API_STATUS)


@runtime_checkable
class Transport(Protocol):
    """Sends requests: the one method that another HTTP client needs to serve a writer.

    Its exceptions are a ``TrackerError`` where it knows what was delivered; any other is classified by its type. It
    follows no redirect and retries nothing. A cancellation leaves it as one.
    """

    async def send(self, request: Request, /) -> Response:
        """Send ``request`` and return what was answered, whatever its status.

        Raises:
            TrackerError: No answer came. ``not_sent``: the tracker surely has not seen the request.
        """
        ...


def check_base(url: str) -> str:
    """Return the address of a server without the slash at its end.

    Raises:
        InvalidToolError: It is no HTTP address, or has a user, a query or a fragment.
    """
    try:
        parts = urlsplit(url)
        is_sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except (TypeError, ValueError, AttributeError):
        is_sound, parts = False, urlsplit("")
    if not is_sound or parts.query or parts.fragment or "@" in parts.netloc or not url.isprintable() or " " in url:
        msg = "expected the address of a server, as 'https://example.org', without user, query and fragment"
        raise InvalidToolError(msg)
    return url.rstrip("/")


def redacted(error: TrackerError, request: Request, *, is_safe: bool) -> TrackerError:
    """Return ``error`` with a message that is one line, of bounded length, and free of the request's tokens.

    Args:
        error: What went wrong.
        request: What was sent.
        is_safe: Whether that has had no effect, whatever is known of it.
    """
    message = clip(request.redact(" ".join(error.message.split())), _MOST_TEXT)
    delivery = Delivery.NOT_SENT if is_safe and error.delivery is Delivery.UNKNOWN else error.delivery
    category = error.category or ErrorCategory.UNKNOWN
    return TrackerError(message, category=category, delivery=delivery, retry_after=error.retry_after)
