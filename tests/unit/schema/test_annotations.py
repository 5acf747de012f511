"""Annotations that are text, names that are local, types that are generic or recursive."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import attrs
import pytest

from harbor_async.errors import UnsupportedTypeError
from harbor_async.schema import derive_schema
from harbor_async.schema._function import compile_function
from tests.unit.schema import future_tools, plain_tools
from tests.unit.schema.support import decode, decode_as

if TYPE_CHECKING:
    from decimal import Decimal as OnlyForCheckers

T = TypeVar("T")
U = TypeVar("U")


def test_pep_563_changes_no_byte() -> None:
    """R049, R061: a module with ``from __future__ import annotations`` gives the very schemas of one without."""
    texts, types = compile_function(future_tools.find), compile_function(plain_tools.find)
    assert json.dumps(types.args_schema) == json.dumps(texts.args_schema)
    assert json.dumps(types.out_schema) == json.dumps(texts.out_schema)
    assert texts.wants_context
    assert ["query", "where", "extra", "pair", "tags"] == list(texts.args_schema["properties"])
    assert "What to look for." == texts.args_schema["$defs"]["Query"]["properties"]["text"]["description"]


def test_pep_563_modules_decode() -> None:
    """R061: parameters of attrs, dataclass, TypedDict and NamedTuple types of such a module arrive as instances."""
    text = (
        '{"query": {"text": "a", "next": {"text": "b"}}, "where": {"city": "c", "near": [{"city": "d"}]},'
        ' "extra": {"language": "e", "mode": "a"}, "pair": {"low": 1}}'
    )
    query, where, extra, pair, tags = decode(future_tools.find, text)
    assert future_tools.Query("a", next=future_tools.Query("b")) == query
    assert future_tools.Where("c", [future_tools.Where("d")]) == where
    assert {"lang": "e", "mode": "a"} == extra
    assert future_tools.Pair(1, 9) == pair
    assert frozenset() == tags


def test_classes_local_to_a_function() -> None:
    """N13, R057: a tool defined beside its local classes registers there, whether or not it closes over them."""

    @attrs.define
    class Local:
        n: int
        more: Local | None = None

    async def tool(x: Local) -> Local:
        return x

    schema = compile_function(tool)
    assert {"type": "integer"} == schema.args_schema["$defs"]["Local"]["properties"]["n"]
    assert (Local(1, Local(2)),) == decode(schema, '{"x": {"n": 1, "more": {"n": 2}}}')


def test_names_of_the_calling_frames() -> None:
    """R057: a helper may register for its caller; the frame that encloses the tool wins over one nearer by."""

    @dataclasses.dataclass
    class Mine:
        ours: int

    async def tool(x: Mine) -> None: ...

    def helper() -> Any:
        @dataclasses.dataclass
        class Mine:
            other: str

        assert Mine
        return compile_function(tool)

    assert {"ours": {"type": "integer"}} == helper().args_schema["properties"]["x"]["properties"]


def test_mutually_recursive_local_classes() -> None:
    """Local classes may name each other, in whatever order they are defined."""

    @attrs.define
    class Folder:
        files: list[File]
        parent: Folder | None = None

    @attrs.define
    class File:
        name: str
        folder: Folder | None = None

    async def tool(x: Folder) -> None: ...

    (folder,) = decode(tool, '{"x": {"files": [{"name": "a", "folder": {"files": []}}]}}')
    assert Folder([File("a", Folder([]))]) == folder


def _orphan() -> Callable[..., Any]:
    @attrs.define
    class Lost:
        n: int

    async def tool(x: Lost) -> None: ...

    assert Lost
    return tool


def test_a_lost_local_name_is_refused_by_name() -> None:
    """N13, R057: a local class that nothing can find any more is refused with parameter and name."""
    with pytest.raises(UnsupportedTypeError) as caught:
        compile_function(_orphan())
    assert "parameter 'x'" == caught.value.where
    assert "'Lost'" in str(caught.value)


def test_a_name_for_checkers_only_is_refused_by_name() -> None:
    """A name imported under TYPE_CHECKING is refused with place and name; no error of the derivation is swallowed."""

    @attrs.define
    class Price:
        amount: OnlyForCheckers

    async def tool(price: Price) -> None: ...

    with pytest.raises(UnsupportedTypeError, match=r"parameter 'price', field Price\.amount.*OnlyForCheckers"):
        compile_function(tool)


def test_an_annotation_that_raises_is_refused() -> None:
    """An annotation whose evaluation raises is a refusal that says so."""

    async def tool(x: Any) -> None: ...

    tool.__annotations__["x"] = "1 / 0"
    with pytest.raises(UnsupportedTypeError, match="ZeroDivisionError"):
        compile_function(tool)


@attrs.define
class Box(Generic[T]):
    """Generic."""

    item: T
    rest: list[T] = attrs.field(factory=list)


@dataclasses.dataclass
class Both(Generic[T, U]):
    """Generic in two."""

    first: T
    second: Box[U]


@attrs.define
class IntBox(Box[int]):
    """Bound by inheritance."""

    label: str = ""


def test_generic_classes() -> None:
    """A generic class is filled in by its arguments, also through its bases."""
    assert Both("a", Box(1, [2])) == decode_as(Both[str, int], '{"first": "a", "second": {"item": 1, "rest": [2]}}')
    assert IntBox(1, [2], "x") == decode_as(IntBox, '{"item": 1, "rest": [2], "label": "x"}')
    first = derive_schema(Both[str, int])["properties"]
    assert {"type": "string"} == first["first"]
    assert {"type": "integer"} == first["second"]["properties"]["item"]
    assert {} == derive_schema(Box)["properties"]["item"]
    with pytest.raises(UnsupportedTypeError, match=r"Box\.item.*complex"):
        derive_schema(Box[complex])


def test_two_fillings_are_two_definitions() -> None:
    """The same generic class with other arguments is another class in the schema."""

    @attrs.define
    class Many:
        a: Box[int]
        b: Box[int]
        c: Box[str]
        d: Box[str]

    assert {"Box_int", "Box_str"} == set(derive_schema(Many)["$defs"])


def test_shared_classes_are_definitions() -> None:
    """A class used once is written in place; one used twice is a definition, with a free name."""

    def point(unit: type) -> Any:
        return attrs.make_class("Point", {"x": attrs.field(type=unit)})

    ints, texts, floats = point(int), point(str), point(float)
    holder = attrs.make_class(
        "Holder",
        {
            name: attrs.field(type=tp)
            for name, tp in {"a": ints, "b": ints, "c": texts, "d": texts, "e": floats}.items()
        },
    )
    schema = derive_schema(holder)
    assert ["Point", "Point_2"] == list(schema["$defs"])
    assert {"$ref": "#/$defs/Point"} == schema["properties"]["a"] == schema["properties"]["b"]
    assert {"$ref": "#/$defs/Point_2"} == schema["properties"]["d"]
    assert {"x": {"type": "number"}} == schema["properties"]["e"]["properties"]


def test_derived_schemas_are_fresh() -> None:
    """Changing a derived schema changes no other."""
    first = derive_schema(Box[int])
    first["properties"]["item"]["type"] = "changed"
    first["required"].append("x")
    assert "integer" == derive_schema(Box[int])["properties"]["item"]["type"]
    assert ["item"] == derive_schema(Box[int])["required"]


def test_derive_schema_sees_the_callers_names() -> None:
    """A forward reference given to derive_schema is looked up where it is called."""

    @attrs.define
    class Here:
        n: int

    assert derive_schema(Here) == derive_schema("Here")
    assert Here


@pytest.mark.skipif(sys.version_info < (3, 12), reason="PEP 695 syntax")
def test_type_statements() -> None:
    """``type X = ...`` means what stands behind it; one that contains itself is refused by name."""
    scope: dict[str, Any] = {}
    exec("type Ids = list[int]\ntype Pair[T] = tuple[T, T]\ntype Json = dict[str, Json] | int", scope)
    assert derive_schema(list[int]) == derive_schema(scope["Ids"])
    assert derive_schema(tuple[int, int]) == derive_schema(scope["Pair"][int])
    with pytest.raises(UnsupportedTypeError, match=r"Json.*cannot contain itself"):
        derive_schema(scope["Json"])


def test_type_alias_types_of_typing_extensions() -> None:
    """The backport of ``type`` statements works on every version."""
    from typing_extensions import TypeAliasType

    assert derive_schema(list[int]) == derive_schema(TypeAliasType("Ids", list[int]))


def test_wire_names_may_not_collide() -> None:
    """Two fields with one wire name are refused."""
    from typing import Annotated

    from harbor_async.errors import SchemaBuildError
    from harbor_async.schema import Name

    @attrs.define
    class Twice:
        a: int
        b: Annotated[int, Name("a")]

    assert Annotated
    with pytest.raises(SchemaBuildError, match="'a' and 'b' both have the wire name 'a'"):
        derive_schema(Twice)


def test_class_variables_are_no_fields() -> None:
    """ClassVar and private computed fields are neither arguments nor looked into."""
    from typing import ClassVar

    @attrs.define
    class Counted:
        total: ClassVar[OnlyForCheckers]
        kind: Literal["x"] = "x"
        _cache: OnlyForCheckers = attrs.field(init=False, default=None)

    assert ClassVar
    assert ["kind"] == list(derive_schema(Counted)["properties"])
