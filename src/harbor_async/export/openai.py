"""OpenAI's tools, in Chat Completions and in Responses, without its SDK.

::

    tools = openai.tools(catalog)                            create(tools=tools, …)
    calls = openai.calls(response, catalog)                  await runtime.invoke_many(calls)
    messages += [response.choices[0].message, *openai.answers(results)]

A *strict* tool is one whose arguments the model cannot get wrong in form. Its schema knows fewer words, and no key may
be left out in it: one that may be left out becomes nullable, and ``calls`` takes such a null away again. Where null is
a value of its own it stays.

Sources: the guide to structured outputs ("supported schemas") and to function calling, as of 2026.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal, TypeAlias

from .._catalog import Catalog, CatalogFilter
from .._results import ToolCall, ToolResult
from .._tool import Tool
from ..errors import ExportError, Refusal
from . import _read
from ._answer import complete
from ._decode import drop_nulls, find
from ._dialect import STRICT_WORDS, Exported, Rules, check_word, flatten
from ._names import Naming, check_names
from ._openai_limit import over_limit
from ._rewrite import rewrite

API: TypeAlias = Literal["chat", "responses"]
Strict: TypeAlias = bool | Literal["auto"]
"""True: every tool, or an error; False: none; ``"auto"``: each tool that can be."""

_NAMING: Final = Naming("OpenAI", "A-Za-z0-9_", 64, runs=(("-", "-"), (".", "--")))
_BANNED_AT_ROOT: Final = frozenset({"allOf", "anyOf", "const", "enum", "not", "oneOf"})
_RULES: Final = Rules(
    dialect="OpenAI strict",
    keywords=frozenset(
        {"const", "description", "exclusiveMaximum", "exclusiveMinimum", "maxItems", "maximum"}
        | {"minItems", "minimum", "multipleOf", "pattern", "title"}
    ),
    formats=frozenset({"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"}),
    is_closed=True,
    is_total=True,
    bad_pattern=re.compile(r"\(\?<?[=!]"),
)


def to_wire(name: str) -> str:
    """Return how a tool's name is written for OpenAI: 1 to 64 of ``[A-Za-z0-9_-]``."""
    return _NAMING.to_wire(name)


def from_wire(name: str, catalog: Catalog | None = None) -> str:
    """Return the name of the tool that a model calls ``name``; ``name`` itself if it is nobody's.

    Args:
        name: What stands in a call.
        catalog: Where names that are cut on the wire, being too long, are looked for.
    """
    return _NAMING.from_wire(name, catalog)


def schema(schema: dict[str, Any], *, strict: bool = True, tool: str = "") -> Exported:
    """Return the schema of an argument object as OpenAI takes it, and what was lost.

    Args:
        schema: JSON Schema 2020-12, as ``Tool.args_schema``.
        strict: Whether for a strict tool. For any other only combinations at the root are moved to the description.
        tool: The name that a refusal carries.

    Raises:
        ExportError: It cannot be said, with every reason.
    """
    if not strict:
        return flatten("OpenAI", _BANNED_AT_ROOT, schema, tool)
    exported = rewrite(_RULES, schema, tool)
    refusals = list(over_limit(exported.schema, tool))
    if refusals:
        raise ExportError(_RULES.dialect, refusals)
    return exported


def tools(
    catalog: Catalog, filter: CatalogFilter | None = None, *, strict: Strict = "auto", api: API = "chat"
) -> list[dict[str, Any]]:
    """Return the tools of a catalog as a request has them, sorted by name.

    Args:
        catalog: The tools.
        filter: Which of them; None: all.
        strict: Which are strict; give ``calls`` the same word.
        api: ``"chat"`` for Chat Completions, ``"responses"`` for Responses.

    Raises:
        ExportError: Tools cannot be said, with every reason.
        InvalidToolError: An option is none of its words.
    """
    check_word("strict", strict, *STRICT_WORDS)
    check_word("api", api, "chat", "responses")
    listed = catalog.list(filter)
    check_names(_NAMING, listed)
    functions: list[dict[str, Any]] = []
    refusals: list[Refusal] = []
    for tool in listed:
        try:
            functions.append(_function(tool, strict))
        except ExportError as exc:
            refusals += exc.refusals
    if refusals:
        raise ExportError(_RULES.dialect if strict is True else "OpenAI", refusals)
    if api == "chat":
        return [{"type": "function", "function": function} for function in functions]
    return [{"type": "function", **function} for function in functions]


def _function(tool: Tool, strict: Strict) -> dict[str, Any]:
    exported = _strictly(tool) if strict == "auto" else None
    is_strict = strict is True or exported is not None
    if exported is None:
        exported = schema(tool.args_schema, strict=is_strict, tool=tool.name)
    return {
        "name": to_wire(tool.name),
        "description": tool.description,
        "parameters": exported.schema,
        "strict": is_strict,
    }


def _strictly(tool: Tool) -> Exported | None:
    try:
        return schema(tool.args_schema, tool=tool.name)
    except ExportError:
        return None


