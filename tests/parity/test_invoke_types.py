"""``invoke.json``: tools whose types strain schema and decoder, and what registering a tool makes of it."""

import json
import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NotRequired, TypedDict

import attrs
import pytest

from harbor_async import Catalog, Tool, ToolExample, ToolPolicy, describe
from harbor_async.errors import DuplicateToolError, InvalidExampleError, InvalidToolError, UnsupportedTypeError
from tests.parity import go_types as go
from tests.parity.answers import Answer, arguments, ask, exact, recorded
from tests.parity.harness import Case, Difference, Section, named, names

# --- schema_vs_codec --------------------------------------------------------------------------------------------------


class Part(TypedDict):
    x: int
    y: NotRequired[str]


@attrs.frozen
class Hidden:
    hidden: str = ""


@attrs.frozen(kw_only=True)
class EmbeddedPrivate(Hidden):
    n: int


def returns(annotation: Any, value: Any) -> Callable[[list], Callable]:
    """Make a function that takes a text and returns ``value``, which it annotates as ``annotation``."""

    def make(seen: list[Any]) -> Callable:
        async def function(text: str) -> Any:
            seen.append({"text": text})
            return value

        function.__annotations__["return"] = annotation
        return function

    return make


def takes(
    annotation: Any, result: Callable[[Any], Any] = lambda args: args, out: Any = None
) -> Callable[[list], Callable]:
    """Make a function whose whole argument object is an ``annotation``, and that returns it, or ``result`` of it."""

    def make(seen: list[Any]) -> Callable:
        async def function(args: Any, /) -> Any:
            seen.append(attrs.asdict(args) if attrs.has(type(args)) else args)
            return result(args)

        function.__annotations__.update({"args": annotation, "return": annotation if out is None else out})
        return function

    return make


def out(**fields: Any) -> Any:
    return TypedDict("Out", fields)


FUNCTIONS: dict[str, Callable[[list], Callable]] = {
    "embedded_flat": takes(go.Embedded),
    "embedded_nested": takes(go.Embedded),
    "embedded_private": takes(EmbeddedPrivate),
    "out_nil_slice": returns(out(l=list[str]), {"l": None}),
    "out_nil_map": returns(out(m=dict[str, int]), {"m": None}),
    "out_nil_bytes": returns(out(y=bytes), {"y": None}),
    "out_nil_pointer": returns(out(p=int | None), {"p": None}),
    "out_nil_pointer_omitempty": returns(out(p=NotRequired[int | None]), {}),
    "out_any_nil": returns(out(a=Any), {"a": None}),
    "out_root_nil_pointer": returns(Part | None, None),
    "out_root_any_nil": returns(Any, None),
    "out_root_nil_slice": returns(list[str], None),
    "out_error_iface_root": returns(Exception, None),
    "out_nan": returns(out(f=float), {"f": math.nan}),
    "string_option_number": takes(out(a=int)),
    "string_option_text": takes(out(a=int)),
    "dash_comma": takes(go.DashComma),
    "dash_comma_empty": takes(go.DashComma),
    "json_number_number": takes(out(a=go.Decimal)),
    "json_number_text": takes(out(a=go.Decimal)),
    "custom_marshaler_out": returns(go.Marshaler, go.Marshaler(1)),
    "text_marshaler_out": returns(go.TextMarshaler, go.TextMarshaler(1)),
    "big_int_out": returns(int, 2**70),
    "net_ip_out": returns(go.NetIP, go.NetIP("1.2.3.4")),
    "omitempty_required_mismatch": takes(go.Base),
    "root_scalar_string": takes(str),
    "root_any": takes(Any),
    "root_pointer_null": takes(Part, lambda args: args is None, bool),
    "root_pointer_object": takes(Part, lambda args: args is None, bool),
    "root_map": takes(dict[str, int], lambda args: args["a"], int),
    "empty_struct_null": takes(go.Empty, lambda _: True, bool),
    "empty_struct_nothing": takes(go.Empty, lambda _: True, bool),
    "empty_struct_object": takes(go.Empty, lambda _: True, bool),
    "iface_in": takes(go.Iface),
    "chan_in": takes(go.Channel),
    "chan_out": returns(go.Channel, None),
    "cycle_in": takes(go.Node),
}


