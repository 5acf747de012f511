"""A catalog as tools of LangChain and LangGraph, and a LangChain tool as a descriptor; extra ``langchain``.

::

    agent = create_agent(model, langchain.tools(runtime))
    catalog = Catalog([langchain.describe_tool(search)])

LangChain runs asynchronous tools on asyncio only. A synchronous tool that became a descriptor runs on trio, too.

How a call ends, as LangChain has it: a ``ToolMessage`` with the text for the model and, as its ``artifact``, the
envelope as JSON values. That of a failure or a refusal has ``status="error"``, so that the model can mend its call and
the graph goes on. Where a tool is invoked without a call's id there is no message: the text is returned, and a failure
raises ``ToolException``, which ``handle_tool_error`` handles. The caller's cancellation leaves as one.
"""

from typing import Any, Literal, Unpack

import anyio

from .._catalog import CatalogFilter
from .._categories import Delivery, ErrorCategory, ErrorClass
from .._context import ToolContext
from .._declaration import ToolOptions
from .._descriptor import ToolDescriptor
from .._foreign import describe_foreign
from .._json import is_object
from .._runtime import Runtime
from ..errors import InvalidToolError, MissingExtraError, ToolError
from ._expose import Who, details, find_name, named, who

try:
    from langchain_core.messages import ToolMessage
    from langchain_core.runnables import RunnableConfig
    from langchain_core.tools import BaseTool, ToolException
    from pydantic import PrivateAttr, ValidationError
except ImportError as _exc:
    _feature = "harbor_async.adapters.langchain"
    raise MissingExtraError(_feature, "langchain") from _exc

__all__ = ["RuntimeTool", "describe_tool", "tools"]


def tools(
    runtime: Runtime,
    filter: CatalogFilter | None = None,
    *,
    identity: Who[RunnableConfig] = None,
    timeout: float | None = None,
) -> list[BaseTool]:
    """Return the tools of a runtime's catalog, sorted by name.

    They are those that are there now. The runtime must be open whenever one is called.

    Args:
        runtime: Answers the calls.
        filter: Which tools; None: all. It chooses what a model is shown, not what it may call: see ``identity``.
        identity: On whose behalf calls are made, or a function of the call's ``RunnableConfig`` that says so, as from
            its ``configurable``; None, also from the function: the runtime's own.
        timeout: The deadline of each call, in seconds from its start. None: no deadline.
    """
    return [
        RuntimeTool(
            runtime,
            identity,
            timeout,
            name=name,
            description=tool.description,
            args_schema=tool.args_schema,
            metadata={"name": tool.name, "side_effect": tool.side_effect.value},
        )
        for name, tool in named(runtime, filter)
    ]


