import json

from llama_index.core.tools import FunctionTool

from ..tools import Answer, Function


async def make(function: Function) -> Answer:
    tool = FunctionTool.from_defaults(async_fn=function)

    async def answer(text: str) -> str:
        return (await tool.acall(**json.loads(text))).content

    return answer
