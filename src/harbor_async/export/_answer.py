"""One result for every call of a message."""

from collections import defaultdict, deque
from collections.abc import Iterable
from typing import Any

import msgspec

from .._categories import Delivery, ErrorCategory, Outcome
from .._results import Failure, ToolCall, ToolResult


def complete(results: Iterable[ToolResult], calls: Iterable[ToolCall]) -> list[ToolResult]:
    """Return ``results`` in the order of ``calls``, with one for each call that has none.

    A call without a result was cut by its caller, or its result was never asked for: whether it had an effect is not
    known. Results of other calls come last; without ``calls`` all of them stay as they are.
    """
    left: defaultdict[str, deque[ToolResult]] = defaultdict(deque)
    for result in results:
        left[result.call_id].append(result)
    ordered = [left[call.id].popleft() if left[call.id] else _canceled(call) for call in calls]
    return [*ordered, *(result for queue in left.values() for result in queue)]


def _canceled(call: ToolCall) -> ToolResult:
    failure = Failure(
        ErrorCategory.CANCELED,
        f"the call of {call.name!r} was canceled before it had a result; it may have had an effect",
        delivery=Delivery.UNKNOWN,
        ambiguous=True,
    )
    return ToolResult(call.id, call.name, Outcome.FAILED, error=failure, stop_reason="canceled")


def value_of(result: ToolResult) -> Any:
    """Return what a result says, as JSON: the value; the envelope of a failure, or the tool's own words for it."""
    if result.error is None:
        return result.to_wire()["value"]
    try:
        return msgspec.json.decode(result.content)
    except msgspec.DecodeError:
        return result.content
