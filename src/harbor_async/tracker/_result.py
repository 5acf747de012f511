"""What a model gets back: the envelope of one operation."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NotRequired, Self, TypeAlias, TypedDict

import attrs
import msgspec

from .._categories import RETRYABLE_CATEGORIES, Outcome
from ..schema import register_type

Unknown: TypeAlias = Mapping[str, msgspec.Raw]
_NOTHING: Final[Unknown] = MappingProxyType({})


@attrs.frozen
class ResultError:
    """Why an operation failed.

    Attributes:
        category: One of ``ErrorCategory``, or a word that this version does not know.
        message: The text for the model.
        op: The operation as it was sent; empty when it could not be read.
        ambiguous: Whether the operation may have happened all the same. Told in ``message``, and no field of the
            JSON.
        unknown: Fields of the JSON that this version does not know, as they were written.
    """

    category: str
    message: str
    op: str = ""
    ambiguous: bool = attrs.field(default=False, eq=False)
    unknown: Unknown = attrs.field(default=_NOTHING, eq=False, repr=False)


@attrs.frozen(slots=False)  # made at each call, and dearer with slots
class TrackerResult:
    """The envelope of one operation.

    Attributes:
        outcome: One of ``Outcome``, or a word that this version does not know.
        op: The operation as it was sent; empty when it could not be read.
        id: The issue as it was sent; empty when it could not be read.
        error: Why it failed, or None.
        raw_json: The text that it was read from, without the white space round it; None if it was not read.
        unknown: Fields of the JSON that this version does not know, as they were written.
    """

    outcome: str
    op: str = ""
    id: str = ""
    error: ResultError | None = None
    raw_json: str | None = attrs.field(default=None, eq=False, repr=False)
    unknown: Unknown = attrs.field(default=_NOTHING, eq=False, repr=False)

    @property
    def is_retryable(self) -> bool:
        """Whether an agent loop may send the same operation again. Source: the seed's ``Result.IsRetryable``.

        It goes by the category alone: look at ``ToolResult.is_retryable`` where there is one, which is false when the
        operation may have happened.
        """
        error = self.error
        return self.outcome != Outcome.SUCCEEDED and error is not None and error.category in RETRYABLE_CATEGORIES

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read an envelope. Words and fields that this version does not know are kept.

        Raises:
            ValueError: It is no JSON, or no envelope.
        """
        text = (text if isinstance(text, str) else text.decode()).strip(" \t\r\n")
        try:
            known = _decode_known(text) or _Known()
            fields = _decode_fields(text) or {}
        except RecursionError as exc:
            msg = "the envelope is nested too deeply"
            raise ValueError(msg) from exc
        error = None
        if known.error is not None:
            error = ResultError(
                known.error.category or "",
                known.error.message or "",
                known.error.op or "",
                unknown=_unknown(_decode_fields(fields["error"]) or {}, _KNOWN_IN_ERROR),
            )
        unknown = _unknown(fields, _KNOWN)
        return cls(known.outcome or "", known.op or "", known.id or "", error, raw_json=text, unknown=unknown)

    def to_json(self) -> str:
        """Return the envelope as JSON: what is known in the order of the fields, empty ones left out, then the rest."""
        wire: dict[str, Any] = {**self.to_wire(), **self.unknown}
        if self.error is not None:
            wire["error"] |= self.error.unknown
        return msgspec.json.encode(wire).decode()

    def to_wire(self) -> "Envelope":
        """Return what is known of the envelope as a JSON object."""
        wire: Envelope = {"outcome": self.outcome}
        if self.op:
            wire["op"] = self.op
        if self.id:
            wire["id"] = self.id
        error = self.error
        if error is not None:
            wire["error"] = {"category": error.category, "message": error.message}
            if error.op:
                wire["error"]["op"] = error.op
        return wire


class EnvelopeError(TypedDict):
    """``ResultError`` on the wire."""

    category: str
    message: str
    op: NotRequired[str]


class Envelope(TypedDict):
    """``TrackerResult`` on the wire."""

    outcome: str
    op: NotRequired[str]
    id: NotRequired[str]
    error: NotRequired[EnvelopeError]


class _KnownError(msgspec.Struct):
    category: str | None = None
    message: str | None = None
    op: str | None = None


class _Known(msgspec.Struct):
    outcome: str | None = None
    op: str | None = None
    id: str | None = None
    error: _KnownError | None = None


_KNOWN: Final = frozenset(_Known.__struct_fields__)
_KNOWN_IN_ERROR: Final = frozenset(_KnownError.__struct_fields__)
_decode_known: Final = msgspec.json.Decoder(_Known | None).decode
# Raw, so that a number is written again as it was.
_decode_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw] | None).decode


def _unknown(fields: Unknown, known: frozenset[str]) -> dict[str, msgspec.Raw]:
    # A raw value is a view of the whole text; a copy keeps no more than itself.
    return {name: value.copy() for name, value in fields.items() if name not in known}


def _structure(wire: Envelope) -> TrackerResult:
    return TrackerResult.from_json(msgspec.json.encode(wire))


register_type(TrackerResult, wire=Envelope, structure=_structure, unstructure=TrackerResult.to_wire)
