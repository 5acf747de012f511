"""Each type of the design's table: its schema, what is read as it, and what is not."""

import collections
import collections.abc
import dataclasses
import datetime as dt
import enum
import re
import types
import typing
import uuid
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, NewType, NotRequired, Required, TypedDict

import attrs
import pytest

from harbor_async.errors import SchemaBuildError, UnsupportedTypeError
from harbor_async.schema import Name, derive_schema
from harbor_async.schema._function import compile_function
from tests.unit.schema.support import decode_as, faults_as


class Color(enum.Enum):
    """Text values."""

    RED = "r"
    GREEN = "g"


class Level(enum.IntEnum):
    """Integer values."""

    LOW = 1
    HIGH = 3


class Mapped(enum.Enum):
    """Would take any value if it were asked."""

    A = "a"
    B = "b"

    @classmethod
    def _missing_(cls, value: object) -> "Mapped":
        return cls.A


@attrs.define
class Point:
    """attrs."""

    x: int
    y: int = 0


@dataclasses.dataclass(kw_only=True)
class Size:
    """A dataclass."""

    w: int
    tags: list[str] = dataclasses.field(default_factory=list)


class Movie(TypedDict, total=False):
    """Required and optional keys."""

    title: Required[str]
    year: int
    lang: Annotated[str, Name("language")]


class Book(TypedDict):
    """The same the other way round."""

    title: str
    year: NotRequired[int]


class Span(NamedTuple):
    """An object."""

    low: int
    high: int = 9


