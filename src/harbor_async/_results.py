"""What a call is and what it becomes.

``ToolCall`` and ``ToolResult`` are msgspec structs and not attrs classes: there is one of each a call, and making a
frozen attrs object of their size took 1.4 µs, a quarter of the hand-written call; the struct takes 0.2 µs.
"""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import attrs
import msgspec

from ._categories import RETRYABLE_CATEGORIES, Delivery, ErrorCategory, ErrorClass, Outcome
from .errors import Problem

StopReason: TypeAlias = Literal["attempts", "permanent", "unsafe", "deadline", "canceled", "invalid", "rejected"]
Arguments: TypeAlias = "bytes | str | Mapping[str, Any]"


@attrs.frozen
class Repair:
    """What was mended in the arguments of a call before they were decoded.

    Attributes:
        path: JSON Pointer (RFC 6901) to the place; ``""`` is the whole argument object.
        rule: By which rule: ``json_string``, ``code_fence``, ``empty_string``, or one of your own.
    """

    path: str
    rule: str


class ToolCall(msgspec.Struct, frozen=True):
    """One call, as a model sends it.

    Attributes:
        id: Any text; the result carries it. Two calls of a batch may share one.
        name: The tool's name in the catalog.
        arguments: A JSON object as text or bytes, or a mapping of what ``json.loads`` would give.
            Empty text, white space and ``null`` mean no arguments.
    """

    id: str
    name: str
    arguments: Any = ""


@attrs.frozen
class Failure:
    """Why a call has no value.

    Attributes:
        category: The word for the model and its loop.
        message: The text for the model; at most 2,000 characters and never an argument's value.
        error_class: What the retry policy saw.
        delivery: What is known of the effect.
        ambiguous: The tool declares an effect, and whether it happened is not known.
        retry_after: Seconds that the other side asked to wait, or None.
        problems: Every fault of the arguments or of the result.
        background: A worker thread could not be stopped and still runs.
        cause: The exception, without its traceback. Never serialised.
    """

    category: ErrorCategory
    message: str
    error_class: ErrorClass = ErrorClass.PERMANENT
    delivery: Delivery = Delivery.UNKNOWN
    ambiguous: bool = False
    retry_after: float | None = None
    problems: tuple[Problem, ...] = ()
    background: bool = False
    cause: BaseException | None = attrs.field(default=None, eq=False, repr=False)

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON object of this failure: ``category`` and ``message``, the rest where it says something."""
        wire: dict[str, Any] = {"category": self.category.value, "message": self.message}
        if self.problems:
            wire["problems"] = [
                {"path": problem.path, "code": problem.code, "message": problem.message} for problem in self.problems
            ]
        if self.retry_after is not None:
            wire["retry_after"] = self.retry_after
        if self.ambiguous:
            wire["ambiguous"] = True
        if self.background:
            wire["background"] = True
        return wire


class ToolResult(msgspec.Struct, frozen=True):
    """The one answer to one call.

    Attributes:
        call_id: The call's id.
        tool: The name that was called.
        outcome: How it ended.
        value: What the function returned; None unless it succeeded.
        error: Why it failed; None if it succeeded.
        attempts: How often the function was run.
        elapsed: Seconds from the call's start to this answer, waiting included.
        stop_reason: Why there was no further attempt; None after a success.
        late: The value came after the call was canceled or timed out, and stands because the tool declares an effect:
            it has happened.
        repairs: What was mended in the arguments; only in a runtime that was given ``repair``.
    """

    call_id: str
    tool: str
    outcome: Outcome
    value: Any = None
    error: Failure | None = None
    attempts: int = 0
    elapsed: float = 0.0
    stop_reason: StopReason | None = None
    late: bool = False
    _encoded: bytes | None = None
    repairs: tuple[Repair, ...] = ()

    def __repr__(self) -> str:
        """Return the fields that say something."""
        names = [name for name in self.__struct_fields__ if not name.startswith("_")]
        fields = ((name, getattr(self, name)) for name in (names if self.repairs else names[:-1]))
        return f"ToolResult({', '.join(f'{name}={value!r}' for name, value in fields if value is not None)})"

    @property
    def is_retryable(self) -> bool:
        """Whether sending the same call again may help and can do no harm.

        Source: the seed's table of categories; false all the same for a permanent error, an effect that may have
        happened, an invalid result and a passed deadline.
        """
        error = self.error
        return (
            error is not None
            and self.outcome is not Outcome.TIMED_OUT
            and error.category in RETRYABLE_CATEGORIES
            and error.error_class is not ErrorClass.PERMANENT
            and not error.ambiguous
        )

    @property
    def content(self) -> str:
        """The text that goes back to the model: a text value as it is, any other value and every failure as JSON.

        A tool may have said the failure in its own words (``render=``).
        """
        if self.error is None and isinstance(self.value, str):
            return self.value
        if self._encoded is not None:
            return self._encoded.decode()
        return msgspec.json.encode(self.to_wire()).decode()

    def to_wire(self) -> dict[str, Any]:
        """Return the envelope: ``{"outcome", "value"}`` or ``{"outcome", "error": {"category", "message", …}}``."""
        if self.error is not None:
            return {"outcome": self.outcome.value, "error": self.error.to_wire()}
        value = self.value if self._encoded is None else msgspec.json.decode(self._encoded)
        return {"outcome": self.outcome.value, "value": value}
