"""JSON to arguments and results to JSON, by themselves.

A decode is timed against three others: ``json.loads`` of the text, which validates nothing; a msgspec decoder of an
equivalent struct, which builds no class of a user and takes a key twice; and our own decode without its guards against
duplicate keys, size and depth.
"""

import json
from collections.abc import Callable
from typing import Any, Literal

import attrs
import msgspec

from harbor_async import ToolDescriptor, ToolPolicy, describe
from harbor_async.errors import InvalidArgumentsError

from .pair import Effort, Pair, Row, measure, repeat
from .work import ARGUMENTS, Forecast, forecast


@attrs.frozen
class Place:
    name: str
    x: float
    y: float
    is_open: bool


class Struct(msgspec.Struct, forbid_unknown_fields=True):
    pass


class OptionsStruct(Struct):
    unit: Literal["c", "f"]
    precise: bool


class NestedStruct(Struct):
    city: str
    tags: list[str]
    opts: OptionsStruct
    days: int = 3


class FlatStruct(Struct):
    city: str
    days: int
    unit: Literal["c", "f"]
    precise: bool


class NoteStruct(Struct):
    url: str
    at: str
    note: str


class PlaceStruct(Struct):
    name: str
    x: float
    y: float
    is_open: bool


class PlacesStruct(Struct):
    places: list[PlaceStruct]


async def flat(city: str, days: int, unit: Literal["c", "f"], *, precise: bool) -> None:
    """Take scalars."""


async def note(url: str, at: str, note: str) -> None:
    """Take texts."""


async def visit(places: list[Place]) -> None:
    """Take a list of objects."""


async def report(city: str) -> list[Place]:
    """Return a list of objects."""
    raise NotImplementedError


def places(count: int) -> list[Place]:
    return [Place(f"place {index}", 1.5 * index, -0.25 * index, is_open=index % 2 == 0) for index in range(count)]


def note_text(line: str, lines: int) -> str:
    url = "https://example.org:8443/forecast?at=12:30"
    return json.dumps({"url": url, "at": "2026-01-05T12:30:00", "note": line * lines})


@attrs.frozen
class Shape:
    """One kind of argument object: the tool that takes it, the struct of the same fields, the text."""

    name: str
    function: Callable[..., Any]
    struct: type[msgspec.Struct]
    text: str


def shape_of_places(name: str, count: int) -> Shape:
    text = json.dumps({"places": [attrs.asdict(place) for place in places(count)]})
    return Shape(name, visit, PlacesStruct, text)


SHAPES = (
    Shape("flat", flat, FlatStruct, '{"city": "Lisbon", "days": 5, "unit": "c", "precise": true}'),
    Shape("nested", forecast, NestedStruct, ARGUMENTS),
    Shape("colons in strings", note, NoteStruct, note_text("to: all; re: rain: heavy, ", 1)),
    shape_of_places("20 objects", 20),
    shape_of_places("10 kB of objects", 150),
    Shape("10 kB of prose", note, NoteStruct, note_text('To: all\nRe: "rain", see C:\\logs\n', 250)),
)

FAULTY = '{"city": 7, "tags": ["rain", "wind", "uv"], "opts": {"unit": "k", "precis": true}, "days": 5}'
"""A wrong type, a word that is not of the ``Literal``, an unknown key and a missing one."""
FAULTS = {"/city", "/opts/unit", "/opts/precis", "/opts/precise"}


def unguarded(descriptor: ToolDescriptor[..., Any]) -> Callable[[str], Any]:
    """Return the decode of ``descriptor`` without its guards: text to shadow, shadow to arguments."""
    decoder = descriptor.schema.decoder
    wire, build = decoder.wire, decoder.build
    return lambda text: build(wire(text))


async def decode(effort: Effort, backend: str) -> list[Row]:
    """Time the decode of each shape, of a mapping, and of faulty arguments with every fault explained."""
    rows: list[Row] = []
    for shape in SHAPES:
        descriptor = describe(shape.function)
        bare = unguarded(descriptor)
        assert descriptor.decode(shape.text) == bare(shape.text)
        ours = repeat(descriptor.decode, shape.text)
        for against, floor in (
            ("json.loads", json.loads),
            ("a msgspec struct", msgspec.json.Decoder(shape.struct).decode),
            ("without guards", bare),
        ):
            pair = Pair(f"decode {shape.name}", against, repeat(floor, shape.text), ours)
            rows.append(await measure(pair, effort))

    descriptor = describe(forecast)
    loads = repeat(json.loads, ARGUMENTS)
    pair = Pair("decode a mapping", "json.loads", loads, repeat(descriptor.decode, json.loads(ARGUMENTS)))
    rows.append(await measure(pair, effort))

    def explain() -> set[str]:
        try:
            descriptor.decode(FAULTY)
        except InvalidArgumentsError as exc:
            return {problem.path for problem in exc.problems}
        return set()

    assert explain() == FAULTS
    pair = Pair("explain 4 faults", "json.loads", repeat(json.loads, FAULTY), repeat(explain))
    rows.append(await measure(pair, effort))
    return rows


async def encode(effort: Effort, backend: str) -> list[Row]:
    """Time the encoding of results, checked against their type and not."""
    small = Forecast(city="Lisbon", temps=[20.5] * 5, summary="3 tags in c")
    large = places(150)
    rows: list[Row] = []
    for name, function, value, plain in (
        ("encode", forecast, small, attrs.asdict(small)),
        ("encode 10 kB", report, large, [attrs.asdict(place) for place in large]),
    ):
        checked, unchecked = describe(function), describe(function, policy=ToolPolicy(check_output=False))
        assert json.loads(checked.encode(value)) == json.loads(unchecked.encode(value)) == plain
        floor = repeat(json.dumps, plain)
        rows += [
            await measure(Pair(name, "json.dumps", floor, repeat(checked.encode, value)), effort),
            await measure(Pair(f"{name}, unchecked", "json.dumps", floor, repeat(unchecked.encode, value)), effort),
        ]
    return rows
