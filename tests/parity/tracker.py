"""The writers of the recorded cases, and what comes of one call of ``tracker_write``, in one form."""

import json
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Any

import anyio
import attrs

from harbor_async import Catalog, Runtime, ToolCall
from harbor_async.tracker import TrackerResult, tracker_write
from tests.cancellation.ways import steal_cancellation
from tests.parity.harness import Case

Act = Callable[[], Awaitable[None]]


async def succeed() -> None:
    """Have the effect, at once."""


@attrs.define
class CloseOnly:
    """A writer that notes its calls, as the seed's do: this one can close, its subclasses more."""

    act: Act
    calls: list[dict[str, Any]] = attrs.field(factory=list)

    async def close(self, id: str, reason: str, *, key: str) -> None:
        await self.note(method="close", id=id, reason=reason)

    async def note(self, **call: str) -> None:
        self.calls.append(call)
        await self.act()


class CanComment:
    async def comment(self, id: str, body: str, *, key: str) -> None:
        await self.note(method="comment", id=id, body=body)


class CanTransition:
    async def transition(self, id: str, to_state: str, *, key: str) -> None:
        await self.note(method="transition", id=id, to_state=to_state)


def make_writer(case: Case, act: Act = succeed) -> CloseOnly:
    """Return a writer that can do what the one of a case can, each time by ``act``.

    Raises:
        KeyError: The case has none.
    """
    can = case.input.get("writer", {"comment": True, "transition": True})
    more = [kind for name, kind in (("comment", CanComment), ("transition", CanTransition)) if can[name]]
    return type("Writer", (CloseOnly, *more), {})(act)


async def cancel_from_within() -> None:
    raise await steal_cancellation()


async def cancel_and_time_out() -> None:
    both = (await steal_cancellation(), TimeoutError("deadline"))
    raise BaseExceptionGroup("both", both)


async def time_out_for_cancel() -> None:
    raise TimeoutError("deadline") from await steal_cancellation()


def raising(error: Exception) -> Act:
    async def act() -> None:
        raise error

    return act


def act_of(case: Case) -> Act:
    """Return how the writer of a case ends."""
    return {
        "none": succeed,
        "plain": raising(RuntimeError("connection reset")),
        "plain_empty_text": raising(RuntimeError("")),
        "plain_multiline_unicode": raising(RuntimeError("a\n<b>&\u2028")),
        "unwrapped_text_only_canceled": raising(RuntimeError("context canceled")),
        "unwrapped_text_only_deadline": raising(RuntimeError("context deadline exceeded")),
        "canceled": cancel_from_within,
        "wrapped_canceled": cancel_from_within,
        "deadline": raising(TimeoutError("deadline")),
        "wrapped_deadline": raising(TimeoutError("deadline")),
        "joined_canceled_then_deadline": cancel_and_time_out,
        "wrapped_twice_both": time_out_for_cancel,
        "os_deadline": raising(TimeoutError("i/o timeout")),
        "net_timeout_iface": raising(TimeoutError(110, "connection timed out")),
    }[case.input.get("writer_error", "none")]


@attrs.frozen
class Answer:
    """What comes of one call.

    Attributes:
        text: The envelope of a success, byte for byte; None for a failure.
        failure: Of a failure: outcome, operation, issue, category, operation in the error.
        is_retryable: As the envelope has it.
        calls: The calls of the writer, in their order.
    """

    text: str | None = None
    failure: tuple[str, ...] | None = None
    is_retryable: bool = False
    calls: tuple[Any, ...] = ()


def failed(category: str, op: str = "", id: str = "", calls: tuple[Any, ...] = ()) -> Answer:
    """Make the answer of a failure; whether it is retryable is told by the category."""
    is_retryable = category in {"api_request", "rate_limited", "timeout", "unknown"}
    return Answer(None, ("failed", op, id, category, op), is_retryable, calls)


def from_envelope(wire: dict[str, Any], calls: Any) -> Answer:
    """Put a recorded envelope in the form of an answer."""
    if "error" not in wire:
        text = json.dumps(
            {key: wire[key] for key in ("outcome", "op", "id")}, ensure_ascii=False, separators=(",", ":")
        )
        return Answer(text, None, False, tuple(calls))
    error = wire["error"]
    answer = failed(error["category"], wire.get("op", ""), wire.get("id", ""), tuple(calls))
    assert answer.failure == (wire["outcome"], *answer.failure[1:4], error.get("op", ""))
    return answer


async def ask(case: Case, arguments: Any) -> Answer:
    """Call ``tracker_write`` on the writer of a case through a runtime, in the state of the context that it names."""
    writer = make_writer(case, act_of(case))
    tool = tracker_write(writer)
    context = case.input["ctx"]
    behaviour = case.input.get("writer_behaviour", "")
    async with (
        Runtime(Catalog([tool])) as runtime,
        runtime.batch(timeout=0 if "deadline_expired" in context else None) as batch,
    ):
        handle = batch.start(ToolCall("1", tool.name, arguments))
        if "canceled" in context:
            handle.cancel()
        if behaviour:
            writer.act = behave(behaviour, handle.cancel)
        result = await handle.result()
    envelope = TrackerResult.from_json(result.content)
    calls = tuple({key: digest(value) for key, value in call.items()} for call in writer.calls)
    if envelope.error is None:
        return Answer(result.content, None, envelope.is_retryable, calls)
    failure = (envelope.outcome, envelope.op, envelope.id, envelope.error.category, envelope.error.op)
    return Answer(None, failure, envelope.is_retryable, calls)


def behave(words: str, cancel: Callable[[], Any]) -> Act:
    """Return what a writer does that is canceled while it runs."""
    if words.startswith("writer panics"):
        return raising(AssertionError("writer boom"))
    ends = {
        "writer still returns success": succeed,
        "writer returns the plain error 'conn reset'": raising(ConnectionResetError("conn reset")),
        "writer returns ctx.Err()": anyio.lowlevel.checkpoint,
        "writer returns an error wrapping DeadlineExceeded": raising(TimeoutError("deadline")),
    }
    end = ends[words.partition("; ")[2]]

    async def act() -> None:
        cancel()
        await end()

    return act


def digest(text: str) -> Any:
    """Return a long text as the files give it: its size and its SHA-256."""
    data = text.encode()
    return text if len(data) < 1000 else {"utf8_bytes": len(data), "sha256": sha256(data).hexdigest()}
