"""Reported faults of result serialization: strict JSON or a failure, and never a second run."""

import datetime as dt
import enum
import json
import uuid
from collections import namedtuple
from decimal import Decimal
from typing import Any

import pytest

from harbor_async.errors import InvalidOutputError
from tests.conformance.support import SUCCEEDED, invoke, make, summary

INVALID = ("failed", "unknown", 1, "invalid")


class Number(enum.Enum):
    ONE = 1


class Color(enum.Enum):
    RED = "red"


class Word(enum.StrEnum):
    RED = "red"


Point = namedtuple("Point", ["x", "y"])  # noqa: PYI024 - that is the case


def strict(text: str) -> Any:
    """Read JSON as the standard has it: no NaN, no key twice."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(pairs) == len(dict(pairs))
        return dict(pairs)

    def refuse(name: str) -> None:
        raise ValueError(name)

    return json.loads(text, object_pairs_hook=once, parse_constant=refuse)


async def returned(value: Any, annotation: Any = Any) -> tuple[Any, Any]:
    """Return the result of a tool that returns ``value``, and what it reads as; it has run once, come what may."""
    runs = []

    async def work():
        runs.append(1)
        return value

    if annotation is not Any:
        work.__annotations__["return"] = annotation
    result = await invoke(make(work, attempts=3))
    assert [1] == runs
    wire = strict(json.dumps(result.to_wire()))
    if result.error is None:
        assert SUCCEEDED == summary(result)
        read = wire["value"]
        if not isinstance(value, str):
            assert read == strict(result.content)
        return result, read
    assert INVALID == summary(result)
    assert InvalidOutputError is type(result.error.cause)
    assert not result.is_retryable
    strict(result.content)
    return result, None


def cycle() -> list[Any]:
    value: list[Any] = []
    value.append({"again": value})
    return value


@pytest.mark.parametrize(
    "value",
    [
        *(float("nan"), float("inf"), [1.0, float("nan")]),
        *({1: "a", "1": "b"}, {(1, 2): 3}, {Number.ONE: 3}),
        *(cycle(), ValueError("an exception"), {"deep": {"er": object()}}),
    ],
    ids=["nan", "inf", "nan inside", "keys alike", "tuple key", "number key", "cycle", "exception", "object"],
)
async def test_n15_json_out_has_no_json(value):
    """What has no JSON form is an invalid result after the one run."""
    result, _ = await returned(value)
    assert result.error is not None


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize(
    ("value", "annotation", "expected"),
    [
        (Decimal("1.10"), Decimal, "1.10"),
        (uuid.UUID("12345678-1234-5678-1234-567812345678"), uuid.UUID, "12345678-1234-5678-1234-567812345678"),
        (dt.timedelta(days=1, seconds=2), dt.timedelta, "P1DT2S"),
        (b"\x00\xff", bytes, "AP8="),
        ({3, 1, 2}, set[int], [1, 2, 3]),
        (2**70, int, 1180591620717411303424),
        (Point(1, 2), Any, {"x": 1, "y": 2}),
        ({Word.RED: 3}, dict[str, int], {"red": 3}),
        ({Color.RED: 3}, Any, {"red": 3}),
    ],
    ids=["Decimal", "UUID", "timedelta", "bytes", "set", "2**70", "namedtuple", "text enum key", "enum key"],
)
async def test_n15_json_out(value, annotation, expected, declared):
    """Python's own values become strict JSON in their standard form: ISO 8601, RFC 4648, RFC 9562."""
    _, read = await returned(value, annotation if declared else Any)
    assert expected == read


@pytest.mark.parametrize("declared", [True, False])
async def test_r056_values_of_python(declared):
    """A date becomes ISO text, a decimal its digits and a set a sorted array, after one run."""
    moment = dt.datetime(2024, 2, 29, 12, 30, tzinfo=dt.UTC)
    numbers = {10, 9, 1, 2, 33, 100, 7}
    value = {"t": moment, "d": Decimal("1.10"), "s": {1, 2}, "many": numbers}
    _, read = await returned(value, dict[str, Any] if declared else Any)
    assert moment == dt.datetime.fromisoformat(read["t"])
    assert "2024-02-29T12:30:00" == read["t"][:19]
    assert ("1.10", [1, 2], [1, 2, 7, 9, 10, 33, 100]) == (read["d"], read["s"], read["many"])


@pytest.mark.parametrize(
    "number", [2**63 + 1, 2**70, -(2**70), 2**64 - 1], ids=["2**63+1", "2**70", "-2**70", "2**64-1"]
)
@pytest.mark.parametrize("tp", [int, Any, list[int]], ids=str)
async def test_r102_large_integers(number, tp):
    """Integers of any size are exact on the way in and on the way out."""
    got = []
    given = [number] if tp == list[int] else number

    async def echo(x):
        got.append(x)
        return x

    echo.__annotations__ = {"x": tp, "return": tp}
    result = await invoke(make(echo), f'{{"x": {json.dumps(given)}}}')
    assert (SUCCEEDED, [given]) == (summary(result), got)
    assert [int] == [type(item) for item in (got[0] if tp == list[int] else got)]
    assert json.dumps(given) == result.content
    assert given == result.to_wire()["value"]


@pytest.mark.parametrize(
    ("tp", "text"),
    [
        *((float, word) for word in ("NaN", "Infinity", "-Infinity", "1e400")),
        *((Decimal, word) for word in ('"NaN"', '"sNaN"', '"Infinity"', "NaN")),
        *((Any, word) for word in ("NaN", "-Infinity", "[1, 1e999]")),
    ],
    ids=str,
)
async def test_r102_numbers_that_are_not_finite_in(tp, text):
    """A number that is not finite is a validation error on the way in."""
    got = []

    async def work(x) -> None:
        got.append(x)

    work.__annotations__["x"] = tp
    result = await invoke(make(work), f'{{"x": {text}}}')
    assert (("failed", "validation", 0, "invalid"), []) == (summary(result), got)


@pytest.mark.parametrize(
    ("value", "tp"),
    [
        *((float(word), tp) for word in ("nan", "inf", "-inf") for tp in (float, Any)),
        *((Decimal(word), tp) for word in ("NaN", "sNaN", "Infinity") for tp in (Decimal, Any)),
    ],
    ids=str,
)
async def test_r102_numbers_that_are_not_finite_out(value, tp):
    """A number that is not finite is an invalid result on the way out."""
    result, _ = await returned(value, tp)
    assert result.error is not None
