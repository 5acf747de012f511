"""What runs: a tool, its function and its compiled schema."""

import math
from collections.abc import Awaitable, Callable
from functools import partial
from inspect import isawaitable, iscoroutine
from random import Random
from threading import get_ident
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeAlias, TypeVar, cast

import attrs

from . import _backend
from ._answer import finish
from ._call import Call, Host
from ._context import ToolContext
from ._limits import Limits
from ._policy import ToolPolicy, check_seconds
from ._results import Arguments, Failure, Repair, ToolCall, ToolResult
from ._serve import ask, call_function, decode
from ._shell import run
from ._thread import await_in_thread, run_in_thread
from ._tool import Approve, Tool
from .errors import InvalidToolError

if TYPE_CHECKING:  # the engine is loaded when the first tool is made: it is a third of the package
    from .schema._function import FunctionSchema

Bound: TypeAlias = Any
"""What a schema's ``decode`` makes of the arguments of one call."""

P = ParamSpec("P")
R = TypeVar("R")

Render: TypeAlias = Callable[[Failure, Arguments], str]
"""Says in a tool's own words why a call has no value, given the arguments as they came: ``ToolResult.content``."""

_DEFAULT_LIMITS = Limits()


class Link:
    """Ties a ``ToolContext`` to its call."""

    __slots__ = ("_attempt", "_call")

    def __init__(self, call: Call) -> None:
        self._call = call
        self._attempt = call.attempts

    @property
    def key(self) -> str:
        call = self._call
        if not call.key:
            call.key = call.host.make_key()
        return call.key

    def time(self) -> float:
        return self._call.backend.time()

    def report(self, done: float, total: float | None, message: str) -> None:
        call = self._call
        if call.host.outlets is None and call.on_progress is None:
            return
        tell = partial(self._tell, done, total, message)
        if call.backend.thread == get_ident():
            tell()
        else:
            call.backend.run_sync_soon(tell)

    def _tell(self, done: float, total: float | None, message: str) -> None:
        call = self._call
        # Else it has had its last event, or this is of an attempt whose thread was left behind.
        if call in call.host.in_flight and call.attempts == self._attempt:
            call.tell_progress(done, total, message)

    async def call(self, tool: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        call = self._call
        return await call_function(call.host, check_descriptor(tool), args, kwargs, call.identity)


def check_descriptor(tool: object) -> "ToolDescriptor[..., Any]":
    """Refuse what is no descriptor.

    Raises:
        InvalidToolError: It is something else.
    """
    if not isinstance(tool, ToolDescriptor):
        msg = f"call() takes a tool descriptor, as @tool and describe() make them; got {type(tool).__name__}"
        raise InvalidToolError(msg)
    return cast("ToolDescriptor[..., Any]", tool)


def _say(function: Callable[[Bound], Any], bound: Bound) -> object:
    """Return what a user's function says of the arguments."""
    said = function(bound)
    if iscoroutine(said):
        said.close()  # or Python warns that it was never awaited
    return said


def _own_name(descriptor: "ToolDescriptor[..., Any]") -> str:
    return descriptor.tool.name


def _own_is_sync(descriptor: "ToolDescriptor[..., Any]") -> bool:
    return not descriptor.schema.is_coroutine


def _own_is_limited(descriptor: "ToolDescriptor[..., Any]") -> bool:
    return descriptor.max_running is not None or descriptor.group is not None


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
        max_running: Calls of it that run at once in one runtime; None: no limit of its own.
        weight: How many places of ``Limits.max_running`` one call takes; more than there are means all.
        group: The exclusive group of its calls, of which one runs at a time in a runtime, in call order: its name, or a
            function of the bound arguments that gives it, or None. Tools may share a group.
        repeat: Whether its effect may be repeated, or a function of the bound arguments that says so.
        render: Says in its own words why a call has no value; None: as every other tool.
        is_limited: Whether it has a limit of its own or a group.
    """

    tool: Tool
    function: Callable[P, Awaitable[R] | R]
    schema: "FunctionSchema" = attrs.field(repr=False)
    approve: Approve | None = attrs.field(default=None, repr=False)
    max_running: int | None = attrs.field(default=None, repr=False)
    weight: int = attrs.field(default=1, repr=False)
    group: str | Callable[[Bound], Any] | None = attrs.field(default=None, repr=False)
    repeat: bool | Callable[[Bound], Any] = attrs.field(default=False, repr=False)
    render: Render | None = attrs.field(default=None, repr=False)
    # Fields, since the shell reads them at each call.
    name: str = attrs.field(init=False, repr=False, default=attrs.Factory(_own_name, takes_self=True))
    is_sync: bool = attrs.field(init=False, repr=False, default=attrs.Factory(_own_is_sync, takes_self=True))
    policy: ToolPolicy = attrs.field(init=False, repr=False, default=attrs.Factory(_own_policy, takes_self=True))
    is_limited: bool = attrs.field(init=False, repr=False, default=attrs.Factory(_own_is_limited, takes_self=True))

    def find_group(self, call: Call) -> str | None:
        """Return the exclusive group of ``call``, whose arguments are decoded.

        Raises:
            TypeError: The function that gives it returned something else than text or None.
            Exception: What it raised.
        """
        group = _say(self.group, call.bound) if callable(self.group) else self.group
        if group is not None and not isinstance(group, str):
            msg = f"tool {self.name!r}: exclusive returned a {type(group).__name__}, no name of a group"
            raise TypeError(msg)
        return group

    def may_repeat(self, call: Call) -> bool:
        """Say whether the effect of ``call`` may be repeated; not where that cannot be told."""
        if not callable(self.repeat):
            return self.repeat
        try:
            bound = self.decode(call.arguments, call.host.limits) if call.bound is None else call.bound
            return _say(self.repeat, bound) is True
        except Exception:  # noqa: BLE001 - a user's function; what is not surely safe is not
            return False

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

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Bound:
        """Return a program's own arguments as they are.

        Raises:
            TypeError: They do not fit the function's signature.
        """
        return self.schema.bind(args, kwargs)

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
            bound = self.decode(call.arguments, call.host.limits)
        elif call.arguments is not None:  # a program's own values are passed as they are, each time
            call.bound = None
        context: Any = None
        if self.schema.wants_context:
            context = ToolContext(call.id, self.name, call.attempts, call.attempt_deadline, call.identity, Link(call))
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
        backend = _backend.current()
        deadline = math.inf if timeout is None else backend.time() + timeout
        host = Host(backend, _DEFAULT_LIMITS, Random().random)  # noqa: S311 - jitter, no secret
        call = Call(host, self, "", arguments, deadline)
        if self.approve is not None:
            cut = await ask(call, partial(self.approve, ToolCall("", self.name, arguments), self.tool, None))
            if cut is not None:
                return finish(call, cut)
        cut = decode(call)
        return finish(call, await run(call) if cut is None else cut)


Repairer: TypeAlias = Callable[[ToolDescriptor[..., Any], Arguments], tuple[Arguments, tuple[Repair, ...]]]
"""Mends the arguments of a model before anybody looks at them, and says what it did."""
