"""The OpenAI Agents SDK: an agent whose model makes the calls in one response. It tells failures by their text."""

from agents import Agent, RunConfig, Runner
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from agents.testing import ScriptedModel, assistant_message, function_call
from conversation import CALLS, converse


async def talk(where):
    if "url" in where:
        server = MCPServerStreamableHttp({"url": where["url"]}, client_session_timeout_seconds=60)
    else:
        command = {"command": where["command"][0], "args": where["command"][1:]}
        server = MCPServerStdio(command, client_session_timeout_seconds=60)
    calls = [function_call(name, args, call_id=id) for id, (name, args) in CALLS.items()]
    model = ScriptedModel([calls, [assistant_message("done")]])
    async with server:
        tools = await server.list_tools()
        agent = Agent(name="clerk", model=model, mcp_servers=[server])
        result = await Runner.run(agent, "go", run_config=RunConfig(tracing_disabled=True))
    outputs = {item["call_id"]: item["output"] for item in result.to_input_list() if "output" in item}
    return {"tools": [tool.name for tool in tools], **{id: (outputs[id][0]["text"], None) for id in CALLS}}


converse(talk)