def given_back(value: Any) -> Callable[[Answer, Case], Answer]:
    """Make the answer of a tool that returns its arguments."""
    return lambda *_: Answer("value", 1, None, exact(value))


def succeeded(value: Any) -> Callable[[Answer, Case], Answer]:
    """Make the answer of a tool that returns what the seed could not."""
    return lambda seed, _: Answer("value", 1, seed.saw, exact(value))


CODEC = Section(
    "invoke",
    "schema_vs_codec",
    recorded,
    (
        Difference(
            6,
            named("out_nil_slice", "out_nil_map", "out_nil_bytes", "out_root_nil_slice", "out_nan"),
            lambda seed, _: attrs.evolve(seed, ended="invalid_output"),
        ),
        Difference(15, named("embedded_flat"), given_back({"id": "a", "n": 1})),
        Difference(15, named("embedded_private"), given_back({"hidden": "", "n": 1})),
        Difference(15, named("out_nil_pointer"), succeeded({"p": None})),
        Difference(15, named("out_root_nil_pointer"), succeeded(None)),
        Difference(24, named("big_int_out"), succeeded(2**70)),
        Difference(
            25,
            named("empty_struct_null", "empty_struct_nothing"),
            lambda *_: Answer("value", 1, exact({}), exact(value=True)),
        ),
        Difference(26, named("cycle_in"), lambda *_: Answer("invalid_args", paths=("",))),
        Difference(39, named("custom_marshaler_out", "text_marshaler_out"), succeeded("1")),
        Difference(39, named("json_number_number", "json_number_text"), given_back({"a": "5"})),
        Difference(40, named("dash_comma"), given_back({"-": 5})),
        Difference(40, named("dash_comma_empty"), lambda *_: Answer("invalid_args", paths=("",))),
        Difference(45, named("out_error_iface_root", "iface_in"), lambda *_: Answer("unsupported")),
        Difference(46, named("string_option_number"), given_back({"a": 5})),
        Difference(47, named("root_scalar_string", "root_any", "root_map"), lambda *_: Answer("unsupported")),
    ),
)


@pytest.mark.virtual
@pytest.mark.parametrize("case", CODEC.cases, ids=names)
async def test_schema_and_decoder_meet_as_in_the_seed_or_agree(case: Case, asserted: Callable) -> None:
    """Where the seed's schema and its decoder agree, so do we; where they do not, we do what the schema says."""
    seen: list[Any] = []
    numbers, expected = CODEC.expect(case)
    try:
        tool = describe(FUNCTIONS[case.name](seen), policy=ToolPolicy.harbor())
    except UnsupportedTypeError:
        ours = Answer("unsupported")
    else:
        ours = await ask(tool, arguments(case), seen, like=expected)
    assert expected == ours
    asserted(CODEC, case, numbers)


# --- registration -----------------------------------------------------------------------------------------------------

ERRORS: dict[str, type[Exception]] = {
    "ErrToolExampleInvalid": InvalidExampleError,
    "ErrToolDuplicateName": DuplicateToolError,
    "ErrUnsupportedType": UnsupportedTypeError,
}


class Echoed(TypedDict):
    echo: str


async def echo(text: str) -> Echoed:
    return {"echo": text}


async def takes_channel(c: go.Channel) -> None: ...


async def returns_function(text: str) -> Callable[[], None]: ...


