"""What an HTTP answer means: the part of *classify* that is the same for all trackers."""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Final, TypeAlias, cast

from ...._categories import Delivery, ErrorCategory
from ...._classify import parse_retry_after
from ...._json import is_mapping
from ..._writer import TrackerError
from ._request import Response

Rule: TypeAlias = tuple[ErrorCategory, Delivery, str]
"""Category, delivery, and what is said."""

_REFUSED: Final = Delivery.REFUSED
_UNKNOWN: Final = Delivery.UNKNOWN

RULES: Final[Mapping[int, Rule]] = {
    HTTPStatus.BAD_REQUEST: (ErrorCategory.VALIDATION, _REFUSED, "the request is not valid"),
    HTTPStatus.UNAUTHORIZED: (ErrorCategory.AUTH_FAILED, _REFUSED, "the token is not valid"),
    HTTPStatus.FORBIDDEN: (ErrorCategory.AUTH_FAILED, _REFUSED, "the token has no permission for this"),
    HTTPStatus.NOT_FOUND: (
        ErrorCategory.NOT_FOUND,
        _REFUSED,
        "the issue is missing, or the token has no permission to see it",
    ),
    HTTPStatus.METHOD_NOT_ALLOWED: (ErrorCategory.UNSUPPORTED, _REFUSED, "the tracker does not offer this"),
    HTTPStatus.REQUEST_TIMEOUT: (ErrorCategory.TIMEOUT, _UNKNOWN, "the tracker waited too long for the request"),
    HTTPStatus.CONFLICT: (
        ErrorCategory.CONFLICT,
        _REFUSED,
        "the issue is in the way of this, or was changed meanwhile",
    ),
    HTTPStatus.GONE: (ErrorCategory.NOT_FOUND, _REFUSED, "the issue was deleted"),
    HTTPStatus.PRECONDITION_FAILED: (ErrorCategory.CONFLICT, _REFUSED, "the issue was changed meanwhile"),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: (ErrorCategory.VALIDATION, _REFUSED, "the text is too long"),
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: (ErrorCategory.VALIDATION, _REFUSED, "the request is not valid"),
    HTTPStatus.UNPROCESSABLE_ENTITY: (ErrorCategory.VALIDATION, _REFUSED, "the request is not valid"),
    HTTPStatus.LOCKED: (ErrorCategory.CONFLICT, _REFUSED, "the issue is locked"),
    HTTPStatus.TOO_MANY_REQUESTS: (ErrorCategory.RATE_LIMITED, _REFUSED, "too many requests"),
    HTTPStatus.BAD_GATEWAY: (ErrorCategory.API_REQUEST, _UNKNOWN, "the tracker could not be asked"),
    HTTPStatus.SERVICE_UNAVAILABLE: (ErrorCategory.API_REQUEST, _REFUSED, "the tracker is not available"),
    HTTPStatus.GATEWAY_TIMEOUT: (ErrorCategory.API_REQUEST, _UNKNOWN, "the tracker did not answer in time"),
}
"""The statuses that mean the same for all trackers unless one says otherwise. Source: RFC 9110 §15, RFC 6585 §4."""

_MOVED: Final[Rule] = (ErrorCategory.NOT_FOUND, _REFUSED, "the issue, or all of the tracker, is at another address")
_BROKEN: Final[Rule] = (ErrorCategory.API_STATUS, _UNKNOWN, "the tracker failed")
_ODD: Final[Rule] = (ErrorCategory.API_STATUS, _REFUSED, "the tracker refused")
_WAITS: Final = frozenset({ErrorCategory.RATE_LIMITED, ErrorCategory.API_REQUEST})

_RESETS: Final = ("x-ratelimit-reset", "ratelimit-reset")
_EPOCH: Final = 1e9
"""From here on a number is a time and no number of seconds: it would be a wait of 31 years."""
_EPOCH_MS: Final = 1e11
"""From here on it is a time in milliseconds."""


def by_status(response: Response, details: Iterable[str] = (), rules: Mapping[int, Rule] | None = None) -> TrackerError:
    """Return what the status of an answer that is no success means.

    Args:
        response: The answer.
        details: What the answer says in its own words, for the message.
        rules: Statuses that mean something else for this tracker.
    """
    status = response.status
    rule = (rules or {}).get(status) or RULES.get(status)
    if rule is None:
        rule = _BROKEN if status >= HTTPStatus.INTERNAL_SERVER_ERROR else _ODD
        if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
            rule = _MOVED
    return refusal(response, rule, details)


def refusal(response: Response, rule: Rule, details: Iterable[str] = ()) -> TrackerError:
    """Return the error of ``rule``, with the wait that the answer asks for if its category passes with time."""
    category, delivery, says = rule
    said = "; ".join(dict.fromkeys(filter(None, details)))
    message = f"{says} (status {response.status}{': ' if said else ''}{said})"
    wait = wait_of(response.headers) if category in _WAITS else None
    return TrackerError(message, category=category, delivery=delivery, retry_after=wait)


def wait_of(headers: Mapping[str, str], *resets: str) -> float | None:
    """Return the seconds that an answer asks to wait, or None.

    ``Retry-After`` comes first, then the headers that say when a limit is lifted. Each tracker writes that in its own
    way: seconds to go, a time in seconds or milliseconds since 1970, or an ISO time. What cannot be read counts as
    missing. Times are compared with the answer's own ``Date``, so that a clock that is wrong here does no harm.

    Args:
        headers: By their names in small letters.
        *resets: Names of such headers, besides ``x-ratelimit-reset`` and ``ratelimit-reset``.
    """
    now = _date(headers.get("date", "")) or datetime.now(UTC)
    after = parse_retry_after(headers.get("retry-after", ""), now)
    if after is not None:
        return after
    waits = (_until(headers.get(name, "").strip(), now) for name in (*resets, *_RESETS))
    return next((max(0.0, wait) for wait in waits if wait is not None), None)


def texts(value: object) -> Iterator[str]:
    """Yield the texts in a part of a JSON document: itself, those of a list, those of an object with their names."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from texts(item)
    elif is_mapping(value):
        for name, item in value.items():
            yield from (f"{name}: {text}" for text in texts(item))


def _until(text: str, now: datetime) -> float | None:
    if re.fullmatch(r"[0-9]{1,18}(\.[0-9]{1,9})?", text):
        number = float(text)
        if number < _EPOCH:
            return number
        return (number / 1000 if number >= _EPOCH_MS else number) - now.timestamp()
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() - now.timestamp()


def _date(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
