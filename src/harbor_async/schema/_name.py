"""The marker that gives a field another name on the wire."""

from typing import Any

import attrs

from ..errors import InvalidToolError
from ._hints import split_annotation


@attrs.frozen
class Name:
    """The name of a field or parameter on the wire: ``to_state: Annotated[str, Name("toState")]``.

    Attributes:
        wire: The key in the JSON object; any text but the empty one, without quotes, backslashes and controls.

    Raises:
        InvalidToolError: The name is empty or no text.
    """

    wire: str

    def __attrs_post_init__(self) -> None:
        """Check the name."""
        wire: object = self.wire
        if not isinstance(wire, str) or not wire:
            msg = f"Name: expected a text that is not empty; got {wire!r}"
            raise InvalidToolError(msg)


def given_name(annotation: Any) -> str | None:
    """Return the wire name that stands beside a type, or None; the last one counts."""
    names = [mark.wire for mark in split_annotation(annotation)[1] if isinstance(mark, Name)]
    return names[-1] if names else None
