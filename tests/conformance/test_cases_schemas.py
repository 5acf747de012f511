"""Reported faults of schema derivation: what becomes a tool, under which name, and what is refused by name."""

import __future__

import functools
import gc
import json
import sys
import types
from collections.abc import Awaitable, Iterator
from typing import Any

import pytest
from anyio.lowlevel import checkpoint

from harbor_async import describe
from harbor_async.errors import InvalidToolError, RegistrationError, UnsupportedTypeError
from tests.conformance.support import SUCCEEDED, invoke, make, summary

SOURCE = '''
import dataclasses
from typing import Annotated, Literal, NamedTuple, TypedDict

import attrs

@attrs.frozen
class Place:
    """Where it is."""
    city: str
    zone: Literal["a", "b"] = "a"

@dataclasses.dataclass
class Plan:
    place: Place
    days: list[int] = dataclasses.field(default_factory=list)
    next: "Plan | None" = None

class Extra(TypedDict, total=False):
    note: Annotated[str, "What to note."]

async def visit(plan: Plan, extra: Extra, n: int = 3, *, place: Place | None = None) -> Place:
    """Visit a place.

    Args:
        plan: What is planned.
    """
    return plan.place

async def whole(plan: Plan, /) -> list[int]:
    return plan.days

def make_local():
    import attrs

    @attrs.frozen
    class L:
        size: int

    async def tool(x: L) -> L:
        return attrs.evolve(x, size=x.size + 1)

    async def forward(x: "L") -> int:
        return x.size

    return [(describe(tool), L), (describe(forward), L)], tool, forward

def make_forward():
    async def early(x: "Late") -> int:
        return x.size

    import attrs

    @attrs.frozen
    class Late:
        size: int

    return describe(early)
'''


@pytest.fixture(params=["plain", "future"])
def module(request: pytest.FixtureRequest) -> Iterator[types.ModuleType]:
    """Return ``SOURCE`` as a module, without and with ``from __future__ import annotations``."""
    name = f"conformance_{request.param}"
    with_name(name, is_future=request.param == "future")
    yield sys.modules[name]
    del sys.modules[name]


def with_name(name: str, *, is_future: bool) -> types.ModuleType:
    module = types.ModuleType(name)
    module.describe = describe
    sys.modules[name] = module
    flags = __future__.annotations.compiler_flag if is_future else 0
    exec(compile(SOURCE, f"<{name}>", "exec", flags, dont_inherit=True), module.__dict__)
    return module


async def scale(x: int, *, factor: int = 2, key: str = "k") -> str:
    await checkpoint()
    return f"{key}{x * factor}"


class Scaler:
    async def __call__(self, x: int) -> str:
        return f"called {x}"

    async def method(self, x: int) -> str:
        return f"method {x}"

    @classmethod
    async def of_class(cls, x: int) -> str:
        return f"{cls.__name__} {x}"

    @staticmethod
    async def static(x: int) -> str:
        return f"static {x}"


