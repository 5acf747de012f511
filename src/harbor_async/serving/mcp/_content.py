"""What a tool returns that is more than text or JSON: pictures, sound, documents."""

from base64 import b64encode
from collections.abc import Iterable
from typing import Annotated, Any, TypeAlias

import attrs

from ...errors import InvalidToolError
from ...schema import derive_schema, register_type


def _base64(data: bytes) -> str:
    return b64encode(data).decode()


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


@attrs.frozen
class Text:
    """Text.

    Attributes:
        text: It.
    """

    text: str

    def to_wire(self) -> dict[str, Any]:
        """Return the block as MCP has it."""
        return {"type": "text", "text": self.text}


@attrs.frozen
class Image:
    """A picture.

    Attributes:
        data: The bytes of the file.
        mime_type: What they are, as ``image/png``.
    """

    data: bytes = attrs.field(repr=False)
    mime_type: str

    def to_wire(self) -> dict[str, Any]:
        """Return the block as MCP has it, the bytes in base64."""
        return {"type": "image", "data": _base64(self.data), "mimeType": self.mime_type}


@attrs.frozen
class Audio:
    """Sound.

    Attributes:
        data: The bytes of the file.
        mime_type: What they are, as ``audio/wav``.
    """

    data: bytes = attrs.field(repr=False)
    mime_type: str

    def to_wire(self) -> dict[str, Any]:
        """Return the block as MCP has it, the bytes in base64."""
        return {"type": "audio", "data": _base64(self.data), "mimeType": self.mime_type}


@attrs.frozen
class Resource:
    """A document, with what is in it.

    Attributes:
        uri: Its name.
        data: What is in it: text, or bytes.
        mime_type: What that is; None: not known.
    """

    uri: str
    data: str | bytes = attrs.field(repr=False)
    mime_type: str | None = None

    def to_wire(self) -> dict[str, Any]:
        """Return the block as MCP has it, bytes in base64."""
        held = {"text": self.data} if isinstance(self.data, str) else {"blob": _base64(self.data)}
        return {"type": "resource", "resource": _given(uri=self.uri, mimeType=self.mime_type) | held}


@attrs.frozen
class ResourceLink:
    """A document that a client can fetch by itself.

    Attributes:
        uri: Where it is.
        name: What to call it.
        description: What is in it; None: not said.
        mime_type: What that is; None: not known.
    """

    uri: str
    name: str
    description: str | None = None
    mime_type: str | None = None

    def to_wire(self) -> dict[str, Any]:
        """Return the block as MCP has it."""
        return {"type": "resource_link"} | _given(
            uri=self.uri, name=self.name, description=self.description, mimeType=self.mime_type
        )


Block: TypeAlias = Text | Image | Audio | Resource | ResourceLink
"""One piece of content. Source: the specification of 2026-07-28, schema, ``ContentBlock``."""


def _blocks(blocks: Iterable[Block | str]) -> tuple[Block, ...]:
    made = tuple(Text(block) if isinstance(block, str) else block for block in blocks)
    for block in made:
        if not isinstance(block, Block):
            msg = f"Content: expected text, Image, Audio, Resource or ResourceLink; got {type(block).__name__}"
            raise InvalidToolError(msg)
    return made


@attrs.frozen
class Content:
    """What a tool returns that an MCP client is to see block by block: ``-> Content``.

    ::

        return Content(["Sales by month:", Image(png, "image/png")])

    Elsewhere than in MCP it is a JSON array of the same blocks. It is no type for a parameter.

    Attributes:
        blocks: The pieces, in their order; text stands for ``Text``.

    Raises:
        InvalidToolError: A piece is something else.
    """

    blocks: tuple[Block, ...] = attrs.field(converter=_blocks)

    def to_wire(self) -> list[dict[str, Any]]:
        """Return the blocks as MCP has them."""
        return [block.to_wire() for block in self.blocks]


def _refuse(_: Any) -> Content:
    msg = "content is what a tool returns, and nothing that it takes"
    raise ValueError(msg)


register_type(
    Content,
    wire=Annotated[list[dict[str, Any]], "Content blocks as in the Model Context Protocol."],
    structure=_refuse,
    unstructure=Content.to_wire,
)
SCHEMA = derive_schema(Content)
"""The out schema of a tool that returns ``Content``."""
