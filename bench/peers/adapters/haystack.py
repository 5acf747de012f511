import json

from haystack.tools.from_function import create_tool_from_function

from ..tools import Answer, Function


async def make(function: Function) -> Answer:
    tool = create_tool_from_function(function)

    async def answer(text: str) -> str:
        return json.dumps(await tool.invoke_async(**json.loads(text)))

    return answer
