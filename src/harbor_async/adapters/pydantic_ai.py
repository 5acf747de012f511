"""A catalog as a toolset of Pydantic AI, and a toolset as descriptors; extra ``pydantic-ai``. On asyncio and trio.

::

    agent = Agent(model, toolsets=[RuntimeToolset(runtime)])

    async with toolset:
        catalog = Catalog(await describe_toolset(toolset))

How a call ends, as Pydantic AI has it:

====================================  =============================================================================
a value                               ``ToolReturn`` of it as JSON values; its ``metadata`` holds the envelope
``validation``: the call can be       ``ModelRetry``: the model mends it, as often as the agent's ``retries`` allow
mended
any other failure, a refusal          ``ToolFailed``: the model sees it and goes on. The runtime has retried already
a cancellation of the caller          a cancellation
====================================  =============================================================================

The text of a failure is the envelope, so that the model sees its category.

Source: the docstrings of ``ModelRetry`` and ``ToolFailed``.
"""

from collections.abc import Callable
from dataclasses import replace
from inspect import isawaitable
from typing import Any, Final, TypeVar, Unpack

import msgspec

from .._catalog import CatalogFilter
from .._categories import Delivery, ErrorCategory, ErrorClass, LoadingMode
from .._context import ToolContext
from .._declaration import ToolOptions
from .._descriptor import ToolDescriptor
from .._foreign import describe_foreign
from .._json import Path, pointer
from .._runtime import Runtime
from ..errors import InvalidArgumentsError, InvalidToolError, MissingExtraError, Problem, ProblemCode, ToolError
from ._expose import Who, details, find_name, named, who

try:
    from pydantic import ValidationError
    from pydantic_ai import ApprovalRequired, CallDeferred, ModelRetry, RunContext, ToolDefinition, ToolReturn
    from pydantic_ai.exceptions import ToolFailed
    from pydantic_ai.models import Model
    from pydantic_ai.models.test import TestModel
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
    from pydantic_ai.usage import RunUsage
    from pydantic_core import SchemaValidator, core_schema, to_jsonable_python
except ImportError as _exc:
    _feature = "harbor_async.adapters.pydantic_ai"
    raise MissingExtraError(_feature, "pydantic-ai") from _exc

__all__ = ["RuntimeToolset", "describe_toolset"]

D = TypeVar("D")

_ANYTHING: Final = SchemaValidator(core_schema.any_schema())
"""Arguments are decoded by the runtime, which tells every problem, and not twice."""


class RuntimeToolset(AbstractToolset[D]):
    """The catalog of a runtime as a toolset: at each step the tools that are there then."""

    def __init__(
        self,
        runtime: Runtime,
        filter: CatalogFilter | None = None,
        *,
        id: str | None = None,
        identity: Who[RunContext[D]] = None,
        timeout: float | None = None,
        max_retries: int | None = None,
    ) -> None:
        """Offer the tools of ``runtime``, which must be open whenever one is called.

        A tool whose loading is ``deferred`` is one whose loading Pydantic AI defers: its tool search finds it.

        Args:
            runtime: Answers the calls.
            filter: Which tools; None: all. It chooses what a model is shown, not what it may call: see ``identity``.
            id: The toolset's id, for durable execution.
            identity: On whose behalf calls are made, or a function of the call's ``RunContext`` that says so; None,
                also from the function: the runtime's own.
            timeout: The deadline of each call, in seconds from its start. None: no deadline.
            max_retries: How often in a row a model may be asked to mend a call of one tool. None: as the agent says.
        """
        self._runtime = runtime
        self._filter = filter
        self._id = id
        self._identity = identity
        self._timeout = timeout
        self._max_retries = max_retries

    @property
    def id(self) -> str | None:
        """The toolset's id."""
        return self._id

    async def get_tools(self, ctx: RunContext[D]) -> dict[str, ToolsetTool[D]]:
        """Return the tools that the catalog has now."""
        return {
            name: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=name,
                    description=tool.description,
                    parameters_json_schema=tool.args_schema,
                    return_schema=tool.out_schema,
                    defer_loading=tool.loading is LoadingMode.DEFERRED,
                    metadata={"name": tool.name, "side_effect": tool.side_effect.value, "tags": list(tool.tags)},
                ),
                max_retries=ctx.max_retries if self._max_retries is None else self._max_retries,
                args_validator=_ANYTHING,
            )
            for name, tool in named(self._runtime, self._filter)
        }

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[D],
        tool: ToolsetTool[D],  # noqa: ARG002 - the toolset’s shape
    ) -> ToolReturn:
        """Answer a call by the runtime.

        Raises:
            ModelRetry: The arguments do not fit.
            ToolFailed: There is no value, for another reason.
        """
        result = await self._runtime.invoke(
            find_name(self._runtime, name),
            tool_args,
            id=ctx.tool_call_id or "",
            timeout=self._timeout,
            identity=who(self._identity, ctx),
        )
        if result.error is None:
            return ToolReturn(result.to_wire()["value"], metadata=details(result))
        if result.error.category is ErrorCategory.VALIDATION:
            raise ModelRetry(result.content)
        raise ToolFailed(result.content)


