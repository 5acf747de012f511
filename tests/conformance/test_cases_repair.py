"""Reported faults of arguments that a model has wrapped in text: told by default, unwrapped where that is asked for."""

import json
from typing import Any

import attrs
import pytest

from harbor_async import Catalog, Repair, Runtime, ToolCall, ToolResult
from harbor_async.export import repair
from tests.conformance.support import SUCCEEDED, make, summary

INVALID = ("failed", "validation", 0, "invalid")


@attrs.frozen
class Config:
    a: int


def taking(got: list[Any], **parameters: Any):
    """Make a tool with these parameters, by name and type, that notes what it is called with."""

    async def work(**given: Any) -> None:
        got.append(given)

    names = ", ".join(parameters)
    scope: dict[str, Any] = {"work": work}
    exec(f"async def tool({names}):\n await work({', '.join(f'{name}={name}' for name in parameters)})", scope)
    scope["tool"].__annotations__ = {**parameters, "return": None}
    return make(scope["tool"])


async def ask(tool: Any, arguments: Any, seen: list[Any] | None = None, *, on: bool = True) -> ToolResult:
    """Call ``tool`` in a runtime with the repair on or off; ``seen`` takes what its approval is shown."""

    async def approve(call: ToolCall, *_: Any) -> bool:
        if seen is not None:
            seen.append(call.arguments)
        return True

    async with Runtime(Catalog([tool]), repair=repair if on else None, approve=approve) as runtime:
        return await runtime.invoke(tool.name, arguments)


async def test_r064_a_string_for_an_array():
    """By default a string for an array is refused, with what to send instead."""
    got: list[Any] = []
    result = await ask(taking(got, files=list[str]), '{"files": "[\\"a\\", \\"b\\"]"}', on=False)
    assert INVALID == summary(result)
    assert [] == got
    assert () == result.repairs
    (problem,) = result.error.problems
    assert "/files" == problem.path
    assert "expected array, got string; send the JSON value itself, not a string" == problem.message


@pytest.mark.parametrize("kind", [str, bytes, dict])
async def test_r064_repaired_before_it_is_looked_at(kind):
    """With the repair on it is parsed before approval and validation, and the result tells."""
    got: list[Any] = []
    seen: list[Any] = []
    arguments: Any = {"files": '["a", "b"]'}
    if kind is not dict:
        arguments = json.dumps(arguments) if kind is str else json.dumps(arguments).encode()
    result = await ask(taking(got, files=list[str]), arguments, seen)
    assert SUCCEEDED == summary(result)
    assert [{"files": ["a", "b"]}] == got
    assert {"files": ["a", "b"]} == (seen[0] if kind is dict else json.loads(seen[0]))
    assert (Repair("/files", "json_string"),) == result.repairs
    assert "repairs=(Repair(path='/files', rule='json_string'),)" in repr(result)


@pytest.mark.parametrize("text", ["[1]", '[["a"]]', '{"a": "b"}', '"a"', "a", "[", '["a",]', '["a"] and more'])
async def test_r064_only_what_validates(text):
    """What is inside does not fit, or is no JSON: nothing is repaired, and the string is what is refused."""
    got: list[Any] = []
    result = await ask(taking(got, files=list[str]), json.dumps({"files": text}))
    assert INVALID == summary(result)
    assert () == result.repairs
    assert ["/files"] == [problem.path for problem in result.error.problems]
    assert "got string" in result.error.message


async def test_r064_one_of_several():
    """Each string is judged by itself: what validates is repaired, what does not is refused as it came."""
    got: list[Any] = []
    arguments = json.dumps({"a": "[1]", "b": '["x"]', "c": {"a": 1}})
    result = await ask(taking(got, a=list[int], b=list[int], c=Config), arguments)
    assert (Repair("/a", "json_string"),) == result.repairs
    assert ["/b"] == [problem.path for problem in result.error.problems]


async def test_r065_a_string_for_an_object():
    """Parsed for an object, only with the repair on."""
    got: list[Any] = []
    tool = taking(got, cfg=Config)
    assert INVALID == summary(await ask(tool, {"cfg": '{"a":1}'}, on=False))
    result = await ask(tool, {"cfg": '{"a":1}'})
    assert [{"cfg": Config(1)}] == got
    assert (Repair("/cfg", "json_string"),) == result.repairs


