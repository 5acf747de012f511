"""The policy shell: attempts in cancel scopes of their own, and the one place that says who canceled.

The questions of ``_settle`` and their order are the heart of the package. The shell knows no JSON: a ``Function``
decodes its own arguments.
"""

import math
from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractContextManager, suppress
from contextvars import Context, copy_context
from types import CoroutineType, coroutine
from typing import Any, Final

import anyio
import stamina

from ._backend import find_interrupt
from ._backoff import plan_retry
from ._call import GONE, Call, Gone, Trouble, attempt_timed_out, canceled, is_uncertain, raised, timed_out
from ._classify import single_leaf


async def run(call: Call) -> Any:
    """Run the call's function under its policy.

    Returns:
        The function's value; a ``Trouble`` when there is none; ``GONE`` in a child task whose crew was canceled.

    Raises:
        BaseException: The caller's own cancellation or an interrupt, when the call is no child task.
    """
    now = call.backend.time()
    if call.crew is not None:
        start = call.function.start  # a child task has its context to itself: the first attempt needs no copy
    elif call.backend.effective_deadline() <= now:
        await call.backend.leave(call.pending, None)
    else:
        start = _start_isolated
    if call.is_canceled:
        return canceled(call, None, in_attempt=False)
    if now >= call.deadline:
        return timed_out(call, None, in_attempt=False)
    call.context = copy_context()
    ended = await guard(call, start, _begin_attempt(call, now), in_attempt=True)
    if type(ended) is not Trouble or ended.stop_reason is not None:
        return ended
    wait = _plan(call, ended)
    return ended if wait is None else await _retry(call, ended, wait)


_OUTSIDE: Final = Gone()
"""The answer of ``_settle`` when the caller has canceled a call that runs in the caller's own task."""


async def guard(
    call: Call, start: Callable[[Call], Awaitable[Any]], limit: float = math.inf, *, in_attempt: bool = False
) -> Any:
    """Await ``start(call)`` in a scope of the call's own, and say how it ended.

    Args:
        call: The call; its deadline and every way to cancel it reach what is awaited.
        start: What to await.
        limit: When this part ends, on the loop's clock.
        in_attempt: Whether the function is what is awaited.

    Returns:
        The value, a ``Trouble`` or ``GONE``.

    Raises:
        BaseException: As ``run``.
    """
    crew = call.crew
    if crew is not None and crew.is_canceled:
        return GONE  # canceled before this task had a scope in which the crew could find it
    error: BaseException | None = None
    value: Any = None
    deadline = call.deadline if call.deadline < limit else limit
    is_late = call.backend.arms_late and start is _start_isolated
    scope = call.scope = call.backend.scope() if is_late else call.backend.scope(deadline=deadline)
    try:
        with scope:
            if is_late:
                call.backend.show_deadline(scope, deadline)
            try:
                value = await start(call)
            except BaseException as exc:  # noqa: BLE001 - the one place; what is not ours to end leaves again below
                error = exc
        call.scope = None
        settled = _settle(call, error, limit, in_attempt=in_attempt)
        if settled is _OUTSIDE:
            await call.backend.leave(call.pending, error)
        return value if settled is None else settled
    finally:
        del error, value  # or the traceback of a kept error holds this frame, and the frame the error


def _settle(call: Call, error: BaseException | None, limit: float, *, in_attempt: bool) -> Any:
    """Say who ended it, asked after its scope has closed and in the one order that fits every row of the table.

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
        if call.backend.is_canceled(call.pending):
            return _OUTSIDE
    elif crew.is_canceled or call.backend.is_canceled(0):
        return GONE
    now = call.backend.time()
    if call.is_canceled or now >= call.deadline or now >= limit:
        if in_attempt and error is None and call.function.is_effect:
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


def _begin_attempt(call: Call, now: float) -> float:
    """Count an attempt that begins now, and return when it ends."""
    call.attempts += 1
    timeout = call.function.policy.timeout
    limit = math.inf if timeout is None else now + timeout
    call.attempt_deadline = call.deadline if call.deadline < limit else limit
    return limit


async def _retry(call: Call, trouble: Trouble, pause: float) -> Any:
    """Go on after a first failure. stamina counts, waits and tells the host's instrumentation."""
    turns = stamina.retry_context(on=lambda _: pause, attempts=call.function.policy.attempts, timeout=None).__aiter__()
    turn: AbstractContextManager[None] = await anext(turns)

    async def wait(_: Call) -> AbstractContextManager[None] | None:
        nonlocal turns
        if turns is not None:
            try:
                return await anext(turns)
            except Exception as exc:  # noqa: BLE001 - told apart below
                if exc is trouble.error:  # stamina has counted to its end
                    return None
                turns = None  # an instrumentation hook of the host broke, and must not change the answer
        await anyio.sleep(pause)
        return suppress(Exception)

    while True:
        with turn:
            raise trouble.error
        ended = await guard(call, wait)
        if ended is None:
            trouble.stop_reason = "attempts"
            return trouble
        if type(ended) is Trouble or ended is GONE:
            return ended
        turn = ended
        ended = await guard(call, _start_isolated, _begin_attempt(call, call.backend.time()), in_attempt=True)
        if type(ended) is not Trouble or ended.stop_reason is not None:
            return ended
        trouble = ended
        planned = _plan(call, trouble)
        if planned is None:
            return trouble
        pause = planned


def _plan(call: Call, trouble: Trouble) -> float | None:
    """Return the wait before the next attempt; None after noting in ``trouble`` why there is none."""
    plan = plan_retry(
        call.function.policy,
        single_leaf(trouble.error),
        trouble.verdict,
        is_effect=is_uncertain(call),
        attempts=call.attempts,
        remaining=call.deadline - call.backend.time(),
        random=call.random,
    )
    if isinstance(plan, str):
        trouble.stop_reason = plan
        return None
    return plan


def _start_isolated(call: Call) -> Awaitable[Any]:
    assert call.context is not None  # noqa: S101 - run() has set it
    return _isolated(call.context.copy(), call)


@coroutine
def _isolated(context: Context, call: Call) -> Generator[Any, Any, Any]:
    """Run the function step by step in ``context``: what it sets there, neither caller nor next attempt sees."""
    run_in = context.run
    started = run_in(call.function.start, call)
    steps = started if type(started) is CoroutineType else _as_coroutine(started)
    try:
        step = run_in(steps.send, None)
        if call.backend.arms_late and call.scope is not None:
            call.scope.deadline = call.scope.deadline  # sets the timer, which a function that never waits has not paid
        while True:
            try:
                sent = yield step
            except GeneratorExit:
                run_in(steps.close)
                raise
            except BaseException as exc:  # noqa: BLE001 - handed on to the function, as await does
                step = run_in(steps.throw, exc)
            else:
                step = run_in(steps.send, sent)
    except StopIteration as stop:
        return stop.value


async def _as_coroutine(awaitable: Awaitable[Any]) -> Any:
    return await awaitable
