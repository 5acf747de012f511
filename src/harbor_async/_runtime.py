"""The runtime: a catalog plus limits, and everything that has state."""

import math
from collections.abc import AsyncIterable, Callable, Coroutine, Iterable
from functools import partial
from random import Random
from typing import Any, ParamSpec, Self, TypeVar, cast

from . import _backend
from ._backend import Backend
from ._batch import Batch, Join
from ._call import Call, Trouble, without_traceback
from ._catalog import Catalog
from ._categories import Outcome
from ._context import Identity
from ._crew import Crew
from ._limiter import Limiter
from ._limits import Limits
from ._policy import check_seconds
from ._results import Arguments, ToolCall, ToolResult
from ._serve import admit, answer, ask, decode, finish, refusal, run_in_turn
from ._shell import run
from ._stream import Stream
from ._tool import Approve, ToolDescriptor
from .errors import (
    HarborError,
    InvalidArgumentsError,
    InvalidToolError,
    ScopeDeniedError,
    ToolCanceledError,
    ToolError,
    ToolNotFoundError,
    ToolTimeoutError,
)

P = ParamSpec("P")
R = TypeVar("R")


class Runtime:
    """Answers calls from a catalog, within limits. Enter it with ``async with``, in the event loop that uses it."""

    def __init__(
        self,
        catalog: Catalog,
        *,
        limits: Limits | None = None,
        identity: Identity | None = None,
        approve: Approve | None = None,
        random: Callable[[], float] | None = None,
    ) -> None:
        """Prepare a runtime.

        Args:
            catalog: Where names are looked up, at each call anew.
            limits: Its bounds; None: ``Limits()``.
            identity: On whose behalf calls are made that name no other. None: the program's own, which needs no scopes.
            approve: Asked before each call of a model that has the scopes, and before the tool's own ``approve``.
            random: Uniform numbers in [0, 1) for the jitter of waits; None: a generator of its own.

        Raises:
            InvalidToolError: ``catalog`` or ``limits`` is something else.
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
        self._random = Random().random if random is None else random  # noqa: S311 - jitter, no secret
        self._backend: Backend | None = None
        self._limiter: Limiter | None = None
        self._threads: Limiter | None = None

    async def __aenter__(self) -> Self:
        """Open the runtime in the running event loop.

        Raises:
            HarborError: It is open already.
        """
        if self._backend is not None:
            msg = "this runtime is open already"
            raise HarborError(msg)
        self._backend = _backend.current()
        limits = self.limits
        self._limiter = None if limits.max_running is None else Limiter(limits.max_running, limits.max_queued)
        self._threads = Limiter(limits.max_threads)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it: no further call is taken. Calls belong to the tasks that await them, and end there."""
        self._backend = None

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
        if not isinstance(tool, ToolDescriptor):
            msg = f"call() takes a tool descriptor, as @tool and describe() make them; got {type(tool).__name__}"
            raise InvalidToolError(msg)
        denied = _denied(tool, self.identity)
        if denied is not None:
            raise denied
        call = Call(self._open(), tool, "", None, self.limits, self._random, identity=self.identity)
        call.bound = tool.schema.bind(args, kwargs)
        call.threads = self._threads
        refused = None if self._limiter is None else admit(call, self._limiter)
        ended = refused or await self._run(call)
        if isinstance(ended, Trouble):
            try:
                raise _error(call, ended)
            finally:
                del refused, ended  # or the traceback of the error holds this frame, and the frame the error
        return cast("R", ended)

    async def invoke(
        self,
        name: str,
        arguments: Arguments = "",
        *,
        id: str = "",
        timeout: float | None = None,
        identity: Identity | None = None,
    ) -> ToolResult:
        """Answer one call of a model, whatever happens.

        Args:
            name: The tool's name.
            arguments: A JSON object as text or bytes, or a mapping.
            id: The id that the result is to carry.
            timeout: The deadline of the whole call, in seconds from now. None: no deadline.
            identity: On whose behalf; None: the runtime's.

        Raises:
            InvalidToolError: ``timeout`` is no finite number of seconds ≥ 0.
            HarborError: The runtime is not open.
        """
        deadline = math.inf if timeout is None else self._deadline(timeout)
        begun = self._begin(id, name, arguments, deadline, identity=identity)
        return begun if isinstance(begun, ToolResult) else finish(begun, await self._run(begun))

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
        return Batch(self._open(), partial(self._begin, identity=identity), self._run, deadline, join)

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
        begin = partial(self._begin, identity=identity)
        return Stream(self._open(), calls, begin, self._run, self.limits, deadline)

    def _open(self) -> Backend:
        if self._backend is None:
            msg = "the runtime is not open: use it inside 'async with Runtime(catalog) as runtime'"
            raise HarborError(msg)
        return self._backend

    def _deadline(self, timeout: float | None) -> float:
        backend = self._open()
        if timeout is None:
            return math.inf
        check_seconds("timeout", timeout)
        return backend.time() + timeout

    def _begin(
        self,
        id: str,
        name: str,
        arguments: Arguments,
        deadline: float,
        crew: Crew | None = None,
        *,
        is_bounded: bool = True,
        identity: Identity | None = None,
    ) -> Call | ToolResult:
        """Resolve, check, decode and admit a call; one that fails in that is answered at once."""
        try:
            tool = self.catalog.resolve(name)
        except ToolNotFoundError as exc:
            missing = refusal(exc, "invalid")
            without_traceback(exc)
            return ToolResult(id, name, missing.outcome, error=missing.failure, stop_reason=missing.stop_reason)
        identity = identity or self.identity
        call = Call(self._open(), tool, id, arguments, self.limits, self._random, deadline, crew, identity)
        call.threads = self._threads
        call.is_bounded = is_bounded
        if identity is not None and (denied := _denied(tool, identity)) is not None:
            return answer(call, refusal(denied, "rejected", Outcome.REJECTED))
        if self._approve is not None or tool.approve is not None:
            return call  # what approval makes of the arguments is decoded and admitted after it
        try:
            call.bound = tool.decode(arguments, self.limits)
        except InvalidArgumentsError as exc:
            return answer(call, refusal(exc, "invalid"))
        if self._limiter is None:
            return call
        refused = admit(call, self._limiter, is_bounded=is_bounded)
        return call if refused is None else answer(call, refused)

    def _run(self, call: Call) -> Coroutine[Any, Any, Any]:
        if call.bound is None:
            return self._run_approved(call)
        return run(call) if call.ticket is None else run_in_turn(call, cast("Limiter", self._limiter))

    async def _run_approved(self, call: Call) -> Any:
        tool = cast("ToolDescriptor[..., Any]", call.function)
        for approve in (self._approve, tool.approve):
            if approve is not None:
                request = ToolCall(call.id, tool.name, call.arguments)
                cut = await ask(call, partial(approve, request, tool.tool, call.identity))
                if cut is not None:
                    return cut
        refused = decode(call)
        if refused is None and self._limiter is not None:
            refused = admit(call, self._limiter, is_bounded=call.is_bounded)
        return await self._run(call) if refused is None else refused


def _denied(tool: ToolDescriptor[..., Any], identity: Identity | None) -> ScopeDeniedError | None:
    """Say what ``identity`` lacks for ``tool``."""
    if identity is None or tool.tool.scopes <= identity.scopes:
        return None
    return ScopeDeniedError(tool.name, tool.tool.scopes - identity.scopes)


def _error(call: Call, trouble: Trouble) -> BaseException:
    """Return the exception that a program gets for ``trouble``: the tool's own where it raised one."""
    failure = trouble.failure
    error: BaseException
    if trouble.error is not None:
        error = trouble.error
    elif trouble.outcome is Outcome.TIMED_OUT:
        error = ToolTimeoutError(failure.message, ambiguous=failure.ambiguous)
    else:
        error = ToolCanceledError(failure.message, ambiguous=failure.ambiguous)
    if call.attempts > 1 or not isinstance(error, ToolError):
        runs = "1 attempt" if call.attempts == 1 else f"{call.attempts} attempts"
        error.add_note(f"tool {call.function.name!r}: {runs}, stopped by {trouble.stop_reason!r}")
    return error
