"""How a call ends: its place goes back, those who listen are told, and the envelope is made."""

import logging
from typing import Any, Final

from ._call import Call
from ._categories import ErrorCategory, Outcome
from ._classify import classify
from ._crew import Fault
from ._events import EventType
from ._results import Failure, StopReason, ToolResult
from ._trouble import Gone, Trouble, canceled, faulted, without_traceback
from .errors import InvalidArgumentsError, InvalidOutputError, ToolError, clip

_LOG: Final = logging.getLogger("harbor_async")


def close(call: Call) -> None:
    """Give back what a call has; nothing when that was done before."""
    if call.ticket is not None:
        call.ticket.leave()
    host = call.host
    host.in_flight.discard(call)
    if host.idle is not None and not host.in_flight:
        host.idle.set()


def abandon(call: Call) -> None:
    """End a call that has no answer: its caller is canceled, or was interrupted."""
    close(call)
    call.tell(EventType.CANCELED, category=ErrorCategory.CANCELED, stop_reason="canceled")


def tell_end(call: Call, trouble: Trouble) -> None:
    """Tell those who listen how a call has ended without a value."""
    if call.host.outlets is None:
        return
    failure = trouble.failure
    if trouble.outcome is Outcome.REJECTED:
        type = EventType.REJECTED
    elif failure.category is ErrorCategory.CANCELED:
        type = EventType.CANCELED
    elif failure.category is ErrorCategory.VALIDATION:
        type = EventType.INVALID_ARGS
    elif trouble.stop_reason == "attempts":
        type = EventType.POLICY_EXHAUSTED
    else:
        type = EventType.FAILED
    call.tell(
        type,
        outcome=trouble.outcome,
        category=failure.category,
        error_class=failure.error_class,
        stop_reason=trouble.stop_reason,
    )


def finish(call: Call, ended: Any) -> ToolResult:
    """End a call, and make the envelope of what ``run`` gave or of the ``Fault`` of a child."""
    if type(ended) in _VALUELESS:
        return answer(call, _trouble(call, ended))
    if call.ticket is None and call.host.idle is None:
        call.host.in_flight.discard(call)
    else:
        close(call)
    try:
        encoded = call.function.encode(ended)
    except InvalidOutputError as exc:
        return answer(call, refusal(exc, "invalid"))
    except Exception as exc:  # noqa: BLE001 - a fault of ours must not lose the answer
        return answer(call, faulted(call, exc))
    if call.host.outlets is not None:
        call.tell(EventType.COMPLETED, outcome=Outcome.SUCCEEDED, late=call.is_late)
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
        call.repairs,
    )


_VALUELESS = frozenset({Trouble, Gone, Fault})


def _trouble(call: Call, ended: Trouble | Gone | Fault) -> Trouble:
    if isinstance(ended, Trouble):
        return ended
    if isinstance(ended, Gone):  # nobody reads it but a consumer that has shielded itself from what cut the call
        return canceled(call, None, in_attempt=call.attempts > 0)
    return faulted(call, ended.error)


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
    """End a call that has no value, and make its envelope."""
    close(call)
    without_traceback(trouble.failure.cause)
    tell_end(call, trouble)
    return ToolResult(
        call.id,
        call.function.name,
        trouble.outcome,
        None,
        trouble.failure,
        call.attempts,
        call.backend.time() - call.started,
        trouble.stop_reason,
        _encoded=None if call.function.render is None else _render(call, trouble.failure),
        repairs=call.repairs,
    )


def _render(call: Call, failure: Failure) -> bytes | None:
    """Return a failure in the tool's own words; None, for ours, when it has none."""
    render = call.function.render
    assert render is not None  # noqa: S101 - asked before
    try:
        return render(failure, call.arguments).encode()
    except Exception:  # noqa: BLE001 - a user's function must not lose the answer
        _LOG.exception("render of tool %r failed", call.function.name)
        return None
