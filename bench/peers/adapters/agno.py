from typing import Any

from agno.models.base import Model
from agno.tools.function import Function as AgnoFunction
from agno.utils.functions import get_function_call

from ..tools import Answer, Function


class NoModel(Model):
    """Is asked for nothing but to run functions."""

    def invoke(self, *args: Any, **options: Any) -> Any: ...
    async def ainvoke(self, *args: Any, **options: Any) -> Any: ...
    def invoke_stream(self, *args: Any, **options: Any) -> Any: ...
    async def ainvoke_stream(self, *args: Any, **options: Any) -> Any: ...
    def _parse_provider_response(self, *args: Any, **options: Any) -> Any: ...
    def _parse_provider_response_delta(self, *args: Any, **options: Any) -> Any: ...


async def make(function: Function) -> Answer:
    model = NoModel(id="none")
    tool = AgnoFunction.from_callable(function)
    tool.process_entrypoint()

    async def answer(text: str) -> str:
        call = get_function_call(tool.name, text, "1", {tool.name: tool})
        _, _, call, _ = await model.arun_function_call(call)
        return str(call.result)

    return answer
