"""Anthropic's tools, in the Messages API, without its SDK.

::

    tools = anthropic.tools(catalog)                         create(tools=tools, …)
    calls = anthropic.calls(message, catalog)                await runtime.invoke_many(calls)
    messages += [{"role": "assistant", "content": message.content}, *anthropic.answers(results)]

A *strict* tool is one whose arguments the model cannot get wrong in form. Its schema knows no bounds and no recursion,
and a request has room for few: 20 strict tools, and among them 24 keys that may be left out and 16 of several types.

Sources: "Structured outputs" and "Strict tool use" of Anthropic's documentation, as of 2026. Whether a definition that
is used twice counts twice is not written there; here it counts once.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal, TypeAlias

import attrs

from .._catalog import Catalog, CatalogFilter
from .._json import is_array, is_object
from .._results import ToolCall, ToolResult
from ..errors import ExportError, Refusal
from . import _read
from ._answer import complete
from ._dialect import STRICT_WORDS, Exported, Rules, check_word, flatten
from ._look import subschemas
from ._names import Naming, check_names
from ._rewrite import rewrite

Strict: TypeAlias = bool | Literal["auto"]
"""True: every tool, or an error; False: none; ``"auto"``: each tool that can be, as long as the request has room."""

_NAMING: Final = Naming("Anthropic", "A-Za-z0-9_", 64, runs=(("-", "-"), (".", "--")))
_BANNED_AT_ROOT: Final = frozenset({"allOf", "anyOf", "oneOf"})
_RULES: Final = Rules(
    dialect="Anthropic strict",
    keywords=frozenset({"const", "default", "description", "minItems", "pattern", "title"}),
    formats=frozenset({"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid"}),
    is_closed=True,
    recursion="none",
    most_min_items=1,
    bad_pattern=re.compile(r"\(\?<?[=!]|\\[1-9bBk]"),
)


@attrs.frozen
class Room:
    """How much of a request strict tools take, or may take.

    Attributes:
        tools: Strict tools.
        optional: Their keys that may be left out.
        unions: Their keys of several types.
    """

    tools: int = 0
    optional: int = 0
    unions: int = 0

    def __add__(self, other: "Room") -> "Room":
        """Return what both take."""
        return Room(self.tools + other.tools, self.optional + other.optional, self.unions + other.unions)

    def over(self, limit: "Room") -> list[str]:
        """Say of what there is more than ``limit`` has."""
        words = (
            ("tools", "strict tools"),
            ("optional", "optional parameters"),
            ("unions", "parameters of several types"),
        )
        return [
            f"{getattr(self, name)} {what} in a request; at most {getattr(limit, name)} are allowed"
            for name, what in words
            if getattr(self, name) > getattr(limit, name)
        ]


LIMIT: Final = Room(tools=20, optional=24, unions=16)
"""What the strict tools of one request may take."""


def to_wire(name: str) -> str:
    """Return how a tool's name is written for Anthropic: 1 to 64 of ``[A-Za-z0-9_-]``."""
    return _NAMING.to_wire(name)


def from_wire(name: str, catalog: Catalog | None = None) -> str:
    """Return the name of the tool that a model calls ``name``; ``name`` itself if it is nobody's.

    Args:
        name: What stands in a call.
        catalog: Where names that are cut on the wire, being too long, are looked for.
    """
    return _NAMING.from_wire(name, catalog)


def schema(schema: dict[str, Any], *, strict: bool = True, tool: str = "") -> Exported:
    """Return the schema of an argument object as Anthropic takes it, and what was lost.

    Args:
        schema: JSON Schema 2020-12, as ``Tool.args_schema``.
        strict: Whether for a strict tool. For any other only combinations at the root are moved to the description.
        tool: The name that a refusal carries.

    Raises:
        ExportError: It cannot be said, with every reason.
    """
    return rewrite(_RULES, schema, tool) if strict else flatten("Anthropic", _BANNED_AT_ROOT, schema, tool)


def room(schema: dict[str, Any]) -> Room:
    """Return what a strict tool with this schema, as ``schema()`` has returned it, takes of a request."""
    optional = unions = 0
    todo: list[Any] = [schema]
    while todo:
        here = todo.pop()
        properties = here.get("properties", {})
        optional += sum(name not in here.get("required", ()) for name in properties)
        unions += sum("anyOf" in each or is_array(each.get("type")) for each in properties.values())
        todo += [below for _, below in subschemas(here) if is_object(below)]
    return Room(1, optional, unions)


