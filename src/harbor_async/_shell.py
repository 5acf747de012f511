"""The policy shell: attempts in cancel scopes of their own, and the one place that says who canceled.

The questions of ``_settle`` and their order are the heart of the package. The shell knows no JSON: a ``Function``
decodes its own arguments.
"""

import math
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator
from contextlib import AbstractContextManager, suppress
from contextvars import Context, copy_context
from types import CoroutineType, coroutine
from typing import Any, Final, cast

import anyio
import stamina

from ._backend import find_interrupt
from ._backoff import plan_retry
from ._call import CURRENT, Call
from ._classify import single_leaf
from ._events import EventType
from ._policy import ToolPolicy
from ._trouble import (
    GONE,
    Gone,
    Trouble,
    attempt_timed_out,
    canceled,
    is_uncertain,
    raised,
    rejected,
    timed_out,
    without_traceback,
)


async def run(call: Call) -> Any:
    """Run the call's function under its policy.

    Returns:
        The function's value; a ``Trouble`` when there is none; ``GONE`` in a child task whose crew was canceled.

    Raises:
        BaseException: The caller's own cancellation or an interrupt, when the call is no child task.
    """
    crew = call.crew
    # The caller's task waits here, so that its context stays as it is. A child task has one to itself, which its first
    # attempt may have; the others begin with what it was before.
    # With listeners it is stepped by hand all the same, so that one that goes on after a cancel can be told of.
    context = copy_context() if crew is None or call.host.outlets is not None else None
    # Known to the calls that are made from within, where it has something that they could wait for. For every call it
    # would make a batch of 10,000 a quarter dearer.
    is_known = call.ticket is not None or call.function.is_sync
    if is_known:
        CURRENT.set(call) if context is None else context.run(CURRENT.set, call)
    retries: _Retries | None = None
    ended: Any = None
    try:
        while True:
            if call.function.is_sync:
                ended = await _attempt_in_thread(call, context)
            else:
                ended = await _attempt(call, context)
            if type(ended) is not Trouble or ended.stop_reason is not None:
                return ended
            wait = _plan(call, ended)
            if wait is None:
                return ended
            if call.host.outlets is not None:
                failure = ended.failure
                call.tell(EventType.RETRY, wait=wait, category=failure.category, error_class=failure.error_class)
            if retries is None:
                retries = _Retries(call.function.policy)
            cut = await retries.wait(call, ended, wait)
            if cut is not None:
                return cut
            without_traceback(ended.error)  # it has been told to the host, and holds the frames of the attempt
            context = copy_context() if crew is None else call.context.copy()
            if is_known:
                context.run(CURRENT.set, call)
    finally:
        ended = retries = None  # or the traceback of a kept error holds this frame, and the frame the error


async def _attempt_in_thread(call: Call, context: Context | None) -> Any:
    """Run a synchronous function once, when there is a place for its thread; the answers are those of ``_attempt``."""
    threads = call.host.threads
    if threads is None:
        return await _attempt(call, context)
    place = call.thread = threads.join()
    try:
        cut = None
        if not place.is_granted:
            if any(caller.is_in_thread and caller.host.threads is threads for caller in call.callers()):
                return rejected(call, _NO_THREAD)
            cut = await guard(call, place.wait)
        return await _attempt(call, context) if cut is None else cut
    finally:
        if call.thread is place:  # no thread has taken it over
            place.leave()


_NO_THREAD: Final = (
    "every worker thread is taken, one of them by the synchronous tool that made this call and would wait for it"
)


