"""The slow path: everything that is wrong with a document, and the repair of ``5.0`` for an int.

It walks the plan beside the parsed document. Whether a leaf is right is asked of the same msgspec types that the fast
path uses, so the two cannot differ.
"""

from typing import Any, Final

import attrs
import msgspec

from .._json import MAX_PROBLEMS, BadNumber, Object, has_surrogate, is_array, is_object, kind_of, point, show
from ..errors import Problem, ProblemCode
from ._leaf import expected_one_of
from ._plan import Anything, Array, Custom, Field, Leaf, Node, Record, Ref, Row, Table, Tagged, Union
from ._union import wire_leaf

_LISTED: Final = 50
_NUMERIC: Final = frozenset({"integer", "number"})
_CONSTRAINTS: Final = {
    "ge": "at least {}",
    "gt": "more than {}",
    "le": "at most {}",
    "lt": "less than {}",
    "multiple_of": "a multiple of {}",
    "pattern": "text that matches {!r}",
    "min_length": "a length of at least {}",
    "max_length": "a length of at most {}",
}
_MISSING: Final = object()


class _EnoughError(Exception):
    """Ends a walk that has found too many problems."""


@attrs.define(eq=False)
class Explainer:
    """Collects the problems of one document.

    Attributes:
        problems: What was found, in the order of the document; when there are too many the walk stops.
        repaired: Whether an integral float was made an int.
    """

    problems: list[Problem] = attrs.field(factory=list[Problem])
    repaired: bool = False

    def explain(self, root: Node, document: Any) -> Any:
        """Note what is wrong with a whole document; return it as plain builtins, repaired.

        The walk stops after a hundred problems: four megabytes could hold a million, and nobody would read them.
        """
        try:
            return self.check(root, document, "")
        except _EnoughError:
            self.problems.append(Problem("", "value", f"and more; only the first {MAX_PROBLEMS} problems are told"))
            return document

    def add(self, path: str, code: ProblemCode, message: str) -> None:
        """Note one problem.

        Raises:
            _EnoughError: There are too many; caught by ``explain``.
        """
        if len(self.problems) >= MAX_PROBLEMS:
            raise _EnoughError
        self.problems.append(Problem(path, code, message))

    def check(self, node: Node, value: Any, path: str) -> Any:
        """Note what is wrong with ``value`` as a ``node``; return it as plain builtins, repaired."""
        if isinstance(value, str) and has_surrogate(value):
            self.add(path, "value", "the text holds a lone surrogate, which is no text")
            return value
        if isinstance(node, Custom):
            return self.check(node.inner, value, path)
        if isinstance(node, Leaf):
            return self._leaf(node, value, path)
        if isinstance(node, Anything):
            return self.scan(value, path)
        if isinstance(node, Union):
            return self._union(node, value, path)
        if isinstance(node, (Array, Row)):
            return self._array(node, value, path)
        if not is_object(value):
            self._wrong_kind(node, value, path)
            return value
        self._duplicates(value, path)
        if isinstance(node, Table):
            return self._table(node, value, path)
        if isinstance(node, Tagged):
            return self._tagged(node, value, path)
        assert isinstance(node, Ref)  # noqa: S101 - the last kind of node
        return self._record(node.record, value, path)

    def scan(self, value: Any, path: str) -> Any:
        """Note what is wrong with a document of any type; return it as plain builtins."""
        if isinstance(value, BadNumber):
            self.add(path, "value", "the number is out of range")
        elif isinstance(value, str) and has_surrogate(value):
            self.add(path, "value", "the text holds a lone surrogate, which is no text")
        elif is_object(value):
            self._duplicates(value, path)
            for key in value:
                self._key_text(key, path)
            return {key: self.scan(item, point(path, key)) for key, item in value.items()}
        elif is_array(value):
            return [self.scan(item, point(path, index)) for index, item in enumerate(value)]
        return value

    def _key_text(self, key: str, path: str) -> None:
        if has_surrogate(key):
            self.add(path, "value", "a key holds a lone surrogate, which is no text")

    def _duplicates(self, value: Any, path: str) -> None:
        if isinstance(value, Object):
            for key in value.duplicates:
                self.add(point(path, key), "duplicate", f"the key {show(key)} is given more than once")

    def _wrong_kind(self, node: Node, value: Any, path: str) -> None:
        if isinstance(value, BadNumber) and node.kinds & {"integer", "number"}:
            self.add(path, "value", "the number is out of range")
            return
        message = f"expected {expectation(node)}, got {kind_of(value)}"
        if isinstance(value, str) and _is_stringified(value, node.kinds):
            message += "; send the JSON value itself, not a string"
        self.add(path, "type", message)

    def _leaf(self, node: Leaf, value: Any, path: str) -> Any:
        if isinstance(value, float) and value.is_integer() and _wants_whole(node):
            self.repaired = True
            value = int(value)
        kind = kind_of(value)
        if isinstance(value, BadNumber) or kind not in node.accepts:
            self._wrong_kind(node, value, path)
            return value
        try:
            msgspec.convert(value, wire_leaf(node))
        except (msgspec.ValidationError, ValueError, OverflowError):
            self.add(path, "value", _leaf_message(node))
        return value

    def _union(self, node: Union, value: Any, path: str) -> Any:
        kind = kind_of(value)
        for member in node.members:
            if kind in member.kinds and not (kind == "integer" and _is_float(member) and _has_int(node)):
                return self.check(member, value, path)
        if isinstance(value, float) and value.is_integer():
            for member in node.members:
                if "integer" in member.kinds:
                    return self.check(member, value, path)
        self._wrong_kind(node, value, path)
        return value

    def _array(self, node: "Array | Row", value: Any, path: str) -> Any:
        if not is_array(value):
            self._wrong_kind(node, value, path)
            return value
        if isinstance(node, Array):
            self._length(node, value, path)
            if isinstance(node.item, Leaf) and (numbers := self._numbers(node.item, value)) is not None:
                return numbers
            return [self.check(node.item, item, point(path, index)) for index, item in enumerate(value)]
        if len(value) != len(node.items):
            self.add(path, "value", f"expected an array of {len(node.items)} items, got {len(value)}")
            return value
        pairs = zip(node.items, value, strict=True)
        return [self.check(item, part, point(path, index)) for index, (item, part) in enumerate(pairs)]

    def _numbers(self, item: Leaf, value: list[Any]) -> list[Any] | None:
        """Return a list of repaired numbers, checked all at once, which is five times faster; None if one is wrong."""
        if not item.accepts <= _NUMERIC:
            return None
        whole = _wants_whole(item)
        repaired = [int(part) if whole and isinstance(part, float) and part.is_integer() else part for part in value]
        try:
            msgspec.convert(repaired, list[wire_leaf(item)])  # type: ignore[misc]  # the type is made at run time
        except (msgspec.ValidationError, ValueError, OverflowError):
            return None
        self.repaired = self.repaired or whole
        return repaired

    def _length(self, node: Node, value: Any, path: str) -> None:
        least, most = node.bounds.get("min_length", 0), node.bounds.get("max_length", len(value))
        if not least <= len(value) <= most:
            self.add(path, "value", f"expected {_bounds_text(node.bounds)}, got {len(value)}")

    def _table(self, node: Table, value: Any, path: str) -> Any:
        self._length(node, value, path)
        out: dict[str, Any] = {}
        for key, item in value.items():
            place = point(path, key)
            before = len(self.problems)
            self.check(node.key, key, place)
            if len(self.problems) > before:
                self.problems[before] = Problem(place, "unknown", f"unknown key: {_leaf_message(node.key)}")
            out[key] = self.check(node.value, item, place)
        return out

    def _tagged(self, node: Tagged, value: Any, path: str) -> Any:
        tags = {ref.record.tag_value: ref for ref in node.members}
        given = value.get(node.tag, _MISSING)
        place = point(path, node.tag)
        choices = expected_one_of(tuple(tags))
        if given is _MISSING:
            self.add(place, "missing", f"the key {show(node.tag)} is required; {choices}")
            return value
        if isinstance(given, float) and given.is_integer():
            self.repaired = True
            given = int(given)
        if isinstance(given, (str, int)) and not isinstance(given, bool) and given in tags:
            record = tags[given].record
            rest = {key: item for key, item in value.items() if key != node.tag}
            return {node.tag: given, **self._record(record, rest, path)}
        kinds = {kind_of(tag) for tag in tags}
        code: ProblemCode = "value" if kind_of(given) in kinds else "type"
        self.add(place, code, f"{choices}" if code == "value" else f"{choices}, got {kind_of(given)}")
        return value

    def _record(self, record: Record, value: Any, path: str) -> Any:
        out: dict[str, Any] = {}
        fields = {field.wire: field for field in record.fields}
        for field in record.fields:
            if field.is_required and field.wire not in value:
                self.add(point(path, field.wire), "missing", _missing_message(field))
        for key, item in value.items():
            place = point(path, key)
            if key in fields:
                out[key] = self.check(fields[key].node, item, place)
            else:
                self.add(place, "unknown", _unknown_message(record))
                self.scan(item, place)
        return out


