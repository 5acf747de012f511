"""Results: how values become JSON, and what is refused."""

import datetime as dt
import enum
import json
import uuid
from collections import OrderedDict, namedtuple
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import attrs
import msgspec
import pytest

from harbor_async.errors import InvalidOutputError
from harbor_async.schema import Name
from harbor_async.schema._function import compile_function
from tests.unit.schema.support import encode, output_problems


class Color(enum.Enum):
    """Text values."""

    RED = "red"


class Pair(NamedTuple):
    """An object on the wire."""

    b: int
    a: str = "x"


@attrs.define
class Zed:
    """Fields in no alphabetical order, one renamed, some private, one computed."""

    zeta: int
    _alpha: str = attrs.field(alias="alpha")
    _beta: int = 5
    to_state: Annotated[str, Name("toState")] = "open"
    total: int = attrs.field(init=False, default=9)
    _hidden: int = attrs.field(init=False, default=0)


@dataclass
class Data:
    """A dataclass."""

    z: int
    a: "Data | None" = None
    doubled: int = field(init=False)

    def __post_init__(self) -> None:
        self.doubled = self.z * 2


ZED = '{"zeta":1,"alpha":"p","toState":"open","total":9}'


def test_values_without_annotation() -> None:
    """R056: without a declared type, dates become ISO text, decimals exact text, sets sorted arrays."""

    async def untyped(): ...

    schema = compile_function(untyped)
    value = {"t": dt.datetime(2024, 1, 2, tzinfo=dt.UTC), "d": Decimal("1.10"), "s": {2, 1}}
    assert schema.out_schema is None
    assert b'{"t":"2024-01-02T00:00:00Z","d":"1.10","s":[1,2]}' == schema.encode(value, True)
    assert b'{"t":"2024-01-02T00:00:00Z","d":"1.10","s":[1,2]}' == schema.encode(value, False)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (2**70, str(2**70)),
        (-(2**63) - 1, str(-(2**63) - 1)),
        (Decimal("1E+3"), '"1E+3"'),
        (uuid.UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (dt.timedelta(days=1, seconds=1.5), '"P1DT1.5S"'),
        (dt.date(2024, 1, 2), '"2024-01-02"'),
        (dt.time(1, 2), '"01:02:00"'),
        (b"\x00\xff", '"AP8="'),
        (bytearray(b"a"), '"YQ=="'),
        (Color.RED, '"red"'),
        (Pair(1), '{"b":1,"a":"x"}'),
        (namedtuple("P", "y x")(1, 2), '{"y":1,"x":2}'),  # noqa: PYI024 - the untyped kind is the point
        (Zed(1, "p"), ZED),
        (Data(1, Data(2)), '{"z":1,"a":{"z":2,"a":null,"doubled":4},"doubled":2}'),
        ((1, [2], frozenset("ba")), '[1,[2],["a","b"]]'),
        ({1, "a"}, '["a",1]'),
        (OrderedDict(b=1, a=2), '{"b":1,"a":2}'),
        (MappingProxyType({"b": 1}), '{"b":1}'),
        ({Color.RED: 3}, '{"red":3}'),
        ("é\u2028😀", '"é\u2028😀"'),
        (1e300, "1e300"),
        ([], "[]"),
    ],
)
def test_any_value(value: Any, text: str) -> None:
    """N15: every kind of value has one strict JSON form, in declaration order, whatever it is nested in."""
    assert text == encode(Any, value)
    assert f'{{"k":[{text}]}}' == encode(Any, {"k": (value,)})


class Opaque:
    """No JSON form."""


CYCLE: list[Any] = []
CYCLE.append({"again": CYCLE})


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (float("nan"), ""),
        ([1.0, float("-inf")], "/1"),
        (Decimal("NaN"), ""),
        ({1: "a", "1": "b"}, ""),
        ({(1, 2): 3}, ""),
        ({Color.RED: 1, "red": 2}, "/red"),
        (CYCLE, "/0/again"),
        (ValueError("secret"), ""),
        ([Opaque()], "/0"),
        ({"a": lambda: 1}, "/a"),
        ("\ud800", ""),
        ({"\ud800": 1}, ""),
        (Opaque, ""),
        ({"a": {"b": 1j}}, "/a/b"),
    ],
)
def test_what_has_no_json_form(value: Any, path: str) -> None:
    """N15, R102: what strict JSON cannot say is an invalid output with a pointer, checked or not; nothing is quoted."""
    for check in (True, False):
        (problem,) = output_problems(Any, value, check=check)
        assert path == problem.path
        assert "secret" not in problem.message


