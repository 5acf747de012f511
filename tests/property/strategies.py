"""Hypothesis strategies that the property tests share: types with a JSON form, and documents for them.

Types are drawn by Hypothesis, so that a failure shrinks to a small type. The many documents for one type come from a
seeded generator that walks the type's own plan: drawing each through Hypothesis would cost a hundred times as much.
"""

import dataclasses
import datetime as dt
import enum
import random
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, TypedDict, Union

import attrs
import msgspec
from hypothesis import strategies as st

from harbor_async.schema import Name, _plan as plan


class Color(enum.Enum):
    """Text values."""

    RED = "red"
    GREEN = "green"


class Level(enum.IntEnum):
    """Integer values."""

    LOW = 1
    HIGH = 3


class Guessing(enum.Enum):
    """An enum that would take other words, were it asked."""

    A = "a"
    B = "b"

    @classmethod
    def _missing_(cls, value: object) -> "Guessing":
        return cls.A


@attrs.define
class Tree:
    """Recursive."""

    label: str
    children: "list[Tree]" = attrs.field(factory=list)
    parent: "Tree | None" = None


@dataclasses.dataclass
class Ping:
    """One half of a cycle."""

    pong: "Pong | None" = None


@dataclasses.dataclass
class Pong:
    """The other half."""

    ping: Ping | None = None
    depth: int = 0


class Point(NamedTuple):
    """An object, not an array."""

    x: float
    y: float = 0.0


class Movie(TypedDict, total=False):
    """Optional keys."""

    title: str
    year: Annotated[int, msgspec.Meta(ge=1888)]


@attrs.define
class Add:
    """A tagged expression."""

    left: "Expr"
    right: "Expr"
    op: Literal["add"] = "add"


@attrs.define
class Num:
    """A tagged leaf."""

    op: Literal["num"]
    value: int | float


Expr = Union[Add, Num]  # noqa: UP007 - named before its parts by forward references

SCALARS: tuple[Any, ...] = (
    str,
    int,
    float,
    bool,
    None,
    bytes,
    dt.datetime,
    dt.date,
    dt.time,
    dt.timedelta,
    uuid.UUID,
    Decimal,
    Any,
    Color,
    Level,
    Guessing,
    Literal["a", "b", 1, None],  # noqa: PYI061 - None among the values is the point
    Literal[True, 2],
    Literal[Color.RED],
    Annotated[int, msgspec.Meta(ge=-2, le=10)],
    Annotated[int, msgspec.Meta(gt=0, multiple_of=3)],
    Annotated[float, msgspec.Meta(gt=0, lt=10)],
    Annotated[str, msgspec.Meta(min_length=1, max_length=4)],
    Annotated[str, msgspec.Meta(pattern=r"^a\d*$")],
    Annotated[str, msgspec.Meta(pattern=r"\s.\w")],
)
CLASSES: tuple[Any, ...] = (Tree, Ping, Point, Movie, Expr, Add)
KEYS: tuple[Any, ...] = (str, Literal["a", "b"], Color, Annotated[str, msgspec.Meta(pattern="^[a-c]+$")])
HASHABLE: tuple[Any, ...] = (str, int, dt.date, uuid.UUID, Color, tuple[int, str])

_names = st.sampled_from(["a", "b", "city", "to_state", "class_", "s", "x1"])


