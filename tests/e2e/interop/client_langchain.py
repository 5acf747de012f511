"""langchain-mcp-adapters."""

from conversation import CALLS, converse
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools


async def talk(where):
    if "url" in where:
        connection = {"transport": "streamable_http", "url": where["url"]}
    else:
        connection = {"transport": "stdio", "command": where["command"][0], "args": where["command"][1:]}
    async with MultiServerMCPClient({"harbor": connection}).session("harbor") as session:
        tools = {tool.name: tool for tool in await load_mcp_tools(session)}
        told = {}
        for id, (name, args) in CALLS.items():
            message = await tools[name].ainvoke({"type": "tool_call", "id": id, "name": name, "args": args})
            [text] = [block["text"] for block in message.content]
            told[id] = text, message.status == "error"
    return {"tools": list(tools), **told}


converse(talk)
