"""JSON Schema 2020-12 out of a plan."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from ._constraint import keywords_of
from ._plan import Anything, Array, Custom, Field, Leaf, Node, Record, Ref, Row, Table, Tagged, Union


def emit(root: Node) -> dict[str, Any]:
    """Return the schema of ``root``: the root inlined, ``$defs`` only for shared and recursive records."""
    return _Emitter(root).document(root)


class _Emitter:
    def __init__(self, root: Node) -> None:
        uses: Counter[int] = Counter()
        records: dict[int, Record] = {}
        _count(root, uses, records)
        self._names: dict[int, str] = {}
        self._records = records
        taken: set[str] = set()
        for key, record in records.items():
            if uses[key] > 1:
                self._names[key] = _free_name(record, taken)

    def document(self, root: Node) -> dict[str, Any]:
        schema = self._object(root.record) | root.notes if isinstance(root, Ref) else self.node(root)
        # The root is a use of its own record: it is shared only if something below refers to it as well.
        defs = {name: self._object(self._records[key]) for key, name in self._names.items()}
        return {**schema, "$defs": defs} if defs else schema

    def node(self, node: Node) -> dict[str, Any]:
        return self._bare(node) | node.notes

    def _bare(self, node: Node) -> dict[str, Any]:
        if isinstance(node, Leaf):
            kind = node.schema.get("type")
            return dict(node.schema) | keywords_of(node.bounds, kind if isinstance(kind, str) else "")
        if isinstance(node, Array):
            item = self.node(node.item)
            return {"type": "array", "items": item} | keywords_of(node.bounds, "array")
        if isinstance(node, Row):
            return self._row(node)
        if isinstance(node, Table):
            return self._table(node)
        if isinstance(node, Ref):
            name = self._names.get(id(node.record))
            return self._object(node.record) if name is None else {"$ref": f"#/$defs/{name}"}
        if isinstance(node, (Tagged, Union)):
            return {"anyOf": [self.node(member) for member in _flat(node)]}
        if isinstance(node, Custom):
            return self.node(node.inner)
        assert isinstance(node, Anything)  # noqa: S101 - the last kind of node
        return {}

    def _row(self, node: Row) -> dict[str, Any]:
        size = len(node.items)
        head: dict[str, Any] = {"type": "array"}
        if size:
            head["prefixItems"] = [self.node(item) for item in node.items]
        return head | {"items": False, "minItems": size, "maxItems": size}

    def _table(self, node: Table) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "object", "additionalProperties": self.node(node.value)}
        names = {key: value for key, value in self.node(node.key).items() if key != "type"}
        if names:
            schema["propertyNames"] = names
        return schema | keywords_of(node.bounds, "object")

    def _object(self, record: Record) -> dict[str, Any]:
        fields = record.fields if record.tag is None else (record.tag, *record.fields)
        properties = {field.wire: self._property(record, field) for field in fields}
        required = [field.wire for field in fields if field.is_required or field is record.tag]
        schema: dict[str, Any] = {"type": "object", "properties": properties}
        if required:
            schema["required"] = required
        return schema | {"additionalProperties": False}

    def _property(self, record: Record, field: Field) -> dict[str, Any]:
        if field is not record.tag:
            return self.node(field.node) | field.notes
        schema = self.node(field.node) | field.notes | {"const": record.tag_value}
        return {key: value for key, value in schema.items() if key not in {"enum", "default"}}


def _flat(node: Tagged | Union) -> Iterator[Node]:
    for member in node.members:
        if isinstance(member, Tagged) and not member.notes:
            yield from member.members
        else:
            yield member


def _count(node: Node, uses: "Counter[int]", records: dict[int, Record]) -> None:
    todo = [node]
    while todo:
        current = todo.pop()
        if isinstance(current, Ref):
            key = id(current.record)
            uses[key] += 1
            if uses[key] > 1:
                continue
            records[key] = current.record
        todo.extend(reversed(tuple(current.children())))


def _free_name(record: Record, taken: set[str]) -> str:
    base = re.sub(r"[^A-Za-z0-9_.-]+", "_", record.title).strip("_") or "Record"
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}_{number}"
    taken.add(name)
    return name
