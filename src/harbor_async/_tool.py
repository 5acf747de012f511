"""A tool: what a model sees, what runs, and how a function becomes both."""

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from copy import deepcopy
from enum import StrEnum
from functools import partial
from inspect import isawaitable
from random import Random
from types import CoroutineType, MappingProxyType
from typing import Any, Generic, ParamSpec, Protocol, TypeAlias, TypedDict, TypeVar, Unpack, cast, overload

import attrs
import msgspec

from . import _backend
from ._call import Call
from ._categories import LoadingMode, SideEffect, Transport
from ._context import Identity, ToolContext
from ._limits import Limits
from ._policy import ToolPolicy, check_seconds
from ._results import Arguments, ToolCall, ToolResult
from ._serve import ask, decode, finish
from ._shell import run
from ._thread import await_in_thread, run_in_thread
from .errors import InvalidArgumentsError, InvalidExampleError, InvalidToolError, words
from .schema._function import Bound, FunctionSchema, compile_function

P = ParamSpec("P")
R = TypeVar("R")
E = TypeVar("E", bound=StrEnum)

_EFFECTS = frozenset({SideEffect.WRITE, SideEffect.EXTERNAL, SideEffect.STATEFUL})
_DEFAULT_LIMITS = Limits()


def _frozen_mapping(args: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(args, Mapping):
        msg = f"ToolExample.args: expected a mapping, as {{'city': 'Oslo'}}; got {type(args).__name__}"
        raise InvalidToolError(msg)
    return MappingProxyType(deepcopy(dict(args)))


def _tags(tags: Iterable[str]) -> tuple[str, ...]:
    return words("ToolExample.tags", tags)


@attrs.frozen
class ToolExample:
    """One call that shows a model how a tool is meant.

    Attributes:
        args: An argument object; it is decoded when the tool is registered.
        description: What the example shows.
        tags: Words to find it by.
    """

    args: Mapping[str, Any] = attrs.field(default=MappingProxyType({}), converter=_frozen_mapping)
    description: str = ""
    tags: tuple[str, ...] = attrs.field(default=(), converter=_tags)


def _member(kind: type[E], name: str, value: object) -> E:
    try:
        return kind(cast("str", value))
    except ValueError:
        msg = f"{name}: expected one of {', '.join(kind)}; got {value!r}"
        raise InvalidToolError(msg) from None


@attrs.frozen(kw_only=True)
class Tool:
    """What a model sees of a tool, and what a catalog lists.

    Attributes:
        name: Any text that is not empty; models accept letters, digits, ``_``, ``-`` and mostly ``.``.
        description: What it does; the function's docstring, or the name, if nothing was said.
        side_effect: What it does to the world. Undeclared is ``stateful``, see ``declares_effect``.
        declares_effect: Whether ``side_effect`` was declared and is an effect. Only then are retries held back.
        is_idempotent: Whether its effect may be repeated.
        tags: Words to find it by.
        scopes: What a caller's identity must have been granted.
        examples: Calls that show how it is meant.
        loading: Whether it is listed at once or only found by a search.
        cost_hint: Free text on what a call costs.
        latency_hint: Seconds that a call usually takes; None: not known.
        safety_notes: Free text on what to beware of.
        source: Where it comes from.
        handles_mime: MIME types, or patterns as ``image/*``, that it can take.
        transport: Where it runs.
        policy: What the shell does round a call.
    """

    name: str
    description: str
    _args_schema: bytes = attrs.field(alias="args_schema", repr=False)
    _out_schema: bytes | None = attrs.field(alias="out_schema", repr=False)
    side_effect: SideEffect = SideEffect.STATEFUL
    declares_effect: bool = False
    is_idempotent: bool = False
    tags: tuple[str, ...] = ()
    scopes: frozenset[str] = frozenset()
    examples: tuple[ToolExample, ...] = ()
    loading: LoadingMode = LoadingMode.ALWAYS
    cost_hint: str = ""
    latency_hint: float | None = None
    safety_notes: str = ""
    source: str = ""
    handles_mime: tuple[str, ...] = ()
    transport: Transport = Transport.INPROCESS
    policy: ToolPolicy = ToolPolicy()

    @property
    def args_schema(self) -> dict[str, Any]:
        """The JSON Schema (2020-12) of the arguments: a closed object. A fresh copy each time."""
        schema: dict[str, Any] = msgspec.json.decode(self._args_schema)
        return schema

    @property
    def out_schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the result, None for a function without a return annotation. A fresh copy each time."""
        return None if self._out_schema is None else msgspec.json.decode(self._out_schema)

    def matches_mime(self, mime: str) -> bool:
        """Say whether ``mime`` is one of ``handles_mime``, or fits one that ends in ``/*``; letter case counts."""
        kind, _, rest = mime.partition("/")
        patterns = {mime, f"{kind}/*"} if kind and rest else {mime}
        return bool(mime) and not patterns.isdisjoint(self.handles_mime)


Approve: TypeAlias = Callable[[ToolCall, Tool, Identity | None], Awaitable[bool | bytes | str | Mapping[str, Any]]]
"""Asked before the arguments of a call are decoded: True lets it pass, False refuses it, arguments replace its own."""


class ToolOptions(TypedDict, total=False):
    """What can be said of a tool when it is declared; see ``Tool`` for each."""

    name: str
    description: str
    side_effect: SideEffect | str
    idempotent: bool
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


def _own_name(descriptor: "ToolDescriptor[..., Any]") -> str:
    return descriptor.tool.name


def _own_is_sync(descriptor: "ToolDescriptor[..., Any]") -> bool:
    return not descriptor.schema.is_coroutine


def _own_policy(descriptor: "ToolDescriptor[..., Any]") -> ToolPolicy:
    return descriptor.tool.policy


@attrs.frozen(eq=False)
class ToolDescriptor(Generic[P, R]):
    """What runs: a tool, its function and its compiled schema.

    Stateless: one descriptor serves any number of calls, event loops, threads and backends at once. Calling it is
    calling the bare function.

    Attributes:
        tool: What a model sees.
        function: The bare function.
        schema: What the function takes and gives, compiled.
        name: The tool's name.
        is_sync: Whether the function is a plain one, and runs in a worker thread.
        policy: The tool's policy.
        approve: Asked before each call of a model; None: nobody is.
    """

    tool: Tool
    function: Callable[P, Awaitable[R] | R]
    schema: FunctionSchema = attrs.field(repr=False)
    approve: Approve | None = attrs.field(default=None, repr=False)
    # Fields, since the shell reads them at each call.
    name: str = attrs.field(init=False, repr=False, default=attrs.Factory(_own_name, takes_self=True))
    is_sync: bool = attrs.field(init=False, repr=False, default=attrs.Factory(_own_is_sync, takes_self=True))
    policy: ToolPolicy = attrs.field(init=False, repr=False, default=attrs.Factory(_own_policy, takes_self=True))

    @property
    def is_effect(self) -> bool:
        """Whether the tool declares an effect."""
        return self.tool.declares_effect

    @property
    def is_idempotent(self) -> bool:
        """Whether its effect may be repeated."""
        return self.tool.is_idempotent

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
        """Call the bare function, a plain one in a worker thread: no timeout, no retry, no check."""
        if self.is_sync:
            return await_in_thread(partial(self.function, *args, **kwargs))
        return cast("Awaitable[R]", self.function(*args, **kwargs))

    def decode(self, arguments: Arguments, limits: Limits = _DEFAULT_LIMITS) -> Bound:
        """Validate an argument object and build what the function takes.

        Raises:
            InvalidArgumentsError: With every problem that it has.
        """
        return self.schema.decode(arguments, limits.max_arguments_bytes, limits.max_depth)

    def encode(self, value: object) -> bytes:
        """Return a result as JSON, checked against the out schema unless the policy says otherwise.

        Raises:
            InvalidOutputError: It does not fit the schema, or is no JSON.
        """
        return self.schema.encode(value, self.policy.check_output)

    def start(self, call: Call) -> Awaitable[R]:
        """Call the function for one attempt of ``call``, with arguments that no attempt has touched."""
        bound = call.bound
        if bound is None:
            bound = self.decode(call.arguments, call.limits)
        elif call.arguments is not None:  # a program's own values are passed as they are, each time
            call.bound = None
        context: Any = None
        if self.schema.wants_context:
            context = ToolContext(
                call.id, self.tool.name, call.attempts, call.attempt_deadline, call.identity, call.backend.time
            )
        if self.is_sync:
            return run_in_thread(call, partial(self.schema.call, bound, context))
        awaitable: object = self.schema.call(bound, context)
        if type(awaitable) is CoroutineType or isawaitable(awaitable):
            return cast("Awaitable[R]", awaitable)
        msg = f"tool {self.name!r} returned a {type(awaitable).__name__} that cannot be awaited"
        raise TypeError(msg)

    async def invoke(self, arguments: Arguments = "", *, timeout: float | None = None) -> ToolResult:
        """Answer one call of a model under the tool's policy, without a runtime and as the program itself.

        Args:
            arguments: A JSON object as text or bytes, or a mapping.
            timeout: The deadline of the whole call, in seconds from now. None: no deadline.

        Raises:
            InvalidToolError: ``timeout`` is no finite number of seconds ≥ 0.
        """
        check_seconds("timeout", timeout)
        random = Random().random  # noqa: S311 - jitter, no secret
        backend = _backend.current()
        deadline = math.inf if timeout is None else backend.time() + timeout
        call = Call(backend, self, "", arguments, _DEFAULT_LIMITS, random, deadline)
        if self.approve is not None:
            cut = await ask(call, partial(self.approve, ToolCall("", self.name, arguments), self.tool, None))
            if cut is not None:
                return finish(call, cut)
        cut = decode(call)
        return finish(call, await run(call) if cut is None else cut)


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
    schema = compile_function(function, name=options.get("name"))
    name = options.get("name", schema.name)
    if not isinstance(name, str) or not name:
        msg = f"{function!r} has no name of its own: name= must be text that is not empty; got {name!r}"
        raise InvalidToolError(msg)
    tool = _make_tool(name, schema, options)
    approve = options.get("approve")
    if approve is not None and not callable(approve):
        msg = f"tool {name!r}: approve: expected an async function; got {type(approve).__name__}"
        raise InvalidToolError(msg)
    descriptor = ToolDescriptor(tool, function, schema, approve)
    for index, example in enumerate(tool.examples):
        try:
            descriptor.decode(example.args)
        except InvalidArgumentsError as exc:
            raise InvalidExampleError(name, index, exc.problems) from None
    return descriptor


def _make_tool(name: str, schema: FunctionSchema, options: ToolOptions) -> Tool:
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
        is_idempotent=bool(options.get("idempotent", False)),
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
