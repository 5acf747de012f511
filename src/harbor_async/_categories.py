"""The words of the house: every string enum, with the word it has on the wire.

Each member *is* its wire word (``ErrorCategory.TIMEOUT == "timeout"``), so a value can be compared,
stored and sent without conversion.
"""

from enum import StrEnum


class Outcome(StrEnum):
    """How a call ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    """The deadline of the call or of its batch passed."""
    REJECTED = "rejected"
    """The runtime refused to run it: scopes, approval or a full queue."""


class ErrorCategory(StrEnum):
    """What went wrong, in the twelve words that a model and its agent loop know.

    Source: the ``tracker_write`` result envelope.
    """

    UNSUPPORTED_OP = "unsupported_op"
    VALIDATION = "validation"
    NOT_FOUND = "not_found"
    AUTH_FAILED = "auth_failed"
    CONFLICT = "conflict"
    API_REQUEST = "api_request"
    API_STATUS = "api_status"
    RATE_LIMITED = "rate_limited"
    TIMEOUT = "timeout"
    UNSUPPORTED = "unsupported"
    UNKNOWN = "unknown"
    CANCELED = "canceled"


RETRYABLE_CATEGORIES = frozenset(
    {
        ErrorCategory.API_REQUEST,
        ErrorCategory.RATE_LIMITED,
        ErrorCategory.TIMEOUT,
        ErrorCategory.UNKNOWN,
    }
)
"""Categories after which the same call may be sent again. Source: the seed's ``Result.IsRetryable``."""


class ErrorClass(StrEnum):
    """What the shell thinks of an error when it decides whether to try again."""

    TRANSIENT = "transient"
    TIMEOUT = "timeout"
    SERVER_ERROR = "5xx"
    PERMANENT = "permanent"


class Delivery(StrEnum):
    """What is known about the effect of a failed attempt."""

    NOT_SENT = "not_sent"
    """It surely had no effect: nothing left this process."""
    REFUSED = "refused"
    """The other side answered, and the answer was no."""
    UNKNOWN = "unknown"
    """It may have happened."""


class SideEffect(StrEnum):
    """What a tool does to the world. ``WRITE``, ``EXTERNAL`` and ``STATEFUL`` are effects."""

    PURE = "pure"
    READ = "read"
    WRITE = "write"
    EXTERNAL = "external"
    STATEFUL = "stateful"


class LoadingMode(StrEnum):
    """Whether a tool is shown to the model at once or only when it is searched for."""

    ALWAYS = "always"
    DEFERRED = "deferred"


class Transport(StrEnum):
    """Where a tool runs."""

    INPROCESS = "inprocess"
    HTTP = "http"
    MCP = "mcp"
    A2A = "a2a"
