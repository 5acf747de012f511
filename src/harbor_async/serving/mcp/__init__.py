"""A catalog as a server of the Model Context Protocol. It needs the extra ``mcp``."""

try:
    import mcp  # noqa: F401 - with it comes what the modules below import # pyright: ignore[reportUnusedImport]
except ModuleNotFoundError as _exc:
    from ...errors import MissingExtraError

    feature = "the MCP server"
    raise MissingExtraError(feature, "mcp") from _exc

from ._content import Audio, Block, Content, Image, Resource, ResourceLink, Text
from ._http import Authenticate
from ._server import MCPServer

__all__ = ["Audio", "Authenticate", "Block", "Content", "Image", "MCPServer", "Resource", "ResourceLink", "Text"]
