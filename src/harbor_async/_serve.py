"""The way of one call: decode, a place, the shell, encode, the answer."""

from typing import Any

from ._call import GONE, Call, Gone, Trouble, without_traceback
from ._categories import Outcome
from ._classify import classify
from ._limiter import Limiter
from ._results import Failure, StopReason, ToolResult
from ._shell import guard, run
from .errors import InvalidArgumentsError, InvalidOutputError, OverloadedError, ToolError, clip


async def serve(call: Call, limiter: Limiter | None = None, *, is_bounded: bool = True) -> ToolResult | Gone:
    """Answer one call.

    Args:
        call: The call.
        limiter: Where it needs a place; None: it needs none.
        is_bounded: Whether the queue before the places is.

    Returns:
        The answer; ``GONE`` in a child task whose crew was canceled.

    Raises:
        BaseException: The caller's own cancellation or an interrupt, when the call is no child task.
    """
    try:
        call.bound = call.function.decode(call.arguments, call.limits)
    except InvalidArgumentsError as exc:
        return answer(call, refusal(exc, "invalid"))
    ended = await run_in_place(call, limiter, is_bounded=is_bounded)
    if type(ended) is Trouble:
        return answer(call, ended)
    if ended is GONE:
        return GONE
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


async def run_in_place(call: Call, limiter: Limiter | None, *, is_bounded: bool = True) -> Any:
    """Run the shell in a place of ``limiter``; the answers are those of ``run``."""
    if limiter is None:
        return await run(call)
    if not limiter.take_nowait():
        refused = await _queue(call, limiter, is_bounded=is_bounded)
        if refused is not None:
            return refused
    try:
        return await run(call)
    finally:
        limiter.release()


async def _queue(call: Call, limiter: Limiter, *, is_bounded: bool) -> Trouble | Gone | None:
    """Wait for a place; None when it is taken."""
    try:
        ticket = limiter.join(is_bounded=is_bounded)
    except OverloadedError as exc:
        return refusal(exc, "rejected", Outcome.REJECTED)
    is_taken = False
    try:
        ended: Trouble | Gone | None = await guard(call, ticket.wait)
        is_taken = ended is None
    finally:
        if not is_taken:
            limiter.abandon(ticket)
    return ended


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
