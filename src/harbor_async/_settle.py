"""The one place that says who canceled.

The questions of ``settle`` and their order are the heart of the package.
"""

import math
from collections.abc import Awaitable, Callable
from typing import Any, Final

from ._backend import find_interrupt
from ._call import Call
from ._classify import single_leaf
from ._trouble import GONE, Gone, attempt_timed_out, canceled, raised, timed_out

OUTSIDE: Final = Gone()
"""The answer of ``settle`` when the caller has canceled a call that runs in the caller's own task."""


async def guard(call: Call, start: Callable[[Call], Awaitable[Any]]) -> Any:
    """Await ``start(call)``, a wait of ours, in a scope of the call's own, and say how it ended.

    Returns:
        The value, a ``Trouble`` or ``GONE``.

    Raises:
        BaseException: As ``run``.
    """
    if call.crew is not None and call.crew.is_canceled:
        return GONE  # the crew has found no scope of this wait
    if call.is_canceled:
        return canceled(call, None, in_attempt=False)  # whoever canceled it has found no scope
    backend = call.backend
    error: BaseException | None = None
    value: Any = None
    pending = backend.cancelling()
    scope = call.scope = backend.scope(deadline=call.deadline)
    try:
        with scope:
            try:
                value = await start(call)
            except BaseException as exc:  # noqa: BLE001 - judged below; what is not ours to end leaves again
                error = exc
        call.scope = None
        while (settled := settle(call, error, math.inf, pending, in_attempt=False)) is OUTSIDE:
            await backend.leave(pending, error)
        return value if settled is None else settled
    finally:
        error = value = settled = None  # or the traceback of the error holds this frame, and the frame the error


def settle(  # noqa: C901, PLR0911, PLR0912 - one answer a row
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
        None for the value, ``OUTSIDE`` for the caller, else as ``guard``.
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
            return OUTSIDE
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
    if isinstance(single_leaf(error), call.backend.foreign):
        return canceled(call, error, in_attempt=in_attempt, message=f"{call.function.name!r} was canceled from within")
    return raised(call, error)
