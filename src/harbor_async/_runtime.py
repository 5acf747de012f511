"""The runtime: a catalog plus limits, and everything that has state."""

import logging
import math
from collections.abc import AsyncIterable, Callable, Coroutine, Iterable
from functools import partial
from importlib import import_module
from random import Random
from types import TracebackType
from typing import Any, Final, ParamSpec, Self, TypeVar, cast

import anyio

from . import _backend
from ._admit import admit, check
from ._answer import abandon, answer, finish, refusal
from ._batch import Batch, Join
from ._call import Call, Host, Progress
from ._catalog import Catalog
from ._context import Identity
from ._crew import Crew
from ._descriptor import Repairer, ToolDescriptor, check_descriptor
from ._events import EventSink, EventType, Outlets, ToolEvent
from ._limiter import Limiter
from ._limits import Limits
from ._policy import check_seconds
from ._results import Arguments, ToolCall, ToolResult
from ._serve import ask, call_function, prepare, run_in_turn
from ._settle import guard
from ._shell import run, run_at_once
from ._statistics import Statistics, count
from ._stream import Stream
from ._tool import Approve
from ._trouble import without_traceback
from .errors import HarborError, InvalidArgumentsError, InvalidToolError, ToolNotFoundError, clip

P = ParamSpec("P")
R = TypeVar("R")

_LOG: Final = logging.getLogger("harbor_async")


