"""The plan: one tree of records that a type becomes, and from which everything else is read off.

::

    type ──walk──► plan ──┬── emit      JSON Schema
                          ├── shadow    the msgspec types of the fast decoder
                          ├── codegen   builder, key counter, unbuilder
                          └── explain   every problem of a document that was refused

A plan is built once, at registration, and not changed afterwards. Its classes are msgspec's, which are made in a
fiftieth of the time of attrs': importing the package made 12 of them.
"""

import enum
from collections.abc import Callable, Iterator
from typing import Any, Final, Literal

import msgspec

Style = Literal["attrs", "dataclass", "typeddict", "namedtuple", "arguments"]


class Absent(enum.Enum):
    """The type of NOTHING, which says that there is no default; ``attrs.NOTHING`` cannot be a default itself."""

    NOTHING = enum.auto()


NOTHING: Final = Absent.NOTHING


class Node(msgspec.Struct, eq=False, kw_only=True):
    """One position in a document.

    Attributes:
        bounds: Keywords of ``msgspec.Meta`` that the decoder enforces and the schema says.
        notes: Schema keywords that only inform: description, title, examples.
    """

    bounds: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    notes: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of JSON value that can stand here."""
        raise NotImplementedError  # pragma: no cover - every node says

    def children(self) -> Iterator["Node"]:
        """Yield the nodes directly below, records' fields included."""
        return iter(())


class Anything(Node, eq=False, kw_only=True):
    """Any JSON value, as builtins."""

    @property
    def kinds(self) -> frozenset[str]:
        """All of them."""
        return frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})


class Leaf(Node, eq=False, kw_only=True):
    """A value without parts.

    Attributes:
        accepts: The kinds of JSON value.
        wire: The type that msgspec decodes it to.
        schema: Its JSON Schema, without bounds.
        python: The class of the decoded wire values, if a union has to tell them apart.
        build: From the wire value to the Python value; None if they are the same.
        unbuild: From the Python value to what msgspec encodes; None if they are the same.
        choices: The JSON values allowed, in declaration order; None if they are not listed.
        label: What a message calls it.
    """

    accepts: frozenset[str]
    wire: Any
    schema: dict[str, Any]
    python: tuple[type, ...]
    label: str
    build: Callable[[Any], Any] | None = None
    unbuild: Callable[[Any], Any] | None = None
    choices: tuple[Any, ...] | None = None

    @property
    def kinds(self) -> frozenset[str]:
        """Those it accepts."""
        return self.accepts


class Array(Node, eq=False, kw_only=True):
    """Any number of like items; ``make`` is list, tuple, set or frozenset."""

    item: Node
    make: type

    @property
    def kinds(self) -> frozenset[str]:
        """An array."""
        return frozenset({"array"})

    def children(self) -> Iterator[Node]:
        """Yield the item."""
        yield self.item


class Row(Node, eq=False, kw_only=True):
    """A tuple of fixed length, each place with a type of its own."""

    items: tuple[Node, ...]

    @property
    def kinds(self) -> frozenset[str]:
        """An array."""
        return frozenset({"array"})

    def children(self) -> Iterator[Node]:
        """Yield each place."""
        yield from self.items


class Table(Node, eq=False, kw_only=True):
    """A dict with text keys; ``key`` may bound or list them."""

    key: Leaf
    value: Node

    @property
    def kinds(self) -> frozenset[str]:
        """An object."""
        return frozenset({"object"})

    def children(self) -> Iterator[Node]:
        """Yield the value."""
        yield self.value


class Field(msgspec.Struct, eq=False, kw_only=True):
    """One property of a record.

    Attributes:
        wire: Its key in the object.
        name: How the class or function is given it.
        attribute: How it is read off an instance.
        node: Its type.
        is_required: Whether the key must be there.
        default: The constant used without it, or NOTHING.
        factory: Makes the value used without it, or None. With neither, the class's own default applies.
        is_positional: Whether it can only be passed by position.
        is_keyword: Whether it can only be passed by keyword.
        notes: Schema keywords that only inform: description, default.
    """

    wire: str
    name: str
    attribute: str
    node: Node
    is_required: bool = True
    default: Any = NOTHING
    factory: Callable[[], Any] | None = None
    is_positional: bool = False
    is_keyword: bool = False
    notes: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])


class Record(msgspec.Struct, eq=False, kw_only=True):
    """A class, or the parameters of a function, as a closed object.

    Attributes:
        title: Its name in ``$defs`` and in messages.
        style: What kind of class.
        cls: The class itself; None for the parameters of a function.
        fields: The properties, in declaration order.
        tag: The field that tells it apart in a union; None outside unions.
    """

    title: str
    style: Style
    cls: Any
    fields: tuple[Field, ...] = ()
    tag: Field | None = None

    @property
    def tag_value(self) -> Any:
        """The one value of the tag."""
        node = self.tag.node if self.tag else None
        return node.choices[0] if isinstance(node, Leaf) and node.choices else None


class Ref(Node, eq=False, kw_only=True):
    """A place where a record stands."""

    record: Record

    @property
    def kinds(self) -> frozenset[str]:
        """An object."""
        return frozenset({"object"})

    def children(self) -> Iterator[Node]:
        """Yield the type of each field."""
        for field in self.record.fields:
            yield field.node


class Tagged(Node, eq=False, kw_only=True):
    """One of several records, told apart by the value of ``tag``."""

    tag: str
    members: tuple[Ref, ...]

    @property
    def kinds(self) -> frozenset[str]:
        """An object."""
        return frozenset({"object"})

    def children(self) -> Iterator[Node]:
        """Yield each record."""
        yield from self.members


class Union(Node, eq=False, kw_only=True):
    """One of several nodes that are told apart by the kind of JSON value."""

    members: tuple[Node, ...]

    @property
    def kinds(self) -> frozenset[str]:
        """Those of every member."""
        return frozenset(kind for member in self.members for kind in member.kinds)

    def children(self) -> Iterator[Node]:
        """Yield each member."""
        yield from self.members


class Custom(Node, eq=False, kw_only=True):
    """A registered type, which travels as ``inner``."""

    cls: Any
    inner: Node
    structure: Callable[[Any], Any]
    unstructure: Callable[[Any], Any]

    @property
    def kinds(self) -> frozenset[str]:
        """Those of its wire type."""
        return self.inner.kinds

    def children(self) -> Iterator[Node]:
        """Yield the wire type."""
        yield self.inner


def records_below(root: Node) -> dict[int, Record]:
    """Return every record that ``root`` reaches, itself included, by identity and in order of first appearance."""
    found: dict[int, Record] = {}
    todo: list[Node] = [root]
    seen: set[int] = set()
    while todo:
        node = todo.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Ref):
            if id(node.record) in found:
                continue
            found[id(node.record)] = node.record
        todo.extend(reversed(tuple(node.children())))
    return found


def static_depth(node: Node, above: frozenset[int] = frozenset()) -> int | None:
    """Return how deep a document of this plan can nest; None if the plan itself sets no bound."""
    if isinstance(node, Anything) or (isinstance(node, Ref) and id(node.record) in above):
        return None
    if isinstance(node, Ref):
        above |= {id(node.record)}
    depth = 0
    for child in node.children():
        below = static_depth(child, above)
        if below is None:
            return None
        depth = max(depth, below)
    return depth + isinstance(node, (Array, Row, Table, Ref))
