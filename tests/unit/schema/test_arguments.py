"""Arguments: what is taken, what is refused, and what the refusal says."""

import json
from collections import OrderedDict
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Literal

import attrs
import msgspec
import pytest

from harbor_async.errors import ErrorCategory, InvalidArgumentsError
from harbor_async.schema._function import compile_function
from tests.unit.schema.support import decode, decode_as, faults, faults_as, function_of, problems_of


@attrs.define
class Opts:
    """A nested object."""

    mode: Literal["c", "f"]
    loud: bool = False


async def tool(city: str, opts: Opts | None = None, days: int = 1, extra: Any = None) -> None:
    """Take a few arguments."""


@pytest.mark.parametrize(
    ("tp", "text", "code"),
    [
        (int, "-1.9", "type"),
        (int, "true", "type"),
        (int, '"10"', "type"),
        (bool, '"false"', "type"),
        (bool, "1", "type"),
        (str, "[1, 2]", "type"),
        (str, "null", "type"),
        (str, "5", "type"),
        (list[str], '"abc"', "type"),
        (list[str], '{"a": 1}', "type"),
        (bytes, "3", "type"),
        (Literal["a", 1], "true", "type"),
        (Literal["a", 1], '"b"', "value"),
        (float, '"1.5"', "type"),
        (float, "true", "type"),
        (dict[str, int], "[]", "type"),
        (Opts, "[]", "type"),
    ],
)
def test_nothing_is_coerced(tp: Any, text: str, code: str) -> None:
    """N11: a value of another kind is refused at its place, and the message says what was expected."""
    assert [("", code)] == faults_as(tp, text)
    (problem,) = problems_of(function_of(tp), f'{{"x": {text}}}')
    assert "/x" == problem.path
    assert "expected" in problem.message


def test_an_extra_key_is_refused() -> None:
    """N11: a key that no parameter has is refused, and the known ones are named."""
    (problem,) = problems_of(tool, '{"city": "Oslo", "citty": 1}')
    assert ("/citty", "unknown") == (problem.path, problem.code)
    assert "known keys: city, opts, days, extra" in problem.message


def test_all_problems_come_at_once() -> None:
    """Every fault of one argument object is reported, each with its own pointer and code."""
    found = faults(tool, '{"opts": {"mode": "x", "loud": 1, "more": 0}, "days": 1.5, "years": 3}')
    assert [
        ("/city", "missing"),
        ("/opts/mode", "value"),
        ("/opts/loud", "type"),
        ("/opts/more", "unknown"),
        ("/days", "type"),
        ("/years", "unknown"),
    ] == found


def test_the_error_says_it_is_a_validation() -> None:
    """The exception carries the category that the envelope shows."""
    with pytest.raises(InvalidArgumentsError) as caught:
        decode(tool, "{}")
    assert ErrorCategory.VALIDATION == caught.value.category


@pytest.mark.parametrize("arguments", ["", "  \r\n\t", "null", " null ", b"", b"null", {}, None, "{}"])
def test_no_arguments(arguments: Any) -> None:
    """R023: empty text, white space and null mean no arguments."""

    async def now(zone: str = "UTC") -> None: ...

    assert ("UTC",) == decode(now, arguments)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"city": "a", "days": ' + "1" * 5000 + "}", "value"),
        ('{"extra": ' + "1" * 5000 + ', "city": "a"}', "value"),
        ('{"extra": 1e400, "city": "a"}', "value"),
        ('{"extra": NaN, "city": "a"}', "syntax"),
        ('{"extra": -Infinity, "city": "a"}', "syntax"),
        ("NaN", "syntax"),
        ('\ufeff{"city": "a"}', "syntax"),
        (b'\xef\xbb\xbf{"city": "a"}', "syntax"),
        ('{"city": "\x00"}', "syntax"),
        ('{"city": "\\ud800"}', "value"),
        ('{"city": "a", "extra": {"\\udfff": 1}}', "value"),
        ('{"city": "\ud800"}', "syntax"),
        (b'{"city": "\xff"}', "syntax"),
        (b"\x80\x00", "syntax"),
        ('\u00a0{"city": "a"}', "syntax"),
        ('\x0b{"city": "a"}', "syntax"),
        ('{"city": "a"}\x0c', "syntax"),
        ('{"city": "a"} thanks', "syntax"),
        ('{"city": "a"}{}', "syntax"),
        ('{"city": "a",}', "syntax"),
        ('{"city":', "syntax"),
        ("{'city': 'a'}", "syntax"),
        ("```json\n{}\n```", "syntax"),
        ("[" * 100_000, "too_large"),
        ("[" * 50_000, "too_deep"),
        ('{"city": "a", "extra": ' + "[" * 64 + "]" * 64 + "}", "too_deep"),
        ("[]", "type"),
        ("1", "type"),
        ('"{}"', "type"),
    ],
)
def test_one_clear_problem(text: str | bytes, code: str) -> None:
    """N14: what is no acceptable document gets one problem, and crashes nothing."""
    limits = {"max_bytes": 99_999}
    assert [code] == [found for _, found in faults(tool, text, **limits)]


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ('{"city": "a", "city": "b"}', ["/city"]),
        ('{"city": 1, "city": "b"}', ["/city"]),
        ('{"city": "a", "opts": {"mode": "c", "mode": "c"}}', ["/opts/mode"]),
        ('{"city": "a", "extra": [{"k": 1, "k": 1}]}', ["/extra/0/k"]),
        ('{"city": "a", "extra": {"x": {"": 1, "": 2}}}', ["/extra/x/"]),
        ('{"city": ":\\":", "days": 1, "days": 1}', ["/days"]),
        ('{"city": "a", "days" \n : 1, "\\u0064ays": 1}', ["/days"]),
    ],
)
def test_duplicate_keys(text: str, paths: list[str]) -> None:
    """N28: a key that comes twice in one object is refused at every depth, whatever its values and its spelling."""
    for arguments in (text, text.encode()):
        assert [(path, "duplicate") for path in paths] == faults(tool, arguments)


