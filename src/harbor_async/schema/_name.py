"""The marker that gives a field another name on the wire."""

import attrs

from ..errors import InvalidToolError


@attrs.frozen
class Name:
    """The name of a field or parameter on the wire: ``to_state: Annotated[str, Name("toState")]``.

    Attributes:
        wire: The key in the JSON object; any text that is not empty.

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
