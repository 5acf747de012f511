"""Tools whose JSON Schemas somebody else has written."""

import json
import sys
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings, strategies as st

import harbor_async as ha
from harbor_async.errors import (
    InvalidArgumentsError,
    InvalidExampleError,
    InvalidOutputError,
    InvalidToolError,
    MissingExtraError,
    SchemaBuildError,
)

POINT = {
    "type": "object",
    "properties": {"x": {"type": "integer", "minimum": 1}, "name": {"type": "string", "maxLength": 3}},
    "required": ["x"],
    "additionalProperties": False,
}


def make(schema: Any = POINT, out: Any = None, **options: Any) -> ha.ToolDescriptor[..., Any]:
    async def echo(args: dict[str, Any], /) -> Any:
        """Give back what came."""
        return args.get("give", args)

    return ha.describe_foreign(echo, args_schema=schema, out_schema=out, **options)


def problems(schema: Any, arguments: Any) -> list[tuple[str, str, str]]:
    with pytest.raises(InvalidArgumentsError) as caught:
        make(schema).decode(arguments)
    return [(problem.path, problem.code, problem.message) for problem in caught.value.problems]


def codes(schema: Any, arguments: Any) -> list[tuple[str, str]]:
    return [(path, code) for path, code, _ in problems(schema, arguments)]


async def test_the_arguments_reach_the_function_as_one_dict():
    """A model's text is parsed, checked and passed as a dict; the result is JSON."""
    async with ha.Runtime(ha.Catalog([make()])) as rt:
        result = await rt.invoke("echo", '{"x": 2, "name": "abc"}')
    assert ("succeeded", {"x": 2, "name": "abc"}) == (result.outcome, result.value)
    assert '{"x":2,"name":"abc"}' == result.content


def test_a_model_sees_the_schemas_as_they_were_written():
    """Name and description may be the function's own; the schemas are the foreign ones, and copies of them."""
    schema = {**POINT, "x-note": [1]}
    tool = make(schema, {"type": "string"}, tags=["far"]).tool
    schema["x-note"].append(2)
    assert ("echo", "Give back what came.", ("far",)) == (tool.name, tool.description, tool.tags)
    assert ({**POINT, "x-note": [1]}, {"type": "string"}) == (tool.args_schema, tool.out_schema)


def test_every_problem_is_told_with_pointer_and_code():
    """Missing, unknown, wrong type and wrong value: all at once, and no message holds a value that came."""
    found = problems(POINT, {"name": "secret", "more": "hidden"})
    assert {("/x", "missing"), ("/name", "value"), ("/more", "unknown")} == {(path, code) for path, code, _ in found}
    assert ("/x", "type", "expected integer, got string") == problems(POINT, {"x": "secret"})[0]
    assert not any("secret" in message or "hidden" in message for _, _, message in found)
    assert ("/more", "unknown", "unknown key; known keys: x, name") in found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"x": 1, "x": 0, "y": 1}', [("/x", "duplicate"), ("/y", "unknown")]),
        ('{"x": NaN}', [("", "syntax")]),
        ('{"x": 1e999}', [("/x", "value")]),
        ('{"x": 1, "name": "\\ud800"}', [("/name", "value")]),
        ("[]", [("", "type")]),
        ("{", [("", "syntax")]),
        ("{" + '"x":' + "[" * 70 + "]" * 70 + "}", [("", "too_deep")]),
        ('{"name": "' + "a" * 4_000_000 + '"}', [("", "too_large")]),
        ("", [("/x", "missing")]),
        ("null", [("/x", "missing")]),
    ],
)
def test_the_text_is_read_strictly(text: str, expected: list[tuple[str, str]]):
    """What our own tools refuse as JSON, a foreign one refuses, with the same codes."""
    assert expected == codes(POINT, text)


TAGGED = {
    "type": "object",
    "properties": {
        "shape": {
            "oneOf": [
                {"properties": {"kind": {"const": "circle"}, "r": {"type": "number"}}, "required": ["kind", "r"]},
                {"properties": {"kind": {"const": "line"}}, "required": ["kind"]},
            ]
        },
        "limit": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]},
        "both": {"oneOf": [{"type": "integer"}, {"type": "number"}]},
        "flat": {"type": "object", "propertyNames": {"pattern": "^a"}},
        "never": False,
    },
}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"limit": 0}, ("/limit", "value", "the value is less than the minimum of 1")),
        ({"limit": "a"}, ("/limit", "type", "expected integer or null, got string")),
        ({"shape": {"kind": "circle"}}, ("/shape/r", "missing", "the key 'r' is required")),
        ({"shape": {"kind": "dot"}}, ("/shape/kind", "value", 'expected one of "circle", "line"')),
        ({"flat": {"b": 1}}, ("/flat/b", "unknown", "unknown key: its name is not allowed")),
        ({"never": 1}, ("/never", "unknown", "nothing is allowed here")),
    ],
)
def test_of_several_schemas_the_one_that_was_meant_says_what_is_wrong(arguments: Any, expected: Any):
    """In an ``anyOf`` or ``oneOf`` a branch is known by its type or its tag; else what each wants is told."""
    assert [expected] == problems(TAGGED, arguments)