@pytest.mark.parametrize("city", ["a:b", '":":', "\\", '\\":', "http://x/?a:b=c:d", '{"a":1}', "\u2028:"])
def test_colons_in_text_are_no_keys(city: str) -> None:
    """Text may hold colons and quotes without looking like a duplicate key."""
    text = json.dumps({"city": city, "extra": {city: [city]}})
    assert (city, None, 1, {city: [city]}) == decode(tool, text)


@pytest.mark.parametrize("text", ["5.0", "5e0", "50E-1", "0.5e1"])
def test_integral_floats_are_integers(text: str) -> None:
    """A number without a fraction is an integer, however it is written, as JSON Schema has it."""
    value = decode_as(int, text)
    assert (5, int) == (value, type(value))


def test_integers_of_any_size_are_exact() -> None:
    """R102: integers beyond 64 bits arrive exactly."""
    assert [2**63 + 1, 2**70, -(2**100)] == decode_as(list[int], f"[{2**63 + 1}, {2**70}, {-(2**100)}]")


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999", '"NaN"'])
def test_numbers_are_finite(text: str) -> None:
    """R102: no spelling of a number that is not finite is taken."""
    assert faults_as(float, text)
    if text == '"NaN"':
        from decimal import Decimal

        assert [("", "value")] == faults_as(Decimal, text)


def test_a_stringified_array_gets_advice() -> None:
    """R064: JSON inside a string, where an array is wanted, is refused with the advice to send the value itself."""

    async def read(files: list[str], opts: Opts | None = None) -> None: ...

    (problem,) = problems_of(read, '{"files": "[\\"a\\"]"}')
    assert ("/files", "type") == (problem.path, problem.code)
    assert problem.message.startswith("expected array, got string")
    assert "send the JSON value itself" in problem.message
    (problem,) = problems_of(read, '{"files": [], "opts": "{\\"mode\\": \\"c\\"}"}')
    assert "send the JSON value itself" in problem.message
    (problem,) = problems_of(read, '{"files": "[not json"}')
    assert "send the JSON value itself" not in problem.message


def test_a_tag_is_no_unknown_key() -> None:
    """R099: the tag of a union is part of the object, and extras beside it are still refused."""

    @attrs.define
    class Comment:
        op: Literal["comment"]
        body: str

    @attrs.define
    class Close:
        op: Literal["close"] = "close"

    union = Comment | Close
    assert Comment("comment", "hi") == decode_as(union, '{"op": "comment", "body": "hi"}')
    assert Close() == decode_as(union, '{"op": "close"}')
    assert [("/body", "unknown")] == faults_as(union, '{"op": "close", "body": "hi"}')
    assert [("/op", "missing")] == faults_as(union, "{}")
    assert [("/op", "value")] == faults_as(union, '{"op": "delete"}')
    assert [("/op", "type")] == faults_as(union, '{"op": 1}')
    assert [("/body", "missing")] == faults_as(union, '{"op": "comment"}')
    assert [("/op", "duplicate")] == faults_as(union, '{"op": "close", "op": "close"}')


