import json

from autogen_core import CancellationToken
from autogen_core.tools import FunctionTool

from ..tools import Answer, Function


async def make(function: Function) -> Answer:
    tool = FunctionTool(function, description="Forecast the weather.")

    async def answer(text: str) -> str:
        return tool.return_value_as_string(await tool.run_json(json.loads(text), CancellationToken()))

    return answer