def middleware(function: Any) -> Any:
    """Wrap as middleware does: a plain function round an async one."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


@pytest.mark.parametrize(
    ("function", "name", "expected"),
    [
        (functools.partial(scale, key="p"), "scale", "p14"),
        (functools.partial(functools.partial(scale, key="p"), factor=3), "scale", "p21"),
        (Scaler().method, "method", "method 7"),
        (Scaler.static, "static", "static 7"),
        (Scaler.of_class, "of_class", "Scaler 7"),
        (Scaler(), "Scaler", "called 7"),
        (middleware(scale), "scale", "k14"),
        (lambda: scale(7), None, "k14"),
    ],
    ids=["partial", "partial of partial", "method", "static", "class method", "instance", "wrapper", "lambda"],
)
async def test_n12_callables(function, name, expected):
    """Whatever is called and gives something to await is a tool: its value is the awaited one, no warning comes."""
    if name is None:
        with pytest.raises(InvalidToolError, match="no name"):
            describe(function)
    tool = make(function, **({} if name else {"name": "lambda"}))
    assert (name or "lambda") == tool.name
    result = await invoke(tool, {"x": 7} if name else "")
    assert (SUCCEEDED, expected) == (summary(result), result.value)
    gc.collect()  # a coroutine that nobody has awaited would say so


@pytest.mark.parametrize(
    "wrap", [lambda function: function, middleware, functools.partial], ids=["bare", "wrapper", "partial"]
)
async def test_n12_callables_generators(wrap):
    """Generators and async generators are refused when they are declared, however they are wrapped."""

    def generates(x: int) -> Iterator[int]:
        yield x

    async def generates_too(x: int) -> Iterator[int]:
        yield x

    for function in (generates, generates_too):
        with pytest.raises(InvalidToolError, match=function.__name__):
            make(wrap(function))
    await checkpoint()


async def test_n13_pep563_local(module):
    """A class that is local to a function works in the tools of that function, with the nested schema."""
    (tool, forward), _, _ = module.make_local()
    nested = {
        "type": "object",
        "properties": {"size": {"type": "integer"}},
        "required": ["size"],
        "additionalProperties": False,
    }
    assert {"x": nested} == tool[0].tool.args_schema["properties"] == forward[0].tool.args_schema["properties"]
    assert nested == tool[0].tool.out_schema
    result = await invoke(tool[0], {"x": {"size": 1}})
    assert (SUCCEEDED, tool[1](2)) == (summary(result), result.value)
    assert {"size": 2} == result.to_wire()["value"]
    assert 5 == (await invoke(forward[0], {"x": {"size": 5}})).value


async def test_r021_bound_arguments():
    """A partial has the name of its function and an instance that of its class; what is bound is hidden."""
    bound, called = make(functools.partial(scale, key="k")), make(Scaler())
    assert ("scale", "Scaler") == (bound.name, called.name)
    assert {"x", "factor"} == bound.tool.args_schema["properties"].keys()
    assert ["x"] == list(called.tool.args_schema["properties"])
    assert "k4" == (await invoke(bound, {"x": 2})).value
    result = await invoke(bound, {"x": 2, "key": "other"})
    assert [("/key", "unknown")] == [(problem.path, problem.code) for problem in result.error.problems]
    assert "called 2" == (await invoke(called, {"x": 2})).value


async def test_r028_positional_only():
    """A positional-only parameter is a property like any other, and is passed by its position."""

    async def add(a: int, /, b: int) -> int:
        return a - b

    tool = make(add)
    assert {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    } == tool.tool.args_schema
    assert 4 == (await invoke(tool, '{"b": 3, "a": 7}')).value


async def test_r039_positional_only_alone():
    """A lone positional-only parameter that is no class of arguments is refused with its name."""

    async def lookup(id: int, /) -> int:
        return id

    async def without(id: int) -> int:
        return id

    with pytest.raises(RegistrationError, match="'id'"):
        make(lookup)
    assert 7 == (await invoke(make(without), {"id": 7})).value


async def test_r049_the_future_import(module):
    """A module with ``from __future__ import annotations`` gives the same schemas as without, byte for byte."""
    plain = with_name("conformance_other", is_future=False)
    try:
        for name in ("visit", "whole"):
            ours, other = describe(getattr(module, name)).tool, describe(getattr(plain, name)).tool
            assert json.dumps(other.args_schema) == json.dumps(ours.args_schema)
            assert json.dumps(other.out_schema) == json.dumps(ours.out_schema)
            assert other.description == ours.description
            assert {"type", "properties"} <= ours.args_schema.keys()
    finally:
        del sys.modules["conformance_other"]
    result = await invoke(make(module.visit), {"plan": {"place": {"city": "Oslo"}}, "extra": {}})
    assert (SUCCEEDED, module.Place("Oslo")) == (summary(result), result.value)


async def test_r051_a_sync_function_that_returns_a_coroutine():
    """A plain function that returns a coroutine is awaited: the value is what that gives, and no warning comes."""

    def silent(x: int):
        return scale(x)

    def annotated(x: int) -> Awaitable[str]:
        return scale(x)

    for function in (silent, annotated, middleware(scale), middleware(silent), middleware(middleware(annotated))):
        result = await invoke(make(function), {"x": 2})
        assert (SUCCEEDED, "k4", "k4") == (summary(result), result.value, result.content)
    gc.collect()  # as above


async def test_r057_local_and_forward_types(module):
    """Names are found in the module, the enclosing functions and where the tool is declared; else refused by name."""
    early = module.make_forward()
    assert 3 == (await invoke(early, {"x": {"size": 3}})).value
    _, tool, forward = module.make_local()
    if module.__name__.endswith("plain"):
        # The class itself stands in the annotations: it is known wherever the tool is declared.
        assert {"x"} == describe(tool).tool.args_schema["properties"].keys()
    for function in (forward, *([tool] if module.__name__.endswith("future") else [])):
        with pytest.raises(UnsupportedTypeError, match=r"'x'|the return value") as caught:
            describe(function)
        assert "'L'" in str(caught.value)

    async def nowhere(here: int, there: "Missing") -> None:  # noqa: F821 - that is the case
        raise NotImplementedError

    with pytest.raises(UnsupportedTypeError, match="'there'") as caught:
        describe(nowhere)
    assert "'Missing'" in str(caught.value)


async def test_r061_a_nested_schema_is_never_dropped(module):
    """A parameter of an attrs class, a dataclass or a TypedDict is present with its nested schema in either module."""
    schema = describe(module.visit).tool.args_schema
    assert ["plan", "extra", "n", "place"] == list(schema["properties"])
    assert ["plan", "extra"] == schema["required"]

    def resolved(part: dict[str, Any]) -> dict[str, Any]:
        name = part.get("$ref", "").rpartition("/")[2]
        return schema["$defs"][name] if name else part

    plan = resolved(schema["properties"]["plan"])
    assert ["place", "days", "next"] == list(plan["properties"])
    place = resolved(plan["properties"]["place"])
    assert ["city", "zone"] == list(place["properties"])
    assert ["a", "b"] == place["properties"]["zone"]["enum"]
    assert ["note"] == list(resolved(schema["properties"]["extra"])["properties"])
    assert ["place", "days", "next"] == list(describe(module.whole).tool.args_schema["properties"])
    result = await invoke(make(module.whole), {"place": {"city": "Oslo"}, "days": [1, 2]})
    assert [1, 2] == result.value

    def broken(fine: int, plan: "Undefined") -> None:  # noqa: F821 - that is the case
        raise NotImplementedError

    with pytest.raises(UnsupportedTypeError, match="'plan'"):
        describe(broken)


async def test_r068_variadic_parameters():
    """``*values`` and ``**values`` are refused with their names; the root of a schema is always an object."""

    async def many(*values: int) -> None:
        raise NotImplementedError

    async def named(**values: int) -> None:
        raise NotImplementedError

    async def listed(values: list[int]) -> int:
        return sum(values)

    async def nothing() -> None:
        await checkpoint()

    for function, name in ((many, r"\*values"), (named, r"\*\*values")):
        with pytest.raises(InvalidToolError, match=name):
            make(function)
    for function in (listed, nothing, scale, Scaler()):
        assert "object" == make(function).tool.args_schema["type"]
    assert 6 == (await invoke(make(listed), {"values": [1, 2, 3]})).value
