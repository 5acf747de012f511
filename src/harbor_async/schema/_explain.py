"""The slow path: everything that is wrong with a document, and the repair of ``5.0`` for an int.

It walks the plan beside the parsed document. Whether a leaf is right is asked of the same msgspec types that the fast
path uses, so the two cannot differ.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Final

import msgspec

from .._json import OUT_OF_RANGE, BadNumber, Document, Doubled, Path, has_surrogate, is_array, is_object, kind_of, show
from ._leaf import expected_one_of
from ._plan import Anything, Array, Custom, Field, Leaf, Node, Record, Ref, Row, Table, Tagged, Union, static_depth
from ._report import Report
from ._shadow import Shadows
from ._union import wire_leaf

_LISTED: Final = 50
_NUMERIC: Final = frozenset({"integer", "number"})
_FEW: Final = 16
_CHUNK: Final = 256
_SHALLOW: Final = 4
_PLAIN: Final = frozenset({str, int, bool, None})
_INERT: Final = frozenset({int, float, bool, type(None)})
_CONSTRAINTS: Final = {
    "ge": "at least {}",
    "gt": "more than {}",
    "le": "at most {}",
    "lt": "less than {}",
    "multiple_of": "a multiple of {}",
    "pattern": "text that matches {!r}",
}
_MISSING: Final = object()


class Explainer:
    """Finds the problems of one document.

    Attributes:
        report: What was found.
        repaired: Whether an integral float was made an int.
    """

    def __init__(self, shadows: Shadows, document: Document) -> None:
        """Begin without problems.

        Args:
            shadows: The msgspec types of the plan.
            document: What is looked into.
        """
        self.report = Report()
        self.repaired = False
        self._wire = shadows.wire
        self._document = document
        self._by_wire: dict[int, dict[str, Field]] = {}
        self._lists: dict[int, Any] = {}
        self._members: dict[tuple[int, str], Node | None] = {}

    def explain(self, root: Node) -> Any:
        """Note what is wrong with the whole document; return it as plain builtins, repaired."""
        return self.report.collect(self._check, root, self._document.value, None)

    def _check(self, node: Node, value: Any, path: Path) -> Any:
        """Note what is wrong with ``value`` as a ``node``; return it as plain builtins, repaired."""
        return self._CHECKS[type(node)](self, node, value, path)

    def _custom(self, node: Custom, value: Any, path: Path) -> Any:
        return self._check(node.inner, value, path)

    def _anything(self, node: Anything, value: Any, path: Path) -> Any:  # noqa: ARG002 - as its siblings
        self._scan(value, path)
        return value

    def _is_object(self, node: Node, value: Any, path: Path) -> bool:
        if not is_object(value):
            self._wrong_kind(node, value, path)
            return False
        if isinstance(value, Doubled):
            self._duplicates(value, path)
        return True

    def _scan(self, value: Any, path: Path) -> None:
        """Note what is wrong with a document of any type."""
        if self._document.is_clean:
            return
        if isinstance(value, BadNumber):
            self.report.add(path, "value", OUT_OF_RANGE)
        elif isinstance(value, str):
            self._text(value, path)
        elif is_object(value):
            if isinstance(value, Doubled):
                self._duplicates(value, path)
            for key, item in value.items():
                self._key(key, path)
                if type(item) not in _INERT:
                    self._scan(item, (path, key))
        elif is_array(value):
            for index, item in enumerate(value):
                if type(item) not in _INERT:
                    self._scan(item, (path, index))

    def _text(self, value: str, path: Path) -> bool:
        """Return whether ``value`` is text, and note it if it is none."""
        if not has_surrogate(value):
            return True
        self.report.add(path, "value", "the text holds a lone surrogate, which is no text")
        return False

    def _key(self, key: str, path: Path) -> None:
        if has_surrogate(key):
            self.report.add(path, "value", "a key holds a lone surrogate, which is no text")

    def _duplicates(self, value: Doubled, path: Path) -> None:
        for key in value.duplicates:
            self.report.add((path, key), "duplicate", f"the key {show(key)} is given more than once")

    def _wrong_kind(self, node: Node, value: Any, path: Path) -> None:
        if isinstance(value, BadNumber) and node.kinds & _NUMERIC:
            self.report.add(path, "value", OUT_OF_RANGE)
            return
        message = f"expected {expectation(node)}, got {kind_of(value)}"
        if isinstance(value, str):
            if not self._text(value, path):
                return
            if _is_stringified(value, node.kinds):
                message += "; send the JSON value itself, not a string"
        self.report.add(path, "type", message)

    def _leaf(self, node: Leaf, value: Any, path: Path) -> Any:
        if isinstance(value, float) and value.is_integer() and _wants_whole(node):
            self.repaired = True
            value = int(value)
        if isinstance(value, BadNumber) or kind_of(value) not in node.accepts:
            self._wrong_kind(node, value, path)
        elif (not isinstance(value, str) or self._text(value, path)) and not _is_wire(node, value):
            self.report.add(path, "value", _leaf_message(node))
        return value

    def _union(self, node: Union, value: Any, path: Path) -> Any:
        kind = kind_of(value)
        if kind == "number" and isinstance(value, float) and value.is_integer() and kind not in node.kinds:
            kind = "integer"
        key = (id(node), kind)
        if key not in self._members:
            self._members[key] = _member(node, kind)
        member = self._members[key]
        if member is not None:
            return self._check(member, value, path)
        self._wrong_kind(node, value, path)
        return value

    def _row(self, node: Row, value: Any, path: Path) -> Any:
        if not is_array(value):
            self._wrong_kind(node, value, path)
            return value
        if len(value) != len(node.items):
            self.report.add(path, "value", f"expected an array of {len(node.items)} items, got {len(value)}")
            return value
        pairs = zip(node.items, value, strict=True)
        return [self._check(item, part, (path, index)) for index, (item, part) in enumerate(pairs)]

    def _array(self, node: Array, value: Any, path: Path) -> Any:
        if not is_array(value):
            self._wrong_kind(node, value, path)
            return value
        self._length(node, value, path)
        return self._items(node.item, value, path)

    def _items(self, node: Node, items: list[Any], path: Path) -> list[Any]:
        """Check like items. Many are tried in bulk first: most are right, and one look costs 20 times as much."""
        bulk = self._bulk(node) if self._document.is_clean and len(items) > _FEW else None
        if bulk is None:
            return [self._check(node, item, (path, index)) for index, item in enumerate(items)]
        out: list[Any] = []
        is_whole = isinstance(node, Leaf) and _wants_whole(node)
        for start in range(0, len(items), _CHUNK):
            chunk = items[start : start + _CHUNK]
            if is_whole and float in set(map(type, chunk)):
                chunk = [int(part) if isinstance(part, float) and part.is_integer() else part for part in chunk]
                self.repaired = True
            if not _is_convertible(chunk, bulk):
                chunk = [self._check(node, item, (path, start + index)) for index, item in enumerate(chunk)]
            out += chunk
        return out

    def _bulk(self, node: Node) -> Any:
        """Return the msgspec type of a list of ``node``; None if that may be recursive: each level would try again."""
        if id(node) not in self._lists:
            depth = static_depth(node)
            is_shallow = depth is not None and depth <= _SHALLOW
            self._lists[id(node)] = list[self._wire(node)] if is_shallow else None  # type: ignore[misc]  # made at run time
        return self._lists[id(node)]

    def _length(self, node: Node, value: Any, path: Path) -> None:
        least, most = node.bounds.get("min_length", 0), node.bounds.get("max_length", len(value))
        if not least <= len(value) <= most:
            self.report.add(path, "value", f"expected {_length_text(node)}, got {len(value)}")

    def _table(self, node: Table, value: Any, path: Path) -> Any:
        if not self._is_object(node, value, path):
            return value
        self._length(node, value, path)
        out: dict[str, Any] = {}
        for key, item in value.items():
            self._key(key, path)
            if not _is_wire(node.key, key):
                self.report.add((path, key), "unknown", f"unknown key: {_leaf_message(node.key)}")
            out[key] = self._check(node.value, item, (path, key))
        return out

    def _tagged(self, node: Tagged, value: Any, path: Path) -> Any:
        if not self._is_object(node, value, path):
            return value
        tags = {ref.record.tag_value: ref.record for ref in node.members}
        given = value.get(node.tag, _MISSING)
        if isinstance(given, float) and given.is_integer():
            self.repaired = True
            given = int(given)
        if isinstance(given, (str, int)) and not isinstance(given, bool) and given in tags:
            rest = {key: item for key, item in value.items() if key != node.tag}
            return {node.tag: given, **self._fields(tags[given], rest, path)}
        place = (path, node.tag)
        choices = expected_one_of(tuple(tags))
        if given is _MISSING:
            self.report.add(place, "missing", f"the key {show(node.tag)} is required; {choices}")
        elif kind_of(given) in set(map(kind_of, tags)):
            self.report.add(place, "value", choices)
        else:
            self.report.add(place, "type", f"{choices}, got {kind_of(given)}")
        return value

    def _ref(self, node: Ref, value: Any, path: Path) -> Any:
        return self._fields(node.record, value, path) if self._is_object(node, value, path) else value

    def _fields(self, record: Record, value: dict[str, Any], path: Path) -> dict[str, Any]:
        fields = self._by_wire.get(id(record))
        if fields is None:
            fields = self._by_wire[id(record)] = {field.wire: field for field in record.fields}
        out: dict[str, Any] = {}
        for wire, field in fields.items():
            if field.is_required and wire not in value:
                self.report.add((path, wire), "missing", _missing_message(field))
        for key, item in value.items():
            if key in fields:
                out[key] = self._check(fields[key].node, item, (path, key))
            else:
                self.report.add((path, key), "unknown", _unknown_message(record))
                self._scan(item, (path, key))
        return out

    _CHECKS: ClassVar[dict[type[Node], Callable[[Any, Any, Any, Path], Any]]] = {
        Leaf: _leaf,
        Custom: _custom,
        Anything: _anything,
        Union: _union,
        Array: _array,
        Row: _row,
        Table: _table,
        Tagged: _tagged,
        Ref: _ref,
    }


def _member(node: Union, kind: str) -> Node | None:
    """Return the member that takes a JSON value of ``kind``; an int rather than a float for an integer."""
    takers = [member for member in node.members if kind in member.kinds]
    exact = (member for member in takers if kind != "integer" or not _is_float(member))
    return next(exact, takers[0] if takers else None)


def _is_wire(node: Leaf, value: Any) -> bool:
    """Return whether ``value``, of a kind that ``node`` accepts, fits it."""
    # A Literal takes long to hash, which msgspec does for each look at it, too.
    wire = node.wire
    return ((wire is None or type(wire) is type) and wire in _PLAIN and not node.bounds) or _is_convertible(
        value, wire_leaf(node)
    )


def _is_convertible(value: Any, tp: Any) -> bool:
    try:
        msgspec.convert(value, tp)
    except (msgspec.ValidationError, ValueError, OverflowError):
        return False
    return True


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
        return f"expected {node.label}: {_bounds_text(node)}"
    return f"expected {node.label}"


def _bounds_text(node: Leaf) -> str:
    parts = [_CONSTRAINTS[key].format(value) for key, value in node.bounds.items() if key in _CONSTRAINTS]
    if length := _length_text(node):
        parts.append(length)
    return " and ".join(parts)


def _length_text(node: Node) -> str:
    """Return the bounds of a length: ``2 to 3 characters``, ``at least 1 item``; nothing if there are none."""
    least, most = node.bounds.get("min_length"), node.bounds.get("max_length")
    if least is None and most is None:
        return ""
    unit = "item" if isinstance(node, Array) else "key" if isinstance(node, Table) else "character"
    if least is None or most is None:
        size = f"at most {most}" if least is None else f"at least {least}"
    else:
        size = f"{least}" if least == most else f"{least} to {most}"
    return f"{size} {unit}" if (least if most is None else most) == 1 else f"{size} {unit}s"


def _wants_whole(node: Leaf) -> bool:
    return "integer" in node.accepts and "number" not in node.accepts


def _is_float(node: Node) -> bool:
    return isinstance(node, Leaf) and node.wire is float


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