NULLABLE = Literal["b", 1, None]  # noqa: PYI061 - None among the values is the point
JOINED = typing.Union[Literal["a"], Literal["b"]]  # noqa: UP007, PYI030 - Python does not join them
UserId = NewType("UserId", int)
STRING = {"type": "string"}
INTEGER = {"type": "integer"}
POINT = {
    "type": "object",
    "properties": {"x": INTEGER, "y": {"type": "integer", "default": 0}},
    "required": ["x"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("tp", "schema"),
    [
        (str, STRING),
        (int, INTEGER),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (Any, {}),
        (bytes, {"type": "string", "contentEncoding": "base64"}),
        (dt.datetime, {"type": "string", "format": "date-time"}),
        (dt.date, {"type": "string", "format": "date"}),
        (dt.time, {"type": "string", "format": "time"}),
        (Literal["b", "a"], {"type": "string", "enum": ["b", "a"]}),
        (NULLABLE, {"type": ["string", "integer", "null"], "enum": ["b", 1, None]}),
        (Literal[True], {"type": "boolean", "enum": [True]}),
        (Color, {"type": "string", "enum": ["r", "g"]}),
        (Level, {"type": "integer", "enum": [1, 3]}),
        (list[int], {"type": "array", "items": INTEGER}),
        (list, {"type": "array", "items": {}}),
        (typing.List, {"type": "array", "items": {}}),  # noqa: UP006 - as people write it
        (typing.Dict, {"type": "object", "additionalProperties": {}}),  # noqa: UP006 - as people write it
        (typing.Tuple, {"type": "array", "items": {}}),  # noqa: UP006 - as people write it
        (typing.Sequence, {"type": "array", "items": {}}),
        (collections.abc.Sequence[int], {"type": "array", "items": INTEGER}),
        (tuple[int, ...], {"type": "array", "items": INTEGER}),
        (set[int], {"type": "array", "items": INTEGER}),
        (frozenset[int], {"type": "array", "items": INTEGER}),
        (
            tuple[int, str],
            {"type": "array", "prefixItems": [INTEGER, STRING], "items": False, "minItems": 2, "maxItems": 2},
        ),
        (dict[str, int], {"type": "object", "additionalProperties": INTEGER}),
        (dict, {"type": "object", "additionalProperties": {}}),
        (collections.abc.Mapping[str, int], {"type": "object", "additionalProperties": INTEGER}),
        (
            dict[Literal["a", "b"], int],
            {"type": "object", "additionalProperties": INTEGER, "propertyNames": {"enum": ["a", "b"]}},
        ),
        (dict[Color, int], {"type": "object", "additionalProperties": INTEGER, "propertyNames": {"enum": ["r", "g"]}}),
        (int | None, {"anyOf": [INTEGER, {"type": "null"}]}),
        (int | str, {"anyOf": [INTEGER, STRING]}),
        (int | float, {"anyOf": [INTEGER, {"type": "number"}]}),
        (int | Any, {}),
        (NULLABLE | None, {"type": ["string", "integer", "null"], "enum": ["b", 1, None]}),
        (JOINED, {"type": "string", "enum": ["a", "b"]}),
        (UserId, INTEGER),
        (Point, POINT),
        (
            Size,
            {
                "type": "object",
                "properties": {"w": INTEGER, "tags": {"type": "array", "items": STRING}},
                "required": ["w"],
                "additionalProperties": False,
            },
        ),
        (
            Movie,
            {
                "type": "object",
                "properties": {"title": STRING, "year": INTEGER, "language": STRING},
                "required": ["title"],
                "additionalProperties": False,
            },
        ),
        (
            Book,
            {
                "type": "object",
                "properties": {"title": STRING, "year": INTEGER},
                "required": ["title"],
                "additionalProperties": False,
            },
        ),
        (
            Span,
            {
                "type": "object",
                "properties": {"low": INTEGER, "high": {"type": "integer", "default": 9}},
                "required": ["low"],
                "additionalProperties": False,
            },
        ),
    ],
)
def test_schema_of_each_type(tp: Any, schema: Any) -> None:
    """Each supported type has its schema, in declaration order."""
    derived = derive_schema(tp)
    assert schema == derived
    assert list(schema) == list(derived)


@pytest.mark.parametrize(
    ("tp", "text", "value"),
    [
        (float, "1", 1.0),
        (bytes, '"AP8="', b"\x00\xff"),
        (dt.datetime, '"2024-02-29T12:00:00+01:00"', dt.datetime(2024, 2, 29, 11, tzinfo=dt.UTC)),
        (dt.date, '"2024-02-29"', dt.date(2024, 2, 29)),
        (dt.time, '"10:00:00Z"', dt.time(10, tzinfo=dt.UTC)),
        (dt.timedelta, '"P1DT2H30M1.5S"', dt.timedelta(days=1, hours=2, minutes=30, seconds=1.5)),
        (dt.timedelta, '"-PT1S"', dt.timedelta(seconds=-1)),
        (uuid.UUID, '"00000000-0000-0000-0000-0000000000ff"', uuid.UUID(int=255)),
        (Decimal, '"1.10"', Decimal("1.10")),
        (Decimal, "0.1", Decimal("0.1")),
        (Decimal, str(2**70), Decimal(2**70)),
        (NULLABLE, "null", None),
        (Literal[True, 0], "true", True),
        (Literal[Color.RED], '"r"', Color.RED),
        (Literal[Color.RED, "x"], '"x"', "x"),
        (Color, '"g"', Color.GREEN),
        (Level, "3", Level.HIGH),
        (Level, "3.0", Level.HIGH),
        (Mapped, '"b"', Mapped.B),
        (tuple[int, ...], "[1,2]", (1, 2)),
        (tuple[int, dt.timedelta], '[1,"P1D"]', (1, dt.timedelta(days=1))),
        (set[int], "[1,1,2.0]", {1, 2}),
        (frozenset[Color], '["r"]', frozenset({Color.RED})),
        (set[tuple[int, str]], '[[1,"a"],[1,"a"]]', {(1, "a")}),
        (dict[Color, list[Decimal]], '{"r": [1]}', {Color.RED: [Decimal(1)]}),
        (dict[str, Point], '{"p": {"x": 1}}', {"p": Point(1)}),
        (int | float, "5", 5),
        (int | float, "5.5", 5.5),
        (int | str | None, "5.0", 5),
        (list[int] | str, '"a"', "a"),
        (Point | list[Point] | None, '[{"x": 1}]', [Point(1)]),
        (UserId, "7", 7),
        (Size, '{"w": 1}', Size(w=1)),
        (Movie, '{"title": "a", "language": "en"}', {"title": "a", "lang": "en"}),
        (Span, '{"low": 1}', Span(1, 9)),
        (Any, '{"a": [1.0, null]}', {"a": [1.0, None]}),
        (bool | int, "1", 1),
        (dt.date | int | None, '"2024-02-29"', dt.date(2024, 2, 29)),
        (uuid.UUID | None, "null", None),
    ],
)
def test_values_of_each_type(tp: Any, text: str, value: Any) -> None:
    """Each supported type is read as the Python value of that type."""
    decoded = decode_as(tp, text)
    assert value == decoded
    assert type(value) is type(decoded)


@pytest.mark.parametrize(
    ("tp", "text"),
    [
        (dt.datetime, '"2024-02-29T12:00:00"'),
        (dt.datetime, '"2023-02-29T12:00:00Z"'),
        (dt.datetime, "1700000000"),
        (dt.date, '"2023-02-29"'),
        (dt.date, '"20240229"'),
        (dt.time, '"10:00:00"'),
        (dt.timedelta, '"P1W"'),
        (dt.timedelta, '"P"'),
        (dt.timedelta, '"P999999999DT999999999H"'),
        (uuid.UUID, '"000000000000000000000000000000ff"'),
        (Decimal, '"1_0"'),
        (Decimal, '"NaN"'),
        (Decimal, '"Infinity"'),
        (Decimal, '"\u0661"'),
        (Decimal, "true"),
        (bytes, '"AP8"'),
        (bytes, '"_-8="'),
        (Color, '"RED"'),
        (Mapped, '"c"'),
        (Level, "2"),
        (Literal[True], "1"),
        (Literal[1], "true"),
        (tuple[int, str], '[1,"a",2]'),
        (tuple[()], "[1]"),
        (dict[Literal["a"], int], '{"b": 1}'),
        (dict[Color, int], '{"RED": 1}'),
        (Span, "[1, 2]"),
        (bool | int, "1.5"),
    ],
)
def test_what_is_no_value_of_a_type(tp: Any, text: str) -> None:
    """Near misses are refused."""
    assert faults_as(tp, text)


def test_tagged_unions_say_const() -> None:
    """A union of classes is anyOf closed objects, told apart by a constant that is always required."""

    @attrs.define
    class Comment:
        body: str
        op: Literal["comment"] = "comment"

    @attrs.define
    class Close:
        op: Literal["close"]

    schema = derive_schema(Comment | Close | None)
    assert {
        "anyOf": [
            {
                "type": "object",
                "properties": {"op": {"type": "string", "const": "comment"}, "body": STRING},
                "required": ["op", "body"],
                "additionalProperties": False,
            },
            {
                "type": "object",
                "properties": {"op": {"type": "string", "const": "close"}},
                "required": ["op"],
                "additionalProperties": False,
            },
            {"type": "null"},
        ]
    } == schema
    assert [("/op", "missing")] == faults_as(Comment | Close, '{"body": "a"}')
    assert Comment("a") == decode_as(Comment, '{"body": "a"}')


class Flags(enum.Flag):
    """Not supported."""

    A = 1


class Mixed(enum.Enum):
    """Not supported."""

    A = 1
    B = "b"


class Plain:
    """Not registered."""


@attrs.define
class Holder:
    """Holds one of them."""

    inner: list[Plain]


REFUSED: list[tuple[Any, str]] = [
    (collections.abc.Callable, "Callable"),
    (collections.abc.Callable[[int], str], "Callable"),
    (collections.abc.Awaitable[int], "await it"),
    (collections.abc.Coroutine[Any, Any, int], "await it"),
    (collections.abc.AsyncIterator[int], "list"),
    (collections.abc.Iterator[int], "list"),
    (collections.abc.Iterable[int], "list"),
    (collections.abc.Generator[int], "list") if hasattr(typing, "NoDefault") else (collections.abc.Generator, "list"),
    (types.ModuleType, "module"),
    (type, "class"),
    (type[int], "class"),
    (object, "Any"),
    (complex, "complex"),
    (re.Pattern, "pattern"),
    (re.Pattern[str], "pattern"),
    (collections.deque[int], "list"),
    (collections.defaultdict[str, int], "dict"),
    (bytearray, "bytes"),
    (memoryview, "bytes"),
    (range, "register_type"),
    (slice, "register_type"),
    (Plain, "register_type"),
    (Exception, "register_type"),
    (Flags, "Flags"),
    (Mixed, "Mixed"),
    (enum.Enum("Nothing", []), "Nothing"),
    (dict[int, str], "keys"),
    (dict[tuple[int, int], int], "keys"),
    (dict[dt.date, int], "keys"),
    (dict[str | int, int], "keys"),
    (str | dt.datetime, "tell them apart"),
    (str | bytes, "tell them apart"),
    (list[int] | tuple[int, ...], "tell them apart"),
    (Literal["a"] | str, "tell them apart"),  # noqa: PYI051 - as people write it
    (int | Decimal, "tell them apart"),
    (Color | str, "tell them apart"),
    (dict[str, int] | Point, "tell them apart"),
    (dict[str, int] | dict[str, str], "tell them apart"),
    (Point | Size, "Literal field"),
    (Point | Span, "Literal field"),
    (Literal[b"a"], "text, integers"),
    (Literal[2**64], "64 bits"),
    (typing.NoReturn, "NoReturn"),
    (typing.Self, "Self"),
    (typing.LiteralString, "LiteralString"),
    (set[list[int]], "hashed"),
    (set[dict[str, int]], "hashed"),
    (set[Any], "hashed"),
    (set[Point], "hashed"),
    (3, "3"),
    (..., "Ellipsis"),
    (types, "module"),
]


@pytest.mark.parametrize(("tp", "word"), REFUSED, ids=[str(tp) for tp, _ in REFUSED])
def test_refusals(tp: Any, word: str) -> None:
    """A type without a JSON form is refused when it is registered, with the parameter and the advice what to write."""

    async def tool(x: Any) -> None: ...

    tool.__annotations__["x"] = tp
    with pytest.raises(UnsupportedTypeError) as caught:
        compile_function(tool)
    assert caught.value.where.startswith("parameter 'x'")
    assert word in str(caught.value)


@pytest.mark.parametrize(
    "tp",
    [tp for tp, word in REFUSED if word != "await it"],
    ids=[str(tp) for tp, word in REFUSED if word != "await it"],
)
def test_refusals_of_results(tp: Any) -> None:
    """The same types are refused as results, which are named so."""

    async def tool() -> None: ...

    tool.__annotations__["return"] = tp
    with pytest.raises(UnsupportedTypeError) as caught:
        compile_function(tool)
    assert caught.value.where.startswith("the return value")


def test_refusals_name_the_field() -> None:
    """A refused type inside a class is told with its field."""

    async def tool(h: Holder) -> None: ...

    with pytest.raises(UnsupportedTypeError) as caught:
        compile_function(tool)
    assert "parameter 'h', field Holder.inner" == caught.value.where
    assert "Plain" == caught.value.type_name


def test_classes_that_cannot_be_made_are_refused() -> None:
    """A class whose __init__ asks for more than its fields, or takes fewer, is refused when it is registered."""

    @dataclasses.dataclass
    class Seeded:
        n: int
        seed: dataclasses.InitVar[int]

    @attrs.define
    class Own:
        n: int

        def __init__(self, other: int) -> None:
            self.__attrs_init__(other)

    for cls in (Seeded, Own):
        with pytest.raises(SchemaBuildError, match=f"{cls.__name__}.*__init__"):
            derive_schema(cls)


def test_a_hand_written_init_is_called() -> None:
    """A class with an __init__ of its own gets its fields by keyword, and its own defaults apply."""

    @attrs.define
    class Own:
        n: int
        label: str = "field"

        def __init__(self, n: int, label: str = "init") -> None:
            self.__attrs_init__(n + 1, label)

    assert Own(1) == decode_as(Own, '{"n": 1}')
    assert (2, "init") == (decode_as(Own, '{"n": 1}').n, decode_as(Own, '{"n": 1}').label)


def test_defaults_of_classes_apply() -> None:
    """Factories run for each object, also those that take the object itself."""

    @attrs.define
    class Made:
        n: int
        tags: list[str] = attrs.field(factory=list)
        double: int = attrs.field(default=attrs.Factory(lambda self: self.n * 2, takes_self=True))
        after: str = attrs.field(default="x", converter=str.upper, kw_only=True)

    first, second = decode_as(list[Made], '[{"n": 1}, {"n": 2, "double": 0, "after": "y"}]')
    assert (Made(1), Made(2, double=0, after="y")) == (first, second)
    assert (2, 0, "X", "Y") == (first.double, second.double, first.after, second.after)
    assert first.tags is not second.tags