def calls(message: Any, catalog: Catalog | None = None, *, strict: Strict = "auto") -> list[ToolCall]:
    """Return the calls that a model makes, in its order; each has an answer coming, also one that makes no sense.

    Args:
        message: A chat completion or its message, a response or its output, or a list of the events of a stream, whose
            deltas are joined; an SDK's objects or plain dicts.
        catalog: Where schemas are found, by which the nulls of strict tools are taken away, and names that are cut on
            the wire. None: nulls stay.
        strict: What ``tools`` was told.

    Raises:
        InvalidToolError: ``strict`` is none of its words.
    """
    check_word("strict", strict, *STRICT_WORDS)
    return [_call(id, name, arguments, catalog, strict) for id, name, arguments in _entries(message)]


def _call(id: Any, name: Any, arguments: Any, catalog: Catalog | None, strict: Strict) -> ToolCall:
    named = from_wire(_read.text(name), catalog)
    given = _read.arguments(arguments)
    tool = find(catalog, named)
    if tool is not None and strict and _may_hold_null(given) and (strict is True or _strictly(tool) is not None):
        given = drop_nulls(tool, given)
    return ToolCall(_read.text(id), named, given)


def _may_hold_null(arguments: Any) -> bool:
    if isinstance(arguments, str):
        return "null" in arguments
    return not isinstance(arguments, bytes) or b"null" in arguments


def answers(
    results: Iterable[ToolResult], calls: Iterable[ToolCall] = (), *, api: API = "chat"
) -> list[dict[str, Any]]:
    """Return the messages that go back, one for each result.

    Args:
        results: What the runtime answered.
        calls: The calls of the message; one that has no result is then answered, too, as canceled.
        api: ``"chat"`` for messages of Chat Completions, ``"responses"`` for input items of Responses.

    Raises:
        InvalidToolError: ``api`` is none of these.
    """
    check_word("api", api, "chat", "responses")
    whole = complete(results, calls)
    if api == "chat":
        return [{"role": "tool", "tool_call_id": result.call_id, "content": result.content} for result in whole]
    return [{"type": "function_call_output", "call_id": result.call_id, "output": result.content} for result in whole]


def _entries(message: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yield id, name and arguments of each call in a message."""
    events = _read.items(message)
    if any(_read.get(event, "choices") is not None for event in events):
        yield from _join_chunks(events)
    elif any(_read.text(_read.get(event, "type")).startswith("response.") for event in events):
        yield from map(_item, _join_events(events))
    elif events or _read.get(message, "output") is not None:
        yield from map(_item, filter(_is_call, events or _read.items(_read.get(message, "output"))))
    else:
        choices = _read.items(_read.get(message, "choices"))
        chosen = _read.get(choices[0], "message") if choices else message
        for call in _read.items(_read.get(chosen, "tool_calls")):
            function = _read.get(call, "function", "custom")
            yield _read.get(call, "id"), _read.get(function, "name"), _read.get(function, "arguments", "input")


def _is_call(item: Any) -> bool:
    return _read.get(item, "type") in {"function_call", "custom_tool_call"}


def _item(item: Any) -> tuple[Any, Any, Any]:
    return _read.get(item, "call_id"), _read.get(item, "name"), _read.get(item, "arguments", "input")


def _join_chunks(chunks: list[Any]) -> Iterator[tuple[str, str, str]]:
    """Join the deltas of the first choice of a chat completion."""
    joined: dict[Any, list[str]] = {}
    for chunk in chunks:
        for choice in _read.items(_read.get(chunk, "choices")):
            if _read.get(choice, "index"):
                continue
            for part in _read.items(_read.get(_read.get(choice, "delta"), "tool_calls")):
                function = _read.get(part, "function", "custom")
                entry = joined.setdefault(_read.get(part, "index"), ["", "", ""])
                entry[0] = entry[0] or _read.text(_read.get(part, "id"))
                entry[1] = entry[1] or _read.text(_read.get(function, "name"))
                entry[2] += _read.text(_read.get(function, "arguments", "input"))
    for entry in joined.values():
        yield entry[0], entry[1], entry[2]


def _join_events(events: list[Any]) -> list[Any]:
    """Join the events of a response to its calls: each item as it is when done, else as far as it came."""
    items: dict[Any, Any] = {}
    for event in events:
        index, item = _read.get(event, "output_index"), _read.get(event, "item")
        match _read.get(event, "type"):
            case "response.output_item.added" if _is_call(item):
                call_id, name, arguments = _item(item)
                items[index] = {"call_id": call_id, "name": name, "arguments": _read.text(arguments)}
            case "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" if index in items:
                items[index]["arguments"] += _read.text(_read.get(event, "delta"))
            case "response.output_item.done" if _is_call(item):
                call_id, name, arguments = _item(item)
                items[index] = {"call_id": call_id, "name": name, "arguments": _read.text(arguments)}
            case _:
                pass
    return [items[index] for index in sorted(items)]
