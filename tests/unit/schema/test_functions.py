"""Callables of every kind: what is their schema, and how are they called."""

import functools
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from typing import Annotated, Any, NamedTuple, TypedDict

import attrs
import pytest

from harbor_async import ToolContext
from harbor_async.errors import HarborError, InvalidToolError, RegistrationError, UnsupportedTypeError
from harbor_async.schema import Name
from harbor_async.schema._function import FunctionSchema, compile_function
from tests.unit.schema.support import decode, faults

CONTEXT = ToolContext(call_id="1", tool="t", attempt=1, deadline=1.0)


async def run(schema: FunctionSchema, text: str) -> Any:
    """Decode, call and await, with every warning an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value = schema.call(decode(schema, text), CONTEXT)
        return await value if hasattr(value, "__await__") else value


async def scale(x: int, /, factor: int = 2, *, key: str = "k") -> str:
    """Scale a number."""
    return f"{key}{x * factor}"


class Scaler:
    """Scales."""

    async def __call__(self, x: int, key: str = "k") -> str:
        return f"{key}{x}"

    async def method(self, x: int) -> str:
        return f"m{x}"

    @classmethod
    async def of_class(cls, x: int) -> str:
        return f"{cls.__name__}{x}"

    @staticmethod
    async def static(x: int) -> str:
        return f"s{x}"


def logged(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap as middleware does: a sync function round an async one."""

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return wrapper


@pytest.mark.parametrize(
    ("fn", "name", "expected"),
    [
        (functools.partial(scale, key="p"), "scale", "p14"),
        (functools.partial(functools.partial(scale, factor=3), key="n"), "scale", "n21"),
        (functools.partial(Scaler(), key="z"), "Scaler", "z7"),
        (Scaler(), "Scaler", "k7"),
        (Scaler().method, "method", "m7"),
        (Scaler.of_class, "of_class", "Scaler7"),
        (Scaler.static, "static", "s7"),
        (Scaler().__call__, "Scaler", "k7"),
        (logged(scale), "scale", "k14"),
        (logged(logged(Scaler().method)), "method", "m7"),
    ],
)
async def test_callables_of_every_kind(fn: Any, name: str, expected: str) -> None:
    """N12: partials, methods, instances and wrapped functions have their own name and give the awaited value."""
    schema = compile_function(fn)
    assert name == schema.name
    assert schema.is_coroutine
    assert expected == await run(schema, '{"x": 7}')
    assert ["x"] == schema.args_schema["required"]


async def test_a_lambda_may_return_a_coroutine() -> None:
    """N12: a lambda has no name of its own, and may return an awaitable."""
    schema = compile_function(lambda: scale(4))
    assert schema.name is None
    assert schema.is_coroutine
    assert "k8" == await run(schema, "{}")
    assert "given" == compile_function(lambda: scale(4), name="given").name


def test_partials_hide_what_they_bind() -> None:
    """R021: an argument that a partial has bound is no part of the schema, and cannot be given."""
    schema = compile_function(functools.partial(scale, 5, key="k"))
    assert {"factor": {"type": "integer", "default": 2}} == schema.args_schema["properties"]
    assert [("/key", "unknown")] == faults(schema, '{"key": "x"}')
    assert (3,) == decode(schema, '{"factor": 3}')


def test_is_coroutine_is_told_before_the_call() -> None:
    """A plain function is told from one that gives an awaitable, even if only its annotation says so."""

    def plain(x: int) -> int:
        return x

    def gives(x: int) -> Awaitable[int]:
        raise NotImplementedError

    def also(x: int) -> Coroutine[Any, Any, str]:
        raise NotImplementedError

    assert not compile_function(plain).is_coroutine
    assert compile_function(gives).is_coroutine
    assert {"type": "integer"} == compile_function(gives).out_schema
    assert {"type": "string"} == compile_function(also).out_schema
    assert compile_function(functools.partial(scale)).is_coroutine


async def _agen(x: int) -> AsyncIterator[int]:
    yield x


def _gen(x: int) -> Iterator[int]:
    yield x


class _GenCall:
    async def __call__(self, x: int) -> AsyncIterator[int]:
        yield x


