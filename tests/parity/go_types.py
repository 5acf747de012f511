"""The Python type that says what each Go type of ``derive_schema.json`` says.

A struct is an attrs class, a pointer an optional value, a named type a ``NewType``, a tag a ``Name``, an embedded
struct a base class, a private or skipped field one that ``__init__`` does not take, a channel a ``Queue``, a function a
``Callable``, an interface with methods a ``Protocol``. A Go type with a JSON form of its own is a registered class.
"""

import ctypes
import ipaddress
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from enum import IntEnum
from functools import reduce
from queue import Queue
from typing import Annotated, Any, NewType, Protocol

import attrs
from msgspec import Meta
from typing_extensions import TypeAliasType

from harbor_async.schema import Name, register_type

MyInt = NewType("MyInt", int)
MyStr = NewType("MyStr", str)
MyAny = NewType("MyAny", Any)
MyBytes = NewType("MyBytes", bytes)
MyRaw = NewType("MyRaw", Any)
MyTime = NewType("MyTime", datetime)
Duration = NewType("Duration", int)
Month = NewType("Month", int)
TextKey = NewType("TextKey", str)
Channel = Queue[int]


class Level(IntEnum):
    LOW = 0
    HIGH = 1


class Iface(Protocol):
    def do(self) -> None: ...


class NetIP(ipaddress.IPv4Address): ...


@attrs.frozen
class Marshaler:
    A: int


@attrs.frozen
class TextMarshaler:
    A: int


register_type(NetIP, wire=str, structure=NetIP, unstructure=str)
register_type(Marshaler, wire=str, structure=lambda text: Marshaler(int(text)), unstructure=lambda own: str(own.A))
register_type(
    TextMarshaler, wire=str, structure=lambda text: TextMarshaler(int(text)), unstructure=lambda own: str(own.A)
)


@attrs.frozen
class Inner:
    x: int
    y: str = ""


@attrs.frozen
class Base:
    id: str


@attrs.frozen
class _Lower:
    hidden: str


# --- structs, in the order of the file ----------------------------------------------------------------------------


@attrs.frozen
class Empty: ...


@attrs.frozen
class NoTags:
    Foo: int
    BarBaz: str


@attrs.frozen
class Dash:
    B: int
    A: int = attrs.field(default=0, init=False)


@attrs.frozen
class DashComma:
    A: Annotated[int, Name("-")]


@attrs.frozen
class Unexported:
    B: int
    _a: int = attrs.field(default=0, init=False)


@attrs.frozen
class OnlyUnexported:
    _a: int = attrs.field(default=0, init=False)


@attrs.frozen
class OmitemptyNoName:
    A: int = 0


@attrs.frozen
class Tagged:
    A: Annotated[int, Name("a")]


@attrs.frozen
class TaggedOptional:
    A: Annotated[int, Name("a")] = 0


@attrs.frozen
class OddName:
    A: Annotated[int, Name("a b/ü")]


@attrs.frozen
class PointerField:
    p: int | None = None


@attrs.frozen
class SliceMapAny:
    s: list[int]
    m: dict[str, int]
    a: Any
    r: Any


@attrs.frozen
class RequiredSorted:
    z: int
    a: int
    m: int


@attrs.frozen
class DuplicateNames:
    A: Annotated[int, Name("x")]
    B: Annotated[str, Name("x")]


@attrs.frozen
class Nested:
    i: Inner
    l: list[Inner]  # noqa: E741 - the seed's own name
    m: dict[str, Inner | None]


@attrs.frozen
class Embedded(Base):
    n: int


@attrs.frozen
class EmbeddedTagged:
    base: Base
    n: int


@attrs.frozen
class EmbeddedPointer:
    n: int
    base: Annotated[Base | None, Name("Base")] = None


@attrs.frozen
class EmbeddedUnexported(_Lower):
    n: int


@attrs.frozen
class EmbeddedTime:
    Time: datetime


@attrs.frozen
class EmbeddedIface:
    iface: Annotated[Iface, Name("Iface")]


@attrs.frozen
class ChannelField:
    c: Channel


@attrs.frozen
class ChannelDashed:
    c: Channel | None = attrs.field(default=None, init=False)


@attrs.frozen
class ChannelUnexported:
    _c: Channel | None = attrs.field(default=None, init=False)


@attrs.frozen
class FunctionField:
    F: Callable[[], None]


@attrs.frozen
class DeepBadMiddle:
    l: list[dict[str, ChannelField]]  # noqa: E741 - the seed's own name


@attrs.frozen
class DeepBad:
    i: DeepBadMiddle


@attrs.frozen
class MapIntField:
    m: dict[int, str]


@attrs.frozen
class IfaceField:
    e: Exception


@attrs.frozen
class Diamond:
    l: Inner  # noqa: E741 - the seed's own name
    r: Inner
    p: Inner | None = None


@attrs.frozen
class Node:
    V: int
    Next: "Node | None" = None


@attrs.frozen
class Tree:
    Kids: "list[Tree]"


@attrs.frozen
class MapNode:
    M: "dict[str, MapNode]"


@attrs.frozen
class ArrNode:
    A: "Annotated[list[ArrNode | None], Meta(min_length=2, max_length=2)]"