def test_too_deep_a_result_is_refused() -> None:
    """A result that nests beyond what can be encoded is an invalid output, not a crash."""
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for tp in (Any, list[Any]):
        assert ["too_deep"] == [problem.code for problem in output_problems(tp, deep)]


@pytest.mark.parametrize(
    ("tp", "value", "text"),
    [
        (Zed, Zed(1, "p"), ZED),
        (list[Zed], (Zed(1, "p"),), f"[{ZED}]"),
        (dict[str, Zed | None], {"a": None, "b": Zed(1, "p")}, f'{{"a":null,"b":{ZED}}}'),
        (Data, Data(1), '{"z":1,"a":null,"doubled":2}'),
        (Pair, Pair(1), '{"b":1,"a":"x"}'),
        (set[int], {3, 1, 2}, "[1,2,3]"),
        (frozenset[Color], frozenset({Color.RED}), '["red"]'),
        (tuple[int, str], (1, "a"), '[1,"a"]'),
        (Decimal, Decimal("1.10"), '"1.10"'),
        (Decimal | None, Decimal("0.5"), '"0.5"'),
        (float, 1, "1"),
        (int, 2**70, str(2**70)),
        (dt.timedelta, dt.timedelta(days=-1), '"-P1D"'),
        (bytes, b"a", '"YQ=="'),
        (Literal[Color.RED, 1], Color.RED, '"red"'),
        (None, None, "null"),
        (dict[Color, int], {Color.RED: 1}, '{"red":1}'),
        (Annotated[list[int], msgspec.Meta(max_length=2)], [1], "[1]"),
    ],
)
def test_declared_results(tp: Any, value: Any, text: str) -> None:
    """A declared type is encoded in declaration order under its wire names."""
    assert text == encode(tp, value)
    assert text == encode(tp, value, check=False)


def test_integral_floats_become_integers() -> None:
    """A float without a fraction, where an int is declared, is written as the integer it is."""
    assert "5" == encode(int, 5.0)
    assert '{"b":2,"a":"x"}' == encode(Pair, Pair(2.0))  # type: ignore[arg-type]  # the fault under test


@pytest.mark.parametrize(
    ("tp", "value", "faults"),
    [
        (int, "a", [("", "type")]),
        (int, 5.5, [("", "type")]),
        (str, None, [("", "type")]),
        (list[int], [1, "x", None], [("/1", "type"), ("/2", "type")]),
        (Pair, Pair("no", 2), [("/b", "type"), ("/a", "type")]),  # type: ignore[arg-type]  # the fault under test
        (float, float("nan"), [("", "value")]),
        (float | None, float("nan"), [("", "value")]),
        (dict[str, float | None], {"a": None, "b": float("inf")}, [("/b", "value")]),
        (str, "\ud800", [("", "value")]),
        (dict[str, int], {1: 2}, [("", "value")]),
        (dict[str, int], {1: 2, "1": 3}, [("", "value")]),
        (dict[str, int], Pair(1), [("/a", "type")]),
        (tuple[int, str], (1, "a", 2), [("", "value")]),
        (tuple[int, Decimal], (1, Decimal(1), 2), [("", "value")]),
        (Literal["a"], "b", [("", "value")]),
        (dt.datetime, dt.datetime(2024, 1, 1), [("", "value")]),  # noqa: DTZ001 - a naive time is what is refused
        (Decimal, Decimal("Infinity"), [("", "value")]),
        (Annotated[int, msgspec.Meta(ge=1)], 0, [("", "value")]),
        (Annotated[list[int], msgspec.Meta(max_length=2)], [1, 2, 3], [("", "value")]),
        (None, 1, [("", "type")]),
    ],
)
def test_results_that_their_type_denies(tp: Any, value: Any, faults: list[tuple[str, str]]) -> None:
    """A result that its annotation denies is refused with every place, and encoded as it is when the check is off."""
    assert faults == [(problem.path, problem.code) for problem in output_problems(tp, value)]
    try:
        text = encode(tp, value, check=False)
    except InvalidOutputError:
        assert faults[0][1] == "value"
    else:
        json.loads(text, parse_constant=pytest.fail)


def test_undeclared_keys_are_not_dropped() -> None:
    """A TypedDict result with a key too many is refused, not cut; unchecked, the key stays."""

    class Movie(TypedDict, total=False):
        title: str

    movie = {"title": "a", "year": 1}
    assert [("/year", "unknown")] == [(p.path, p.code) for p in output_problems(Movie, movie)]
    assert '{"title":"a","year":1}' == encode(Movie, movie, check=False)


