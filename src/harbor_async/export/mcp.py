"""The Model Context Protocol: tools, calls and results as its JSON has them, without its SDK.

::

    {"name": …, "description": …, "inputSchema": {…}, "outputSchema": {…}, "annotations": {…}}
    {"content": [{"type": "text", "text": …}], "structuredContent": …, "isError": false}

An MCP schema is JSON Schema 2020-12, so that nothing of ours is lost. Up to version 2025-11-25 of the protocol a
structured result can only be an object: with ``wrap`` any other one is sent as ``{"result": …}``, and described so.

Source: the specification of 2026-07-28, server/tools, and of 2025-06-18.
"""

from collections.abc import Iterable
from typing import Any, Final

from .._catalog import Catalog, CatalogFilter
from .._categories import SideEffect
from .._json import is_array, is_object
from .._results import ToolCall, ToolResult
from .._tool import Tool
from ..errors import ToolNotFoundError
from . import _read
from ._names import Naming, check_names

NAMING: Final = Naming("MCP", "A-Za-z0-9_.", 128)


def to_wire(name: str) -> str:
    """Return how a tool's name is written in MCP: 1 to 128 of ``[A-Za-z0-9_.-]``."""
    return NAMING.to_wire(name)


def from_wire(name: str, catalog: Catalog | None = None) -> str:
    """Return the name of the tool that a client calls ``name``; ``name`` itself if it is nobody's.

    Args:
        name: What stands in ``tools/call``.
        catalog: Where names of more than 128 characters are looked for, which are cut on the wire.
    """
    return NAMING.from_wire(name, catalog)


def tools(catalog: Catalog, filter: CatalogFilter | None = None, *, wrap: bool = False) -> list[dict[str, Any]]:
    """Return the tools of a catalog as ``tools/list`` has them, sorted by name.

    Args:
        catalog: The tools.
        filter: Which of them; None: all.
        wrap: Whether the client's protocol is older than 2026-07-28.

    Raises:
        ExportError: Two names are written alike; this is next to impossible.
    """
    listed = catalog.list(filter)
    check_names(NAMING, listed)
    return [tool(each, wrap=wrap) for each in listed]


def tool(tool: Tool, *, wrap: bool = False) -> dict[str, Any]:
    """Return one tool as ``tools/list`` has it.

    Args:
        tool: What a model sees of it.
        wrap: Whether the client's protocol is older than 2026-07-28.
    """
    wire: dict[str, Any] = {
        "name": to_wire(tool.name),
        "description": tool.description,
        "inputSchema": tool.args_schema,
    }
    out_schema = tool.out_schema
    if out_schema is not None:
        wire["outputSchema"] = _wrapped_schema(out_schema) if wrap and _is_wrapped(tool) else out_schema
    hints = annotations(tool)
    if hints:
        wire["annotations"] = hints
    return wire


def annotations(tool: Tool) -> dict[str, bool]:
    """Return what a client is told of a tool's effect; a hint that is left out has the protocol's cautious default.

    ``readOnlyHint`` and with it not ``destructiveHint`` for ``pure`` and ``read``; ``idempotentHint`` for those and for
    an idempotent effect; ``openWorldHint`` true for ``external``, false for ``pure`` and a declared ``stateful``. An
    undeclared side effect says nothing.
    """
    effect = tool.side_effect
    hints: dict[str, bool] = {}
    if effect in {SideEffect.PURE, SideEffect.READ}:
        hints |= {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True}
    elif tool.declares_effect:
        hints |= {"readOnlyHint": False, "destructiveHint": True}
    if tool.declares_effect and effect in {SideEffect.EXTERNAL, SideEffect.STATEFUL}:
        hints["openWorldHint"] = effect is SideEffect.EXTERNAL
    elif effect is SideEffect.PURE:
        hints["openWorldHint"] = False
    if tool.is_idempotent:
        hints["idempotentHint"] = True
    return hints


def calls(message: Any, catalog: Catalog | None = None) -> list[ToolCall]:
    """Return the calls of a ``tools/call`` request: one, or none if it is another message.

    Args:
        message: A JSON-RPC request, its ``params``, or an SDK's object of either. The id of the call is that of the
            request, as text.
        catalog: Where names of more than 128 characters are looked for.
    """
    params = _read.get(message, "params") or message
    name = _read.get(params, "name")
    if not isinstance(name, str):
        return []
    id = _read.get(message, "id")
    arguments = _read.arguments(_read.get(params, "arguments"))
    return [ToolCall("" if id is None else str(id), from_wire(name, catalog), arguments)]


def answers(
    results: Iterable[ToolResult], catalog: Catalog | None = None, *, wrap: bool = False
) -> list[dict[str, Any]]:
    """Return one ``CallToolResult`` for each result, in their order.

    Args:
        results: What the runtime answered.
        catalog: Where ``answer`` finds the tools.
        wrap: Whether the client's protocol is older than 2026-07-28.
    """
    return [answer(result, _find(catalog, result.tool), wrap=wrap) for result in results]


def answer(result: ToolResult, tool: Tool | None = None, *, wrap: bool = False) -> dict[str, Any]:
    """Return a result as ``CallToolResult``: its content as text, and its value if the tool has an out schema.

    A failure is a result with ``isError`` whose text is the envelope, so that a model can mend its call.

    Args:
        result: What the runtime answered.
        tool: The tool that was called; None: nothing is known of it, and there is no structured content.
        wrap: Whether the client's protocol is older than 2026-07-28.
    """
    wire: dict[str, Any] = {"content": [{"type": "text", "text": result.content}], "isError": result.error is not None}
    if result.error is None and tool is not None and tool.out_schema is not None:
        value = result.to_wire()["value"]
        wire["structuredContent"] = {"result": value} if wrap and _is_wrapped(tool) else value
    return wire


def _find(catalog: Catalog | None, name: str) -> Tool | None:
    try:
        return None if catalog is None else catalog.resolve(name).tool
    except ToolNotFoundError:
        return None


def _is_wrapped(tool: Tool) -> bool:
    schema = tool.out_schema
    return schema is not None and schema.get("type") != "object"


def _wrapped_schema(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"result": _moved(schema)}, "required": ["result"]}


def _moved(schema: Any) -> Any:
    """Return a copy of a schema whose references lead below its new place."""
    if is_array(schema):
        return [_moved(item) for item in schema]
    if not is_object(schema):
        return schema
    moved = {key: _moved(value) for key, value in schema.items()}
    ref = moved.get("$ref")
    if isinstance(ref, str) and (ref == "#" or ref.startswith("#/")):
        moved["$ref"] = f"#/properties/result{ref[1:]}"
    return moved
