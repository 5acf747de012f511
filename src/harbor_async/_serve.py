"""The way of one call: decode, a place, the shell, encode, the answer."""

from typing import Any

from ._backend import Fault
from ._call import GONE, Call, Trouble, canceled, faulted, without_traceback
from ._categories import Outcome
from ._classify import classify
from ._limiter import Limiter
from ._results import Failure, StopReason, ToolResult
from ._shell import guard, run
from .errors import InvalidArgumentsError, InvalidOutputError, OverloadedError, ToolError, clip


def finish(call: Call, ended: Any) -> ToolResult:
    """Give the place of a call back, and make the envelope of what ``run`` gave or of the ``Fault`` of a child."""
    if call.ticket is not None:
        call.ticket.leave()
    if type(ended) is Trouble:
        return answer(call, ended)
    if ended is GONE:  # nobody reads it but a consumer that has shielded itself from what cut the call
        return answer(call, canceled(call, None, in_attempt=call.attempts > 0))
    if type(ended) is Fault:
        return answer(call, faulted(call, ended.error))
    try:
        encoded = call.function.encode(ended)
    except InvalidOutputError as exc:
        return answer(call, refusal(exc, "invalid"))
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


def admit(call: Call, limiter: Limiter, *, is_bounded: bool = True) -> Trouble | None:
    """Give a call its turn, in the order in which calls come; refuse it when the queue is full.

    Args:
        call: The call, which must then be run in ``run_in_turn``.
        limiter: Whose places they are.
        is_bounded: Whether ``max_queued`` holds; not so for a stream, which pulls no more than it may.
    """
    try:
        call.ticket = limiter.join(is_bounded=is_bounded)
    except OverloadedError as exc:
        return refusal(exc, "rejected", Outcome.REJECTED)
    return None


async def run_in_turn(call: Call) -> Any:
    """Run an admitted call when its turn comes; the answers are those of ``run``."""
    try:
        if not call.ticket.is_granted:
            ended = await guard(call, call.ticket.wait)
            if ended is not None:
                return ended
        return await run(call)
    finally:
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