class Runtime:
    """Answers calls from a catalog, within limits. Enter it with ``async with``, in the event loop that uses it."""

    def __init__(
        self,
        catalog: Catalog,
        *,
        limits: Limits | None = None,
        identity: Identity | None = None,
        approve: Approve | None = None,
        sinks: Iterable[EventSink] = (),
        random: Callable[[], float] | None = None,
        repair: Repairer | None = None,
    ) -> None:
        """Prepare a runtime.

        Args:
            catalog: Where names are looked up, at each call anew.
            limits: Its bounds; None: ``Limits()``.
            identity: On whose behalf calls are made that name no other. None: the program's own, which needs no scopes.
            approve: Asked before each call of a model that has the scopes, and before the tool's own ``approve``.
            sinks: Who is told what happens to calls.
            random: Uniform numbers in [0, 1) for the jitter of waits; None: a generator of its own.
            repair: Mends what a model has sent before it is approved or decoded, as ``harbor_async.export.repair``;
                ``ToolResult.repairs`` says what it did. None: arguments are taken as they are.

        Raises:
            InvalidToolError: ``catalog``, ``limits`` or a sink is something else.
        """
        limits = Limits() if limits is None else limits
        for value, kind in ((catalog, Catalog), (limits, Limits)):
            if not isinstance(value, kind):
                msg = f"Runtime: expected a {kind.__name__}; got {type(value).__name__}"
                raise InvalidToolError(msg)
        self.catalog = catalog
        self.limits = limits
        self.identity = identity
        self._approve = approve
        self._repair = repair
        self._random = Random().random if random is None else random  # noqa: S311 - jitter, no secret
        self._sinks = tuple(sinks)
        for sink in self._sinks:
            if not callable(getattr(sink, "emit", None)):
                msg = f"Runtime: expected sinks with an async emit(event); got {type(sink).__name__}"
                raise InvalidToolError(msg)
        self._host: Host | None = None

    async def __aenter__(self) -> Self:
        """Open the runtime in the running event loop.

        Raises:
            HarborError: It is open already.
        """
        if self._host is not None:
            msg = "this runtime is open already"
            raise HarborError(msg)
        import_module("stamina")  # now, and not in the middle of the first retry
        limits = self.limits
        host = Host(_backend.current(), limits, self._random)
        host.limiter = Limiter(limits.max_running, limits.max_queued)
        host.threads = Limiter(limits.max_threads)
        self._host = host
        if self._sinks:
            host.outlets = await Outlets(host.backend, self._sinks).__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it: no further call is taken. Calls belong to the tasks that await them, and end there.

        Sinks are given a second to take what is still to be told.
        """
        host, self._host = self._host, None
        if host is not None and host.outlets is not None:
            outlets, host.outlets = host.outlets, None
            await outlets.__aexit__(kind, error, trace)

    def statistics(self) -> Statistics:
        """Count what is in flight.

        Raises:
            HarborError: The runtime is not open.
        """
        return count(self._open())

    async def drain(self, timeout: float | None = None) -> int:
        """Take no more calls, and wait until those that were taken have ended.

        A call that comes later is ``rejected`` / ``rate_limited``, but for one that is made from within another call.
        Nothing is canceled, also when the timeout passes. Once closed, a runtime can be opened again.

        On asyncio, tasks that a tool makes by asyncio itself (``asyncio.gather``, ``asyncio.TaskGroup``) cannot be told
        from others where the tool has neither a thread nor a limit; those of an anyio task group can.

        Args:
            timeout: Seconds to wait. None: as long as it takes.

        Returns:
            How many calls still run: 0, or the timeout has passed.

        Raises:
            InvalidToolError: ``timeout`` is no finite number of seconds ≥ 0.
            HarborError: The runtime is not open.
        """
        check_seconds("timeout", timeout)
        host = self._open()
        host.is_closing = True
        with anyio.move_on_after(timeout):
            while host.in_flight:
                if host.idle is None or host.idle.is_set():
                    host.idle = anyio.Event()
                await host.idle.wait()
        return len(host.in_flight)

    async def call(self, tool: ToolDescriptor[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a tool as a program: with Python values in and out, under its policy and the runtime's limits.

        The runtime's identity must have the tool's scopes; nobody is asked to approve.

        Returns:
            What the function returned, as it is.

        Raises:
            TypeError: The arguments do not match the function's signature.
            ToolTimeoutError: An attempt timed out and was the last.
            ToolCanceledError: The tool was canceled from within.
            OverloadedError: The queue is full.
            ScopeDeniedError: The runtime's identity lacks scopes.
            Exception: What the tool raised last, as itself, with a note on the attempts.
        """
        host = self._open()
        return cast("R", await call_function(host, check_descriptor(tool), args, kwargs, self.identity))

    async def invoke(
        self,
        name: str,
        arguments: Arguments = "",
        *,
        id: str = "",
        timeout: float | None = None,
        identity: Identity | None = None,
        on_progress: Progress | None = None,
    ) -> ToolResult:
        """Answer one call of a model, whatever happens.

        Args:
            name: The tool's name.
            arguments: A JSON object as text or bytes, or a mapping.
            id: The id that the result is to carry.
            timeout: The deadline of the whole call, in seconds from now. None: no deadline.
            identity: On whose behalf; None: the runtime's.
            on_progress: Called with ``done``, ``total`` and ``message`` when the tool reports its progress, in the
                event loop's thread; it must not wait, and what it raises is logged. The sinks are told as well.

        Raises:
            InvalidToolError: ``timeout`` is no finite number of seconds ≥ 0.
            HarborError: The runtime is not open.
        """
        deadline = math.inf if timeout is None else self._deadline(timeout)
        begun = self._begin(id, name, arguments, deadline, None, identity)
        if not isinstance(begun, Call):
            return begun
        if on_progress is not None:
            begun.on_progress = on_progress
        try:
            if begun.bound is None or not (begun.ticket is None or begun.ticket.is_granted):
                ended = await self._run(begun)
            else:
                ended, rest = run_at_once(begun)
                if rest is not None:
                    ended = await rest
        except BaseException:
            abandon(begun)
            raise
        return finish(begun, ended)

    async def invoke_many(
        self,
        calls: Iterable[ToolCall],
        *,
        timeout: float | None = None,
        join: Join = Join.ALL,
        atomic: bool = False,
        identity: Identity | None = None,
    ) -> list[ToolResult]:
        """Answer many calls at once. A failing call harms no other.

        Args:
            calls: The calls; two may share an id.
            timeout: The deadline of the batch, in seconds from now; calls that have not ended then are ``timed_out``,
                the others keep their results. None: no deadline.
            join: When there are enough results; the calls that still run are then ``canceled``.
            atomic: Whether no call is begun when one has an unknown name, wrong arguments or no place in the queue;
                the others are then ``canceled``. Calls that need approval are begun first.
            identity: On whose behalf; None: the runtime's.

        Returns:
            One result a call, in the order of the calls.

        Raises:
            InvalidToolError: ``timeout`` is no finite number of seconds ≥ 0, or ``join`` no ``Join``.
            TypeError: An item is no ``ToolCall``; then no call has begun.
            HarborError: The runtime is not open.
        """
        async with self.batch(timeout=timeout, join=join, identity=identity) as batch:
            batch.start_all(calls, is_atomic=atomic)
        # A batch that is left without raising has not lost its caller, and then every call has its answer.
        return [result for result in batch.results if result is not None]

    def batch(self, *, timeout: float | None = None, join: Join = Join.ALL, identity: Identity | None = None) -> Batch:
        """Run calls that can each be canceled: ``async with runtime.batch() as batch: handle = batch.start(call)``.

        Args:
            timeout: The deadline of the batch, in seconds from now. None: no deadline.
            join: As for ``invoke_many``.
            identity: On whose behalf; None: the runtime's.

        Raises:
            InvalidToolError: ``timeout`` is no finite number of seconds ≥ 0, or ``join`` no ``Join``.
            HarborError: The runtime is not open.
        """
        deadline = self._deadline(timeout)
        return Batch(self._open().backend, partial(self._begin, identity=identity), self._run, deadline, join)

    def stream(
        self,
        calls: "Iterable[ToolCall] | AsyncIterable[ToolCall]",
        *,
        timeout: float | None = None,
        identity: Identity | None = None,
    ) -> Stream:
        """Answer many calls, each as it ends: ``async with runtime.stream(calls) as results``.

        Calls are pulled as there is room, so that an endless or huge source works: no more than ``max_running`` are in
        hand. Without that limit everything is pulled at once.

        Args:
            calls: An iterable or an async iterable; an async generator is closed when the block is left.
            timeout: The deadline of all of it, in seconds from now. None: no deadline.
            identity: On whose behalf; None: the runtime's.

        Raises:
            InvalidToolError: ``timeout`` is no finite number of seconds ≥ 0.
            TypeError: ``calls`` is no iterable.
            HarborError: The runtime is not open.
        """
        deadline = self._deadline(timeout)
        start = partial(self._begin, identity=identity)
        return Stream(self._open(), calls, start, self._run, deadline)

    def _open(self) -> Host:
        if self._host is None:
            msg = "the runtime is not open: use it inside 'async with Runtime(catalog) as runtime'"
            raise HarborError(msg)
        return self._host

    def _deadline(self, timeout: float | None) -> float:
        host = self._open()
        if timeout is None:
            return math.inf
        check_seconds("timeout", timeout)
        return host.backend.time() + timeout

    def _begin(
        self,
        id: str,
        name: str,
        arguments: Arguments,
        deadline: float,
        crew: Crew | None = None,
        identity: Identity | None = None,
        *,
        is_bounded: bool = True,
    ) -> Call | ToolResult:
        """Resolve, check, decode and admit a call; one that fails in that is answered at once."""
        host = self._host or self._open()
        identity = identity or self.identity
        try:
            tool = self.catalog.resolve(name)
        except ToolNotFoundError as exc:
            return _missing(host, id, name, identity, exc)
        call = Call(host, tool, id, arguments, deadline, crew, identity)
        if not is_bounded:
            call.is_bounded = False
        try:
            # What follows is asked for here where it does nothing for most calls: each function is 2 % of a short one.
            host.in_flight.add(call)
            is_plain = identity is None and host.outlets is None and not host.is_closing
            refused = None if is_plain else check(call)
            if refused is None:
                if self._repair is not None:
                    arguments = _mend(call, tool, self._repair)
                if self._approve is not None or tool.approve is not None:
                    return call  # what approval makes of the arguments is decoded and admitted after it
                try:
                    limits = self.limits
                    call.bound = tool.schema.decode(arguments, limits.max_arguments_bytes, limits.max_depth)
                except InvalidArgumentsError as exc:
                    refused = refusal(exc, "invalid")
                else:
                    refused = admit(call) if host.has_places or tool.is_limited else None
        except BaseException:  # an interrupt, in the user's code that decodes or names a group
            abandon(call)
            raise
        return call if refused is None else answer(call, refused)

    def _run(self, call: Call) -> Coroutine[Any, Any, Any]:
        if call.bound is None:
            return self._run_approved(call)
        return run(call) if call.ticket is None or call.ticket.is_granted else run_in_turn(call)

    async def _run_approved(self, call: Call) -> Any:
        tool = cast("ToolDescriptor[..., Any]", call.function)
        for approve in (self._approve, tool.approve):
            if approve is not None:
                request = ToolCall(call.id, tool.name, call.arguments)
                cut = await ask(call, partial(approve, request, tool.tool, call.identity))
                if cut is not None:
                    return cut
        cut = await guard(call, prepare)
        return await self._run(call) if cut is None else cut


def _mend(call: Call, tool: ToolDescriptor[..., Any], repair: Repairer) -> Arguments:
    """Give a call the arguments that a user's function makes of its own."""
    try:
        call.arguments, call.repairs = repair(tool, call.arguments)
    except Exception:  # noqa: BLE001 - it must not lose the answer
        _LOG.exception("repair of the arguments of tool %r failed", tool.name)
    arguments: Arguments = call.arguments
    return arguments


def _missing(host: Host, id: str, name: str, identity: Identity | None, error: ToolNotFoundError) -> ToolResult:
    """Answer a call of a tool that is not there."""
    trouble = refusal(error, "invalid")
    without_traceback(error)
    failure = trouble.failure
    if host.outlets is not None:
        now = host.backend.time()
        told = partial(ToolEvent, call_id=id, tool=clip(str(name)), time=now, identity=identity)
        host.outlets.put(told(type=EventType.INVOKED))
        host.outlets.put(
            told(
                type=EventType.FAILED,
                outcome=trouble.outcome,
                category=failure.category,
                error_class=failure.error_class,
                stop_reason=trouble.stop_reason,
            )
        )
    return ToolResult(id, name, trouble.outcome, error=failure, stop_reason=trouble.stop_reason)
