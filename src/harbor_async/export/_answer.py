"""One result for every call of a message."""

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
    given = list(results)
    ordered: list[ToolResult] = []
    for call in calls:
        index = next((index for index, result in enumerate(given) if result.call_id == call.id), None)
        ordered.append(_canceled(call) if index is None else given.pop(index))
    return [*ordered, *given]


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