@pytest.mark.parametrize(
    ("fn", "name"),
    [
        (_agen, "_agen"),
        (_gen, "_gen"),
        (functools.partial(_agen), "_agen"),
        (logged(_gen), "_gen"),
        (_GenCall(), "_GenCall"),
    ],
)
def test_generators_are_refused(fn: Any, name: str) -> None:
    """N12, R087: generators and async generators are refused by name, with the advice what to do instead."""
    with pytest.raises(InvalidToolError, match=rf"{name} is an?.* generator.*return a list.*report progress"):
        compile_function(fn)


def test_positional_only_parameters() -> None:
    """R028: several parameters, some positional-only, are keys like others, and are passed by position."""

    def add(a: int, /, b: int) -> int:
        return a - b

    schema = compile_function(add)
    assert ["a", "b"] == list(schema.args_schema["properties"])
    assert 2 == schema.call(decode(schema, '{"b": 3, "a": 5}'), CONTEXT)


@pytest.mark.parametrize("tp", [int, str, list[int], dict[str, int], Any, int | None])
def test_a_lone_positional_only_scalar_is_refused(tp: Any) -> None:
    """R039: a lone positional-only parameter is the whole object, so a type without fields is refused by name."""

    async def lookup(id: Any, /) -> None: ...

    lookup.__annotations__["id"] = tp
    with pytest.raises(UnsupportedTypeError, match="parameter 'id'"):
        compile_function(lookup)


@attrs.define
class Args:
    """The whole argument object."""

    city: str
    to_state: Annotated[str, Name("toState")] = "open"


class DictArgs(TypedDict):
    """The same as a TypedDict."""

    city: str


class TupleArgs(NamedTuple):
    """The same as a NamedTuple."""

    city: str
    days: int = 1


@pytest.mark.parametrize(
    ("tp", "text", "expected"),
    [
        (Args, '{"city": "a", "toState": "b"}', Args("a", "b")),
        (DictArgs, '{"city": "a"}', {"city": "a"}),
        (TupleArgs, '{"city": "a"}', TupleArgs("a")),
    ],
)
def test_the_whole_object(tp: Any, text: str, expected: Any) -> None:
    """A lone positional-only parameter of a structured class is the whole argument object."""

    def whole(args: Any, /, *, ctx: ToolContext) -> Any:
        return args, ctx

    whole.__annotations__["args"] = tp
    schema = compile_function(whole)
    assert "city" in schema.args_schema["properties"]
    assert (expected, CONTEXT) == schema.call(decode(schema, text), CONTEXT)
    assert ("/city", "missing") in faults(schema, "{}")


def test_wire_names() -> None:
    """A Name gives the key on the wire; the parameter's own name is then unknown."""

    def move(to_state: Annotated[str, Name("toState"), "Where to."], class_: Annotated[int, Name("class")] = 0) -> Any:
        return to_state, class_

    schema = compile_function(move)
    assert {
        "toState": {"type": "string", "description": "Where to."},
        "class": {"type": "integer", "default": 0},
    } == schema.args_schema["properties"]
    assert ("a", 3) == schema.call(decode(schema, '{"toState": "a", "class": 3}'), CONTEXT)
    assert [("/toState", "missing"), ("/to_state", "unknown")] == faults(schema, '{"to_state": "a"}')


@pytest.mark.parametrize("wire", ["", None, 3])
def test_empty_wire_names_are_refused(wire: Any) -> None:
    """A wire name is a text that is not empty."""
    with pytest.raises(InvalidToolError, match="Name"):
        Name(wire)


async def test_context_is_injected() -> None:
    """A ToolContext parameter is filled in wherever it stands, and is no part of the schema."""

    async def first(ctx: ToolContext, x: int) -> Any:
        return ctx, x

    async def last(x: int, *, ctx: ToolContext | None = None) -> Any:
        return ctx, x

    for fn in (first, last):
        schema = compile_function(fn)
        assert schema.wants_context
        assert ["x"] == list(schema.args_schema["properties"])
        assert (CONTEXT, 1) == await run(schema, '{"x": 1}')
        assert [("/ctx", "unknown")] == faults(schema, '{"x": 1, "ctx": {}}')


async def many(*values: int) -> None: ...
async def named(**values: int) -> None: ...
async def bare(x) -> None: ...


@pytest.mark.parametrize(("fn", "name"), [(many, r"\*values"), (named, r"\*\*values"), (bare, "'x'")])
def test_parameters_that_no_object_can_give(fn: Any, name: str) -> None:
    """R068: *args, **kwargs and unannotated parameters are refused by name."""
    with pytest.raises(RegistrationError, match=name):
        compile_function(fn)