def test_size_is_counted_in_bytes_of_utf8() -> None:
    """The bound of the size is one of bytes, for text and mapping as for bytes."""
    text = json.dumps({"city": "é" * 10}, ensure_ascii=False)
    size = len(text.encode())
    for arguments in (text, text.encode()):
        assert decode(tool, arguments, max_bytes=size)
        assert [("", "too_large")] == faults(tool, arguments, max_bytes=size - 1)
    compact = len(b'{"city":"' + "é".encode() * 10 + b'"}')
    assert decode(tool, json.loads(text), max_bytes=compact)
    assert [("", "too_large")] == faults(tool, json.loads(text), max_bytes=compact - 1)


def test_depth_is_counted_in_levels() -> None:
    """An object of scalars is one level; each array or object inside adds one, as text and as mapping."""
    nested = {"city": "a", "extra": [[{}]]}
    for arguments in (nested, json.dumps(nested)):
        assert decode(tool, arguments, max_depth=4)
        assert [("", "too_deep")] == faults(tool, arguments, max_depth=3)


def test_brackets_in_text_are_no_depth() -> None:
    """Brackets inside strings do not count as nesting."""
    city = "[{" * 100
    assert (city, None, 1, None) == decode(tool, json.dumps({"city": city}))


def test_recursive_classes_keep_to_the_depth() -> None:
    """A document of a recursive class nests as deep as the limit lets it, or is refused in one problem."""

    @attrs.define
    class Chain:
        next: "Chain | None" = None

    async def pull(chain: Chain, /) -> None: ...

    schema = compile_function(pull)
    for depth in (50, 64):
        text = '{"next":' * (depth - 1) + "{}" + "}" * (depth - 1)
        assert decode(schema, text)
    for depth in (65, 5000):
        text = '{"next":' * (depth - 1) + "{}" + "}" * (depth - 1)
        assert [("", "too_deep")] == faults(schema, text)
    deep = '{"next":' * 4999 + "{}" + "}" * 4999
    assert [("", "too_deep")] == faults(schema, deep, max_depth=100_000)


class Word(StrEnum):
    """A subclass of str."""

    HI = "hi"


@pytest.mark.parametrize(
    "value",
    [
        {"city": "a", "extra": [1, 2.5, None, True, {"k": "v"}]},
        OrderedDict(city="a"),
        MappingProxyType({"city": "a", "extra": MappingProxyType({"x": 1})}),
        {"city": Word.HI, "days": 2.0},
        {"city": "a", "days": 2**70},
    ],
)
def test_a_mapping_is_read_as_its_text(value: Any) -> None:
    """A mapping gets the verdict and the values of the same document as text."""
    as_text = json.dumps(value, default=dict)
    assert decode(tool, as_text) == decode(tool, value)


@pytest.mark.parametrize(
    ("extra", "code"),
    [
        (float("nan"), "value"),
        (float("inf"), "value"),
        ("\ud800", "value"),
        ({"\ud800": 1}, "value"),
        ({1: 2}, "type"),
        ((1, 2), "type"),
        ({1}, "type"),
        (b"a", "type"),
        (object(), "type"),
        (1j, "type"),
    ],
)
def test_a_mapping_holds_json_only(extra: Any, code: str) -> None:
    """What no JSON text can say is refused in a mapping, at its place."""
    (problem,) = problems_of(tool, {"city": "a", "extra": [extra]})
    assert code == problem.code
    assert problem.path.startswith("/extra/0")


def test_cycles_and_shared_references_end() -> None:
    """A mapping that contains itself, or multiplies by sharing, is refused quickly."""
    cycle: list[Any] = []
    cycle.append(cycle)
    assert [("", "too_deep")] == faults(tool, {"city": "a", "extra": cycle})
    bomb: list[Any] = [0]
    for _ in range(50):
        bomb = [bomb] * 10
    assert [("", "too_large")] == faults(tool, {"city": "a", "extra": bomb})


@pytest.mark.parametrize("arguments", [[1], 5, object(), {1, 2}, 1.5, True])
def test_other_arguments_are_refused(arguments: Any) -> None:
    """Arguments that are neither text nor mapping are a problem of the call, not an exception of another kind."""
    assert [("", "type")] == faults(tool, arguments)


def test_bytes_like_arguments_are_taken() -> None:
    """A bytearray and a memoryview are read as bytes."""
    text = b'{"city": "a"}'
    assert decode(tool, text) == decode(tool, bytearray(text)) == decode(tool, memoryview(text))


