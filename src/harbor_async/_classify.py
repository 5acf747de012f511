"""What an exception means for a retry: told by its type and its attributes, never by its words."""

import errno
import re
import socket
from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import cast

import attrs

from ._backend import parts
from ._categories import Delivery, ErrorCategory, ErrorClass
from .errors import ToolError, clip, sane_wait


@attrs.frozen
class Verdict:
    """What is known of one exception.

    Attributes:
        error_class: What the retry policy sees.
        category: What the model sees.
        delivery: What is known of the effect.
        retry_after: Seconds the other side asked to wait, finite and ≥ 0, or None.
    """

    error_class: ErrorClass
    category: ErrorCategory = ErrorCategory.UNKNOWN
    delivery: Delivery = Delivery.UNKNOWN
    retry_after: float | None = None


_PERMANENT = Verdict(ErrorClass.PERMANENT)
_TRANSIENT = Verdict(ErrorClass.TRANSIENT)
_TIMEOUT = Verdict(ErrorClass.TIMEOUT, ErrorCategory.TIMEOUT)
_CONNECTION = Verdict(ErrorClass.TRANSIENT, ErrorCategory.API_REQUEST)
_NO_CONNECTION = Verdict(ErrorClass.TRANSIENT, ErrorCategory.API_REQUEST, Delivery.NOT_SENT)
_CONNECT_TIMEOUT = Verdict(ErrorClass.TIMEOUT, ErrorCategory.TIMEOUT, Delivery.NOT_SENT)

_BY_NAME = {
    "httpx.ConnectError": _NO_CONNECTION,
    "httpx.ConnectTimeout": _CONNECT_TIMEOUT,
    "httpx.PoolTimeout": _CONNECT_TIMEOUT,
    "httpx.TimeoutException": _TIMEOUT,
    "httpx.TransportError": _CONNECTION,
    "requests.ConnectTimeout": _CONNECT_TIMEOUT,
    "requests.Timeout": _TIMEOUT,
    "requests.ConnectionError": _CONNECTION,
    "aiohttp.ClientConnectorError": _NO_CONNECTION,
    "aiohttp.ClientConnectionError": _CONNECTION,
    "urllib.URLError": _CONNECTION,
}
"""Clients whose exceptions are no ``ConnectionError`` or ``TimeoutError``: package and class, so none is imported."""

_BY_TYPE: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], Verdict], ...] = (
    (ConnectionRefusedError, _NO_CONNECTION),
    (socket.gaierror, _NO_CONNECTION),
    (ConnectionError, _CONNECTION),
    (TimeoutError, _TIMEOUT),
    (
        (
            ArithmeticError,
            AssertionError,
            AttributeError,
            BufferError,
            ImportError,
            LookupError,
            MemoryError,
            NameError,
            NotImplementedError,
            RecursionError,
            ReferenceError,
            SyntaxError,
            SystemError,
            TypeError,
            ValueError,
            EOFError,
        ),
        _PERMANENT,
    ),
)

_NOT_SENT_ERRNOS = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EHOSTDOWN})
_BROKEN_ERRNOS = frozenset({errno.ENETRESET, errno.ENOTCONN, errno.EAGAIN, errno.EBUSY, errno.EINTR, errno.ENOBUFS})

_STATUS_CATEGORY: dict[int, ErrorCategory] = {
    HTTPStatus.BAD_REQUEST: ErrorCategory.VALIDATION,
    HTTPStatus.UNAUTHORIZED: ErrorCategory.AUTH_FAILED,
    HTTPStatus.FORBIDDEN: ErrorCategory.AUTH_FAILED,
    HTTPStatus.NOT_FOUND: ErrorCategory.NOT_FOUND,
    HTTPStatus.METHOD_NOT_ALLOWED: ErrorCategory.UNSUPPORTED,
    HTTPStatus.CONFLICT: ErrorCategory.CONFLICT,
    HTTPStatus.GONE: ErrorCategory.NOT_FOUND,
    HTTPStatus.PRECONDITION_FAILED: ErrorCategory.CONFLICT,
    HTTPStatus.UNPROCESSABLE_ENTITY: ErrorCategory.VALIDATION,
}

_CATEGORY_CLASS = {
    ErrorCategory.API_REQUEST: ErrorClass.TRANSIENT,
    ErrorCategory.RATE_LIMITED: ErrorClass.TRANSIENT,
    ErrorCategory.API_STATUS: ErrorClass.SERVER_ERROR,
    ErrorCategory.TIMEOUT: ErrorClass.TIMEOUT,
    ErrorCategory.UNKNOWN: ErrorClass.TRANSIENT,
}
"""The class of a ``ToolError`` that names only its category; every other category is permanent."""

_CLASS_CATEGORY = {
    ErrorClass.TIMEOUT: ErrorCategory.TIMEOUT,
    ErrorClass.SERVER_ERROR: ErrorCategory.API_STATUS,
}


def classify(error: BaseException, classifier: object = None) -> Verdict:
    """Say what ``error`` means for a retry.

    A ``ToolError`` says for itself. An exception group with one leaf is that leaf; one whose leaves mean the same
    means that, any other is permanent. Then an HTTP status on the exception or its response, then the type.
    Programming errors are permanent, unknown exceptions transient.

    Args:
        error: What the tool raised.
        classifier: The policy's own rule, asked first; its exceptions, a None and nonsense fall back to the rules here.
    """
    error = single_leaf(error)
    verdict = _by_rules(error)
    if callable(classifier) and isinstance(error, Exception):
        try:
            chosen = classifier(error)
            kind = None if chosen is None else ErrorClass(chosen)
        except Exception:  # noqa: BLE001 - a rule that breaks, or says no class, must not lose the answer
            kind = None
        if kind is not None and kind is not verdict.error_class:
            category = verdict.category
            if kind is not ErrorClass.PERMANENT and not isinstance(error, ToolError):
                category = _CLASS_CATEGORY.get(kind, ErrorCategory.UNKNOWN)
            return attrs.evolve(verdict, error_class=kind, category=category)
    return verdict


