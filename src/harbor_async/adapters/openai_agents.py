"""A catalog as tools of the OpenAI Agents SDK; extra ``openai-agents``. That SDK runs on asyncio only.

::

    agent = Agent("clerk", tools=openai_agents.tools(runtime))

What a call gives goes back to the model as ``ToolResult.content``: the value, or the envelope that says why there is
none. A run fails for no tool; the framework's default, a sentence with the exception's text, never appears.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from .._catalog import CatalogFilter
from .._runtime import Runtime
from ..errors import MissingExtraError
from ..export import openai
from ._expose import Who, who

try:
    from agents import FunctionTool, Tool
    from agents.tool_context import ToolContext
except ImportError as _exc:
    _feature = "harbor_async.adapters.openai_agents"
    raise MissingExtraError(_feature, "openai-agents") from _exc

__all__ = ["tools"]


def tools(
    runtime: Runtime,
    filter: CatalogFilter | None = None,
    *,
    strict: openai.Strict = "auto",
    identity: Who[ToolContext[Any]] = None,
    timeout: float | None = None,
) -> list[Tool]:
    """Return the tools of a runtime's catalog, sorted by name.

    They are those that are there now. The runtime must be open whenever one is called.

    Args:
        runtime: Answers the calls.
        filter: Which tools; None: all. It chooses what a model is shown, not what it may call: see ``identity``.
        strict: Which tools have schemas that the model cannot miss, as ``harbor_async.export.openai.tools``.
        identity: On whose behalf calls are made, or a function of the call's ``ToolContext`` that says so; None, also
            from the function: the runtime's own.
        timeout: The deadline of each call, in seconds from its start. None: no deadline.

    Raises:
        ExportError: The schema of a tool cannot be said to OpenAI.
    """
    return [
        FunctionTool(
            name=function["name"],
            description=function["description"],
            params_json_schema=function["parameters"],
            on_invoke_tool=_answer(runtime, function["name"], strict, identity, timeout),
            strict_json_schema=function["strict"],
        )
        for function in openai.tools(runtime.catalog, filter, strict=strict, api="responses")
    ]


def _answer(
    runtime: Runtime, name: str, strict: openai.Strict, identity: Who[ToolContext[Any]], timeout: float | None
) -> Callable[[ToolContext[Any], str], Awaitable[str]]:
    async def answer(context: ToolContext[Any], arguments: str) -> str:
        item = {"type": "function_call", "call_id": context.tool_call_id, "name": name, "arguments": arguments}
        [call] = openai.calls([item], runtime.catalog, strict=strict)
        asker = who(identity, context)
        result = await runtime.invoke(call.name, call.arguments, id=call.id, timeout=timeout, identity=asker)
        return result.content

    return answer
