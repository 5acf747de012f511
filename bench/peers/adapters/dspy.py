import json

import dspy

from ..tools import Answer, Function


async def make(function: Function) -> Answer:
    tool = dspy.Tool(function)

    async def answer(text: str) -> str:
        return (await tool.acall(**json.loads(text))).model_dump_json()

    return answer
