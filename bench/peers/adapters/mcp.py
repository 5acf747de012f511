import json

from mcp.server import MCPServer

from ..tools import Answer, Function


async def make(function: Function) -> Answer:
    server = MCPServer("bench")
    server.add_tool(function)
    name = function.__name__

    async def answer(text: str) -> str:
        return (await server.call_tool(name, json.loads(text))).content[0].text

    return answer