@pytest.mark.parametrize("fn", [3, None, "scale", Args, int, len, print])
def test_what_is_no_tool_is_refused(fn: Any) -> None:
    """Values that cannot be called, classes, and builtins without annotations are refused with our own error."""
    with pytest.raises(HarborError):
        compile_function(fn)


def test_the_root_is_an_object() -> None:
    """R068: whatever the parameters are, the schema's root is a closed object."""

    async def nothing() -> None: ...

    empty = {"type": "object", "properties": {}, "additionalProperties": False}
    assert empty == compile_function(nothing).args_schema
    assert "object" == compile_function(scale).args_schema["type"]


def test_mutable_defaults_are_fresh() -> None:
    """R070: a list default that the tool changes is a new list at the next call, for models and programs alike."""

    def collect(xs: list[int] = [], opts: Args = Args("a"), pair: tuple[list[int]] = ([],)) -> Any:  # noqa: B006, B008
        xs.append(1)
        opts.city += "!"
        pair[0].append(2)
        return xs, opts.city, pair

    schema = compile_function(collect)
    for _ in range(2):
        assert ([1], "a!", ([2],)) == schema.call(decode(schema, ""), CONTEXT)
        assert ([1], "a!", ([2],)) == schema.call(schema.bind((), {}), CONTEXT)
    assert not any("default" in schema for schema in schema.args_schema["properties"].values())


def test_sentinel_defaults_keep_their_identity() -> None:
    """A default that is no JSON and no container is passed as the very object that was declared."""
    missing: Any = object()

    def look(x: int = missing, y: int = None) -> Any:  # noqa: RUF013 - declared as people do
        return x, y

    schema = compile_function(look)
    assert missing is schema.call(decode(schema, ""), CONTEXT)[0]
    assert {"x": {"type": "integer"}, "y": {"type": "integer"}} == schema.args_schema["properties"]


def test_scalar_defaults_are_shown() -> None:
    """Scalar defaults that fit the type are in the schema; NaN is not."""

    def show(a: int = 1, b: str = "x", c: bool = False, d: float | None = None, e: float = float("nan")) -> None: ...

    shown = {
        name: schema.get("default", "-") for name, schema in compile_function(show).args_schema["properties"].items()
    }
    assert {"a": 1, "b": "x", "c": False, "d": None, "e": "-"} == shown


def test_any_parameter_name_works() -> None:
    """Names that the generated code uses itself are free for parameters."""

    def odd(s: int, v: int, c: int, self: int, a0: int, build: int, UNSET: int = 7) -> Any:  # noqa: N803, PLR0917 - the names
        return s, v, c, self, a0, build, UNSET

    schema = compile_function(odd)
    text = '{"s": 1, "v": 2, "c": 3, "self": 4, "a0": 5, "build": 6}'
    assert (1, 2, 3, 4, 5, 6, 7) == schema.call(decode(schema, text), CONTEXT)


def test_a_programs_call_is_bound_as_python_does() -> None:
    """A program's values are passed as they are; a call that does not fit raises Python's own TypeError."""
    schema = compile_function(scale)
    marker: Any = object()
    assert (marker, 2, "k") == schema.bind((marker,), {})
    assert (1, 3, "z") == schema.bind((1, 3), {"key": "z"})
    for args, kwargs in [((), {}), ((1, 2, 3), {}), ((1,), {"x": 1}), ((1,), {"nope": 1})]:
        with pytest.raises(TypeError):
            schema.bind(args, kwargs)


def test_errors_of_the_tool_leave_as_they_are() -> None:
    """A ValueError of the function is no argument error."""

    def fail(x: int) -> None:
        raise ValueError("mine")

    schema = compile_function(fail)
    with pytest.raises(ValueError, match=r"^mine$"):
        schema.call(decode(schema, '{"x": 1}'), CONTEXT)


def test_descriptions() -> None:
    """The docstring without its sections describes the function."""

    async def documented(x: int) -> None:
        """Do a thing.

        At length.

        Args:
            x: The x.

        Returns:
            Nothing.
        """

    assert "Do a thing.\n\nAt length." == compile_function(documented).description
    assert "Scales." == compile_function(Scaler()).description
    assert "Scale a number." == compile_function(functools.partial(scale, key="a")).description
    assert "Scale a number." == compile_function(logged(scale)).description
    assert "" == compile_function(many_less).description


async def many_less() -> None: ...
