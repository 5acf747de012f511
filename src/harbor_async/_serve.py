"""The way of one call: decode, a place, the shell, encode, the answer."""

from collections.abc import Awaitable, Callable, Mapping
from contextvars import Token
from typing import Any

from ._call import GONE, Call, Gone, Trouble, canceled, faulted, without_traceback
from ._categories import Delivery, ErrorCategory, Outcome
from ._classify import classify
from ._crew import Fault
from ._limiter import HELD, Limiter
from ._results import Failure, StopReason, ToolResult
from ._shell import guard, run
from .errors import InvalidArgumentsError, InvalidOutputError, OverloadedError, ToolError, clip


def finish(call: Call, ended: Any) -> ToolResult:
    """Give the place of a call back, and make the envelope of what ``run`` gave or of the ``Fault`` of a child."""
    if call.ticket is not None:
        call.ticket.leave()
    if type(ended) in _VALUELESS:
        return answer(call, _trouble(call, ended))
    try:
        encoded = call.function.encode(ended)
    except InvalidOutputError as exc:
        return answer(call, refusal(exc, "invalid"))
    except Exception as exc:  # noqa: BLE001 - a fault of ours must not lose the answer
        return answer(call, faulted(call, exc))
    return ToolResult(
        call.id,
        call.function.name,
        Outcome.SUCCEEDED,
        ended,
        None,
        call.attempts,
        call.backend.time() - call.started,
        None,
        call.is_late,
        encoded,
    )


_VALUELESS = frozenset({Trouble, Gone, Fault})


def _trouble(call: Call, ended: Trouble | Gone | Fault) -> Trouble:
    if isinstance(ended, Trouble):
        return ended
    if isinstance(ended, Gone):  # nobody reads it but a consumer that has shielded itself from what cut the call
        return canceled(call, None, in_attempt=call.attempts > 0)
    return faulted(call, ended.error)


def decode(call: Call) -> Trouble | None:
    """Decode a call's arguments; None when they fit."""
    try:
        call.bound = call.function.decode(call.arguments, call.limits)
    except InvalidArgumentsError as exc:
        return refusal(exc, "invalid")
    return None


async def ask(call: Call, approve: Callable[[], Awaitable[Any]]) -> Trouble | Gone | None:
    """Ask whether ``call`` may be made, under its deadline; None when it may, with the arguments that it has then.

    What cannot be understood as a yes is a no.
    """
    ended = await guard(call, lambda _: approve())
    if ended is True:
        return None
    if isinstance(ended, (str, bytes, Mapping)):
        call.arguments = ended
        return None
    if ended is GONE or (type(ended) is Trouble and ended.stop_reason in {"deadline", "canceled"}):
        return ended
    message = f"the call of {call.function.name!r} was not approved"
    if type(ended) is Trouble and isinstance(ended.error, ToolError):
        message += f": {ended.failure.message}"
    elif ended is not False:
        what = "it raised" if type(ended) is Trouble else f"it returned {type(ended).__name__}"
        message += f", since approve must return True, False or arguments, and {what}"
    error = ToolError(message, category=ErrorCategory.AUTH_FAILED, delivery=Delivery.NOT_SENT)
    error.__cause__ = ended.error if type(ended) is Trouble else None
    return refusal(error, "rejected", Outcome.REJECTED)


def admit(call: Call, limiter: Limiter, *, is_bounded: bool = True) -> Trouble | None:
    """Give a call its turn, in the order in which calls come; refuse it when the queue is full.

    A call that is made from within another one uses the place of that: it would wait for a place that may never come
    free while its caller waits for it.

    Args:
        call: The call, which must then be run in ``run_in_turn``.
        limiter: Whose places they are.
        is_bounded: Whether ``max_queued`` holds; not so for a stream, which pulls no more than it may.
    """
    if limiter in HELD.get():
        return None
    try:
        call.ticket = limiter.join(is_bounded=is_bounded)
    except OverloadedError as exc:
        return refusal(exc, "rejected", Outcome.REJECTED)
    return None


async def run_in_turn(call: Call, limiter: Limiter) -> Any:
    """Run an admitted call when its turn comes; the answers are those of ``run``."""
    token: Token[tuple[Limiter, ...]] | None = None
    try:
        if not call.ticket.is_granted:
            ended = await guard(call, call.ticket.wait)
            if ended is not None:
                return ended
        token = HELD.set((*HELD.get(), limiter))
        return await run(call)
    finally:
        if token is not None:
            HELD.reset(token)
        if call.crew is None:  # or finish() does: first the batch must know that it has enough, or the next call begins
            call.ticket.leave()


def refusal(error: ToolError, stop_reason: StopReason, outcome: Outcome = Outcome.FAILED) -> Trouble:
    """Answer with an error that is ours."""
    verdict = classify(error)
    failure = Failure(
        verdict.category,
        clip(error.message),
        verdict.error_class,
        verdict.delivery,
        retry_after=verdict.retry_after,
        problems=error.problems if isinstance(error, (InvalidArgumentsError, InvalidOutputError)) else (),
        cause=error,
    )
    return Trouble(failure, stop_reason, outcome=outcome, error=error)


def answer(call: Call, trouble: Trouble) -> ToolResult:
    """Make the envelope of a call that has no value."""
    without_traceback(trouble.failure.cause)
    return ToolResult(
        call.id,
        call.function.name,
        trouble.outcome,
        None,
        trouble.failure,
        call.attempts,
        call.backend.time() - call.started,
        trouble.stop_reason,
    )
