"""The msgspec types that stand in for a plan while a document is decoded.

Each record becomes a closed ``msgspec.Struct`` with fields named ``f0``, ``f1``, …, so that any wire name is legal and
no class of a user is ever handed to msgspec. Optional fields default to ``UNSET``, so that absence can be seen.
"""

import typing
from typing import Annotated, Any, Final

import msgspec

from ._constraint import meta_of
from ._plan import Array, Custom, Leaf, Node, Record, Ref, Row, Table, Tagged, Union, records_below
from ._union import wire_leaf

UNSET: Final = msgspec.UNSET


class Shadows:
    """The stand-ins of every record below one root."""

    def __init__(self, root: Node) -> None:
        """Make them all; recursive records refer to each other."""
        self.records: dict[int, Record] = records_below(root)
        self._structs: dict[int, Any] = {key: _struct(record) for key, record in self.records.items()}
        for key, record in self.records.items():
            # Annotations are read when a decoder is made, so they may be put in once all structs exist.
            self._structs[key].__annotations__ = {
                f"f{index}": self.wire(field.node)
                if field.is_required
                else _any_of([self.wire(field.node), msgspec.UnsetType])
                for index, field in enumerate(record.fields)
            }

    def struct(self, record: Record) -> Any:
        """Return the stand-in of ``record``."""
        return self._structs[id(record)]

    def wire(self, node: Node) -> Any:
        """Return the msgspec type that decodes ``node``, its bounds included."""
        if isinstance(node, Leaf):
            return wire_leaf(node)
        bare = self._bare(node)
        return Annotated[bare, meta_of(node.bounds)] if node.bounds else bare

    def _bare(self, node: Node) -> Any:
        if isinstance(node, Array):
            generic: Any = tuple if node.make is tuple else list
            item = self.wire(node.item)
            return generic[item, ...] if node.make is tuple else generic[item]
        if isinstance(node, Row):
            row: Any = tuple
            return row[tuple(self.wire(item) for item in node.items)]
        if isinstance(node, Table):
            table: Any = dict
            return table[self.wire(node.key), self.wire(node.value)]
        if isinstance(node, Ref):
            return self.struct(node.record)
        if isinstance(node, (Tagged, Union)):
            return _any_of([self.wire(member) for member in node.members])
        return self.wire(node.inner) if isinstance(node, Custom) else Any


def _struct(record: Record) -> Any:
    names = [f"f{index}" for index in range(len(record.fields))]
    fields: list[Any] = [
        (name, Any) if field.is_required else (name, Any, UNSET)
        for name, field in zip(names, record.fields, strict=True)
    ]
    tagging: dict[str, Any] = {}
    if record.tag is not None:
        tagging = {"tag_field": record.tag.wire, "tag": record.tag_value}
    return msgspec.defstruct(
        "Shadow",
        fields,
        module=__name__,
        rename=dict(zip(names, (field.wire for field in record.fields), strict=True)),
        kw_only=True,
        forbid_unknown_fields=True,
        eq=False,
        gc=False,
        **tagging,
    )


def _any_of(types: list[Any]) -> Any:
    return typing.Union[tuple(types)]  # noqa: UP007 - the members are only known at run time
