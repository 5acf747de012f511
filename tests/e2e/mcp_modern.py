"""A server of the official SDK, for tests of our client: over stdio, or over HTTP with ``http``.

It speaks 2026-07-28 to a client that can and tells it of changed tools. Its last argument is a file, to which the tool
``slow`` adds a line when it is canceled.
"""

import sys
from pathlib import Path
from typing import Any

import anyio
import mcp.types as wire
import uvicorn
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ToolsListChanged

TOOLS = ["echo", "slow", "more", "version"]
BUS = InMemorySubscriptionBus()


async def list_tools(ctx: Any, params: Any) -> wire.ListToolsResult:
    return wire.ListToolsResult(tools=[wire.Tool(name=name, input_schema={"type": "object"}) for name in TOOLS])


async def call_tool(ctx: Any, params: wire.CallToolRequestParams) -> wire.CallToolResult:
    arguments = params.arguments or {}
    match params.name:
        case "slow":
            await ctx.session.report_progress(1, 2, "begun")
            try:
                await anyio.sleep(30)
            except anyio.get_cancelled_exc_class():
                with Path(sys.argv[-1]).open("a") as file:  # noqa: ASYNC230 - a line in a test
                    file.write("canceled\n")
                raise
        case "more":
            TOOLS.append(arguments["name"])
            await BUS.publish(ToolsListChanged())
        case "version":
            return wire.CallToolResult(content=[], structured_content=[ctx.protocol_version])
        case "echo":
            return wire.CallToolResult(content=[], structured_content=arguments)
        case _:
            raise MCPError(wire.INVALID_PARAMS, "Unknown tool")
    return wire.CallToolResult(content=[wire.TextContent(text="done")])


SERVER = Server("modern", on_list_tools=list_tools, on_call_tool=call_tool, on_subscriptions_listen=ListenHandler(BUS))


async def stdio() -> None:
    async with stdio_server() as (read, write):
        await SERVER.run(read, write, SERVER.create_initialization_options())


def http() -> None:
    config = uvicorn.Config(SERVER.streamable_http_app(), host="127.0.0.1", port=0, log_level="critical")
    socket = config.bind_socket()
    socket.listen()  # or it is refused until the loop runs
    sys.stdout.write(f"{socket.getsockname()[1]}\n")
    sys.stdout.flush()
    uvicorn.Server(config).run([socket])


if __name__ == "__main__":
    http() if sys.argv[1] == "http" else anyio.run(stdio)