def test_a_value_that_fits_two_of_one_is_refused():
    """``oneOf`` means one."""
    assert [("/both", "value")] == codes(TAGGED, {"both": 1})


def test_at_most_a_hundred_problems_are_told():
    """The hundred-and-first line says that there are more."""
    found = problems(POINT, {"x": 1, **dict.fromkeys(map(str, range(500)), 1)})
    assert (101, "and more; only the first 100 problems are told") == (len(found), found[-1][2])


@pytest.mark.parametrize(
    ("schema", "word"),
    [
        ([], "expected a JSON Schema, as a mapping; got list"),
        ({}, "expected the schema of an object"),
        ({"type": "string"}, "expected the schema of an object"),
        ({"type": "objekt"}, "at /type"),
        ({"type": "object", "properties": {"a": {"pattern": "("}}}, "at /properties/a/pattern"),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}}, "'/$defs/none' does not exist"),
        ({"type": "object", "properties": {"a": {"$ref": "https://a.example/b.json"}}}, "https://a.example/b.json"),
        ({"type": "object", "properties": {"a": {"$ref": "file:///etc/hostname"}}}, "file:///etc/hostname"),
        ({"type": "object", "$schema": "https://a.example/dialect"}, "https://a.example/dialect"),
        ({"type": "object", "enum": [object()]}, "no JSON Schema"),
    ],
)
def test_what_is_no_schema_of_an_object_is_refused_at_once(schema: Any, word: str):
    """A schema that is invalid, not an object's, or that refers to another document, is an error of registration."""
    with pytest.raises(SchemaBuildError, match="args_schema") as caught:
        make(schema)
    assert word in str(caught.value)


def test_a_schema_nested_without_end_is_refused():
    """A schema deeper than the compiler goes is an error of registration, and no crash."""
    schema: Any = {"type": "object"}
    for _ in range(3000):
        schema = {"type": "object", "properties": {"a": schema}}
    with pytest.raises(SchemaBuildError, match="args_schema"):
        make(schema)


def test_an_older_dialect_is_followed():
    """``$schema`` chooses the dialect: in draft 7 an array under ``items`` is a tuple."""
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "definitions": {"row": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}},
        "properties": {"row": {"$ref": "#/definitions/row"}},
    }
    assert [("/row/1", "type")] == codes(schema, {"row": ["a", "b"]})


async def test_the_result_is_checked_where_the_policy_says_so():
    """A result that the out schema denies is an invalid output, told without its value; unchecked it passes."""
    out = {"type": "object", "properties": {"n": {"type": "integer"}}}
    checked = make({"type": "object"}, out)
    unchecked = make({"type": "object"}, out, policy=ha.ToolPolicy(check_output=False))
    result = await checked.invoke({"give": {"n": "secret"}})
    assert ("failed", "unknown", 1) == (result.outcome, result.error.category, result.attempts)
    assert [ha.Problem("/n", "type", "expected integer, got string")] == list(result.error.problems)
    assert {"n": "secret"} == (await unchecked.invoke({"give": {"n": "secret"}})).value
    with pytest.raises(InvalidOutputError):
        make().encode(float("nan"))


async def test_a_program_passes_arguments_by_name_or_as_one_mapping():
    """``rt.call`` takes either; they are checked, since no signature knows them."""
    tool = make()
    async with ha.Runtime(ha.Catalog([tool])) as rt:
        assert {"x": 1} == await rt.call(tool, x=1) == await rt.call(tool, {"x": 1})
        with pytest.raises(InvalidArgumentsError, match="the key 'x' is required"):
            await rt.call(tool)
        for args, kwargs in (({"x": 1}, {"x": 2}), ((1,), {}), (({}, {}), {})):
            with pytest.raises(TypeError, match="by its name, or all of them as one mapping"):
                await rt.call(tool, *((args,) if isinstance(args, dict) else args), **kwargs)
    assert {"y": 1} == await tool({"y": 1})