def single_leaf(error: BaseException) -> BaseException:
    """Return the one leaf of an exception group that has only one, else ``error``."""
    while len(inner := parts(error)) == 1:
        error = inner[0]
    return error


def describe(error: BaseException) -> str:
    """Return the text of ``error`` for the model: its own words, cut; its type's name where it has none."""
    error = single_leaf(error)
    name = type(error).__name__
    try:
        text = str(error.message if isinstance(error, ToolError) else error)
    except Exception:  # noqa: BLE001 - a __str__ that raises must not lose the answer
        text = ""
    if not text.strip():
        return name
    return clip(f"{name}: {text}" if isinstance(error, KeyError) else text)


def _by_rules(error: BaseException) -> Verdict:
    if isinstance(error, ToolError):
        return _of_tool_error(error)
    if inner := parts(error):
        return _of_group(inner)
    if not isinstance(error, Exception):
        return _PERMANENT
    if (status := _status(error)) is not None:
        return _of_status(status, _retry_after(error))
    for base in type(error).__mro__:
        package = base.__module__.partition(".")[0].replace("httpx2", "httpx")
        if (known := _BY_NAME.get(f"{package}.{base.__name__}")) is not None:
            return known
    for kinds, verdict in _BY_TYPE:
        if isinstance(error, kinds):
            return verdict
    if isinstance(error, OSError):
        return _of_errno(error.errno)
    after = _retry_after(error)
    return _TRANSIENT if after is None else attrs.evolve(_TRANSIENT, retry_after=after)


def _of_tool_error(error: ToolError) -> Verdict:
    category = error.category
    kind = error.error_class
    if kind is None:
        kind = ErrorClass.TRANSIENT if category is None else _CATEGORY_CLASS.get(category, ErrorClass.PERMANENT)
    if category is None:
        category = _CLASS_CATEGORY.get(kind, ErrorCategory.UNKNOWN)
    return Verdict(kind, category, error.delivery, sane_wait(error.retry_after))


def _of_group(errors: tuple[BaseException, ...]) -> Verdict:
    first, *others = (_by_rules(single_leaf(error)) for error in errors)
    return first if all(other == first for other in others) else _PERMANENT


def _of_errno(number: int | None) -> Verdict:
    if number in _NOT_SENT_ERRNOS:
        return _NO_CONNECTION
    return _CONNECTION if number in _BROKEN_ERRNOS else _PERMANENT


def _attribute(owner: object, name: str) -> object:
    """Return an attribute of a foreign object, None where it is missing or its property raises."""
    try:
        return getattr(owner, name, None)
    except Exception:  # noqa: BLE001 - a property that raises must not lose the answer
        return None


def _status(error: Exception) -> int | None:
    """Return the HTTP status of an error answer, from the exception or its response."""
    for owner in (error, _attribute(error, "response")):
        for name in ("status_code", "status", "code"):
            value = _attribute(owner, name)
            if isinstance(value, int) and not isinstance(value, bool) and 400 <= value <= 599:  # noqa: PLR2004 - RFC 9110 §15
                return int(value)
    return None


def _of_status(status: int, retry_after: float | None) -> Verdict:
    """Classify an answer of the other side. Source: RFC 9110 §15, RFC 6585 §4 (429)."""
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return Verdict(ErrorClass.TRANSIENT, ErrorCategory.RATE_LIMITED, Delivery.REFUSED, retry_after)
    if status == HTTPStatus.REQUEST_TIMEOUT:
        return Verdict(ErrorClass.TIMEOUT, ErrorCategory.TIMEOUT, Delivery.UNKNOWN, retry_after)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        # A 503 refuses; any other 5xx may come after the work was done.
        refused = status == HTTPStatus.SERVICE_UNAVAILABLE
        delivery = Delivery.REFUSED if refused else Delivery.UNKNOWN
        return Verdict(ErrorClass.SERVER_ERROR, ErrorCategory.API_STATUS, delivery, retry_after)
    category = _STATUS_CATEGORY.get(status, ErrorCategory.API_STATUS)
    return Verdict(ErrorClass.PERMANENT, category, Delivery.REFUSED)


def _retry_after(error: Exception) -> float | None:
    """Return the wait that the other side asked for: a ``retry_after`` attribute or the header of its response."""
    value = _attribute(error, "retry_after")
    if value is None:
        headers = _attribute(_attribute(error, "response"), "headers")
        if isinstance(headers, Mapping):
            named = cast("Mapping[object, object]", headers)
            value = named.get("retry-after", named.get("Retry-After"))
    return parse_retry_after(value) if isinstance(value, str) else sane_wait(value)


def parse_retry_after(text: str, now: datetime | None = None) -> float | None:
    """Read a ``Retry-After`` header: whole seconds, or an HTTP date that lies ahead. Source: RFC 9110 §10.2.3.

    Args:
        text: The header's value.
        now: When it was written; None: now.

    Returns:
        Seconds to wait, or None for anything else, a past date included.
    """
    text = text.strip()
    if re.fullmatch(r"[0-9]{1,18}(\.[0-9]+)?", text):
        return float(text)
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - dates are rare, and its imports cost 13 ms

    try:
        ahead = (parsedate_to_datetime(text) - (now or datetime.now(UTC))).total_seconds()
    except (TypeError, ValueError):  # no date, or one without a zone
        return None
    return ahead if ahead >= 0 else None
