"""The second look at a document that fits its schema, and that a user's class refused all the same.

Every object is built again, one at a time, so that what a validator, converter, ``__init__`` or hook raised gets the
pointer of the object that it was about. Texts of exceptions are the users' own words, but often quote the value
(``'n' must be >= 5: 1``); the values are cut out of them.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from .._json import Path, kind_of
from ..errors import Problem
from ._codegen import is_builder_needed
from ._plan import NOTHING, Array, Custom, Field, Leaf, Node, Record, Ref, Row, Table, Tagged, Union
from ._redact import describe
from ._report import Report
from ._sets import maker
from ._shadow import Shadows

_FAILED: Final = object()


class Constructor:
    """Builds the Python value of a document piece by piece."""

    def __init__(self, shadows: Shadows) -> None:
        """Begin without problems.

        Args:
            shadows: The msgspec types of the plan.
        """
        self._report = Report()
        self._wire = shadows.wire
        self._types: dict[int, Any] = {}

    def explain(self, root: Node, value: Any, refusal: Exception) -> list[Problem]:
        """Return what was raised, with pointers, in the order of the document.

        Args:
            root: The plan.
            value: Plain builtins that fit it.
            refusal: What was raised when they were built as a whole: told if nothing is raised this time.
        """
        self._report.collect(self._explain, root, value, refusal)
        return self._report.problems

    def _explain(self, root: Node, value: Any, refusal: Exception) -> None:
        self._make(root, value, None)
        if not self._report.problems:
            describe(self._report, refusal, None, value, None)

    def _make(self, node: Node, value: Any, path: Path) -> Any:
        """Return the Python value of ``value``; _FAILED if a part of it failed."""
        if not is_builder_needed(node):
            return self._decoded(node, value)
        if isinstance(node, Leaf):
            assert node.build is not None  # noqa: S101 - what else would need a builder
            return self._try(node.build, self._decoded(node, value), path, value)
        if isinstance(node, Custom):
            inner = self._make(node.inner, value, path)
            return _FAILED if inner is _FAILED else self._try(node.structure, inner, path, value)
        if isinstance(node, Array):
            items = self._items(node, value, path)
            return _FAILED if _has_failed(items) else self._try(maker(node.make), items, path, value)
        if isinstance(node, Row):
            pairs = enumerate(zip(node.items, value, strict=True))
            parts = tuple(self._make(item, part, (path, index)) for index, (item, part) in pairs)
            return _FAILED if _has_failed(parts) else parts
        if isinstance(node, Table):
            table = {
                self._make(node.key, key, path): self._make(node.value, item, (path, key))
                for key, item in value.items()
            }
            return _FAILED if _has_failed(table.values()) else table
        if isinstance(node, Ref):
            return self._record(node.record, value, path)
        if isinstance(node, Tagged):
            ref = next(ref for ref in node.members if ref.record.tag_value == value[node.tag])
            return self._record(ref.record, value, path)
        assert isinstance(node, Union)  # noqa: S101 - Anything needs no builder
        return self._make(_member(node, value), value, path)

    def _decoded(self, node: Node, value: Any) -> Any:
        """Return what msgspec makes of a part that needs nothing else."""
        tp = self._types.get(id(node))
        if tp is None:
            tp = self._types[id(node)] = self._wire(node)
        return msgspec.convert(value, tp)

    def _items(self, node: Array, value: Any, path: Path) -> list[Any]:
        if not is_builder_needed(node.item):
            return list(self._decoded(node, value))
        return [self._make(node.item, item, (path, index)) for index, item in enumerate(value)]

    def _record(self, record: Record, value: Any, path: Path) -> Any:
        given: dict[str, Any] = {}
        for field in record.fields if record.tag is None else (record.tag, *record.fields):
            if field.wire in value:
                given[field.name] = self._make(field.node, value[field.wire], (path, field.wire))
            elif (absent := self._absent(field, path)) is not NOTHING:
                given[field.name] = absent
        if _has_failed(given.values()):
            return _FAILED
        if record.style in {"arguments", "typeddict"}:
            return given
        return self._try(lambda parts: record.cls(**parts), given, path, value)

    def _absent(self, field: Field, path: Path) -> Any:
        factory = field.factory
        return field.default if factory is None else self._try(lambda _: factory(), None, (path, field.wire), None)

    def _try(self, make: Callable[[Any], Any], value: Any, path: Path, source: Any) -> Any:
        try:
            return make(value)
        except Exception as exc:  # noqa: BLE001 - a user's class may raise anything; all of it is about this value
            describe(self._report, exc, path, source, value)
            return _FAILED


def _member(node: Union, value: Any) -> Node:
    """Return the member that ``value`` fits."""
    kinds = {kind_of(value)}
    return next(member for member in node.members if member.kinds & kinds)


def _has_failed(parts: Iterable[Any]) -> bool:
    # By identity: a user's == may raise, or answer with an array.
    return any(part is _FAILED for part in parts)