def test_undeclared_attributes_do_not_leak() -> None:
    """What a class does not declare as a field is in no result."""
    data = Data(1)
    data.secret = "x"  # type: ignore[attr-defined]  # the leak under test
    assert '{"z":1,"a":null,"doubled":2}' == encode(Data, data) == encode(Any, data)


def test_a_fitting_dict_stands_for_a_class() -> None:
    """A dict with the keys of the declared class is what the schema promises."""
    assert '{"b":1,"a":"x"}' == encode(Pair, {"b": 1, "a": "x"})
    assert [("/b", "missing")] == [(p.path, p.code) for p in output_problems(Pair, {})]


def test_a_class_where_a_dict_is_declared_keeps_its_order() -> None:
    """An object of a class, returned where dict is declared, is written by our rules, not by msgspec's."""

    @attrs.define
    class Counts:
        z: int
        a: int

    assert '{"z":1,"a":2}' == encode(dict[str, int], Counts(1, 2))


def test_unions_of_results() -> None:
    """Members of a union are told apart by class, the most derived first."""

    @attrs.define
    class Base:
        kind: Literal["base"] = "base"

    @attrs.define
    class Derived(Base):
        kind: Literal["derived"] = "derived"  # type: ignore[assignment]  # a tag of its own
        more: Decimal = Decimal(1)

    union = Base | Derived | list[Decimal] | None
    assert '{"kind":"derived","more":"1"}' == encode(union, Derived())
    assert '{"kind":"base"}' == encode(union, Base())
    assert '["2.0"]' == encode(union, [Decimal("2.0")])
    assert "null" == encode(union, None)


def test_an_object_that_cannot_be_read() -> None:
    """A declared field that the object does not have is a missing key, not a crash."""

    @attrs.define
    class Half:
        n: int

    half = Half.__new__(Half)
    assert output_problems(Half, half)
    assert output_problems(Half, Opaque())
    assert output_problems(Any, half)


def test_messages_hold_no_values() -> None:
    """A secret in a bad result is not in the message."""
    (problem,) = output_problems(int, "hunter2")
    assert "hunter2" not in problem.message


@dataclass
class Secretive:
    """Holds what nobody shall see."""

    b: int = 1
    _token: str = "secret"
    a: int = 2


MISFITS = [
    Zed(1, "p"),
    Secretive(),
    [Secretive()],
    {"k": (Secretive(),)},
    Pair(1),
    Color.RED,
    {2, 1},
    b"x",
    dt.date(2024, 1, 2),
    uuid.UUID(int=1),
    None,
    [None, 1.5],
    "text",
    True,
    OrderedDict(b=1, a=2),
    MappingProxyType({"b": 1}),
]


@pytest.mark.parametrize("value", MISFITS, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("tp", [int, Zed, dict[str, int], Literal["x"], int | None, Secretive | None])
def test_unchecked_results_are_what_they_are(tp: Any, value: Any) -> None:
    """A value that its type denies is encoded, unchecked, as if nothing had been declared."""
    assert encode(Any, value) == encode(tp, value, check=False)
    assert "secret" not in encode(tp, value, check=False)


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        [float("inf")],
        {"a": float("-inf")},
        Decimal("NaN"),
        object(),
        {1: 2},
        {b"a": 1},
        msgspec.Raw(b"{"),
    ],
    ids=lambda value: repr(value).partition(" at ")[0],  # without its address: the same in each process
)
@pytest.mark.parametrize("tp", [int, int | None, list[int | None], dict[str, None], Zed, Literal[1] | None])
def test_what_is_no_json_is_refused_unchecked_too(tp: Any, value: Any) -> None:
    """NaN never becomes null, nor a key of another type text; with the check and without."""
    for check in (True, False):
        assert output_problems(tp, value, check=check)


@pytest.mark.parametrize("tp", [set[int], list[Zed], tuple[Zed, ...], tuple[Zed], set[Color]])
@pytest.mark.parametrize(
    "value", [{"a": 1}, (item for item in [1]), "a", b"a", range(1)], ids=lambda v: type(v).__name__
)
def test_arrays_are_made_of_arrays_only(tp: Any, value: Any) -> None:
    """What can merely be iterated, a dict or a generator, is no list and no set."""
    assert output_problems(tp, value)