@attrs.frozen
class A1:
    B: "B1 | None" = None


@attrs.frozen
class B1:
    A: A1 | None = None


SelfSlice = TypeAliasType("SelfSlice", "list[SelfSlice]")
SelfMap = TypeAliasType("SelfMap", "dict[str, SelfMap]")
SelfPtr = TypeAliasType("SelfPtr", "SelfPtr | None")


def nested(depth: int) -> Any:
    """Lists of lists of … of text."""
    return reduce(lambda inner, _: list[inner], range(depth), str)


def array(item: Any, length: int) -> Any:
    """Return a list of exactly ``length`` items."""
    return Annotated[list[item], Meta(min_length=length, max_length=length)]


TYPES: dict[str, Any] = {
    "bool": bool,
    **dict.fromkeys(("int", "int8", "int16", "int32", "int64", "uint", "uint8", "uint16", "uint32", "uint64"), int),
    **dict.fromkeys(("float32", "float64"), float),
    "uintptr": ctypes.c_size_t,
    **dict.fromkeys(("complex64", "complex128"), complex),
    "string": str,
    "named_int": MyInt,
    "named_string": MyStr,
    "nil_type": Any,
    "any": Any,
    "named_any": MyAny,
    "iface": Iface,
    "error_iface": Exception,
    "bytes": bytes,
    "named_bytes": MyBytes,
    "slice_named_byte": MyBytes,
    "slice_int8": list[int],
    "byte_array": array(int, 4),
    "raw": Any,
    "named_raw": MyRaw,
    "ptr_raw": Any | None,
    "slice_raw": list[Any],
    "number": Decimal,
    "time": datetime,
    "ptr_time": datetime | None,
    "named_time": MyTime,
    "duration": Duration,
    "month": Month,
    "slice_string": list[str],
    "slice_slice": list[list[int]],
    "slice_any": list[Any],
    "slice_ptr": list[int | None],
    "slice_struct": list[Inner],
    "array0": array(str, 0),
    "array3": array(str, 3),
    "array_big": array(bool, 1_000_000),
    "array_nested": array(array(int, 3), 2),
    "map_string_int": dict[str, int],
    "map_named_string": dict[MyStr, int],
    "map_textkey": dict[TextKey, int],
    "map_any": dict[str, Any],
    "map_struct": dict[str, Inner],
    "map_map": dict[str, dict[str, bool]],
    "map_int": dict[int, str],
    "map_bool": dict[bool, str],
    "map_any_key": dict[Any, str],
    "map_struct_key": dict[Inner, str],
    "map_bad_value": dict[str, Channel],
    "ptr_int": int | None,
    "ptr_ptr": str | None,
    "ptr_struct": Inner | None,
    "chan": Channel,
    "func": Callable[[], None],
    "unsafe_pointer": ctypes.c_void_p,
    "empty_struct": Empty,
    "struct_simple": Inner,
    "struct_no_tags": NoTags,
    "struct_dash": Dash,
    "struct_dash_comma": DashComma,
    "struct_unexported": Unexported,
    "struct_only_unexported": OnlyUnexported,
    "struct_omitempty_no_name": OmitemptyNoName,
    "struct_omitzero": Tagged,
    "struct_string_opt": Tagged,
    "struct_omitempty_second": TaggedOptional,
    "struct_space_in_options": Tagged,
    "struct_odd_name": OddName,
    "struct_pointer_field": PointerField,
    "struct_pointer_slice_map_any": SliceMapAny,
    "struct_required_sorted": RequiredSorted,
    "struct_duplicate_names": DuplicateNames,
    "struct_nested": Nested,
    "struct_embedded": Embedded,
    "struct_embedded_tagged": EmbeddedTagged,
    "struct_embedded_ptr": EmbeddedPointer,
    "struct_embedded_unexported": EmbeddedUnexported,
    "struct_embedded_time": EmbeddedTime,
    "struct_embedded_iface": EmbeddedIface,
    "struct_chan_field": ChannelField,
    "struct_chan_field_dashed": ChannelDashed,
    "struct_chan_unexported": ChannelUnexported,
    "struct_func_field": FunctionField,
    "struct_deep_bad": DeepBad,
    "struct_map_int_field": MapIntField,
    "struct_iface_field": IfaceField,
    "diamond": Diamond,
    "cycle_pointer": Node,
    "cycle_slice": Tree,
    "cycle_map": MapNode,
    "cycle_array": ArrNode,
    "cycle_mutual": A1,
    "cycle_self_slice": SelfSlice,
    "cycle_self_map": SelfMap,
    "cycle_self_ptr": SelfPtr,
    **{f"depth_slice_{depth}": nested(depth) for depth in (1, 31, 32, 33, 40)},
    # an optional optional is an optional
    **{f"depth_pointer_{depth}": reduce(lambda inner, _: inner | None, range(depth), str) for depth in (31, 32, 33)},
    "marshaler": Marshaler,
    "text_marshaler": TextMarshaler,
    "big_int": int,
    "ptr_big_int": int | None,
    "net_ip": NetIP,
    "iface_slice_err": list[Exception],
    "level_enum": Level,
}
