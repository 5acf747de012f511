"""The policy shell: the attempts of a call, each in a cancel scope of its own.

It knows no JSON: a ``Function`` decodes its own arguments.
"""

import math
from collections.abc import Coroutine, Generator, Iterator
from contextvars import Context, copy_context
from types import coroutine
from typing import Any, Final, TypeAlias

import anyio
import attrs

from ._call import CURRENT, Call
from ._events import EventType
from ._retry import Retries, plan
from ._settle import OUTSIDE, guard, settle
from ._trouble import (
    GONE,
    Trouble,
    canceled,
    rejected,
    timed_out,
    without_traceback,
)


def run_at_once(call: Call) -> tuple[Any, Coroutine[Any, Any, Any] | None]:
    """Run the call's function in the caller's task as far as its first wait.

    What ends before has let nobody else run, so that it needs neither a coroutine of ours nor a scope.

    Returns:
        What ``run`` returns; or None and the coroutine that goes on from there and returns that.
    """
    backend = call.backend
    if call.function.is_sync or not backend.steps_first:
        return None, run(call)
    place, pending, outer = backend.enter()
    now = backend.time()
    context = copy_context()
    if outer <= now or now >= call.deadline:
        return None, _attempt(call, context)
    limit = _begin(call, context, now)
    steps = _run(call).__await__()
    try:
        step = context.run(next, steps, _ENDED)
        if (
            step is _ENDED
            and backend.time() < call.attempt_deadline
            and (place is None or backend.is_free(place, outer))
        ):
            return call.value, None
        first: _First = (place, pending, limit, steps, step, None)
    except BaseException as exc:  # noqa: BLE001 - judged where the others are
        first = (place, pending, limit, steps, _ENDED, exc)
    del steps  # or the traceback of an error holds this frame, and the frame the error
    try:
        return None, _attempt(call, context, first)
    finally:
        del first


async def _run(call: Call) -> None:
    """Call the function and keep what it returns: to return it would cost an exception, which is how that is told."""
    call.value = await call.function.start(call)


_ENDED: Final = object()
"""What ``next`` says of steps that have ended."""


def run(call: Call) -> Coroutine[Any, Any, Any]:
    """Run the call's function under its policy.

    Returns:
        The function's value; a ``Trouble`` when there is none; ``GONE`` in a child task whose crew was canceled.

    Raises:
        BaseException: The caller's own cancellation or an interrupt, when the call is no child task.
    """
    # The caller's task waits here, so that its context stays as it is. A child task has one to itself, which its first
    # attempt may have; the others begin with what it was before.
    # With listeners it is stepped by hand all the same, so that one that goes on after a cancel can be told of.
    context = copy_context() if call.crew is None or call.host.outlets is not None else None
    return _run_in_threads(call, context) if call.function.is_sync else _attempt(call, context)


async def _run_in_threads(call: Call, context: Context | None) -> Any:
    ended: Any = await _attempt_in_thread(call, context)
    try:
        return await _run_again(call, ended) if type(ended) is Trouble and ended.stop_reason is None else ended
    finally:
        del ended  # or the traceback of the error holds this frame, and the frame the error


async def _run_again(call: Call, trouble: Trouble) -> Any:
    """Run the call's function again as long as its policy and its troubles, the first of which is given, allow it."""
    ended: Any = trouble
    del trouble
    was_ambiguous = False
    retries: Retries | None = None
    try:
        while type(ended) is Trouble and ended.stop_reason is None:
            was_ambiguous = was_ambiguous or ended.failure.ambiguous
            wait = plan(call, ended)
            if wait is None:
                break
            if retries is None:
                retries = Retries(call.function.policy)
            if wait:
                _tell_retry(call, ended, wait)
            cut = await retries.wait(call, ended, wait)
            if cut is not None:
                ended = cut
                break
            if not wait:  # not before: where the host is testing, stamina may have none follow
                _tell_retry(call, ended, wait)
            without_traceback(ended.error)  # it has been told to the host, and holds the frames of the attempt
            context = copy_context() if call.crew is None else call.context.copy()
            if call.function.is_sync:
                ended = await _attempt_in_thread(call, context)
            else:
                ended = await _attempt(call, context, is_last=True)
        if was_ambiguous and type(ended) is Trouble:
            # An effect that an earlier attempt may have had does not go away with what the last one says.
            ended.failure = attrs.evolve(ended.failure, ambiguous=True)
        return ended
    finally:
        ended = retries = None  # or the traceback of a kept error holds this frame, and the frame the error


def _tell_retry(call: Call, trouble: Trouble, wait: float) -> None:
    failure = trouble.failure
    call.tell(EventType.RETRY, wait=wait, category=failure.category, error_class=failure.error_class)


