from pydantic_ai import FunctionToolset, RunContext
from pydantic_ai.messages import ToolCallPart, ToolReturnPart
from pydantic_ai.models.test import TestModel
from pydantic_ai.tool_manager import ToolManager
from pydantic_ai.usage import RunUsage

from ..tools import Answer, Function


async def make(function: Function) -> Answer:
    context = RunContext(deps=None, model=TestModel(), usage=RunUsage())
    manager = await ToolManager(toolset=FunctionToolset([function])).for_run_step(context)
    name = function.__name__

    async def answer(text: str) -> str:
        value = await manager.handle_call(ToolCallPart(name, text, "1"))
        return ToolReturnPart(name, value, "1").model_response_str()

    return answer