@pytest.mark.virtual
async def test_context_policy_limits_and_options_hold():
    """It is a tool as any other: context, retries, groups and idempotence by functions of the arguments, events."""
    seen: list[tuple[int, str]] = []
    events: list[ha.ToolEvent] = []

    async def put(ctx: ha.ToolContext, args: dict[str, Any]) -> str:
        seen.append((ctx.attempt, args.pop("id")))
        if ctx.attempt == 1:
            raise ConnectionError
        return "done"

    class Sink:
        async def emit(self, event: ha.ToolEvent) -> None:
            events.append(event)

    tool = ha.describe_foreign(
        put,
        name="far.put",
        args_schema={"type": "object", "properties": {"id": {"type": "string"}}},
        side_effect="write",
        idempotent=lambda args: args["id"] == "a",
        exclusive=lambda args: args["id"],
        scopes=["far"],
        transport="mcp",
    )
    who = ha.Identity("t", "u", "s", scopes={"far"})
    async with ha.Runtime(ha.Catalog([tool]), sinks=[Sink()], limits=ha.Limits(max_running=1)) as rt:
        denied = await rt.invoke("far.put", '{"id": "a"}', identity=ha.Identity("t", "u", "s"))
        safe = await rt.invoke("far.put", '{"id": "a"}', identity=who)
        unsafe = await rt.invoke("far.put", '{"id": "b"}', identity=who)
    assert "rejected" == denied.outcome
    assert ("done", 2) == (safe.value, safe.attempts)
    assert ("unsafe", 1) == (unsafe.stop_reason, unsafe.attempts)
    assert [(1, "a"), (2, "a"), (1, "b")] == seen  # each attempt has a dict of its own
    assert {"mcp"} == {event.transport for event in events}


async def test_it_is_found_by_a_search_and_may_be_a_plain_function():
    """A plain function runs in a thread; a search finds the tool by its description."""

    def count(args: dict) -> int:
        return len(args)

    catalog = ha.Catalog([ha.describe_foreign(count, args_schema={"type": "object"}, description="Count things.")])
    assert ["count"] == [tool.name for tool in catalog.search("things")]
    async with ha.Runtime(catalog) as rt:
        assert 2 == (await rt.invoke("count", {"a": 1, "b": None})).value


def two(a: dict, b: dict) -> None: ...
def none() -> None: ...
def named(*, args: dict) -> None: ...


@pytest.mark.parametrize("function", [two, none, named])
def test_a_function_takes_one_positional_parameter(function: Callable[..., Any]):
    """Any other function is refused, by its name."""
    with pytest.raises(InvalidToolError, match=f"{function.__name__}: expected a function of one positional parameter"):
        ha.describe_foreign(function, args_schema={"type": "object"})


def test_a_bad_declaration_is_refused_as_any_other():
    """No function, an unknown option, an example that does not fit."""
    with pytest.raises(InvalidToolError, match="got int"):
        ha.describe_foreign(1, args_schema={"type": "object"})
    with pytest.raises(InvalidToolError, match="unknown option"):
        make(speed=3)
    with pytest.raises(InvalidExampleError, match="/x"):
        make(examples=[ha.ToolExample({})])


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch):
    """Where jsonschema-rs is missing, the error says what to install."""
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    with pytest.raises(MissingExtraError, match=r"harbor-async\[schema\]"):
        make()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3),
    max_leaves=6,
)
SCHEMA = st.recursive(
    st.fixed_dictionaries({"type": st.sampled_from(["integer", "string", "null", "array", "object"])})
    | st.fixed_dictionaries({"enum": st.lists(JSON, min_size=1, max_size=3)})
    | st.fixed_dictionaries({"const": JSON})
    | st.just({"minimum": 0, "maxLength": 0}),
    lambda inner: (
        st.fixed_dictionaries(
            {
                "properties": st.dictionaries(st.sampled_from(["a", "b"]), inner),
                "required": st.lists(st.sampled_from(["a", "b"]), unique=True),
                "additionalProperties": st.booleans(),
            }
        )
        | st.fixed_dictionaries({"items": inner, "uniqueItems": st.booleans()})
        | st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)})
        | st.fixed_dictionaries({"oneOf": st.lists(inner, min_size=1, max_size=3)})
        | st.fixed_dictionaries({"not": inner})
    ),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(SCHEMA, st.dictionaries(st.sampled_from(["a", "b", "c"]), JSON))
def test_the_verdict_is_that_of_another_validator(schema: Any, arguments: Any):
    """A document passes just when the Python package jsonschema lets it, and what is refused has a problem."""
    schema = {**schema, "type": "object"}
    tool = make(schema)
    if jsonschema.Draft202012Validator(schema).is_valid(arguments):
        assert (arguments,) == tool.decode(json.dumps(arguments))
    else:
        assert codes(schema, arguments)