def _missing_message(field: Field) -> str:
    return f"the key {show(field.wire)} is required; expected {expectation(field.node)}"


def _unknown_message(record: Record) -> str:
    known = [field.wire for field in record.fields]
    if record.tag is not None:
        known.insert(0, record.tag.wire)
    if not known:
        return "unknown key; no keys are known here"
    more = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
    return f"unknown key; known keys: {', '.join(known[:_LISTED])}{more}"


def expectation(node: Node) -> str:
    """Return what ``node`` takes, in a few words."""
    if isinstance(node, Leaf):
        return node.label
    if isinstance(node, Union):
        return " or ".join(dict.fromkeys(expectation(member) for member in node.members))
    if isinstance(node, Custom):
        return expectation(node.inner)
    return "any value" if isinstance(node, Anything) else "array" if isinstance(node, (Array, Row)) else "object"


def _leaf_message(node: Leaf) -> str:
    if node.choices is not None:
        return expected_one_of(node.choices)
    if node.bounds:
        return f"expected {node.label}: {_bounds_text(node.bounds)}"
    return f"expected {node.label}"


def _bounds_text(bounds: dict[str, Any]) -> str:
    return " and ".join(_CONSTRAINTS[key].format(value) for key, value in bounds.items())


def _wants_whole(node: Leaf) -> bool:
    return "integer" in node.accepts and "number" not in node.accepts


def _is_float(node: Node) -> bool:
    return isinstance(node, Leaf) and node.wire is float


def _has_int(node: Union) -> bool:
    return any(isinstance(member, Leaf) and member.wire is int for member in node.members)


def _is_stringified(text: str, kinds: frozenset[str]) -> bool:
    """Return whether ``text`` is the JSON of an array or object that is wanted here."""
    stripped = text.strip()
    opening = {"[": "array", "{": "object"}.get(stripped[:1])
    if opening not in kinds or len(stripped) > 1_000_000:  # noqa: PLR2004 - a hint is not worth parsing more
        return False
    try:
        return kind_of(msgspec.json.decode(stripped)) == opening
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False
