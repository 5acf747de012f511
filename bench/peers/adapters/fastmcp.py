import json

from fastmcp.tools import Tool

from ..tools import Answer, Function


async def make(function: Function) -> Answer:
    tool = Tool.from_function(function)

    async def answer(text: str) -> str:
        return (await tool.run(json.loads(text))).content[0].text

    return answer
