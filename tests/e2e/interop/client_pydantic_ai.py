"""Pydantic AI: an agent whose model makes the calls in one response."""

from conversation import CALLS, converse
from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel


async def talk(where):
    client = where["url"] if "url" in where else StdioTransport(where["command"][0], where["command"][1:])
    calls = [ToolCallPart(name, args, tool_call_id=id) for id, (name, args) in CALLS.items()]
    turns = iter([calls, [TextPart("done")]])
    listed = []

    def model(_, info):
        listed[:] = [tool.name for tool in info.function_tools]
        return ModelResponse(parts=next(turns))

    agent = Agent(FunctionModel(model), toolsets=[MCPToolset(client, init_timeout=60)])
    async with agent:
        result = await agent.run("go")
    parts = [part for message in result.all_messages() for part in message.parts if part.part_kind == "tool-return"]
    return {"tools": listed, **{part.tool_call_id: (part.content, part.outcome != "success") for part in parts}}


converse(talk)