EVERY_OPTION: dict[str, Any] = {
    "description": "d",
    "side_effect": "pure",
    "scopes": ["a", "b"],
    "tags": ["t1", "t2", "t3"],
    "examples": [ToolExample({"text": "x"}, "ex", ("q",))],
    "loading": "deferred",
    "cost_hint": "cheap",
    "latency_hint": 1.0,
    "safety_notes": "n",
    "source": "src",
    "policy": ToolPolicy(timeout=1.0),
}
REGISTER: dict[str, Callable[[Catalog], Any]] = {
    "defaults": lambda catalog: catalog.register_func("echo", echo),
    "all_options": lambda catalog: catalog.register_func("echo", echo, **EVERY_OPTION),
    "blank_options": lambda catalog: catalog.register_func("echo", echo, description="", side_effect="", loading=""),
    "unknown_enum_values": lambda catalog: catalog.register_func("echo", echo, side_effect="weird", loading="weird"),
    "option_last_wins": lambda catalog: catalog.register_func(
        "echo", echo, **{"description": "one"} | {"description": "two"}
    ),
    "nil_catalog": lambda _: Catalog.register_func(None, "echo", echo),
    "empty_name": lambda catalog: catalog.register_func("", echo),
    "nil_fn": lambda catalog: catalog.register_func("echo", None),
    "nil_catalog_and_empty_name": lambda _: Catalog.register_func(None, "", echo),
    "bad_example": lambda catalog: catalog.register_func("echo", echo, examples=[ToolExample({"zzz": 1})]),
    "example_missing_required_ok": lambda catalog: catalog.register_func("echo", echo, examples=[ToolExample({})]),
    "duplicate": lambda catalog: [catalog.register_func("echo", echo) for _ in range(2)],
    "unsupported_in": lambda catalog: catalog.register_func("t", takes_channel),
    "unsupported_out": lambda catalog: catalog.register_func("t", returns_function),
}


def listing(tool: Tool) -> dict[str, Any]:
    """Write a tool as the seed's recorder did."""
    return {
        "args_schema": tool.args_schema,
        "auth_scopes": sorted(tool.scopes) or None,
        "cost_hint": tool.cost_hint,
        "description": tool.description,
        "examples": [
            {"args": dict(example.args), "description": example.description, "tags": list(example.tags) or None}
            for example in tool.examples
        ],
        "handles_mime": list(tool.handles_mime) or None,
        "latency_hint_ns": round((tool.latency_hint or 0) * 1e9),
        "loading": tool.loading.value,
        "name": tool.name,
        "out_schema": tool.out_schema,
        "policy_is_zero": tool.policy == ToolPolicy(),
        "safety_notes": tool.safety_notes,
        "side_effects": tool.side_effect.value,
        "source": tool.source,
        "tags": list(tool.tags) or None,
        "transport": tool.transport.value,
    }


def recorded_registration(case: Case) -> dict[str, Any]:
    """Put the recorded outcome in our words: the kind of the error, and the tools that are there."""
    tools = [
        {key: value for key, value in tool.items() if not key.endswith("_json")}
        | {key.removesuffix("_json"): json.loads(value) for key, value in tool.items() if key.endswith("_json")}
        for tool in case.expected["tools"]
    ]
    error = ERRORS.get(*case.expected["error_is"], Exception) if case.expected.get("error_is") else None
    return {"error": Exception if error is None and "is_error" in case.expected else error, "tools": tools}


REGISTRATION = Section(
    "invoke",
    "registration",
    recorded_registration,
    (
        Difference(14, named("example_missing_required_ok"), lambda *_: {"error": InvalidExampleError, "tools": []}),
        Difference(
            33, named("blank_options", "unknown_enum_values"), lambda *_: {"error": InvalidToolError, "tools": []}
        ),
    ),
)


@pytest.mark.parametrize("case", REGISTRATION.cases, ids=names)
def test_registering_makes_the_tool_of_the_seed(case: Case, asserted: Callable) -> None:
    """A function is registered with the recorded fields and schemas, or refused and nothing is registered."""
    catalog = Catalog()
    numbers, expected = REGISTRATION.expect(case)
    with nullcontext() if expected["error"] is None else pytest.raises(expected["error"]):
        REGISTER[case.name](catalog)
    assert expected["tools"] == [listing(tool) for tool in catalog.list()]
    asserted(REGISTRATION, case, numbers)


@pytest.mark.parametrize(
    ("section", "counts"),
    [
        (CODEC, {0: 12, 6: 5, 15: 4, 24: 1, 25: 2, 26: 1, 39: 4, 40: 2, 45: 2, 46: 1, 47: 3}),
        (REGISTRATION, {0: 11, 14: 1, 33: 2}),
    ],
    ids=lambda value: getattr(value, "key", None),
)
def test_the_differences_cover_as_many_cases_as_agreed(section: Section, counts: dict[int, int]) -> None:
    """No difference covers more cases, or fewer, than when it was agreed on."""
    assert counts == section.counts()