class RuntimeTool(BaseTool):
    """One tool of a runtime's catalog; ``tools`` makes it."""

    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"
    _runtime: Runtime = PrivateAttr()
    _identity: Who[RunnableConfig] = PrivateAttr()
    _timeout: float | None = PrivateAttr()

    def __init__(
        self, runtime: Runtime, identity: Who[RunnableConfig], timeout: float | None, /, **fields: Any
    ) -> None:
        """Offer a tool of ``runtime``; see ``tools``."""
        super().__init__(**fields)
        self._runtime = runtime
        self._identity = identity
        self._timeout = timeout

    def _to_args_and_kwargs(
        self, tool_input: str | dict[str, Any], tool_call_id: str | None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        # Else ``_arun`` would not be told the id, and an argument named ``config`` would meet LangChain's own.
        return (tool_input, tool_call_id), {}

    async def _arun(  # called with what _to_args_and_kwargs returns
        self, arguments: str | dict[str, Any], call_id: str | None, *, config: RunnableConfig
    ) -> tuple[Any, Any]:
        result = await self._runtime.invoke(
            find_name(self._runtime, self.name),
            arguments,
            id=call_id or "",
            timeout=self._timeout,
            identity=who(self._identity, config),
        )
        if result.error is None:
            return result.content, details(result)
        if call_id is None:
            raise ToolException(result.content)
        content = result.content
        message = ToolMessage(content, artifact=details(result), tool_call_id=call_id, name=self.name, status="error")
        return message, None

    def _run(self, *_: Any, **__: Any) -> Any:
        msg = "a tool of a runtime is asynchronous: use ainvoke, or the asynchronous side of the agent"
        raise NotImplementedError(msg)


def describe_tool(tool: BaseTool, **options: Unpack[ToolOptions]) -> ToolDescriptor[..., Any]:
    """Make a tool of a LangChain tool.

    Its value is the content of its ``ToolMessage``, text or a list of content blocks; the artifact stays behind.

    Args:
        tool: The tool. One without an asynchronous form runs in a worker thread of the runtime, as any plain function.
            An asynchronous one finds the ``Identity`` of the call, if there is one, in its ``RunnableConfig``, as
            ``config["configurable"]["identity"]``.
        **options: As of ``describe``; name and description are the tool's own unless given. ``side_effect`` and
            ``policy`` are worth a thought: of a foreign tool nothing is known.

    Raises:
        InvalidToolError: It is no LangChain tool.
        RegistrationError: As ``describe_foreign``.
    """
    if not isinstance(tool, BaseTool):
        msg = f"describe_tool takes a LangChain tool; got {type(tool).__name__}"
        raise InvalidToolError(msg)
    schema: Any = tool.tool_call_schema
    args_schema = schema if is_object(schema) else schema.model_json_schema()
    described: ToolOptions = {"name": tool.name, "description": tool.description, "source": "langchain", **options}
    return describe_foreign(_function(tool), args_schema=args_schema, **described)


def _function(tool: BaseTool) -> Any:
    def invoke(arguments: dict[str, Any], call: ToolContext, /) -> Any:
        try:
            return _value(tool, tool.invoke(*_request(tool, arguments, call)))
        except (ToolException, ValidationError) as exc:
            raise _error(exc) from exc

    async def ainvoke(arguments: dict[str, Any], call: ToolContext, /) -> Any:
        if anyio.get_cancelled_exc_class().__module__.startswith("trio"):
            msg = "LangChain runs its asynchronous tools on asyncio only"
            raise ToolError(msg, category=ErrorCategory.UNSUPPORTED, delivery=Delivery.NOT_SENT)
        try:
            return _value(tool, await tool.ainvoke(*_request(tool, arguments, call)))
        except (ToolException, ValidationError) as exc:
            raise _error(exc) from exc

    return invoke if _is_sync(tool) else ainvoke


def _is_sync(tool: BaseTool) -> bool:
    """Say whether a tool has no asynchronous form: LangChain would run it in a thread that nobody counts."""
    own = [kind for kind in type(tool).__mro__ if "_arun" in vars(kind)]
    return own[0] is BaseTool or getattr(tool, "coroutine", tool) is None


def _request(tool: BaseTool, arguments: dict[str, Any], call: ToolContext) -> tuple[Any, RunnableConfig]:
    request = {"type": "tool_call", "name": tool.name, "args": arguments, "id": call.call_id or call.idempotency_key}
    return request, {} if call.identity is None else {"configurable": {"identity": call.identity}}


def _value(tool: BaseTool, message: Any) -> Any:
    """Return what a tool says to the model.

    Raises:
        ToolError: It says that it failed, or something that is not for a model.
    """
    if not isinstance(message, ToolMessage):
        msg = f"tool {tool.name!r}: expected a ToolMessage; got {type(message).__name__}, which only a graph can read"
        raise ToolError(msg, category=ErrorCategory.UNSUPPORTED)
    if message.status == "error":
        raise ToolError(message.text, error_class=ErrorClass.PERMANENT)
    return message.content


def _error(error: ToolException | ValidationError) -> ToolError:
    if isinstance(error, ToolException):
        return ToolError(str(error), error_class=ErrorClass.PERMANENT)
    # The input is not told, for it may be secret. The function may have run: the error can be one of its own.
    found = error.errors(include_url=False, include_context=False, include_input=False)
    problems = "; ".join(f"{'/'.join(map(str, each['loc']))}: {each['msg']}" for each in found)
    return ToolError(f"invalid arguments: {problems}", category=ErrorCategory.VALIDATION)
