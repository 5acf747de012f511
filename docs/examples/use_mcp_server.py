"""Tools of an MCP server in a catalog. Run with ``serve`` this file is that server."""

import sys

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

import harbor_async as ha
from harbor_async.providers.mcp import RemoteServers, Stdio

server = MCPServer("weather")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def forecast(city: str, days: int = 1) -> dict[str, list[int]]:
    """Forecast the temperature of a city."""
    return {city: [21] * days}


@server.tool()
async def report(city: str) -> str:
    """Report a storm in a city."""
    raise ToolError(f"nobody is on duty in {city}")


def show(arguments: str, result: ha.ToolResult) -> None:
    print(arguments, "->", result.outcome, result.content)


async def main() -> None:
    here = Stdio([sys.executable, __file__, "serve"])
    catalog = ha.Catalog()
    async with RemoteServers(catalog) as servers, ha.Runtime(catalog) as rt:
        weather = await servers.connect(here, prefix="weather.", trusted=True, policy=ha.ToolPolicy(timeout=10))
        for tool in catalog.list():
            print(tool.name, tool.side_effect, tool.description)

        for arguments in ('{"city": "Oslo", "days": 2}', '{"town": "Oslo"}'):
            show(arguments, await rt.invoke("weather.forecast", arguments))
        show("Oslo", await rt.invoke("weather.report", {"city": "Oslo"}))
        print(await rt.call(catalog.resolve("weather.forecast"), city="Bergen"))

        await weather.aclose()
        print(len(catalog), "tools left")


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        server.run("stdio")
    else:
        anyio.run(main)
