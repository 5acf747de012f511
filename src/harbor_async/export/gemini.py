"""Gemini's tools, without its SDK.

::

    tools = gemini.tools(catalog)                            GenerateContentConfig(tools=tools, …)
    calls = gemini.calls(response, catalog)                  await runtime.invoke_many(calls)
    contents += [response.candidates[0].content, *gemini.answers(results)]

A declaration has its schema in one of two fields: ``parametersJsonSchema`` takes a part of JSON Schema, the older
``parameters`` a subset of OpenAPI 3.0. Numbers come from the model without their type, an int as ``5.0``: where only an
integer may stand, ``calls`` makes it one again.

Sources: the references of ``FunctionDeclaration``, ``Schema`` and ``responseJsonSchema``, as of 2026. The last one's
words are taken to hold for ``parametersJsonSchema``, too.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal, TypeAlias

from .._catalog import Catalog, CatalogFilter
from .._json import is_mapping
from .._results import ToolCall, ToolResult
from ..errors import ExportError, Refusal
from . import _read
from ._answer import complete, value_of
from ._decode import find, restore_integers
from ._dialect import Exported, Rules, check_word
from ._gemini_stream import Joined, join
from ._names import Naming, check_names
from ._openapi import OpenAPIRewriter
from ._rewrite import rewrite

Field: TypeAlias = Literal["parameters", "parametersJsonSchema"]

_NAMING: Final = Naming("Gemini", "A-Za-z0-9_.:", 64, first="A-Za-z_")
_BOTH: Final = frozenset({"description", "maxItems", "maximum", "minItems", "minimum", "title"})
_OPENAPI: Final = Rules(
    dialect="Gemini parameters",
    keywords=_BOTH | {"maxLength", "maxProperties", "minLength", "minProperties", "pattern"},
    formats=frozenset({"date-time"}),
    recursion="none",
    inlines=True,
)
_JSON_SCHEMA: Final = Rules(
    dialect="Gemini parametersJsonSchema",
    keywords=_BOTH | {"oneOf", "prefixItems"},
    formats=frozenset({"date", "date-time", "time"}),
    recursion="optional",
)


def to_wire(name: str) -> str:
    """Return how a tool's name is written for Gemini: a letter or ``_``, then up to 63 of ``[A-Za-z0-9_.:-]``."""
    return _NAMING.to_wire(name)


def from_wire(name: str, catalog: Catalog | None = None) -> str:
    """Return the name of the tool that a model calls ``name``; ``name`` itself if it is nobody's.

    Args:
        name: What stands in a call.
        catalog: Where names that are cut on the wire, being too long or begun by another sign, are looked for.
    """
    return _NAMING.from_wire(name, catalog)


def schema(schema: dict[str, Any], *, field: Field = "parametersJsonSchema", tool: str = "") -> Exported:
    """Return the schema of an argument object as Gemini takes it, and what was lost.

    Args:
        schema: JSON Schema 2020-12, as ``Tool.args_schema``.
        field: The field of a declaration that it is for.
        tool: The name that a refusal carries.

    Raises:
        ExportError: It cannot be said, with every reason.
        InvalidToolError: ``field`` is none of these.
    """
    check_word("field", field, "parameters", "parametersJsonSchema")
    if field == "parameters":
        return OpenAPIRewriter(_OPENAPI, schema, tool).document()
    return rewrite(_JSON_SCHEMA, schema, tool)


def tools(
    catalog: Catalog, filter: CatalogFilter | None = None, *, field: Field = "parametersJsonSchema"
) -> list[dict[str, Any]]:
    """Return the tools of a catalog as a request has them: one tool with a declaration each, sorted by name.

    Args:
        catalog: The tools.
        filter: Which of them; None: all.
        field: Where their schemas stand.

    Raises:
        ExportError: Tools cannot be said, with every reason.
        InvalidToolError: ``field`` is none of these.
    """
    check_word("field", field, "parameters", "parametersJsonSchema")
    listed = catalog.list(filter)
    check_names(_NAMING, listed)
    declarations: list[dict[str, Any]] = []
    refusals: list[Refusal] = []
    for tool in listed:
        declaration: dict[str, Any] = {"name": to_wire(tool.name), "description": tool.description}
        try:
            exported = schema(tool.args_schema, field=field, tool=tool.name).schema
        except ExportError as exc:
            refusals += exc.refusals
            continue
        if field != "parameters" or exported.get("properties"):  # an object without keys is refused there
            declaration[field] = exported
        declarations.append(declaration)
    if refusals:
        raise ExportError((_OPENAPI if field == "parameters" else _JSON_SCHEMA).dialect, refusals)
    return [{"functionDeclarations": declarations}] if declarations else []


def calls(message: Any, catalog: Catalog | None = None) -> list[ToolCall]:
    """Return the calls that a model makes, in its order; each has an answer coming, also one that makes no sense.

    Args:
        message: A response, its first candidate's content or that one's parts, or a list of the responses of a stream,
            whose partial arguments are joined; the SDK's objects or plain dicts.
        catalog: Where schemas are found, by which whole numbers become ints, and names that are cut on the wire.
            None: numbers stay as they are.
    """
    return [_call(call, catalog) for call in join(_function_calls(message))]


def _function_calls(message: Any) -> Iterator[Any]:
    for each in _read.items(message) or [message]:
        candidates = _read.items(_read.get(each, "candidates"))
        content = _read.get(candidates[0], "content") if candidates else each
        for part in _read.items(_read.get(content, "parts")) or [content]:
            call = _read.get(part, "function_call", "functionCall")
            if call is not None:
                yield call


def _call(call: Joined, catalog: Catalog | None) -> ToolCall:
    name = from_wire(_read.text(call.name), catalog)
    given = _read.arguments(call.arguments)
    tool = find(catalog, name)
    if tool is not None and is_mapping(given):
        given = restore_integers(tool, given)
    return ToolCall(_read.text(call.id), name, given)


def answers(results: Iterable[ToolResult], calls: Iterable[ToolCall] = ()) -> list[dict[str, Any]]:
    """Return the one content that goes back, with a part for each result; nothing if there is none.

    A value stands under ``output``, the envelope of a failure under ``error``.

    Args:
        results: What the runtime answered.
        calls: The calls of the message; one that has no result is then answered, too, as canceled.
    """
    parts: list[dict[str, Any]] = []
    for result in complete(results, calls):
        response = {"output" if result.error is None else "error": value_of(result)}
        function: dict[str, Any] = {"name": to_wire(result.tool), "response": response}
        if result.call_id:
            function["id"] = result.call_id
        parts.append({"functionResponse": function})
    return [{"role": "user", "parts": parts}] if parts else []
