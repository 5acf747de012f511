"""How a call ends without a value."""

from typing import Final, cast

from ._backend import parts
from ._call import Call
from ._categories import Delivery, ErrorCategory, ErrorClass, Outcome
from ._classify import Verdict, classify, describe, single_leaf
from ._results import Failure, StopReason
from .errors import InvalidArgumentsError, InvalidOutputError, OverloadedError, ToolTimeoutError


class Trouble:
    """How a call or an attempt ended without a value.

    Attributes:
        failure: What the envelope says.
        outcome: How the call ended, if this is its end.
        stop_reason: Why nothing follows; None where a retry may be planned.
        error: The exception itself, for a retry rule and for a program's call.
        verdict: What that exception means.
    """

    __slots__ = ("error", "failure", "outcome", "stop_reason", "verdict")

    stop_reason: StopReason | None

    def __init__(
        self,
        failure: Failure,
        stop_reason: StopReason | None,
        *,
        outcome: Outcome = Outcome.FAILED,
        error: BaseException | None = None,
        verdict: Verdict | None = None,
    ) -> None:
        """Keep how it ended."""
        self.failure = failure
        self.outcome = outcome
        self.stop_reason = stop_reason
        self.error = error
        self.verdict = verdict


class Gone:
    """The type of ``GONE``."""


GONE: Final = Gone()
"""The answer of a child task whose crew was canceled: there is none, and the parent lets the cancellation out."""


def is_uncertain(call: Call) -> bool:
    """Say whether an attempt of ``call`` that is cut now may have had an effect that another call must not repeat.

    A tool whose effect may be repeated within one call only is no other here: a new call has a new key.
    """
    tool = call.function.tool
    return tool.declares_effect and not tool.is_idempotent


def canceled(call: Call, error: BaseException | None, *, in_attempt: bool, message: str = "") -> Trouble:
    """Answer a call that its handle, its batch or its own tool has canceled."""
    failure = Failure(
        ErrorCategory.CANCELED,
        message or f"the call of {call.function.name!r} was canceled",
        delivery=Delivery.UNKNOWN if in_attempt else Delivery.NOT_SENT,
        ambiguous=in_attempt and is_uncertain(call),
        background=call.is_background,
        cause=_cause(call, error),
    )
    return Trouble(failure, "canceled")


def timed_out(call: Call, error: BaseException | None, *, in_attempt: bool) -> Trouble:
    """Answer a call whose deadline has passed."""
    allowed = call.deadline - call.started
    failure = Failure(
        ErrorCategory.TIMEOUT,
        f"{call.function.name!r} did not end before the deadline of its call, {allowed:g} s after it began",
        ErrorClass.TIMEOUT,
        delivery=Delivery.UNKNOWN if in_attempt else Delivery.NOT_SENT,
        ambiguous=in_attempt and is_uncertain(call),
        background=call.is_background,
        cause=_cause(call, error),
    )
    return Trouble(failure, "deadline", outcome=Outcome.TIMED_OUT)


def attempt_timed_out(call: Call, error: BaseException | None, overrun: float) -> Trouble:
    """Answer an attempt whose timeout passed ``overrun`` seconds ago."""
    message = f"{call.function.name!r} did not end within {call.function.policy.timeout or 0:g} s"
    if overrun >= _TOLD_OVERRUN:
        message += f" and went on for another {overrun:.3g} s"
    if call.is_background:
        message += "; its thread cannot be stopped and still runs"
    failure = Failure(
        ErrorCategory.TIMEOUT,
        message,
        ErrorClass.TIMEOUT,
        ambiguous=is_uncertain(call),
        background=call.is_background,
        cause=_cause(call, error),
    )
    timeout = ToolTimeoutError(message, ambiguous=failure.ambiguous)
    timeout.__cause__ = failure.cause
    verdict = Verdict(ErrorClass.TIMEOUT, ErrorCategory.TIMEOUT)
    return Trouble(failure, None, error=timeout, verdict=verdict)


_TOLD_OVERRUN = 0.01
"""Seconds; a shorter overrun is the event loop's own."""


def raised(call: Call, error: BaseException) -> Trouble:
    """Answer an attempt that raised ``error``."""
    leaf = single_leaf(error)
    verdict = classify(leaf, call.function.policy.classify)
    is_retryable = verdict.error_class is not ErrorClass.PERMANENT
    failure = Failure(
        verdict.category,
        describe(leaf),
        verdict.error_class,
        verdict.delivery,
        ambiguous=is_retryable and verdict.delivery is Delivery.UNKNOWN and is_uncertain(call),
        retry_after=verdict.retry_after,
        background=call.is_background,
        problems=leaf.problems if isinstance(leaf, (InvalidArgumentsError, InvalidOutputError)) else (),
        cause=error,
    )
    stop_reason: StopReason | None = None if isinstance(leaf, Exception) else "permanent"
    return Trouble(failure, stop_reason, error=error, verdict=verdict)


def rejected(call: Call, message: str) -> Trouble:
    """Answer a call for which there is no place."""
    trouble = raised(call, OverloadedError(message))
    trouble.outcome = Outcome.REJECTED
    trouble.stop_reason = "rejected"
    return trouble


def faulted(call: Call, error: BaseException) -> Trouble:
    """Answer a child whose task broke, or was canceled before its first step."""
    if isinstance(error, call.backend.foreign):
        return canceled(call, error, in_attempt=False)
    trouble = raised(call, error)
    trouble.stop_reason = "permanent"
    return trouble


def _cause(call: Call, error: BaseException | None) -> BaseException | None:
    """Return what the tool made of its cancellation; a cancellation that came out as itself says nothing."""
    if isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).split(call.backend.foreign)[1]
    return None if error is None or isinstance(error, call.backend.foreign) else single_leaf(error)


def without_traceback(error: BaseException | None) -> None:
    """Take the tracebacks off ``error`` and all that hangs on it, so that a kept result keeps no frame alive."""
    seen: set[int] = set()
    todo = [error]
    while todo:
        exc = todo.pop()
        if exc is None or id(exc) in seen:
            continue
        seen.add(id(exc))
        exc.__traceback__ = None
        todo += (exc.__cause__, exc.__context__)
        todo += parts(exc)
