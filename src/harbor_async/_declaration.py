"""How a function becomes a tool."""

import inspect
from collections.abc import Awaitable, Callable, Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypedDict, TypeVar, Unpack, cast, overload

import msgspec

from ._categories import LoadingMode, SideEffect, Transport
from ._descriptor import Render, ToolDescriptor
from ._policy import ToolPolicy, check_seconds
from ._tool import Approve, Tool, ToolExample
from .errors import InvalidArgumentsError, InvalidExampleError, InvalidToolError, words

if TYPE_CHECKING:
    from .schema._function import Bound, FunctionSchema

P = ParamSpec("P")
R = TypeVar("R")
E = TypeVar("E", bound=StrEnum)

_EFFECTS = frozenset({SideEffect.WRITE, SideEffect.EXTERNAL, SideEffect.STATEFUL})


class ToolOptions(TypedDict, total=False):
    """What can be said of a tool when it is declared; see ``Tool`` and, for the rest, ``ToolDescriptor``.

    ``idempotent`` and ``exclusive`` may be functions of the decoded arguments: they are called as the tool's own
    function is, without its ``ToolContext``, and must neither wait nor change what they are given.
    """

    name: str
    description: str
    side_effect: SideEffect | str
    idempotent: bool | Callable[..., bool]
    tags: Iterable[str]
    scopes: Iterable[str]
    examples: Iterable[ToolExample]
    loading: LoadingMode | str
    cost_hint: str
    latency_hint: float | None
    safety_notes: str
    source: str
    handles_mime: Iterable[str]
    transport: Transport | str
    policy: ToolPolicy
    approve: Approve
    max_running: int | None
    weight: int
    exclusive: str | Callable[..., str | None]
    render: Render


@overload
def describe(function: Callable[P, Awaitable[R]], /, **options: Unpack[ToolOptions]) -> ToolDescriptor[P, R]: ...
@overload
def describe(function: Callable[P, R], /, **options: Unpack[ToolOptions]) -> ToolDescriptor[P, R]: ...
def describe(function: Callable[..., Any], /, **options: Unpack[ToolOptions]) -> ToolDescriptor[..., Any]:
    """Make a tool of a function.

    Args:
        function: A coroutine function, a partial of one, a method, a callable instance, or a function that returns
            an awaitable and is annotated so. A plain function runs in a worker thread.
        **options: What else is to be said of the tool, see ``Tool``.

    Raises:
        InvalidToolError: The function is a generator, it has no name and none was given, or an option
            makes no sense.
        UnsupportedTypeError: A parameter or the result has a type without a JSON form.
        InvalidExampleError: An example does not fit the arguments.
    """
    if not callable(function):
        msg = f"a tool is made of a function; got {type(function).__name__}"
        raise InvalidToolError(msg)
    from .schema._function import compile_function  # noqa: PLC0415 - the engine, a third of the package, is loaded here

    return make_descriptor(function, compile_function(function, name=options.get("name")), options)


def make_descriptor(
    function: Callable[..., Any], schema: "FunctionSchema", options: ToolOptions
) -> ToolDescriptor[..., Any]:
    """Make a tool of a function whose schema is known; errors as of ``describe``."""
    name = options.get("name", schema.name)
    if not isinstance(name, str) or not name:
        msg = f"{function!r} has no name of its own: name= must be text that is not empty; got {name!r}"
        raise InvalidToolError(msg)
    descriptor = ToolDescriptor(
        tool=_make_tool(name, schema, options),
        function=function,
        schema=schema,
        approve=_check_function(name, "approve", "an async function", options.get("approve")),
        max_running=_check_count(name, "max_running", options.get("max_running")),
        weight=_check_count(name, "weight", options.get("weight", 1)) or 1,
        group=_check_group(name, schema, options.get("exclusive")),
        repeat=_check_repeat(name, schema, options.get("idempotent", False)),
        render=_check_function(name, "render", "a function", options.get("render")),
    )
    for index, example in enumerate(descriptor.tool.examples):
        try:
            descriptor.decode(example.args)
        except InvalidArgumentsError as exc:
            raise InvalidExampleError(name, index, exc.problems) from None
    return descriptor


def _check_function(name: str, option: str, what: str, value: Any) -> Any:
    if value is None or callable(value):
        return value
    msg = f"tool {name!r}: {option}: expected {what}; got {type(value).__name__}"
    raise InvalidToolError(msg)


def _check_count(name: str, option: str, value: object) -> int | None:
    if value is None and option == "max_running":
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        msg = f"tool {name!r}: {option}: expected an int of at least 1; got {value!r}"
        raise InvalidToolError(msg)
    return value


