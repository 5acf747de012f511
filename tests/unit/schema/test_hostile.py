"""Documents made to be slow, and values made to be told.

A quadratic step would run into the time limit of the tests.
"""

import datetime as dt
import json
import sys
import uuid
from collections.abc import Iterator
from decimal import Decimal
from itertools import count
from typing import Annotated, Any, NamedTuple, TypedDict

import attrs
import msgspec
import pytest

from tests.unit.schema.support import MAX_DEPTH, decode, decode_as, function_of, output_problems, problems_of

SIZE = 400_000
PRIME = sys.hash_info.modulus
"""Ints that differ by a multiple of it have the same hash; so have decimals, UUIDs and tuples of them."""


@attrs.frozen
class Point:
    """Hashed by its field."""

    n: int


class Pair(NamedTuple):
    """Hashed by its items."""

    n: int
    text: str = ""


class Loose(TypedDict, total=False):
    """Takes the empty object."""

    a: int


@attrs.define
class Tree:
    """Recursive."""

    kids: "list[Tree]" = attrs.field(factory=list)
    v: int | None = None


def array(items: Iterator[str], size: int = SIZE) -> str:
    """Return a JSON array of about ``size`` bytes."""
    taken: list[str] = []
    while size > 0:
        taken.append(next(items))
        size -= len(taken[-1]) + 1
    return f"[{','.join(taken)}]"


def faults_of(tp: Any, value_json: str) -> list[tuple[str, str, str]]:
    """Return pointer, code and text of every problem of a large document."""
    found = problems_of(function_of(tp), f'{{"x":{value_json}}}', 5_000_000, MAX_DEPTH)
    return [(problem.path, problem.code, problem.message) for problem in found]


@pytest.mark.parametrize(
    ("tp", "item"),
    [
        (set[int], "{}"),
        (frozenset[int], "-{}"),
        (set[Decimal], '"{}"'),
        (set[tuple[int, str]], '[{},""]'),
        (set[Point], '{{"n":{}}}'),
        (set[Pair], '{{"n":{}}}'),
        (set[int | str], "{}"),
    ],
)
def test_items_that_hash_alike(tp: Any, item: str) -> None:
    """A set of values that were chosen to have one hash is refused, where building it would take quadratic time."""
    text = array(item.format(number * PRIME) for number in count(1))
    assert [("/x", "value", "more than 32 different items have the same hash; send fewer")] == faults_of(tp, text)


def test_uuids_that_hash_alike() -> None:
    """UUIDs are hashed as the ints that they are."""
    text = array(json.dumps(str(uuid.UUID(int=number * PRIME))) for number in count(1))
    assert ["value"] == [code for _, code, _ in faults_of(set[uuid.UUID], text)]


def test_sets_of_harmless_items_are_taken() -> None:
    """Large sets, sets with many equal items, and a few items that hash alike are no attack."""
    numbers = list(range(-5_000, 5_000))
    assert set(numbers) == decode_as(set[int], json.dumps(numbers))
    assert frozenset({1, 2}) == decode_as(frozenset[int], json.dumps([1, 2] * 5_000))
    alike = [number * PRIME for number in range(32)]
    assert set(alike) == decode_as(set[int], json.dumps(alike * 20))
    assert {-1, -2} | set(range(100)) == decode_as(set[int], json.dumps([-1, -2, *range(100)]))


@pytest.mark.parametrize(
    ("tp", "item", "last", "fault"),
    [
        (list[int], "1", '"x"', ("", "type")),
        (list[int], "1.0", "1.5", ("", "type")),
        (list[Point], '{"n":1}', "{}", ("/n", "missing")),
        (list[Loose], "{}", '{"b":1}', ("/b", "unknown")),
        (Any, "{}", '{"a":1,"a":1}', ("/a", "duplicate")),
        (Any, "[]", '{"a":1,"a":1}', ("/a", "duplicate")),
        (Any, "1", '"\\ud800"', ("", "value")),
        (Any, '"\\n"', "1" * 5000, ("", "value")),
    ],
)
def test_the_last_of_very_many_items(tp: Any, item: str, last: str, fault: tuple[str, str]) -> None:
    """One fault behind very many right items is found, with its index."""
    items = array(iter(lambda: item, None))[1:-1]
    index = items.count(",") + 1
    ((path, code, _),) = faults_of(tp, f"[{items},{last}]")
    assert (f"/x/{index}{fault[0]}", fault[1]) == (path, code)


def test_long_way_to_many_items() -> None:
    """The pointer of each of many items is only written out for those that have a problem."""
    key = "k" * 80
    text = f'{{"{key}":' * 50 + array(iter(lambda: "[]", None))[:-1] + ',{"a":1,"a":1}]' + "}" * 50
    ((path, code, _),) = faults_of(Any, text)
    assert "duplicate" == code
    assert path.startswith(f"/x/{key}/{key}")