async def _attempt_in_thread(call: Call, context: Context | None) -> Any:
    """Run a synchronous function once, when there is a place for its thread; the answers are those of ``_attempt``."""
    threads = call.host.threads
    if threads is None:
        return await _attempt(call, context, is_last=True)
    place = call.thread = threads.join()
    try:
        cut = None
        if not place.is_granted:
            if any(caller.is_in_thread and caller.host.threads is threads for caller in call.callers()):
                return rejected(call, _NO_THREAD)
            cut = await guard(call, place.wait)
        return await _attempt(call, context, is_last=True) if cut is None else cut
    finally:
        if call.thread is place:  # no thread has taken it over
            place.leave()


_NO_THREAD: Final = (
    "every worker thread is taken, one of them by the synchronous tool that made this call and would wait for it"
)


async def _attempt(  # noqa: C901, PLR0912, PLR0915 - one, top to bottom
    call: Call, context: Context | None, first: "_First | None" = None, *, is_last: bool = False
) -> Any:
    """Run the function once, and again if the policy has it so.

    Outside of a crew it is stepped by hand as far as its first wait, and gets its scope there, below those that it has
    entered itself by then.

    Args:
        call: The call.
        context: In which context variables its function is run; None: in those of this task.
        first: The attempt so far, when it has begun.
        is_last: Whether it is run once only.

    Returns:
        The value, a ``Trouble`` or ``GONE``.

    Raises:
        BaseException: As ``run``.
    """
    backend, crew = call.backend, call.crew
    steps: Any = None
    step: Any = None
    error: BaseException | None = None
    if first is not None:
        place, pending, limit, steps, step, error = first
    else:
        place, pending = None, 0
        if crew is None:
            place, pending, outer = backend.enter()
            if outer <= backend.time():
                await backend.leave(pending, None)
        elif crew.has_canceled(pending):
            return GONE  # before this task had a scope in which the crew could find it
        now = backend.time()
        if call.is_canceled:
            return canceled(call, None, in_attempt=False)
        if now >= call.deadline:
            return timed_out(call, None, in_attempt=False)
        limit = _begin(call, context, now)
    deadline = call.attempt_deadline
    scope: anyio.CancelScope | None = None
    if crew is not None:
        scope = crew.enter_scope(call, deadline)
    elif not backend.steps_first:
        scope = call.scope = backend.enter_scope(place, deadline)
    value: Any = None
    try:
        try:
            if context is None:
                value = await call.function.start(call)
            else:
                if first is None:
                    steps = _run(call).__await__()
                    step = context.run(next, steps, _ENDED)
                if error is None:
                    if step is not _ENDED:
                        if scope is None:
                            scope = call.scope = backend.enter_scope(place, deadline)
                        await _go_on(call, context, steps, step)
                    value = call.value
        except BaseException as exc:  # noqa: BLE001 - the one place; what is not ours to end leaves again below
            error = exc
        finally:
            call.scope = None
            if scope is not None:
                try:
                    scope.__exit__(None, None, None)
                except Exception as exc:  # noqa: BLE001 - the function has left a scope of its own open
                    error = error or exc
        while (settled := settle(call, error, limit, pending, in_attempt=True)) is OUTSIDE:
            await backend.leave(pending, error)
        if settled is None:
            return value
        if type(settled) is not Trouble or settled.stop_reason is not None or is_last:
            return settled
        return await _run_again(call, settled)
    finally:
        error = value = settled = first = step = steps = None  # or the traceback of the error holds this frame


def _begin(call: Call, context: Context | None, now: float) -> float:
    """Count an attempt that begins ``now``, and return when its timeout passes."""
    if call.ticket is not None or call.function.is_sync:
        # Known to the calls that are made from within, since it has something that they could wait for. For every
        # call it would make a batch of 10,000 a quarter dearer.
        CURRENT.set(call) if context is None else context.run(CURRENT.set, call)
    call.attempts += 1
    if call.host.outlets is not None:
        call.tell(EventType.ATTEMPT)
    timeout = call.function.policy.timeout
    limit = math.inf if timeout is None else now + timeout
    # min() took three times as long.
    call.attempt_deadline = limit if limit < call.deadline else call.deadline  # noqa: FURB136 - as said
    return limit


_First: TypeAlias = tuple[Any, int, float, Iterator[Any], Any, BaseException | None]
"""Place, pending cancellations, when the timeout passes, the steps, what they wait for, and what they raised."""


@coroutine
def _go_on(call: Call, context: Context, steps: Any, step: Any) -> Generator[Any, Any, None]:
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
            if is_cut and is_watched and call.scope is not None and call.backend.is_cut(call.scope):
                ignored += 1
                if ignored == _MANY_IGNORED:
                    call.tell(EventType.CANCEL_IGNORED)
    except StopIteration:
        return
    finally:
        del steps, step  # as in run_at_once


_MANY_IGNORED: Final = 3
"""Cancellations of one attempt after which the function has waited again. One is a shielded cleanup; a function that
keeps on swallowing them is canceled again at every turn of the loop."""