def test_messages_are_bounded_and_hold_no_values() -> None:
    """A key of a megabyte is cut in pointer and message, and a secret value is in neither."""
    secret = "hunter2" * 10
    text = json.dumps({"k" * 1_000_000: 1, "city": [secret], "days": secret, "opts": {"mode": secret}})
    found = problems_of(tool, text, max_bytes=2_000_000)
    assert 4 == len(found)
    assert all(len(problem.path) < 300 and len(problem.message) < 500 for problem in found)
    assert not any("hunter2" in str(problem) for problem in found)


def test_the_number_of_problems_is_bounded() -> None:
    """Of very many problems the first hundred are told, and one says that there are more."""
    found = problems_of(function_of(list[int]), json.dumps({"x": ["a"] * 5000}))
    assert 101 == len(found)
    assert "/x/99" == found[-2].path
    assert ("", "and more; only the first 100 problems are told") == (found[-1].path, found[-1].message)


def test_every_decode_gives_fresh_values() -> None:
    """Two decodes of one text share no object that a tool could change."""
    schema = function_of(dict[str, list[Opts]])
    text = '{"x": {"a": [{"mode": "c"}]}}'
    (first,), (second,) = decode(schema, text), decode(schema, text)
    assert first == second
    assert first is not second
    assert first["a"] is not second["a"]
    assert first["a"][0] is not second["a"][0]


def test_pointers_are_escaped() -> None:
    """A pointer writes ~ and / of a key as RFC 6901 asks."""
    assert [("/x/a~1b~0c", "type")] == faults(function_of(dict[str, int]), '{"x": {"a/b~c": "1"}}')


def test_errors_of_the_users_class_are_problems() -> None:
    """What validators, converters and __init__ raise is a problem of that object, and the value is not quoted."""

    def even(_: object, __: object, value: int) -> None:
        if value % 2:
            msg = f"must be even, not {value}"
            raise ValueError(msg)

    @attrs.define
    class Item:
        n: int = attrs.field(validator=[even, attrs.validators.ge(5)])
        name: str = attrs.field(default="x", converter=lambda text: {"x": "x"}[text])

    found = problems_of(
        function_of(list[Item]), '{"x": [{"n": 6}, {"n": 12345}, {"n": 2}, {"n": 8, "name": "secret"}]}'
    )
    assert ["/x/1", "/x/2", "/x/3"] == [problem.path for problem in found]
    assert {"value"} == {problem.code for problem in found}
    assert "must be even, not <value>" == found[0].message
    assert "'n' must be >= 5" == found[1].message
    assert not any("secret" in problem.message or "12345" in problem.message for problem in found)


def test_real_init_is_called() -> None:
    """Objects are made by their class: converters, __post_init__ and the alias of a private name work."""

    @attrs.define
    class Box:
        _size: int = attrs.field(alias="size", converter=lambda n: n * 2)
        total: int = attrs.field(init=False)

        def __attrs_post_init__(self) -> None:
            self.total = self._size + 1

    box = decode_as(Box, '{"size": 2}')
    assert (4, 5) == (box._size, box.total)
    assert [("/total", "unknown")] == faults_as(Box, '{"size": 2, "total": 9}')
    assert [("/size", "missing"), ("/_size", "unknown")] == faults_as(Box, '{"_size": 2}')


def test_users_code_may_raise_errors_of_msgspec() -> None:
    """A validator that raises msgspec's own error is told as any other, with the pointer of its object."""

    def refuse(_: object, __: object, ___: object) -> None:
        msg = "not today"
        raise msgspec.ValidationError(msg)

    @attrs.define
    class Item:
        n: int = attrs.field(validator=refuse)

    for text in ('{"x": [{"n": 6}]}', '{"x": [{"n": 6.0}]}'):
        (problem,) = problems_of(function_of(list[Item]), text)
        assert ("/x/0", "value", "not today") == (problem.path, problem.code, problem.message)


def test_users_code_runs_twice_at_the_most() -> None:
    """What refuses a document is asked once to decode it, and once to say where; what takes it is asked once."""
    seen: list[int] = []

    def note(_: object, __: object, value: int) -> None:
        seen.append(value)
        if value < 0:
            raise ValueError

    @attrs.define
    class Item:
        n: int = attrs.field(validator=note)

    decode_as(list[Item], '[{"n": 1}]')
    assert [1] == seen
    seen.clear()
    problems_of(function_of(list[Item]), '{"x": [{"n": -1}]}')
    assert [-1, -1] == seen
