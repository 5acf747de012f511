"""What a dialect's schema lets through, the tool takes; and what a tool takes, the dialect's schema lets through.

For types of every kind. A document that the exported schema accepts is decoded as the dialect says and given to the
tool's decoder, which may refuse it only for a keyword that is listed as lost. The other way round, a document that fits
the tool's own schema can be said in the dialect, and comes back as it was.
"""

import copy
import json
import random
from collections.abc import Callable
from typing import Any, Optional

import attrs
import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import harbor_async as ha
from harbor_async.errors import ExportError, InvalidArgumentsError
from harbor_async.export import anthropic, gemini, openai
from tests.property.strategies import CORPUS, document, mutated, types

DOCUMENTS = 24
ODD = (":60", "P999", "0000-")
"""In texts that a format lets through and the decoder does not, as test_schema_agrees.py explains."""


def as_json_schema(schema: Any) -> Any:
    """Say a schema in OpenAPI's words as JSON Schema, for the validator."""
    if isinstance(schema, list):
        return [as_json_schema(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    out = {key: as_json_schema(value) for key, value in schema.items() if key not in {"nullable", "propertyOrdering"}}
    if isinstance(schema.get("type"), str):
        out["type"] = schema["type"].lower()
    elif isinstance(schema.get("type"), dict):  # a property of that name
        out["type"] = as_json_schema(schema["type"])
    return {"anyOf": [out, {"type": "null"}]} if schema.get("nullable") is True else out


@attrs.frozen
class Dialect:
    """One way out and back.

    Attributes:
        export: From a tool's schema to the dialect's.
        judge: From the dialect's schema to JSON Schema.
        calls: From a name and arguments to calls.
        is_total: Whether keys that are left out are sent as null.
    """

    export: Callable[[dict[str, Any]], Any]
    calls: Callable[[dict[str, Any], ha.Catalog], list[ha.ToolCall]]
    judge: Callable[[Any], Any] = lambda schema: schema
    is_total: bool = False


def _chat(arguments: dict[str, Any], catalog: ha.Catalog) -> list[ha.ToolCall]:
    call = {"id": "1", "function": {"name": "tool", "arguments": json.dumps(arguments)}}
    return openai.calls({"tool_calls": [call]}, catalog)


def _blocks(arguments: dict[str, Any], catalog: ha.Catalog) -> list[ha.ToolCall]:
    return anthropic.calls([{"type": "tool_use", "id": "1", "name": "tool", "input": arguments}], catalog)


def _struct(value: Any) -> Any:
    """Return JSON as a protobuf Struct has it: each number a float."""
    if isinstance(value, dict):
        return {key: _struct(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_struct(item) for item in value]
    is_whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) <= 2**53
    return float(value) if is_whole else value


def _parts(arguments: dict[str, Any], catalog: ha.Catalog) -> list[ha.ToolCall]:
    return gemini.calls({"parts": [{"functionCall": {"name": "tool", "args": _struct(arguments)}}]}, catalog)


DIALECTS = {
    "OpenAI strict": Dialect(openai.schema, _chat, is_total=True),
    "Anthropic strict": Dialect(anthropic.schema, _blocks),
    "Gemini parameters": Dialect(lambda schema: gemini.schema(schema, field="parameters"), _parts, as_json_schema),
    "Gemini parametersJsonSchema": Dialect(gemini.schema, _parts),
}


def sample(root: Any, schema: Any, rng: random.Random, room: int = 5) -> Any:
    """Return a document that most likely fits ``schema``."""
    if schema is True or not schema:
        return rng.choice(CORPUS)
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        return sample(root, root["$defs"][name] if name != "#" else root, rng, room)
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return sample(root, schema[key][-1] if room <= 0 else rng.choice(schema[key]), rng, room - 1)
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else rng.choice(schema["enum"])
    kind = schema.get("type", "object")
    kind = kind if isinstance(kind, str) else rng.choice(kind)
    if kind == "object":
        out = {}
        for name, below in schema.get("properties", {}).items():
            if name in schema.get("required", ()) or (room > 0 and rng.random() < 0.6):
                out[name] = sample(root, below, rng, room - 1)
        if isinstance(schema.get("additionalProperties"), dict) and room > 0:
            out["k"] = sample(root, schema["additionalProperties"], rng, room - 1)
        return out
    if kind == "array":
        first = [sample(root, below, rng, room - 1) for below in schema.get("prefixItems", ())]
        least = max(schema.get("minItems", 0) - len(first), 0)
        more = 0 if room <= 0 or "items" not in schema or schema["items"] is False else rng.randint(0, 2)
        size = min(max(least, more), schema.get("maxItems", 9) - len(first))
        return first + [sample(root, schema.get("items", True), rng, room - 1) for _ in range(size)]
    least, most = schema.get("minimum", -3), schema.get("maximum", 9)
    made: dict[str, Callable[[], Any]] = {
        "null": lambda: None,
        "boolean": lambda: rng.random() < 0.5,
        "integer": lambda: rng.choice([rng.randint(min(int(least), 9), max(int(most), int(least))), 2**60]),
        "number": lambda: rng.choice([rng.uniform(least, max(most, least)), rng.randint(-3, 9)]),
        "string": lambda: rng.choice([value for value in CORPUS if isinstance(value, str)]),
    }
    return made[kind]()


def describe(tp: Any, default: bool) -> Any:
    async def tool(x, y):
        return None

    tool.__annotations__ = {"x": tp, "y": Optional[tp] if default else int, "return": None}  # noqa: UP045 - None | None fails
    if default:
        tool.__defaults__ = (None,)
    return ha.describe(tool, name="tool")


def lost_keywords(losses: Any) -> set[str]:
    return {loss.keyword for loss in losses} - {"default", "description", "title", "examples"}


def refused_for(validator: Any, arguments: Any) -> list[set[str]]:
    """Return for each fault of ``arguments`` the keywords on the way to it; within ``anyOf`` they are not told."""
    return [{str(step) for step in error.schema_path} for error in validator.iter_errors(arguments)]


class Tally:
    """How often the last run of a property came to its point."""

    accepted = 0
    refused_for_a_loss = 0
    returned = 0


COMMON = settings(
    max_examples=50,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def exported_of(dialect: Dialect, descriptor: Any) -> Any:
    try:
        return dialect.export(descriptor.tool.args_schema)
    except ExportError:
        return None


def is_odd(arguments: Any) -> bool:
    text = json.dumps(arguments)
    return any(part in text for part in ODD)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", DIALECTS)
def test_what_the_schema_accepts_the_tool_accepts(name):
    """Arguments that the exported schema accepts are accepted by the decoder, or break a keyword listed as lost."""
    dialect = DIALECTS[name]

    @settings(COMMON)
    @given(types(), st.booleans(), st.integers(0, 2**32))
    def check(tp, default, seed):
        descriptor = describe(tp, default)
        exported = exported_of(dialect, descriptor)
        if exported is None:
            return
        schema = dialect.judge(exported.schema)
        judge = jsonschema_rs.validator_for(schema, validate_formats=True)
        own = jsonschema_rs.validator_for(descriptor.tool.args_schema, validate_formats=True)
        lost = lost_keywords(exported.losses)
        rng = random.Random(seed)
        for turn in range(DOCUMENTS):
            arguments = sample(schema, schema, rng)
            if turn % 3 == 2:
                arguments = mutated(copy.deepcopy(arguments), rng)
            if not isinstance(arguments, dict) or is_odd(arguments) or not judge.is_valid(arguments):
                continue
            (call,) = dialect.calls(arguments, ha.Catalog([descriptor]))
            try:
                descriptor.decode(call.arguments)
                Tally.accepted += 1
            except InvalidArgumentsError as exc:
                if all("base64" in problem.message for problem in exc.problems):
                    continue  # contentEncoding only annotates (JSON Schema 2020-12 Validation §8.3)
                given_back = call.arguments
                if not isinstance(given_back, dict):
                    given_back = json.loads(given_back)
                broken = refused_for(own, given_back)
                assert broken, (tp, arguments, given_back)
                assert lost, (tp, arguments, broken)
                # An error below a reference does not tell of the tuple that it stands in.
                told = "prefixItems" in lost or all(way & (lost | {"anyOf"}) for way in broken)
                assert told, (tp, arguments, broken, lost)
                Tally.refused_for_a_loss += 1

    Tally.accepted = Tally.refused_for_a_loss = 0
    check()
    print(f"{name}: {Tally.accepted} accepted, {Tally.refused_for_a_loss} refused for what is lost")  # noqa: T201 - for -s
    assert Tally.accepted >= 300


def fill(root: Any, schema: Any, value: Any) -> Any:
    """Send null for each key that is left out, as a strict tool of OpenAI asks."""
    if "$ref" in schema:
        return fill(root, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], value)
    for member in schema.get("anyOf", ()):
        whole = {**member, "$defs": root.get("$defs", {})}
        filled = fill(root, member, value)
        if jsonschema_rs.is_valid(whole, filled, validate_formats=True):
            return filled
    if isinstance(value, dict):
        return {
            name: fill(root, below, value[name]) if name in value else None
            for name, below in schema.get("properties", {}).items()
        }
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        return [fill(root, schema["items"], item) for item in value]
    return value


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", DIALECTS)
def test_what_the_tool_accepts_can_be_said(name):
    """Arguments of a tool's own schema fit the exported one, and come back so that the tool gets the same values."""
    dialect = DIALECTS[name]

    @settings(COMMON)
    @given(types(), st.booleans(), st.integers(0, 2**32))
    def check(tp, default, seed):
        descriptor = describe(tp, default)
        exported = exported_of(dialect, descriptor)
        if exported is None:
            return
        schema = dialect.judge(exported.schema)
        judge = jsonschema_rs.validator_for(schema, validate_formats=True)
        own = jsonschema_rs.validator_for(descriptor.tool.args_schema, validate_formats=True)
        cannot_leave_out = any(loss.keyword == "required" and not loss.text for loss in exported.losses)
        rng = random.Random(seed)
        for _ in range(DOCUMENTS):
            arguments = document(descriptor.schema.decoder.root, rng)
            if is_odd(arguments) or not own.is_valid(arguments):
                continue
            try:
                meant = descriptor.decode(arguments)
            except InvalidArgumentsError:
                continue  # what no schema says, as base64
            sent = fill(schema, schema, arguments) if dialect.is_total else arguments
            assert judge.is_valid(sent), (tp, arguments, sent)
            (call,) = dialect.calls(sent, ha.Catalog([descriptor]))
            again = descriptor.decode(call.arguments)
            if cannot_leave_out:
                continue
            assert meant == again, (tp, sent)
            Tally.returned += 1

    Tally.returned = 0
    check()
    assert Tally.returned >= 150
