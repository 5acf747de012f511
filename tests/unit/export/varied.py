"""A catalog of 60 varied tools: every kind of type, name and default that a tool may have."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict
from uuid import UUID

import attrs
import msgspec

import harbor_async as ha

MISSING = object()


class Colour(Enum):
    RED = "red"
    GREEN = "green"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


@attrs.frozen
class Place:
    """A place.

    Attributes:
        city: Its city.
        zip: Its code, if known.
    """

    city: str
    zip: str | None = None


@attrs.frozen
class Journey:
    start: Place
    end: Place
    via: list[Place] = attrs.Factory(list)


@attrs.frozen
class Knot:
    name: str
    children: "list[Knot]" = attrs.Factory(list)


@attrs.frozen
class Link:
    name: str
    next: "Link | None" = None


@attrs.frozen
class Circle:
    kind: Literal["circle"]
    radius: float
    label: str = "round"


@attrs.frozen
class Square:
    kind: Literal["square"]
    side: float
    label: str | None = None


@attrs.frozen
class Empty:
    pass


class Options(TypedDict):
    depth: int
    wide: NotRequired[bool]


class Pair(NamedTuple):
    left: int
    right: str = "r"


Short = Annotated[str, msgspec.Meta(min_length=2, max_length=5)]
Percent = Annotated[int, msgspec.Meta(ge=0, le=100)]
Positive = Annotated[int, msgspec.Meta(gt=0)]
Fraction = Annotated[float, msgspec.Meta(gt=0, lt=1)]
Even = Annotated[int, msgspec.Meta(multiple_of=2)]
Code = Annotated[str, msgspec.Meta(pattern="^[A-Z]{2}[0-9]+$")]
Few = Annotated[list[int], msgspec.Meta(min_length=2, max_length=3)]

KINDS: dict[str, tuple[Any, Any]] = {
    "text": (str, MISSING),
    "text.default": (str, "Oslo"),
    "text-null": (str | None, MISSING),
    "text-null.default": (str | None, "Oslo"),
    "text-null.none": (str | None, None),
    "short": (Short, MISSING),
    "short.default": (Short, "abc"),
    "code": (Code, MISSING),
    "whole": (int, MISSING),
    "whole.default": (int, 3),
    "whole-null.none": (int | None, None),
    "percent": (Percent, MISSING),
    "positive": (Positive, 1),
    "even": (Even, MISSING),
    "number": (float, MISSING),
    "fraction": (Fraction, MISSING),
    "number-or-text": (float | str, MISSING),
    "whole-or-text.default": (int | str, "any"),
    "flag": (bool, MISSING),
    "flag.default": (bool, False),
    "nothing": (None, MISSING),
    "moment": (datetime, MISSING),
    "day": (date, MISSING),
    "hour": (time, MISSING),
    "span": (timedelta, MISSING),
    "id": (UUID, MISSING),
    "money": (Decimal, MISSING),
    "raw": (bytes, MISSING),
    "word": (Literal["a", "b"], MISSING),
    "word.default": (Literal["a", "b"], "a"),
    "figure": (Literal[1, 2], MISSING),
    "mixed": (Literal["a", 1] | None, MISSING),
    "only": (Literal["x"], MISSING),
    "colour": (Colour, MISSING),
    "level": (Level, MISSING),
    "level-null": (Level | None, None),
    "texts": (list[str], MISSING),
    "numbers": (Sequence[float], MISSING),
    "few": (Few, MISSING),
    "shorts": (list[Short], MISSING),
    "set": (set[int], MISSING),
    "tuple": (tuple[int, ...], MISSING),
    "pair": (tuple[int, str], MISSING),
    "twins": (tuple[float, float], MISSING),
    "named-pair": (Pair, MISSING),
    "grid": (list[list[int]], MISSING),
    "maybe-texts": (list[str | None], MISSING),
    "table": (dict[str, int], MISSING),
    "tables": (Mapping[str, list[str]], MISSING),
    "any": (Any, MISSING),
    "place": (Place, MISSING),
    "place-null": (Place | None, None),
    "journey": (Journey, MISSING),
    "places": (list[Place], MISSING),
    "options": (Options, MISSING),
    "knot": (Knot, MISSING),
    "link": (Link, MISSING),
    "shape": (Circle | Square, MISSING),
    "shapes": (list[Circle | Square], MISSING),
    "shape-null": (Circle | Square | None, None),
    "empty": (Empty, MISSING),
}
"""By name the type of the one parameter, and its default."""


def make(name: str, tp: Any, default: Any = MISSING) -> Any:
    """Return a tool with one parameter."""

    async def function(value):
        return None

    function.__annotations__ = {"value": tp, "return": None}
    if default is not MISSING:
        function.__defaults__ = (default,)
    return ha.describe(function, name=name, description=f"Take a {name}.")


@ha.tool(name="5.days", side_effect=ha.SideEffect.READ)
async def forecast(city: str, *, days: Percent = 1, unit: Literal["C", "F"] = "C") -> list[float]:
    """Look up the weather.

    Args:
        city: City name, in English.
        days: Days ahead.
        unit: Of the temperatures.
    """
    return [float(days)]


@ha.tool(name="wetter.köln", side_effect=ha.SideEffect.PURE)
async def nothing_asked() -> str:
    """Say hello."""
    return "hello"


@ha.tool(name="a" * 70, side_effect=ha.SideEffect.EXTERNAL, idempotent=True)
async def book(journey: Journey, shape: Circle | Square, note: Annotated[Place, "Where it is noted."]) -> Place:
    """Book a journey."""
    return note


TOOLS = [forecast, nothing_asked, book, *(make(name, *kind) for name, kind in KINDS.items())]
CATALOG = ha.Catalog(TOOLS)