def test_recursive_class_with_many_items() -> None:
    """A class that holds itself is looked through once, not once a level."""
    text = '{"kids":[' * 20 + array(iter(lambda: '{"v":1}', None))[1:-1] + ',{"v":"x"}' + "]}" * 20
    ((path, code, _),) = faults_of(Tree, text)
    assert "type" == code
    assert path.startswith("/x" + "/kids/0" * 19)


def test_brackets_are_counted_in_linear_time() -> None:
    """A text of brackets is measured before anything recursive sees it."""
    assert [("", "too_deep")] == [fault[:2] for fault in faults_of(Any, "[" * SIZE)]
    assert [[]] * 100_000 == decode_value("[" + "[]," * 99_999 + "[]]")


def decode_value(text: str) -> Any:
    """Return the value of a large document of any type."""
    (value,) = decode(function_of(Any), f'{{"x":{text}}}', 5_000_000)
    return value


@pytest.mark.parametrize(
    ("tp", "text"),
    [
        (int, "9" * SIZE),
        (float, "1e" + "9" * SIZE),
        (Decimal, "1" * SIZE),
        (Any, "-" + "1" * SIZE),
        (uuid.UUID, json.dumps("1" * SIZE)),
        (dt.timedelta, json.dumps(f"P{'1' * SIZE}D")),
        (bytes, json.dumps("A" * (SIZE + 1))),
        (Annotated[str, msgspec.Meta(pattern="^[a-z]+$")], json.dumps("a" * SIZE + "1")),
        (list[int], json.dumps("[" * SIZE)),
    ],
)
def test_one_very_long_value(tp: Any, text: str) -> None:
    """A very long run of digits or letters is refused in a short sentence."""
    ((path, _, message),) = faults_of(tp, text)
    assert "/x" == path
    assert len(message) < 100


def refuse(_: object, __: object, value: object) -> None:
    """Refuse any value, and quote it."""
    msg = f"no good: {value}"
    raise ValueError(msg)


@attrs.define
class Refusing:
    """Refuses whatever it is given."""

    v: Any = attrs.field(validator=refuse)


def test_problems_of_users_classes_are_bounded() -> None:
    """A hundred refusals of a user's class are told, of fifty thousand."""
    found = faults_of(list[Refusing], array(f'{{"v":{number}}}' for number in count(10_000)))
    assert 101 == len(found)
    assert [("/x/0", "value", "no good"), ("/x/1", "value", "no good")] == found[:2]
    assert ("", "value", "and more; only the first 100 problems are told") == found[-1]


@pytest.mark.parametrize(
    "value",
    [
        [f"secret{number}" for number in range(2_000)],
        ["secret" * 500_000, *map(str, range(500))],
        [f"secret{number}" for number in range(50)],
        {"a": {"b": ["secret"]}},
        [[None] * 500_000, "secret"],
    ],
    ids=["many", "long", "few", "nested", "nulls"],
)
def test_large_values_are_not_quoted(value: Any) -> None:
    """What a validator quotes is cut out of its message; of a value with too many parts, the message is withheld."""
    ((path, _, message),) = faults_of(Refusing, json.dumps({"v": value}))
    assert "/x" == path
    assert "secret" not in message
    assert message in {"no good", "refused: ValueError"}


def test_decoded_values_are_not_quoted() -> None:
    """A date is cut out of a message in the form that Python gives it, too."""

    @attrs.define
    class Meeting:
        when: dt.datetime = attrs.field(validator=refuse)

    ((_, _, message),) = faults_of(Meeting, '{"when":"2024-02-29T10:00:00Z"}')
    assert "no good" == message


def test_comparing_users_values_may_raise() -> None:
    """The second look never compares objects of users, whose == may raise."""

    @attrs.frozen(eq=False)
    class Odd:
        n: int = attrs.field(validator=attrs.validators.ge(0))

        def __eq__(self, other: object) -> bool:
            raise RuntimeError

        __hash__ = None  # type: ignore[assignment]

    assert [("/x/1", "value", "'n' must be >= 0")] == faults_of(list[Odd], '[{"n":1},{"n":-1}]')


class Text(str):
    """A subclass, so that the slower walk is taken."""

    __slots__ = ()


def test_shared_text_in_a_mapping() -> None:
    """A mapping whose parts are shared is measured as the text that it would become."""
    text = "x" * 100_000
    for value in ({"x": [text] * 10_000}, {"x": [{text: 1}] * 10_000}, {"x": {"y": [Text(text)] * 10_000}}):
        (problem,) = problems_of(function_of(Any), value, SIZE)
        assert ("", "too_large") == (problem.path, problem.code)


def test_integers_that_python_cannot_write() -> None:
    """An int of more digits than Python writes is refused by its place, in a mapping and in a result."""
    huge = 10**5000
    (problem,) = problems_of(function_of(Any), {"x": [1, huge]})
    assert ("/x/1", "value", "the number is out of range") == (problem.path, problem.code, problem.message)
    for tp in (int, Any, str):
        for check in (True, False):
            (found,) = output_problems(tp, huge, check=check)
            assert ("", "value", "the integer has too many digits") == (found.path, found.code, found.message)