async def _attempt(call: Call, context: Context | None) -> Any:  # noqa: C901, PLR0912, PLR0915 - one, top to bottom
    """Run the function once.

    In a ``context`` it is stepped by hand as far as its first wait, and gets its scope there, below those that it has
    entered itself by then. What ends before has let nobody else run, so that it needs no scope to be canceled by, and a
    scope with its timer would cost as much as all the rest.

    Returns:
        The value, a ``Trouble`` or ``GONE``.

    Raises:
        BaseException: As ``run``.
    """
    backend, crew = call.backend, call.crew
    place, pending, outer = backend.enter()
    now = backend.time()
    if crew is not None:
        if crew.has_canceled(pending):
            return GONE  # before this task had a scope in which the crew could find it
    elif outer <= now:
        await backend.leave(pending, None)
    if call.is_canceled:
        return canceled(call, None, in_attempt=False)
    if now >= call.deadline:
        return timed_out(call, None, in_attempt=False)
    call.attempts += 1
    if call.host.outlets is not None:
        call.tell(EventType.ATTEMPT)
    timeout = call.function.policy.timeout
    limit = math.inf if timeout is None else now + timeout
    deadline = call.attempt_deadline = min(limit, call.deadline)
    value: Any = None
    error: BaseException | None = None
    steps: Coroutine[Any, Any, Any] | None = None
    scope: anyio.CancelScope | None = None
    if crew is not None:
        scope = crew.enter_scope(call, deadline)
    elif not backend.steps_first:
        scope = call.scope = backend.enter_scope(place, deadline)
    try:
        try:
            if context is None:
                value = await call.function.start(call)
            else:
                steps = _as_coroutine(context.run(call.function.start, call))
                step = context.run(steps.send, None)
                if scope is None:
                    scope = call.scope = backend.enter_scope(place, deadline)
                value = await _go_on(call, context, steps, step)
        except StopIteration as stop:  # of the first step: the function has ended without a wait
            value, error = stop.value, stop if steps is None else None
            # By now the function itself may have canceled its caller, where there is a scope to cancel.
            is_free = backend.is_free(place, outer) and not call.is_canceled
            if error is None and is_free and deadline > backend.time():
                return value
        except BaseException as exc:  # noqa: BLE001 - the one place; what is not ours to end leaves again below
            error = exc
        finally:
            call.scope = None
            if scope is not None:
                try:
                    scope.__exit__(None, None, None)
                except Exception as exc:  # noqa: BLE001 - the function has left a scope of its own open
                    error = error or exc
        while (settled := _settle(call, error, limit, pending, in_attempt=True)) is _OUTSIDE:
            await backend.leave(pending, error)
        return value if settled is None else settled
    finally:
        error = value = settled = None  # as above


_OUTSIDE: Final = Gone()
"""The answer of ``_settle`` when the caller has canceled a call that runs in the caller's own task."""


@coroutine
def _go_on(call: Call, context: Context, steps: Coroutine[Any, Any, Any], step: Any) -> Generator[Any, Any, Any]:
    """Run ``steps``, which wait for ``step``, to their end in ``context``."""
    run_in = context.run
    is_watched = call.host.outlets is not None
    ignored = 0
    try:
        while True:
            try:
                sent = yield step
            except GeneratorExit:
                run_in(steps.close)
                raise
            except BaseException as exc:  # noqa: BLE001 - handed on to the function, as await does
                is_cut = isinstance(exc, call.backend.canceled)
                step = run_in(steps.throw, exc)
            else:
                # trio sends the outcome of a wait, which holds the cancellation
                is_cut = is_watched and isinstance(getattr(sent, "error", None), call.backend.canceled)
                step = run_in(steps.send, sent)
            if is_cut and is_watched and call.scope is not None and call.scope.cancel_called:
                ignored += 1
                if ignored == _MANY_IGNORED:
                    call.tell(EventType.CANCEL_IGNORED)
    except StopIteration as stop:
        return stop.value


_MANY_IGNORED: Final = 3
"""Cancellations of one attempt after which the function has waited again. One is a shielded cleanup; a function that
keeps on swallowing them is canceled again at every turn of the loop."""


def _as_coroutine(awaitable: Awaitable[Any]) -> Coroutine[Any, Any, Any]:
    if type(awaitable) is CoroutineType:
        return cast("Coroutine[Any, Any, Any]", awaitable)
    return _await(awaitable)