def _check_group(name: str, schema: "FunctionSchema", value: Any) -> "str | Callable[[Bound], Any] | None":
    if value is None or (isinstance(value, str) and value):
        return value
    return _of_arguments(name, "exclusive", schema, value, "the name of a group")


def _check_repeat(name: str, schema: "FunctionSchema", value: Any) -> "bool | Callable[[Bound], Any]":
    return value if isinstance(value, bool) else _of_arguments(name, "idempotent", schema, value, "True or False")


def _of_arguments(
    name: str, option: str, schema: "FunctionSchema", function: Any, what: str
) -> "Callable[[Bound], Any]":
    """Return a function of bound values that calls ``function`` as the tool's own is called.

    Raises:
        InvalidToolError: It is none, it is async, or it takes other arguments.
    """
    reason = ""
    if not callable(function):
        reason = f"got {function!r}"
    elif inspect.iscoroutinefunction(function):
        reason = "got an async function"
    elif not schema.fits(function):
        reason = "the function does not take the arguments of the tool"
    if reason:
        msg = f"tool {name!r}: {option}: expected {what}, or a function of the tool's arguments that gives it; {reason}"
        raise InvalidToolError(msg)
    return schema.bound(function)


def _member(kind: type[E], name: str, value: object) -> E:
    try:
        return kind(cast("str", value))
    except ValueError:
        msg = f"{name}: expected one of {', '.join(kind)}; got {value!r}"
        raise InvalidToolError(msg) from None


def _make_tool(name: str, schema: "FunctionSchema", options: ToolOptions) -> Tool:
    unknown = options.keys() - ToolOptions.__annotations__.keys()
    if unknown:
        msg = f"tool {name!r}: unknown option {', '.join(sorted(unknown))}"
        raise InvalidToolError(msg)
    declared = options.get("side_effect")
    side_effect = _member(SideEffect, "side_effect", SideEffect.STATEFUL if declared is None else declared)
    latency_hint = options.get("latency_hint")
    check_seconds("latency_hint", latency_hint)
    examples = tuple(options.get("examples", ()))
    policy = options.get("policy", ToolPolicy())
    for value, kind in ((policy, ToolPolicy), *((example, ToolExample) for example in examples)):
        if not isinstance(value, kind):
            msg = f"tool {name!r}: expected a {kind.__name__}; got {type(value).__name__}"
            raise InvalidToolError(msg)
    return Tool(
        name=name,
        description=options.get("description") or schema.description or name,
        args_schema=msgspec.json.encode(schema.args_schema),
        out_schema=None if schema.out_schema is None else msgspec.json.encode(schema.out_schema),
        side_effect=side_effect,
        declares_effect=declared is not None and side_effect in _EFFECTS,
        is_idempotent=options.get("idempotent") is True,
        tags=words("tags", options.get("tags", ())),
        scopes=frozenset(words("scopes", options.get("scopes", ()))),
        examples=examples,
        loading=_member(LoadingMode, "loading", options.get("loading", LoadingMode.ALWAYS)),
        cost_hint=options.get("cost_hint", ""),
        latency_hint=latency_hint,
        safety_notes=options.get("safety_notes", ""),
        source=options.get("source", ""),
        handles_mime=words("handles_mime", options.get("handles_mime", ())),
        transport=_member(Transport, "transport", options.get("transport", Transport.INPROCESS)),
        policy=policy,
    )


class ToolDecorator(Protocol):
    """What ``tool`` with options returns."""

    @overload
    def __call__(self, function: Callable[P, Awaitable[R]], /) -> ToolDescriptor[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> ToolDescriptor[P, R]: ...


@overload
def tool(function: Callable[P, Awaitable[R]], /) -> ToolDescriptor[P, R]: ...
@overload
def tool(function: Callable[P, R], /) -> ToolDescriptor[P, R]: ...
@overload
def tool(**options: Unpack[ToolOptions]) -> ToolDecorator: ...
def tool(function: Callable[..., Any] | None = None, /, **options: Unpack[ToolOptions]) -> Any:
    """Make a tool of the decorated function: ``@tool``, or ``@tool(name=…, …)``.

    Args:
        function: The function, when used without parentheses.
        **options: As for ``describe``.

    Raises:
        RegistrationError: As ``describe``.
    """
    if function is not None:
        return describe(function, **options)

    def decorate(decorated: Callable[..., Any]) -> ToolDescriptor[..., Any]:
        return describe(decorated, **options)

    return decorate
