from agents import function_tool, set_tracing_disabled
from agents.tool_context import ToolContext

from ..tools import Answer, Function


async def make(function: Function) -> Answer:
    set_tracing_disabled(disabled=True)
    tool = function_tool(function)

    async def answer(text: str) -> str:
        context = ToolContext(context=None, tool_name=tool.name, tool_call_id="1", tool_arguments=text)
        return str(await tool.on_invoke_tool(context, text))

    return answer
