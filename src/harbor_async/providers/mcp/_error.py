"""What a call over MCP that gave no value means for a retry and for the model."""

from typing import Any, Final

import msgspec
from mcp.shared.exceptions import MCPError
from mcp.types import (
    CONNECTION_CLOSED,
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    REQUEST_TIMEOUT,
    URL_ELICITATION_REQUIRED,
)

from ..._categories import Delivery, ErrorCategory, ErrorClass
from ..._classify import classify, describe, parse_retry_after
from ..._json import is_object
from ...errors import ToolError, clip, sane_wait
from ._sending import Sending

_BY_CODE: Final = {
    INVALID_PARAMS: (ErrorCategory.VALIDATION, ErrorClass.PERMANENT, Delivery.REFUSED),
    METHOD_NOT_FOUND: (ErrorCategory.UNSUPPORTED, ErrorClass.PERMANENT, Delivery.REFUSED),
    URL_ELICITATION_REQUIRED: (ErrorCategory.UNSUPPORTED, ErrorClass.PERMANENT, Delivery.REFUSED),
    HEADER_MISMATCH: (ErrorCategory.CONFLICT, ErrorClass.TRANSIENT, Delivery.REFUSED),
    INVALID_REQUEST: (ErrorCategory.API_STATUS, ErrorClass.PERMANENT, Delivery.UNKNOWN),
    PARSE_ERROR: (ErrorCategory.API_STATUS, ErrorClass.PERMANENT, Delivery.UNKNOWN),
    REQUEST_TIMEOUT: (ErrorCategory.TIMEOUT, ErrorClass.TIMEOUT, Delivery.UNKNOWN),
    CONNECTION_CLOSED: (ErrorCategory.API_REQUEST, ErrorClass.TRANSIENT, Delivery.UNKNOWN),
}
_OTHER: Final = (ErrorCategory.API_STATUS, ErrorClass.SERVER_ERROR, Delivery.UNKNOWN)
_TELLING_STATUS: Final = frozenset({401, 403, 408, 429})
"""What says more than the JSON-RPC error that comes with it; so does each of 500 and above."""

_SERVER_ERROR: Final = 500


class _Answered(Exception):  # noqa: N818 - never raised: what ``classify`` reads a status from
    def __init__(self, status: int, retry_after: float | None) -> None:
        super().__init__()
        self.status_code = status
        self.retry_after = retry_after


def unreachable(server: str, error: BaseException | None, retry_after: float | None = None) -> ToolError:
    """Return the error of a call that was not sent, since there is no connection.

    Args:
        server: The server's name.
        error: Why there is none; None: not known.
        retry_after: Seconds until the next attempt to connect; None: one is under way.
    """
    why = "" if error is None else f": {describe(error)}"
    return ToolError(
        clip(f"the MCP server {server!r} cannot be reached{why}"),
        category=ErrorCategory.API_REQUEST,
        retry_after=retry_after,
        delivery=Delivery.NOT_SENT,
    )


def closed(server: str) -> ToolError:
    """Return the error of a call after the server was closed."""
    return ToolError(
        f"the MCP server {server!r} is closed",
        category=ErrorCategory.API_REQUEST,
        error_class=ErrorClass.PERMANENT,
        delivery=Delivery.NOT_SENT,
    )


def of_exchange(server: str, error: Exception, sending: Sending) -> ToolError:
    """Return the error of a call that was sent, or nearly so, and has no result.

    Args:
        server: The server's name.
        error: What the SDK raised.
        sending: What is known of the call's way.
    """
    told = f"the MCP server {server!r}"
    if sending.error is not None:
        verdict = classify(sending.error)
        text = f"{told} cannot be reached: {describe(sending.error)}"
        delivery = verdict.delivery if sending.is_sent else Delivery.NOT_SENT
        return ToolError(clip(text), category=verdict.category, error_class=verdict.error_class, delivery=delivery)
    status = sending.status
    if status is not None and (sending.is_lost or status in _TELLING_STATUS or status >= _SERVER_ERROR):
        return _of_status(told, status, sending)
    if not isinstance(error, MCPError):  # what it sent is no answer in MCP
        return ToolError(
            f"{told} gave an answer that is not valid MCP",
            category=ErrorCategory.API_STATUS,
            error_class=ErrorClass.PERMANENT,
        )
    category, error_class, delivery = _BY_CODE.get(error.code, _OTHER)
    if not sending.is_sent:
        delivery = Delivery.NOT_SENT
    text = clip(f"{told} answered with error {error.code}: {error.message}")
    if error.code == CONNECTION_CLOSED:
        text = f"the connection to {told} was closed {'before its answer' if sending.is_sent else 'before the call'}"
    return ToolError(text, category=category, error_class=error_class, delivery=delivery)


def _of_status(told: str, status: int, sending: Sending) -> ToolError:
    if sending.is_lost:
        return ToolError(f"{told} has ended the session", category=ErrorCategory.API_REQUEST, delivery=Delivery.REFUSED)
    retry_after = None if sending.retry_after is None else parse_retry_after(sending.retry_after)
    verdict = classify(_Answered(status, retry_after))
    return ToolError(
        f"{told} answered with HTTP status {status}",
        category=verdict.category,
        error_class=verdict.error_class,
        retry_after=verdict.retry_after,
        delivery=verdict.delivery,
    )


def of_result(text: str, structured: Any) -> ToolError:
    """Return the error of a result with ``isError``: the tool ran and says itself what went wrong.

    It is for the model to mend, and never retried as it is. Where the other side is a harbor_async server its envelope
    comes as text, and its words are kept.

    Args:
        text: The text of the result.
        structured: Its structured content.
    """
    error = _envelope(structured) or _envelope(_parsed(text))
    message, category, retry_after = text, ErrorCategory.UNKNOWN, None
    if error is not None:
        message, category = error["message"], ErrorCategory(error["category"])
        retry_after = sane_wait(error.get("retry_after"))
    return ToolError(
        clip(message) or "the tool failed, and did not say why",
        category=category,
        error_class=ErrorClass.PERMANENT,
        retry_after=retry_after,
    )


def _parsed(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _envelope(value: Any) -> dict[str, Any] | None:
    """Return the ``error`` of ``{"outcome": …, "error": {"category": …, "message": …}}``, else None."""
    error = value.get("error") if is_object(value) and "outcome" in value else None
    if not is_object(error) or not all(isinstance(error.get(key), str) for key in ("category", "message")):
        return None
    return error if error["category"] in set(ErrorCategory) else None