async def _await(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


async def guard(call: Call, start: Callable[[Call], Awaitable[Any]]) -> Any:
    """Await ``start(call)``, a wait of ours, in a scope of the call's own, and say how it ended.

    Returns:
        The value, a ``Trouble`` or ``GONE``.

    Raises:
        BaseException: As ``run``.
    """
    if call.crew is not None and call.crew.is_canceled:
        return GONE  # as above
    if call.is_canceled:
        return canceled(call, None, in_attempt=False)  # as above: whoever canceled it has found no scope
    backend = call.backend
    error: BaseException | None = None
    value: Any = None
    pending = backend.cancelling()
    scope = call.scope = backend.scope(deadline=call.deadline)
    try:
        with scope:
            try:
                value = await start(call)
            except BaseException as exc:  # noqa: BLE001 - as above
                error = exc
        call.scope = None
        while (settled := _settle(call, error, math.inf, pending, in_attempt=False)) is _OUTSIDE:
            await backend.leave(pending, error)
        return value if settled is None else settled
    finally:
        error = value = settled = None  # as above


def _settle(  # noqa: C901, PLR0911, PLR0912 - one answer a row
    call: Call, error: BaseException | None, limit: float, pending: int, *, in_attempt: bool
) -> Any:
    """Say who ended it, asked after its scope has closed and in the one order that fits every row of the table.

    Args:
        call: The call.
        error: What came out of it.
        limit: When the attempt's timeout passes.
        pending: Native cancellations that were pending when it began.
        in_attempt: Whether it was the function, and not a wait of ours.

    Returns:
        None for the value, ``_OUTSIDE`` for the caller, else as ``guard``.
    """
    crew = call.crew
    if error is not None:
        if (interrupt := find_interrupt(error)) is not None:
            if crew is None:
                raise interrupt
            crew.interrupt_with(interrupt)
            return GONE
        if isinstance(error, GeneratorExit):  # nothing may be awaited after it
            return raised(call, error)
    if crew is None:
        if call.backend.is_canceled(pending):
            return _OUTSIDE
    elif crew.has_canceled(pending):
        return GONE
    now = call.backend.time()
    if call.is_canceled or now >= call.deadline or now >= limit:
        if in_attempt and error is None and call.function.tool.declares_effect:
            call.is_late = True
            return None
        if call.is_canceled:
            return canceled(call, error, in_attempt=in_attempt)
        if now >= call.deadline:
            return timed_out(call, error, in_attempt=in_attempt)
        return attempt_timed_out(call, error, now - limit)
    if error is None:
        return None
    if isinstance(single_leaf(error), call.backend.canceled):
        return canceled(call, error, in_attempt=in_attempt, message=f"{call.function.name!r} was canceled from within")
    return raised(call, error)


class _Retries:
    """The waits between the attempts of one call. stamina counts, waits and tells the host's instrumentation."""

    def __init__(self, policy: ToolPolicy) -> None:
        self._pause = pause = [0.0]
        self._error: BaseException | None = None
        self._turns: AsyncIterator[stamina.Attempt] | None = None
        self._turn: AbstractContextManager[None] = suppress(Exception)
        self._context = stamina.retry_context(on=lambda _: pause[0], attempts=policy.attempts, timeout=None)

    async def wait(self, call: Call, trouble: Trouble, pause: float) -> Any:
        """Wait ``pause`` seconds after ``trouble``; None when the next attempt may begin, else how the call ends."""
        self._pause[0] = pause
        self._error = trouble.error
        if self._turns is None:
            self._turns = aiter(self._context)
            self._turn = await anext(self._turns)
        with self._turn:
            assert trouble.error is not None  # noqa: S101 - without one no retry is planned
            raise trouble.error
        ended = await guard(call, self._next)
        if ended is False:
            trouble.stop_reason = "attempts"
            return trouble
        return None if ended is True else ended

    async def _next(self, _: Call) -> bool:
        """Wait for the next turn; False when stamina has counted to its end."""
        if self._turns is not None:
            try:
                self._turn = await anext(self._turns)
            except Exception as exc:  # noqa: BLE001 - told apart below
                if exc is self._error:
                    return False
                self._turns = None  # an instrumentation hook of the host broke, which must not change the answer
            else:
                return True
        self._turn = suppress(Exception)
        await anyio.sleep(self._pause[0])
        return True


def _plan(call: Call, trouble: Trouble) -> float | None:
    """Return the wait before the next attempt; None after noting in ``trouble`` why there is none."""
    if call.is_background and not call.function.may_repeat(call):
        trouble.stop_reason = "unsafe"
        return None
    assert trouble.verdict is not None  # noqa: S101 - what has no stop reason has an error and its verdict
    plan = plan_retry(
        call.function.policy,
        cast("Exception", single_leaf(cast("Exception", trouble.error))),
        trouble.verdict,
        is_effect=is_uncertain(call),
        attempts=call.attempts,
        remaining=call.deadline - call.backend.time(),
        random=call.host.random,
    )
    if isinstance(plan, str):
        trouble.stop_reason = plan
        return None
    return plan
