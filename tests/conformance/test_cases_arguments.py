"""Reported faults of argument validation: what is refused before the function is called, and what it says."""

import json
from typing import Annotated, Any, Literal

import attrs
import pytest

from harbor_async import describe
from tests.conformance.support import SUCCEEDED, invoke, make, summary

INVALID = ("failed", "validation", 0, "invalid")


def taking(tp: Any, got: list[Any]):
    """Make a tool with a parameter ``x`` of type ``tp``, that notes what it is called with."""

    async def work(x: Any) -> None:
        got.append(x)

    work.__annotations__ = {"x": tp, "return": None}
    return make(work, attempts=3)


@pytest.mark.parametrize(
    ("tp", "value", "expected"),
    [
        (int, -1.9, "integer"),
        (int, True, "integer"),
        (int, "10", "integer"),
        (bool, "false", "boolean"),
        (str, [1, 2], "string"),
        (str, None, "string"),
        (list[str], "abc", "array"),
        (list[str], {"a": 1}, "array"),
        (bytes, 3, "base64"),
        (Literal["a", 1], True, 'one of "a", 1'),
    ],
    ids=str,
)
@pytest.mark.parametrize("form", ["text", "mapping"])
async def test_n11_strict_args(tp, value, expected, form):
    """What another reader would convert is refused, with the way to it and what was expected there."""
    got = []
    arguments = {"x": value}
    result = await invoke(taking(tp, got), json.dumps(arguments) if form == "text" else arguments)
    assert (INVALID, []) == (summary(result), got)
    (problem,) = result.error.problems
    assert ("/x", "type") == (problem.path, problem.code)
    assert problem.message.startswith(f"expected {expected}")
    assert str(problem) in result.error.message
    assert str(problem) in json.loads(result.content)["error"]["message"]


async def test_n11_strict_args_extra_key():
    """A key that the tool does not know is refused and not ignored."""
    got = []
    result = await invoke(taking(int, got), '{"x": 1, "y": 2}')
    assert (INVALID, []) == (summary(result), got)
    assert [("/y", "unknown")] == [(problem.path, problem.code) for problem in result.error.problems]


@pytest.mark.parametrize("tp", [Any, str, list[int]], ids=str)
@pytest.mark.parametrize(
    "text",
    [
        '{"x": ' + "9" * 5000 + "}",
        '{"x": ' + "[" * 100_000,
        '{"x": 1e400}',
        '{"x": NaN}',
        '{"x": 1, "x": 2}',
        '{"x": {"a": 1, "a": 2}}',
        '\ufeff{"x": 1}',
        '{"x": "a\x00b"}',
        '{"x": "\\ud800"}',
        '{"x": "\ud800"}',
    ],
    ids=[
        "digits",
        "depth",
        "1e400",
        "NaN",
        "doubled",
        "doubled inside",
        "BOM",
        "NUL",
        "escaped surrogate",
        "surrogate",
    ],
)
@pytest.mark.parametrize("form", ["text", "bytes"])
async def test_n14_json_in(tp, text, form):
    """Text that is no strict JSON, or holds what Python cannot keep, is a validation failure and never a crash."""
    got = []
    arguments = text.encode(errors="surrogatepass") if form == "bytes" else text
    result = await invoke(taking(tp, got), arguments)
    assert (INVALID, []) == (summary(result), got)
    json.dumps(result.to_wire(), allow_nan=False).encode()
    result.content.encode()


@attrs.frozen
class Step:
    op: str
    count: int = 0


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"op": "close", "op": "comment", "id": "1"}', "/op"),
        ('{"op": "close", "id": "1", "step": {"op": "a", "op": "b"}}', "/step/op"),
        ('{"op": "close", "id": "1", "steps": [{"op": "a"}, {"op": "a", "count": 1, "count": 1}]}', "/steps/1/count"),
        ('{"op": "close", "id": "1", "free": {"a": {"b": 1, "b": 2}}}', "/free/a/b"),
        ('{"op": "close", "id": "1", "\\u006fp": "comment"}', "/op"),
    ],
)
async def test_n28_dup_keys(text, path):
    """A key that is given twice is refused before anything is written, at the top and below."""
    writes = []

    async def write(op: str, id: str, step: Step | None = None, steps: tuple[Step, ...] = (), free: Any = None) -> None:
        writes.append(op)

    result = await invoke(make(write, side_effect="write"), text)
    assert (INVALID, []) == (summary(result), writes)
    assert [(path, "duplicate")] == [(problem.path, problem.code) for problem in result.error.problems]


@pytest.mark.parametrize("arguments", ["", " \n\t", "null", b"", b" null ", "{}", {}], ids=repr)
async def test_r023_no_arguments(arguments):
    """Empty text, white space and null mean no arguments."""

    async def now() -> str:
        return "noon"

    result = await invoke(make(now), arguments)
    assert (SUCCEEDED, "noon") == (summary(result), result.value)


async def test_r070_a_default_that_is_changed():
    """A default that is no plain scalar is made anew for each call and each attempt."""
    outer = []

    async def work(xs: list[int] = [], deep: dict[str, list[int]] = {"a": []}, fails: bool = False) -> list[int]:  # noqa: B006 - that is the case
        xs.append(1)
        deep["a"].append(1)
        outer.append((list(xs), list(deep["a"])))
        if fails and len(outer) == 3:
            raise ConnectionError("reset")
        return xs

    tool = make(work, attempts=2)
    assert [1] == (await invoke(tool)).value
    assert [1] == (await invoke(tool)).value
    assert [1] == (await invoke(tool, {"fails": True})).value
    assert [([1], [1])] * 4 == outer


@attrs.frozen
class Close:
    op: Literal["close"]
    id: str


@attrs.frozen
class Comment:
    op: Literal["comment"]
    id: str
    body: str


async def test_r099_a_tag_is_no_extra_key():
    """In a closed union that a tag tells apart the tag itself is no unknown key, and an extra one is."""
    got = []

    async def either(action: Close | Comment) -> None:
        got.append(action)

    async def whole(action: Annotated[Close, "alone"], /) -> None:
        got.append(action)

    tool = make(either)
    assert SUCCEEDED == summary(await invoke(tool, {"action": {"op": "close", "id": "1"}}))
    assert SUCCEEDED == summary(await invoke(tool, '{"action": {"body": "b", "id": "1", "op": "comment"}}'))
    assert SUCCEEDED == summary(await invoke(make(whole), {"op": "close", "id": "2"}))
    assert [Close("close", "1"), Comment("comment", "1", "b"), Close("close", "2")] == got
    for extra, path in (
        ({"action": {"op": "close", "id": "1", "body": "b"}}, "/action/body"),
        ({"action": {"op": "comment", "id": "1", "body": "b", "more": 1}}, "/action/more"),
    ):
        result = await invoke(tool, extra)
        assert INVALID == summary(result)
        assert [(path, "unknown")] == [(problem.path, problem.code) for problem in result.error.problems]
    result = await invoke(tool, {"action": {"op": "reopen", "id": "1"}})
    assert INVALID == summary(result)
    assert ["/action/op"] == [problem.path for problem in result.error.problems]
    assert 3 == len(got)


async def test_r099_a_tag_and_the_default_policy():
    """The same of a tool as it comes, called with bytes."""
    result = await invoke(describe(_noted), b'{"action": {"op": "close", "id": "1"}}')
    assert ("close", 1) == (result.value, result.attempts)


async def _noted(action: Close | Comment) -> str:
    return action.op
