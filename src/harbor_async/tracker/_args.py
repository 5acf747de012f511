"""What a model sends: an operation, an issue and the one field that the operation needs."""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any, Final, Self

import attrs

from ..errors import InvalidArgumentsError, Problem
from ..schema import Name

NAME: Final = "tracker_write"
"""The tool's name in a catalog."""


class Op(StrEnum):
    """What can be done to an issue."""

    COMMENT = "comment"
    TRANSITION = "transition"
    CLOSE = "close"
    LINK_PR = "link_pr"


FIELDS: Final[dict[Op, str]] = {
    Op.COMMENT: "body",
    Op.TRANSITION: "toState",
    Op.CLOSE: "reason",
    Op.LINK_PR: "prURL",
}
"""The field of each operation, by its name on the wire. Only ``reason`` may be missing."""


@attrs.frozen(slots=False)  # made at each call, and half as dear without slots
class TrackerArgs:
    """One operation on one issue. Making it checks nothing; ``TrackerWrite.run`` answers what is wrong with it.

    Attributes:
        op: What to do; only the field of that operation is read.
        id: The issue. Neither blank, nor with a NUL, a byte order mark or a zero width space in it.
        body: Text of the comment. Must not be blank; white space round it is kept.
        to_state: Where to move the issue; ``toState`` on the wire. Must not be blank; white space round it is dropped.
        reason: Why it is closed; None: not said.
        pr_url: The pull request to link; ``prURL`` on the wire. Must not be blank; white space round it is dropped.
    """

    op: Op
    id: str
    body: str | None = None
    to_state: Annotated[str | None, Name("toState")] = None
    reason: str | None = None
    pr_url: Annotated[str | None, Name("prURL")] = None


def _check_id(_: object, __: object, value: str) -> None:
    is_blank = not value.strip(_SPACE)
    if not is_blank and value.isprintable():  # nearly every id, and half as dear
        return
    if is_blank:
        msg = "expected the id of an issue; got nothing but white space"
        raise ValueError(msg)
    if _INVISIBLE.search(value):
        msg = "expected the id of an issue; got one with a NUL, a byte order mark or a zero width space in it"
        raise ValueError(msg)


@attrs.frozen(slots=False, kw_only=True)
class CheckedArgs(TrackerArgs):
    """Arguments whose operation and issue are sound. Whether the field is, is asked once the tracker can do it."""

    op: Op
    id: str = attrs.field(validator=_check_id)

    @classmethod
    def of(cls, args: TrackerArgs) -> Self:
        """Check what a program passes as it is.

        Raises:
            InvalidArgumentsError: Operation or issue is not sound.
        """
        if args.op not in set(Op) or not isinstance(args.id, str):
            msg = f"expected an operation, one of {', '.join(Op)}, and the id of an issue"
            raise InvalidArgumentsError([Problem("", "type", msg)])
        try:
            return cls(
                op=Op(args.op),
                id=args.id,
                body=args.body,
                to_state=args.to_state,
                reason=args.reason,
                pr_url=args.pr_url,
            )
        except ValueError as exc:
            raise InvalidArgumentsError([Problem("/id", "value", str(exc))]) from exc


_INVISIBLE: Final = re.compile("[\x00\u200b\ufeff]")
_SPACE_CODES: Final = (*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F)
_SPACE: Final = "".join(map(chr, (*_SPACE_CODES, 0x205F, 0x3000)))


def trim(text: str) -> str:
    """Return ``text`` without the white space round it.

    ``str.strip`` takes U+001C to U+001F for white space, too. Source: Unicode's White_Space property, as the seed's
    ``strings.TrimSpace``.
    """
    return text.strip(_SPACE)


def args_schema(ops: Iterable[Op] = Op) -> dict[str, Any]:
    """Return the JSON Schema of the arguments, flat as models take it best; a fresh copy each time.

    It says less than what is checked: that an operation needs its field, and that blank text is none.

    Args:
        ops: The operations to offer, and with them their fields.
    """
    offered = set(ops)
    missing = {field for op, field in FIELDS.items() if op not in offered}
    fields: dict[str, dict[str, Any]] = {
        "op": {"type": "string", "enum": [op.value for op in Op if op in offered]},
        "id": {"type": "string", "minLength": 1},
        "body": {"type": "string", "minLength": 1},
        "toState": {"type": "string", "minLength": 1},
        "reason": {"type": "string"},
        "prURL": {"type": "string", "minLength": 1},
    }
    return {
        "type": "object",
        "properties": {name: schema for name, schema in fields.items() if name not in missing},
        "required": ["op", "id"],
        "additionalProperties": False,
    }
