"""The second look at a document that fits its schema, and that a user's class refused all the same.

Every object is built again, one at a time, so that what a validator, converter, ``__init__`` or hook raised gets the
pointer of the object that it was about. Texts of exceptions are the users' own words, but often quote the value
(``'n' must be >= 5: 1``); the values are cut out of them.
"""

import re
from collections.abc import Callable
from typing import Any, Final

import cattrs
import msgspec

from .._json import is_array, is_object, point
from ..errors import Problem, clip
from ._plan import NOTHING, Anything, Array, Custom, Field, Leaf, Node, Record, Ref, Row, Table, Tagged, Union
from ._union import wire_leaf

_MESSAGE_LIMIT: Final = 500
_LEAVES: Final = 1000
_SHORT: Final = 4
FAILED: Final = object()


class Constructor:
    """Builds the Python value of a document piece by piece.

    Attributes:
        problems: What was raised, with pointers, in the order of the document.
    """

    def __init__(self) -> None:
        """Begin without problems."""
        self.problems: list[Problem] = []

    def make(self, node: Node, value: Any, path: str) -> Any:
        """Return the Python value of ``value``, plain builtins that fit ``node``; FAILED if a part of it failed."""
        if isinstance(node, Leaf):
            return self._leaf(node, value, path)
        if isinstance(node, Custom):
            inner = self.make(node.inner, value, path)
            return FAILED if inner is FAILED else self._try(node.structure, inner, path, value)
        if isinstance(node, Array):
            items = [self.make(node.item, item, point(path, index)) for index, item in enumerate(value)]
            return FAILED if FAILED in items else self._try(node.make, items, path, value)
        if isinstance(node, Row):
            pairs = enumerate(zip(node.items, value, strict=True))
            parts = tuple(self.make(item, part, point(path, index)) for index, (item, part) in pairs)
            return FAILED if any(part is FAILED for part in parts) else parts
        if isinstance(node, Table):
            table = {
                self.make(node.key, key, path): self.make(node.value, item, point(path, key))
                for key, item in value.items()
            }
            return FAILED if any(part is FAILED for part in table.values()) else table
        if isinstance(node, Ref):
            return self._record(node.record, value, path)
        if isinstance(node, Tagged):
            ref = next(ref for ref in node.members if ref.record.tag_value == value[node.tag])
            return self._record(ref.record, value, path)
        return self._union(node, value, path) if isinstance(node, Union) else value

    def _leaf(self, node: Leaf, value: Any, path: str) -> Any:
        decoded = msgspec.convert(value, wire_leaf(node))
        return decoded if node.build is None else self._try(node.build, decoded, path, value)

    def _union(self, node: Union, value: Any, path: str) -> Any:
        kinds = {
            type(None): {"null"},
            bool: {"boolean"},
            int: {"integer"},
            float: {"number"},
            str: {"string"},
            list: {"array"},
            dict: {"object"},
        }[type(value)]
        member = next((member for member in node.members if member.kinds & kinds), Anything())
        return self.make(member, value, path)

    def _record(self, record: Record, value: Any, path: str) -> Any:
        given: dict[str, Any] = {}
        for field in record.fields if record.tag is None else (record.tag, *record.fields):
            if field.wire in value:
                given[field.name] = self.make(field.node, value[field.wire], point(path, field.wire))
            elif (absent := self._absent(field, path)) is not NOTHING:
                given[field.name] = absent
        if any(part is FAILED for part in given.values()):
            return FAILED
        if record.style == "arguments":
            return given
        if record.style == "typeddict":
            return given

        def make(parts: dict[str, Any]) -> Any:
            return record.cls(**parts)

        return self._try(make, given, path, value)

    def _absent(self, field: Field, path: str) -> Any:
        if field.factory is not None:
            factory = field.factory
            return self._try(lambda _: factory(), None, point(path, field.wire), None)
        return field.default

    def _try(self, make: Callable[[Any], Any], value: Any, path: str, source: Any) -> Any:
        try:
            return make(value)
        except Exception as exc:  # noqa: BLE001 - a user's class may raise anything; all of it is about this value
            self.problems.extend(describe(exc, path, source))
            return FAILED


def describe(exc: Exception, path: str, source: Any) -> list[Problem]:
    """Return what ``exc`` says about the value at ``path``, without quoting the value.

    Args:
        exc: What a user's class or hook raised.
        path: Pointer of the object it was about.
        source: The JSON value of that object, whose leaves are cut out of the text.
    """
    leaves = _leaves(source)
    if isinstance(exc, cattrs.BaseValidationError):
        problems: list[Problem] = []
        for line in cattrs.transform_error(exc):
            text, _, where = line.rpartition(" @ ")
            problems.append(Problem(path + _pointer(where), "value", _redact(text, leaves)))
        return problems
    text = str(exc.args[0]) if exc.args and isinstance(exc.args[0], str) else _text_of(exc)
    return [Problem(path, "value", _redact(text, leaves) or f"refused: {type(exc).__name__}")]


def _text_of(exc: Exception) -> str:
    try:
        return "" if isinstance(exc, KeyError) else str(exc)
    except Exception:  # noqa: BLE001 - a broken __str__ must not hide the problem
        return ""


def _pointer(where: str) -> str:
    """Return cattrs' ``$.a[0]`` as ``/a/0``."""
    return re.sub(
        r"\.([^.\[]+)|\[([^\]]*)\]", lambda m: point("", (m[1] or m[2]).strip("'\"")), where.removeprefix("$")
    )


def _leaves(value: Any) -> list[Any]:
    found: list[Any] = []
    todo = [value]
    while todo and len(found) < _LEAVES:
        item = todo.pop()
        if is_object(item):
            todo.extend(item.values())
        elif is_array(item):
            todo.extend(item)
        elif item is not None and not isinstance(item, bool):
            found.append(item)
    return found


def _redact(text: str, leaves: list[Any]) -> str:
    """Cut values out of a message: long ones anywhere, short ones where validators quote them."""
    for form in sorted({form for leaf in leaves for form in (repr(leaf), str(leaf)) if form}, key=len, reverse=True):
        if len(form) >= _SHORT:
            text = text.replace(form, "<value>")
        else:
            quoted = rf"(: |\bgot |\()({re.escape(form)})(?=$|[ ,)])"
            text = re.sub(quoted, r"\1<value>", text)
    return clip(text.removesuffix(": <value>"), _MESSAGE_LIMIT)