def _optional(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return inner.map(lambda tp: tp if tp is None or tp is Any else Union[tp, None])  # noqa: UP007 - made at run time


def _records(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    fields = st.dictionaries(_names, st.tuples(inner, st.booleans()), max_size=4)
    return st.one_of(
        fields.map(_attrs_class),
        fields.map(_dataclass),
        fields.map(_typed_dict),
        st.tuples(fields, fields).map(_tagged),
    )


def _maybe(tp: Any, optional: bool) -> Any:
    return Union[tp, None] if optional and tp is not Any else tp  # noqa: UP007 - made at run time


def _attrs_class(fields: dict[str, tuple[Any, bool]]) -> Any:
    made = {
        name: attrs.field(
            type=Annotated[_maybe(tp, optional), Name(f"{name}-é")],
            kw_only=True,
            **({"default": None} if optional else {}),
        )
        for name, (tp, optional) in fields.items()
    }
    return attrs.make_class("Made", made)


def _dataclass(fields: dict[str, tuple[Any, bool]]) -> Any:
    made = [
        (
            name,
            _maybe(tp, optional),
            dataclasses.field(default=None, kw_only=True) if optional else dataclasses.field(kw_only=True),
        )
        for name, (tp, optional) in fields.items()
    ]
    return dataclasses.make_dataclass("MadeData", made)


def _typed_dict(fields: dict[str, tuple[Any, bool]]) -> Any:
    return TypedDict("MadeDict", {name: tp for name, (tp, _) in fields.items()}, total=len(fields) % 2 == 0)  # type: ignore[misc]  # made at run time


def _tagged(pair: tuple[dict[str, tuple[Any, bool]], dict[str, tuple[Any, bool]]]) -> Any:
    first, second = (
        attrs.make_class(
            f"Tagged{tag}",
            {"kind": attrs.field(type=Literal[tag], kw_only=True)}
            | {
                name: attrs.field(type=tp if tp is not None else type(None), kw_only=True)
                for name, (tp, _) in fields.items()
            },
        )
        for tag, fields in zip((1, 2), pair, strict=True)
    )
    return Union[first, second]  # noqa: UP007 - made at run time


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        inner.map(lambda tp: list[tp]),
        inner.map(lambda tp: tuple[tp, ...]),
        inner.map(lambda tp: Annotated[list[tp], msgspec.Meta(min_length=1, max_length=2)]),
        st.tuples(inner, inner).map(lambda pair: tuple[pair]),
        st.sampled_from(HASHABLE).map(lambda tp: set[tp]),
        st.sampled_from(HASHABLE).map(lambda tp: Annotated[frozenset[tp], msgspec.Meta(min_length=1)]),
        st.tuples(st.sampled_from(KEYS), inner).map(lambda pair: dict[pair]),
        _optional(inner),
        _records(inner),
    )


UNIONS: tuple[Any, ...] = (
    int | str,
    int | float,
    float | None,
    bool | int | str | None,
    Annotated[int | None, msgspec.Meta(ge=0)],
    list[int] | str,
    dict[str, int] | list[str] | None,
    Tree | list[Tree] | str,
    Expr | int,
    Color | int,
    dt.date | int | None,
    Decimal | bool | None,
    uuid.UUID | list[uuid.UUID],
    set[int] | Point,
)


def types() -> st.SearchStrategy[Any]:
    """Return the strategy of every kind of type that has a JSON form."""
    leaves = st.sampled_from([*SCALARS, *CLASSES, *UNIONS])
    return st.recursive(leaves, _containers, max_leaves=4)


CORPUS: tuple[Any, ...] = (
    None, True, False, 0, -0.0, 1, -1, 2, 3, 5.0, 1000.0, 1.5, 1e308, -2.0, 2**53 + 1, 2**63, -(2**63) - 1, 2**70,
    10.0, "", "a", "b", "red", "abc", "1", "5.0", "true", "null", "a1", "a\n", "a\u0663", "A", "\u00e9", "\u2028",
    " a b", "\u0000", "\U0001f600", "YQ==", "YQ", "YQ=", "YR==", "Y Q=", "_-==", "====", "YWI=", "2024-02-29",
    "2023-02-29", "2024-2-9", "20240229", "2024-02-29T00:00:00Z", "2024-02-29 00:00:00Z", "2024-02-29T00:00:00",
    "2024-02-29T00:00:00z", "2024-02-29t00:00:00Z", "2024-02-29T24:00:00Z", "2016-12-31T23:59:60Z",
    "2024-02-29T00:00:00+01:00", "2024-02-29T00:00:00+0100", "2024-02-29T00:00:00.123456789Z", "2024-02-29T00:00Z",
    "2024-02-29T00:00:00-25:00", "2024-02-29T00:00:00,5Z", "2024-02-29T00:00:00.Z", "0000-01-01", "0001-01-01",
    "10:00:00Z", "10:00:00", "10:00:00+01:00", "23:59:60Z", "24:00:00Z", "10:00Z", "10:00:00.5Z", "10:00:00z", "P1D",
    "PT1H", "-P1DT1S", "P", "PT", "P1DT", "P1W", "P1Y", "p1d", "PT1.5S", "PT1.5H", "P9999999999D", "+P1D",
    "P999999999DT999999999H", "PT1H2S", "PT1S1H", "12345678-1234-1234-1234-123456789abc",
    "12345678123412341234123456789abc", "{12345678-1234-1234-1234-123456789abc}",
    "12345678-1234-1234-1234-123456789ABC", "12345678-1234-1234-1234-123456789abg",
    "urn:uuid:12345678-1234-1234-1234-123456789abc", "1.10", "NaN", "Infinity", "-Infinity", "1_0", "\u0661", "1e5",
    "1E+5", ".5", "5.", "+1", "-", "1e", "0x1", " 1", "sNaN", [], [1], [1.0, 2], ["a"], [[]], [None], [1, "a"],
    [1, 2, 3], ["red", "red"], [{}], [[1, 2], [1, 2]], {}, {"a": 1}, {"a": {}}, {"": 0}, {"label": "x"},
    {"label": "x", "children": []}, {"label": "x", "parent": None}, {"op": "num", "value": 1},
    {"op": "num", "value": 1, "x": 1}, {"op": "add"}, {"op": 1}, {"kind": 1}, {"kind": 1.0}, {"kind": 3},
    {"kind": True}, {"x": 1}, {"x": 1, "y": 2}, [1, 2.0], {"a": 1, "b": 2}, {"c": 1}, {"red": 1}, {"title": 1},
    {"year": 1887}, {"year": 2000.0}, {"pong": {"ping": {"pong": None}}}, {"a b": 1}, {"a/b": {"~": 1}},
)  # fmt: skip
"""Values that have told decoders and schemas apart before, and their neighbours."""

_TEXTS = tuple(value for value in CORPUS if isinstance(value, str))


def document(node: plan.Node, rng: random.Random, room: int = 4) -> Any:
    """Return a document that most likely fits ``node``."""
    if isinstance(node, plan.Leaf):
        return _leaf(node, rng)
    if isinstance(node, plan.Custom):
        return document(node.inner, rng, room)
    if isinstance(node, plan.Array):
        least = node.bounds.get("min_length", 0)
        size = max(least, 0 if room <= 0 else rng.randint(0, 3))
        return [document(node.item, rng, room - 1) for _ in range(size)]
    if isinstance(node, plan.Row):
        return [document(item, rng, room - 1) for item in node.items]
    if isinstance(node, plan.Table):
        size = 0 if room <= 0 else rng.randint(0, 2)
        return {str(_leaf(node.key, rng)): document(node.value, rng, room - 1) for _ in range(size)}
    if isinstance(node, plan.Ref):
        return _record(node.record, rng, room)
    if isinstance(node, (plan.Union, plan.Tagged)):
        members = node.members if room > 0 else (node.members[-1],)
        return document(rng.choice(members), rng, room - (room <= 0))
    return rng.choice(CORPUS)


def _record(record: plan.Record, rng: random.Random, room: int) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if record.tag is not None:
        out[record.tag.wire] = record.tag_value
    for field in record.fields:
        if field.is_required or (room > 0 and rng.random() < 0.5):
            out[field.wire] = document(field.node, rng, room - 1) if room > -3 else None
    return out


def _leaf(node: plan.Leaf, rng: random.Random) -> Any:
    if node.choices is not None:
        return rng.choice(node.choices)
    kind = rng.choice(sorted(node.accepts))
    made: dict[str, Callable[[], Any]] = {
        "null": lambda: None,
        "boolean": lambda: rng.random() < 0.5,
        "integer": lambda: rng.choice([rng.randint(-5, 12), rng.getrandbits(70)]),
        "number": lambda: rng.choice([rng.uniform(-5, 12), float(rng.randint(-5, 12)), rng.randint(-5, 12)]),
        "string": lambda: rng.choice(_TEXTS),
    }
    return made[kind]()


def mutated(value: Any, rng: random.Random) -> Any:
    """Return ``value`` with one change somewhere: a part replaced, a key added, dropped or renamed."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(sorted(value))
        out = dict(value)
        match rng.randint(0, 4):
            case 0:
                del out[key]
            case 1:
                out[key + "x"] = out.pop(key)
            case 2:
                out["extra"] = rng.choice(CORPUS)
            case _:
                out[key] = mutated(value[key], rng)
        return out
    if isinstance(value, list) and value and rng.random() < 0.8:
        index = rng.randrange(len(value))
        match rng.randint(0, 2):
            case 0:
                return value[:index] + value[index + 1 :]
            case 1:
                return [*value, rng.choice(CORPUS)]
            case _:
                return [*value[:index], mutated(value[index], rng), *value[index + 1 :]]
    return rng.choice(CORPUS)