async def describe_toolset(
    toolset: AbstractToolset[D],
    deps: D | None = None,
    *,
    model: Model | None = None,
    **options: Unpack[ToolOptions],
) -> list[ToolDescriptor[..., Any]]:
    """Make tools of those of a toolset that it has now, as outside of a run.

    Args:
        toolset: The toolset, entered wherever it needs that: whoever owns it keeps it open while calls are made.
        deps: What its functions find in ``RunContext.deps``.
        model: What they find in ``RunContext.model``. None: a ``TestModel``, which asks nobody.
        **options: As of ``describe``, for each of the tools; names and descriptions are the toolset's.
            ``side_effect`` and ``policy`` are worth a thought: of a foreign tool nothing is known. Tools that need
            approval need ``approve``.

    Raises:
        InvalidToolError: A tool needs approval and there is no ``approve``, or it is not run by the toolset.
        RegistrationError: As ``describe_foreign``.
    """
    usage = RunUsage()
    context: RunContext[Any] = RunContext(deps=deps, model=model or TestModel(), usage=usage)
    tools = await toolset.get_tools(context)
    return [_describe(toolset, tool, context, options) for tool in tools.values()]


def _describe(
    toolset: AbstractToolset[Any], tool: ToolsetTool[Any], context: RunContext[Any], options: ToolOptions
) -> ToolDescriptor[..., Any]:
    definition = tool.tool_def
    if definition.kind not in {"function", "unapproved"}:
        msg = f"tool {definition.name!r}: expected one that its toolset runs; got kind {definition.kind!r}"
        raise InvalidToolError(msg)
    if definition.kind == "unapproved" and options.get("approve") is None:
        msg = f"tool {definition.name!r} needs approval: give approve="
        raise InvalidToolError(msg)
    described: ToolOptions = {
        "description": definition.description or definition.name,
        "loading": LoadingMode.DEFERRED if definition.defer_loading else LoadingMode.ALWAYS,
        "source": "pydantic-ai",
        **options,
        "name": definition.name,
    }
    function = _function(toolset, tool, replace(context, tool_call_approved=options.get("approve") is not None))
    return describe_foreign(function, args_schema=definition.parameters_json_schema, **described)


def _function(
    toolset: AbstractToolset[Any], tool: ToolsetTool[Any], context: RunContext[Any]
) -> Callable[[dict[str, Any], ToolContext], Any]:
    name = tool.tool_def.name

    async def call(arguments: dict[str, Any], call: ToolContext, /) -> Any:
        run = replace(
            context,
            tool_name=name,
            tool_call_id=call.call_id or call.idempotency_key,
            retry=call.attempt - 1,
            max_retries=tool.max_retries,
        )
        try:
            validated = tool.args_validator.validate_json(msgspec.json.encode(arguments))
        except ValidationError as exc:
            raise InvalidArgumentsError(_problems(exc)) from None
        try:
            if tool.args_validator_func is not None:
                checked = tool.args_validator_func(run, **validated)
                if isawaitable(checked):
                    await checked
            value = await toolset.call_tool(name, validated, run, tool)
        except (ModelRetry, ToolFailed) as exc:
            is_mendable = isinstance(exc, ModelRetry)
            category = ErrorCategory.VALIDATION if is_mendable else None
            raise ToolError(exc.message, category=category, error_class=ErrorClass.PERMANENT) from exc
        except (ApprovalRequired, CallDeferred) as exc:
            is_approval = isinstance(exc, ApprovalRequired)
            category = ErrorCategory.AUTH_FAILED if is_approval else ErrorCategory.UNSUPPORTED
            msg = f"tool {name!r} {'needs approval' if is_approval else 'would be run outside of this call'}"
            raise ToolError(msg, category=category, delivery=Delivery.NOT_SENT) from exc
        return to_jsonable_python(value.return_value if isinstance(value, ToolReturn) else value)

    return call


def _problems(error: ValidationError) -> list[Problem]:
    found: list[Problem] = []
    for each in error.errors(include_url=False, include_context=False, include_input=False):
        path: Path = None
        for step in each["loc"]:
            path = (path, step)
        found.append(Problem(pointer(path), _code(each["type"]), each["msg"]))
    return found


def _code(kind: str) -> ProblemCode:
    if kind in {"missing", "missing_argument"}:
        return "missing"
    if kind in {"extra_forbidden", "unexpected_keyword_argument"}:
        return "unknown"
    return "type" if kind.endswith("_type") else "value"
