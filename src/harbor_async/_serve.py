"""The way of one call: approval, decoding, its turn, the shell."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, cast

from ._admit import admit, check, needs_turn
from ._answer import abandon, close, refusal, tell_end
from ._call import Call, Function, Host
from ._categories import Delivery, ErrorCategory, Outcome
from ._context import Identity
from ._events import EventType
from ._limiter import Ticket
from ._settle import guard
from ._shell import run, run_at_once
from ._trouble import GONE, Gone, Trouble
from .errors import InvalidArgumentsError, ToolCanceledError, ToolError, ToolTimeoutError


def decode(call: Call) -> Trouble | None:
    """Decode a call's arguments; None when they fit."""
    try:
        call.bound = call.function.decode(call.arguments, call.host.limits)
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


async def prepare(call: Call) -> Trouble | None:
    """Decode a call's arguments and give it its turn; None when it may run. For ``guard``: it runs code of users."""
    refused = decode(call)
    return admit(call) if refused is None and needs_turn(call) else refused


async def run_in_turn(call: Call) -> Any:
    """Run a call when its turn comes; the answers are those of ``run``. ``close`` gives the turn back.

    It must not be given back here: first a batch must know that it has enough, or the next call begins.
    """
    ended = await guard(call, cast("Ticket", call.ticket).wait)
    return await run(call) if ended is None else ended


async def call_function(
    host: Host, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any], identity: Identity | None
) -> Any:
    """Call a tool as a program; see ``Runtime.call``."""
    bound = function.bind(args, kwargs)
    call = Call(host, function, "", None, identity=identity)
    call.bound = bound
    try:
        host.in_flight.add(call)
        ended: Any = check(call) or (admit(call) if needs_turn(call) else None)
        if ended is None:
            rest: Coroutine[Any, Any, Any] | None
            is_next = call.ticket is None or call.ticket.is_granted
            ended, rest = run_at_once(call) if is_next else (None, run_in_turn(call))
            if rest is not None:
                ended = await rest
                rest = None
    except BaseException:
        abandon(call)
        raise
    close(call)
    if not isinstance(ended, Trouble):
        if host.outlets is not None:
            call.tell(EventType.COMPLETED, outcome=Outcome.SUCCEEDED, late=call.is_late)
        return ended
    tell_end(call, ended)
    try:
        raise _error(call, ended)
    finally:
        del ended  # or the traceback of the error holds this frame, and the frame the error


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
