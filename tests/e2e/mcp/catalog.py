"""The tools that the official conformance suite of the Model Context Protocol asks a server for, by name."""

import struct
import zlib

import anyio

from harbor_async import Catalog, ToolContext, describe_foreign, tool
from harbor_async.serving.mcp import Audio, Content, Image, Resource


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


PNG = (
    b"\x89PNG\r\n\x1a\n"
    + _chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    + _chunk(b"IDAT", zlib.compress(b"\x00\xff\x00\x00"))
    + _chunk(b"IEND", b"")
)
"""One red pixel."""
WAV = b"RIFF" + struct.pack("<I", 38) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 16000, 2, 16)
WAV += b"data" + struct.pack("<Ih", 2, 0)
"""One silent sample."""


@tool
async def test_simple_text() -> str:
    """Return text."""
    return "This is a simple text response for testing."


@tool
async def test_image_content() -> Content:
    """Return a picture."""
    return Content([Image(PNG, "image/png")])


@tool
async def test_audio_content() -> Content:
    """Return sound."""
    return Content([Audio(WAV, "audio/wav")])


@tool
async def test_embedded_resource() -> Content:
    """Return a document."""
    text = "This is an embedded resource content."
    return Content([Resource("test://embedded-resource", text, "text/plain")])


@tool
async def test_multiple_content_types() -> Content:
    """Return text, a picture and a document."""
    document = Resource("test://mixed-content-resource", '{"test":"data","value":123}', "application/json")
    return Content(["Multiple content types test:", Image(PNG, "image/png"), document])


@tool
async def test_error_handling() -> str:
    """Raise."""
    raise RuntimeError("This tool intentionally returns an error for testing")


@tool
async def test_tool_with_progress(context: ToolContext) -> str:
    """Report progress three times."""
    for done in (0, 50, 100):
        context.report_progress(done, 100)
        await anyio.sleep(0.05)
    return "done"


async def _echo(arguments: dict) -> dict:
    return arguments


json_schema_2020_12_tool = describe_foreign(
    _echo,
    name="json_schema_2020_12_tool",
    description="Tool with JSON Schema 2020-12 features",
    args_schema={
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    },
)

test_header = describe_foreign(
    _echo,
    name="test_header",
    description="Tool with an argument that its header repeats",
    args_schema={
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
        "required": ["region"],
        "additionalProperties": False,
    },
)

catalog = Catalog(
    [
        test_simple_text,
        test_image_content,
        test_audio_content,
        test_embedded_resource,
        test_multiple_content_types,
        test_error_handling,
        test_tool_with_progress,
        json_schema_2020_12_tool,
        test_header,
    ]
)