@pytest.mark.parametrize(
    ("tp", "value"),
    [
        (str, '{"a":1}'),
        (str | None, '{"a":1}'),
        (Any, '{"a":1}'),
        (list[str], ['{"a":1}']),
        (dict[str, str], {"k": "[1]"}),
        (Config | str, '{"a":"x"}'),
        (Config | str, '{"b":1}'),
        (Config | str, "text"),
        (str, "```json\n{}\n```"),
    ],
    ids=str,
)
async def test_r065_text_is_left_alone(tp, value):
    """Where text alone may stand, or anything, and where the parsed value does not fit fully, the text stays."""
    got: list[Any] = []
    result = await ask(taking(got, x=tp), json.dumps({"x": value}))
    assert SUCCEEDED == summary(result)
    assert [{"x": value}] == got
    assert () == result.repairs


async def test_r065_a_union_takes_the_object_that_validates():
    """Of object or text the object is meant, when the parsed value validates fully."""
    got: list[Any] = []
    result = await ask(taking(got, x=Config | str), json.dumps({"x": '{"a":1}'}))
    assert [{"x": Config(1)}] == got
    assert (Repair("/x", "json_string"),) == result.repairs


@pytest.mark.parametrize(("tp", "text"), [(int, "42"), (float, "1.5"), (bool, "true"), (int | None, "null")], ids=str)
async def test_r065_scalars_are_never_parsed(tp, text):
    """A number or a word in a string is refused, also with the repair on."""
    got: list[Any] = []
    result = await ask(taking(got, x=tp), json.dumps({"x": text}))
    assert INVALID == summary(result)
    assert () == result.repairs


@pytest.mark.parametrize("text", ['```json\n{"p":1}\n```', '```\n{"p":1}\n```', '\n ```JSON \r\n{"p":1}\r\n```  '])
async def test_r066_a_code_fence(text):
    """A code fence round the arguments is removed, only with the repair on."""
    got: list[Any] = []
    tool = taking(got, p=int)
    assert INVALID == summary(await ask(tool, text, on=False))
    result = await ask(tool, text)
    assert [{"p": 1}] == got
    assert (Repair("", "code_fence"),) == result.repairs


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"p":1} thanks', "text after the document"),
        ('{"p":1,}', "not valid JSON"),
        ('{"p":', "not valid JSON"),
        ('```json\n{"p":', "not valid JSON"),
        ('Here: ```json\n{"p":1}\n```', "not valid JSON"),
        ('```json\n{"p":1}\n``` thanks', "not valid JSON"),
        ('```json\n{"p":1}\n```\n```json\n{"p":2}\n```', "not valid JSON"),
        ('{"p":1,"p":2}', "given more than once"),
        ('```json\n{"p":1,"p":2}\n```', "not valid JSON"),
    ],
)
async def test_r066_never_guessed(text, fault):
    """Text round the object, a comma too many and what is cut off are refused, with the fault by its name."""
    got: list[Any] = []
    result = await ask(taking(got, p=int), text)
    assert INVALID == summary(result)
    assert [] == got
    assert () == result.repairs
    assert fault in result.error.message


async def test_r066_no_arguments():
    """A JSON string without a sign means no arguments, only with the repair on; a truncated text never does."""
    got: list[Any] = []
    tool = taking(got)
    assert INVALID == summary(await ask(tool, '""', on=False))
    result = await ask(tool, '""')
    assert SUCCEEDED == summary(result)
    assert (Repair("", "empty_string"),) == result.repairs
    assert INVALID == summary(await ask(tool, '{"'))


async def test_r066_the_whole_in_a_string():
    """Arguments that come as the text of a JSON string are parsed, if the result validates, with a fence or without."""
    got: list[Any] = []
    tool = taking(got, p=int)
    assert (Repair("", "json_string"),) == (await ask(tool, json.dumps('{"p":1}'))).repairs
    fenced = await ask(tool, json.dumps('```json\n{"p":1}\n```'))
    assert (Repair("", "json_string"), Repair("", "code_fence")) == fenced.repairs
    assert [{"p": 1}] * 2 == got
    assert INVALID == summary(await ask(tool, json.dumps('{"p":"x"}')))
