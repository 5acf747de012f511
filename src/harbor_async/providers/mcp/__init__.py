"""Tools of Model Context Protocol servers in a catalog (extra ``mcp``)."""

from importlib.util import find_spec

from ...errors import MissingExtraError

if find_spec("mcp") is None:
    _FEATURE = "the MCP client"
    raise MissingExtraError(_FEATURE, "mcp")

from ._endpoint import Endpoint, Stdio, StreamableHTTP
from ._server import RemoteServer
from ._servers import RemoteServers

__all__ = ["Endpoint", "RemoteServer", "RemoteServers", "Stdio", "StreamableHTTP"]