def tools(catalog: Catalog, filter: CatalogFilter | None = None, *, strict: Strict = False) -> list[dict[str, Any]]:
    """Return the tools of a catalog as a request has them, sorted by name.

    Args:
        catalog: The tools.
        filter: Which of them; None: all.
        strict: Which are strict. With ``"auto"`` names that come first get the room that there is.

    Raises:
        ExportError: Tools cannot be said, or take more than ``LIMIT``, with every reason.
        InvalidToolError: ``strict`` is none of its words.
    """
    check_word("strict", strict, *STRICT_WORDS)
    listed = catalog.list(filter)
    check_names(_NAMING, listed)
    out: list[dict[str, Any]] = []
    refusals: list[Refusal] = []
    taken = Room()
    for tool in listed:
        wire: dict[str, Any] = {"name": to_wire(tool.name), "description": tool.description}
        try:
            exported = _strictly(tool.args_schema, tool.name, taken, strict)
            if exported is None:
                exported = schema(tool.args_schema, strict=False, tool=tool.name)
            else:
                taken += room(exported.schema)
                wire["strict"] = True
            wire["input_schema"] = exported.schema
        except ExportError as exc:
            refusals += exc.refusals
        out.append(wire)
    refusals += [Refusal("", "", reason) for reason in taken.over(LIMIT)]
    if refusals:
        raise ExportError(_RULES.dialect if strict is True else "Anthropic", refusals)
    return out


def _strictly(args_schema: dict[str, Any], tool: str, taken: Room, strict: Strict) -> Exported | None:
    """Return the schema of a tool that is to be strict, else None."""
    if strict is False:
        return None
    try:
        exported = schema(args_schema, tool=tool)
    except ExportError:
        if strict is True:
            raise
        return None
    is_full = strict == "auto" and (taken + room(exported.schema)).over(LIMIT)
    return None if is_full else exported


def calls(message: Any, catalog: Catalog | None = None) -> list[ToolCall]:
    """Return the calls that a model makes, in its order; each has an answer coming, also one that makes no sense.

    Args:
        message: A message or its content, or a list of the events of a stream, whose deltas are joined; the SDK's
            objects or plain dicts.
        catalog: Where names that are cut on the wire are looked for.
    """
    events = _read.items(message)
    if any(_read.get(event, "type") in {"content_block_start", "content_block_delta"} for event in events):
        blocks = _join(events)
    else:
        blocks = iter(events or _read.items(_read.get(message, "content")))
    return [
        ToolCall(
            _read.text(_read.get(block, "id")),
            from_wire(_read.text(_read.get(block, "name")), catalog),
            _read.arguments(_read.get(block, "input")),
        )
        for block in blocks
        if _read.get(block, "type") == "tool_use"
    ]


def _join(events: list[Any]) -> Iterator[dict[str, Any]]:
    """Join the deltas of a message: each input as the text that came of it."""
    blocks: dict[Any, dict[str, Any]] = {}
    for event in events:
        index, block, delta = (_read.get(event, key) for key in ("index", "content_block", "delta"))
        kind = _read.get(event, "type")
        if kind == "content_block_start":
            blocks[index] = {key: _read.get(block, key) for key in ("type", "id", "name", "input")}
        elif kind == "content_block_delta" and _read.get(delta, "type") == "input_json_delta" and index in blocks:
            own = blocks[index]["input"]
            so_far = own if isinstance(own, str) else ""  # the block begins with an empty object, as a place-holder
            blocks[index]["input"] = so_far + _read.text(_read.get(delta, "partial_json"))
    yield from blocks.values()


def answers(results: Iterable[ToolResult], calls: Iterable[ToolCall] = ()) -> list[dict[str, Any]]:
    """Return the one message that goes back, with a block for each result; nothing if there is none.

    Args:
        results: What the runtime answered.
        calls: The calls of the message; one that has no result is then answered, too, as canceled.
    """
    blocks: list[dict[str, Any]] = []
    for result in complete(results, calls):
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": result.call_id, "content": result.content}
        if result.error is not None:
            block["is_error"] = True
        blocks.append(block)
    return [{"role": "user", "content": blocks}] if blocks else []
