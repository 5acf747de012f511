import json

from langchain_core.tools import StructuredTool

from ..tools import Answer, Function


async def make(function: Function) -> Answer:
    tool = StructuredTool.from_function(coroutine=function)

    async def answer(text: str) -> str:
        call = {"name": tool.name, "args": json.loads(text), "id": "1", "type": "tool_call"}
        return (await tool.ainvoke(call)).content

    return answer
