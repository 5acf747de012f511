"""Unions: which can be told apart, and how."""

import enum
from collections.abc import Callable
from typing import Annotated, Any, Final

import msgspec

from ..errors import UnsupportedTypeError
from ._constraint import meta_of
from ._plan import NOTHING, Anything, Custom, Leaf, Node, Ref, Tagged, Union

_NULL: Final = frozenset({"null"})
_ADVICE: Final = "JSON cannot tell them apart; use one type, or classes with a common Literal field of differing values"


def join(members: list[Node], tagged: Callable[[list[Ref], str], Tagged], where: str) -> Node:
    """Return the node of a union.

    Args:
        members: Its parts.
        tagged: Joins records by a common tag.
        where: The place, for messages.

    Raises:
        UnsupportedTypeError: Two members cannot be told apart by their JSON, or by a common tag.
    """
    flat = _flatten(members)
    if any(isinstance(member, Anything) for member in flat):
        return Anything()
    refs = [member for member in flat if isinstance(member, Ref)]
    if len(refs) > 1:
        union = tagged(refs, where)
        flat = [union if member is refs[0] else member for member in flat if member not in refs[1:]]
    for index, left in enumerate(flat):
        for right in flat[index + 1 :]:
            if not _is_clear(left, right):
                raise UnsupportedTypeError(where, f"{label(left)} | {label(right)}", _ADVICE)
    return flat[0] if len(flat) == 1 else Union(members=tuple(flat))


def _flatten(members: list[Node]) -> list[Node]:
    flat: list[Node] = []
    for member in members:
        flat.extend(_flatten(list(member.members)) if isinstance(member, Union) else [member])
    # One null is enough, and a Literal may have brought it.
    nulls = [part for part in flat if isinstance(part, Leaf) and "null" in part.accepts]
    spare = [part for part in nulls if part.accepts == _NULL and part is not nulls[0]]
    if len(nulls) > 1 and not spare:
        spare = nulls[:1]
    return [part for part in flat if part not in spare]


def label(node: Node) -> str:
    """Return a word for ``node`` in messages."""
    if isinstance(node, Ref):
        return node.record.title
    if isinstance(node, Custom):
        return str(getattr(node.cls, "__name__", node.cls))
    return node.label if isinstance(node, Leaf) else next(iter(sorted(node.kinds)))


def _is_clear(left: Node, right: Node) -> bool:
    plain = {id(node.wire): node for node in (left, right) if isinstance(node, Leaf) and node.choices is None}
    numbers = plain.get(id(int)), plain.get(id(float))
    if None not in numbers:
        # int | float is one range of numbers as long as both have the same bounds.
        return left.bounds == right.bounds
    return left.kinds.isdisjoint(right.kinds)


def shown_default(node: Node, default: Any) -> Any:
    """Return ``default`` as the schema can show it: a scalar that fits ``node``; else NOTHING."""
    value = default.value if isinstance(default, enum.Enum) else default
    if isinstance(value, str):
        value = str.__str__(value)
    if value is not None and type(value) not in {str, int, float, bool}:
        return NOTHING
    return value if _fits(node, value) else NOTHING


def _fits(node: Node, value: Any) -> bool:
    if isinstance(node, Union):
        return any(_fits(member, value) for member in node.members)
    if isinstance(value, float) and value - value != 0:
        return False
    if not isinstance(node, Leaf):
        return isinstance(node, Anything)
    try:
        msgspec.convert(value, wire_leaf(node))
    except msgspec.ValidationError:
        return False
    return True


def wire_leaf(leaf: Leaf) -> Any:
    """Return the msgspec type of a leaf, its bounds included."""
    return Annotated[leaf.wire, meta_of(leaf.bounds)] if leaf.bounds else leaf.wire
