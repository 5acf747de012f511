"""What stands beside a type in ``Annotated``: bounds, patterns, descriptions, names."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from .._json import class_of
from ..errors import SchemaBuildError, UnsupportedTypeError
from ._name import Name
from ._pattern import PatternError, to_python
from ._plan import Array, Custom, Leaf, Node, Table, Union

_NUMBER: Final = ("ge", "gt", "le", "lt", "multiple_of")
_LENGTH: Final = ("min_length", "max_length")
_KEYWORDS: Final = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
    "pattern": "pattern",
}
_LENGTH_WORDS: Final = {"string": "Length", "array": "Items", "object": "Properties"}
_INT64: Final = 2**63


class Marks(msgspec.Struct, frozen=True):
    """The metadata of one ``Annotated``, sorted."""

    bounds: dict[str, Any]
    notes: dict[str, Any]
    name: str | None


def read_marks(metadata: Iterable[Any], where: str) -> Marks:
    """Sort the metadata of ``Annotated``; what nobody here knows is ignored, as PEP 593 asks.

    Raises:
        UnsupportedTypeError: A constraint that JSON Schema cannot say.
    """
    bounds: dict[str, Any] = {}
    notes: dict[str, Any] = {}
    name: str | None = None
    for mark in _flat(metadata):
        if isinstance(mark, str):
            notes["description"] = mark
        elif isinstance(mark, Name):
            name = mark.wire
        elif isinstance(mark, msgspec.Meta):
            _read_meta(mark, bounds, notes, where)
        elif type(mark).__name__ == "Doc" and isinstance(getattr(mark, "documentation", None), str):
            notes["description"] = mark.documentation
        elif type(mark).__module__ == "annotated_types":
            _read_annotated_type(mark, bounds, where)
    return Marks(bounds, notes, name)


def _flat(metadata: Iterable[Any]) -> Iterator[Any]:
    for mark in metadata:
        if getattr(class_of(mark), "__is_annotated_types_grouped_metadata__", False):
            yield from _flat(mark)
        else:
            yield mark


def _read_meta(meta: msgspec.Meta, bounds: dict[str, Any], notes: dict[str, Any], where: str) -> None:
    if meta.tz is False:
        raise UnsupportedTypeError(where, "Meta(tz=False)", "a date-time in JSON Schema always has an offset; drop it")
    for key in (*_NUMBER, *_LENGTH, "pattern"):
        if (value := getattr(meta, key)) is not None:
            bounds[key] = value
    for key in ("title", "description"):
        if (text := getattr(meta, key)) is not None:
            notes[key] = text
    if meta.examples is not None:
        notes["examples"] = [*meta.examples]
    notes.update(meta.extra_json_schema or {})


def _read_annotated_type(mark: Any, bounds: dict[str, Any], where: str) -> None:
    found = [key for key in (*_NUMBER, *_LENGTH) if hasattr(mark, key)]
    if not found:
        advice = "JSON Schema cannot say it; check it in the class's validator or in the function"
        raise UnsupportedTypeError(where, f"the constraint {type(mark).__name__}", advice)
    for key in found:
        if (value := getattr(mark, key)) is not None:
            bounds[key] = value


def apply_marks(node: Node, marks: Marks, where: str) -> Node:
    """Return ``node`` with the bounds and notes of ``marks``; a union hands bounds to the members that can take them.

    Raises:
        UnsupportedTypeError: No part of ``node`` can take a bound, or the schema could not say it exactly.
    """
    for key, value in marks.bounds.items():
        node = _bound(node, key, value, where)
    return replace(node, notes={**node.notes, **marks.notes}) if marks.notes else node


def _bound(node: Node, key: str, value: Any, where: str) -> Node:
    if isinstance(node, Custom):
        return replace(node, inner=_bound(node.inner, key, value, where))
    if isinstance(node, Union):
        takers = [_takes(member, key) for member in node.members]
        if any(takers):
            members = (
                _bound(member, key, value, where) if taker else member
                for member, taker in zip(node.members, takers, strict=True)
            )
            return replace(node, members=tuple(members))
    if not _takes(node, key):
        fits = "numbers" if key in _NUMBER else "text" if key == "pattern" else "text, arrays and dicts"
        advice = f"{key} fits {fits}; drop it or change the type"
        raise UnsupportedTypeError(where, f"{key}={value!r} on {_label(node)}", advice)
    _check_bound(node, key, value, where)
    return replace(node, bounds={**node.bounds, key: value})


def _label(node: Node) -> str:
    return node.label if isinstance(node, Leaf) else type(node).__name__.lower()


def _takes(node: Node, key: str) -> bool:
    if isinstance(node, Custom):
        return _takes(node.inner, key)
    if isinstance(node, (Array, Table)):
        return key in _LENGTH
    if not isinstance(node, Leaf) or node.choices is not None or node.build is not None:
        return False
    return node.wire in {int, float} if key in _NUMBER else node.wire is str


def _check_bound(node: Node, key: str, value: Any, where: str) -> None:
    if key == "pattern":
        try:
            to_python(value)
        except PatternError as exc:
            msg = f"{where}: the pattern {value!r} has {exc}"
            raise SchemaBuildError(msg) from exc
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value - value != 0:
        msg = f"{where}: {key}: expected a finite number; got {value!r}"
        raise SchemaBuildError(msg)
    if key in _LENGTH:
        if not isinstance(value, int) or value < 0:
            msg = f"{where}: {key}: expected an int of at least 0; got {value!r}"
            raise SchemaBuildError(msg)
        if key == "min_length" and value > 1 and isinstance(node, Array) and node.make in {set, frozenset}:
            advice = "items that are equal become one, so an array's length says little of a set's; use a list"
            raise UnsupportedTypeError(where, f"min_length={value} on a set", advice)
        return
    whole = isinstance(node, Leaf) and node.wire is int
    if whole and not isinstance(value, int):
        msg = f"{where}: {key}: expected an int for an integer type; got {value!r}"
        raise SchemaBuildError(msg)
    if key == "multiple_of" and (value <= 0 or value != int(value)):
        msg = f"{where}: multiple_of: expected a positive whole number, for fractions are inexact; got {value!r}"
        raise SchemaBuildError(msg)
    if not -_INT64 <= value < _INT64 and whole:
        msg = f"{where}: {key}: expected a bound that fits 64 bits; got {value!r}"
        raise SchemaBuildError(msg)


def meta_of(bounds: dict[str, Any]) -> msgspec.Meta:
    """Return the bounds as msgspec enforces them, the pattern in Python's words."""
    if "pattern" in bounds:
        bounds = {**bounds, "pattern": to_python(bounds["pattern"])}
    return msgspec.Meta(**bounds)


def keywords_of(bounds: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return the bounds as JSON Schema keywords for a value of ``kind``."""
    out: dict[str, Any] = {}
    for key, value in bounds.items():
        if key in _LENGTH:
            out[key[:3] + _LENGTH_WORDS[kind]] = value
        else:
            out[_KEYWORDS[key]] = value
    return out
