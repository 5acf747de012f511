import json

from google.adk.features import FeatureName
from google.adk.features._feature_registry import override_feature_enabled
from google.adk.tools import FunctionTool

from ..tools import Answer, Function


class NoContext:
    """What ``run_async`` reads of its context when the function takes none."""

    tool_confirmation = None
    function_call_id = "1"
    run_config = None
    _invocation_context = None


async def make(function: Function) -> Answer:
    override_feature_enabled(FeatureName.FUNCTION_TOOL_ARG_VALIDATION, True)  # noqa: FBT003 - its own signature
    tool = FunctionTool(function)

    async def answer(text: str) -> str:
        return json.dumps(await tool.run_async(args=json.loads(text), tool_context=NoContext()))

    return answer
