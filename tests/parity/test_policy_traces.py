"""``policy.json``, traces: whole calls under the seed's policies, in virtual time.

A recorded attempt becomes a tool that sleeps, raises and returns as told. The seed's context is the call's deadline
where it carries one, and the caller's own cancel scope where it is canceled. Its attempt hooks are not compared: each
fires at an attempt's end, which is.
"""

from collections.abc import Callable
from typing import Any

import anyio
import attrs
import pytest

from harbor_async import Catalog, Runtime, ToolContext, ToolResult, describe
from harbor_async.errors import (
    InvalidArgumentsError,
    InvalidOutputError,
    ToolCanceledError,
    ToolNotFoundError,
)
from harbor_async.schema import register_type
from tests.parity.harness import Case, Difference, Section, names
from tests.parity.test_policy_values import seed_policy

SECOND = 10**9


@attrs.frozen
class Trace:
    """What can be seen of one call; times are nanoseconds since it began.

    Attributes:
        ended: ``succeeded``, ``failed``, ``timed_out``, or ``left`` if a cancellation came out in place of an answer.
        kinds: What the error is: ``exhausted`` when no attempt was left, and what the last one failed with.
        attempts: Start, end and deadline of each.
        category: What the model is told.
    """

    ended: str
    kinds: frozenset[str] = attrs.field(default=frozenset(), converter=frozenset)
    value: Any = None
    attempts: tuple[tuple[int, int, int | None], ...] = ()
    end: int = 0
    category: str | None = None


# --- what the seed did ----------------------------------------------------------------------------------------------

KINDS = {
    "ErrToolPolicyExhausted": "exhausted",
    "errBlip": "blip",
    "context.Canceled": "canceled",
    "context.DeadlineExceeded": "deadline",
    "ErrToolInvalidArgs": "invalid_args",
    "ErrToolNotFound": "not_found",
}


def recorded(case: Case) -> Trace:
    """Put the recorded trace in our words."""
    seed, parent = case.expected, case.input["parent"]
    kinds = frozenset(KINDS[name] for name in seed.get("error_is", ()))
    if seed.get("ok"):
        ended = "succeeded"
    elif "panics" in seed:
        ended = "crashed"
    elif kinds == {"canceled"} and parent != {"state": "live"}:
        ended = "left"
    elif kinds == {"deadline"} and parent != {"state": "live"}:
        ended = "timed_out"
    else:
        ended = "failed"
    attempts = tuple(
        (attempt["start_ns"], attempt["end_ns"], attempt["ctx_deadline_ns"]) for attempt in seed["attempts"]
    )
    return Trace(ended, kinds, seed.get("value"), attempts, seed["end_ns"])


CATEGORIES = {
    "blip": "api_request",
    "canceled": "canceled",
    "deadline": "timeout",
    "invalid_args": "validation",
    "invalid_output": "unknown",
    "not_found": "not_found",
}
BY_TEXT = {"status 500": "api_status", "status 502": "api_status", "lock timeout": "timeout"}
"""The seed has no categories: they follow from the class that it reads from the text."""


def category(trace: Trace, case: Case) -> str | None:
    """Return the category of a failure: that of what the last attempt failed with."""
    if trace.ended in {"succeeded", "left"}:
        return None
    kind = next((kind for kind in CATEGORIES if kind in trace.kinds), None)
    return CATEGORIES[kind] if kind else BY_TEXT.get(case.input["attempts"][-1]["text"], "unknown")


def each_too_late(seed: Trace, case: Case) -> Trace:
    """The one recorded attempt overran and so counts as a timeout: it is repeated until none is left."""
    (_, overrun, timeout), starts = seed.attempts[0], [0]
    for retry in (1, 2, 3):
        starts.append(starts[-1] + overrun + round(seed_policy(case.input["policy"]).wait.delay(retry, 0) * SECOND))
    attempts = tuple((start, start + overrun, start + timeout) for start in starts)
    return Trace("failed", frozenset({"exhausted", "deadline"}), None, attempts, attempts[-1][1])


TRACES = Section(
    "policy",
    "traces",
    recorded,
    (
        Difference(
            5,
            lambda case: case.name == "parent/deadline_during_backoff",
            lambda seed, _: attrs.evolve(seed, ended="failed", kinds={"blip", "deadline"}, end=seed.attempts[-1][1]),
        ),
        Difference(
            6,
            lambda case: case.name.startswith("validate/out_fail") and not case.expected["ok"],
            lambda seed, _: attrs.evolve(seed, kinds={"invalid_output"}),
        ),
        Difference(
            7,
            lambda case: case.name in {"fast/timeout_exactly_at_limit", "fast/overrun_ignoring_ctx_then_value"},
            each_too_late,
        ),
        Difference(
            7,
            lambda case: case.name == "parent/deadline_during_attempt_ignored_ok",
            lambda seed, _: attrs.evolve(seed, ended="timed_out", kinds={"deadline"}, value=None),
        ),
        Difference(
            23,
            lambda case: case.input["validate_in"] == "fail" and case.expected["validate_in_calls"] == 0,
            lambda *_: Trace("failed", {"invalid_args"}),
        ),
        Difference(
            28,
            lambda case: (
                "cancel_at_ns" in case.input["parent"]
                and case.input["parent"]["cancel_at_ns"] < case.expected["end_ns"]
                and "context.Canceled" not in case.expected.get("error_is", ())
            ),
            lambda seed, _: attrs.evolve(seed, ended="left", kinds={"canceled"}, value=None),
        ),
        Difference(
            35,
            lambda case: "panics" in case.expected,
            lambda seed, case: attrs.evolve(
                seed,
                ended="failed",
                kinds={"invalid_args" if case.input["validate_in"] else "invalid_output"},
            ),
        ),
    ),
)


# --- the same, run here ---------------------------------------------------------------------------------------------


class BlipError(ConnectionResetError):
    """The seed's own test error."""


class CheckedIn:
    """An argument whose check does what the recorded input validator did."""


class CheckedOut:
    """A result whose check breaks."""


def check_in(word: str) -> CheckedIn:
    if word == "fail":
        msg = "refused"
        raise ValueError(msg)
    if word == "fail_wrapping_canceled":
        raise ToolCanceledError
    if word == "panic":
        msg = "vin boom"
        raise RuntimeError(msg)
    return CheckedIn()


def check_out(value: CheckedOut) -> str:
    msg = "vout boom"
    raise RuntimeError(msg)


register_type(CheckedIn, wire=str, structure=check_in, unstructure=str)
register_type(CheckedOut, wire=str, structure=str, unstructure=check_out)

RESULTS = {None: Any, "ok": Any, "fail": int, "fail_first": int, "panic": CheckedOut}
"""What the tool promises: a result that is as promised, is not, or cannot be checked."""

ERRORS: dict[str, Callable[[str], Exception]] = {
    "blip": BlipError,
    "text": RuntimeError,
    "canceled": ToolCanceledError,
    "deadline": TimeoutError,
    "invalid_args": lambda _: InvalidArgumentsError([]),
    "not_found": ToolNotFoundError,
}


async def work(step: dict[str, Any]) -> Any:
    """Do what the recorded function did in one attempt."""
    with anyio.CancelScope(shield=not step.get("obeys_ctx", True)):
        try:
            await anyio.sleep(step.get("work_ns", 0) / SECOND)
        except anyio.get_cancelled_exc_class():
            if "on_ctx_done" not in step:
                raise
            msg = "gave up"
            raise RuntimeError(msg) from None
    if step["then"] == "panic":
        raise AssertionError(step["text"])
    if step["then"] == "error":
        raise ERRORS[step["kind"]](step.get("text", ""))
    return step["value"]


async def observe(case: Case) -> Trace:
    """Run a case and say what can be seen of it."""
    given, parent = case.input, case.input["parent"]
    began = anyio.current_time()
    attempts: list[tuple[int, int, int | None]] = []

    def since(time: float) -> int:
        return round((time - began) * SECOND)

    async def traced(check: CheckedIn, context: ToolContext) -> Any:
        start = since(anyio.current_time())
        deadline = None if context.deadline == float("inf") else since(context.deadline)
        try:
            value = await work(given["attempts"][min(context.attempt, len(given["attempts"])) - 1])
        finally:
            attempts.append((start, since(anyio.current_time()), deadline))
        return CheckedOut() if given["validate_out"] == "panic" else value

    traced.__annotations__["return"] = RESULTS[given["validate_out"]]
    tool = describe(traced, policy=seed_policy(given["policy"]))
    async with Runtime(Catalog([tool]), random=lambda: given["jitter"]) as runtime:
        result = await under_parent(runtime, {"check": given["validate_in"] or "ok"}, parent)
    end = since(anyio.current_time())
    if result is None:
        return Trace("left", frozenset({"canceled"}), None, tuple(attempts), end)
    value = result.to_wire()["value"] if result.error is None else None
    assert result.attempts == len(attempts)
    told = result.error and result.error.category.value
    return Trace(result.outcome.value, kinds_of(result), value, tuple(attempts), end, told)


async def under_parent(runtime: Runtime, arguments: dict, parent: dict) -> ToolResult | None:
    """Call a tool in a scope that ends as the recorded context did; None if its cancellation came out."""
    timeout = 0 if parent["state"] == "deadline_expired" else parent.get("deadline_ns")
    result = None
    async with anyio.create_task_group() as group:
        with anyio.CancelScope() as scope:

            async def cancel() -> None:
                await anyio.sleep(parent["cancel_at_ns"] / SECOND)
                scope.cancel()

            if parent["state"] == "canceled":
                scope.cancel()
            if "cancel_at_ns" in parent:
                group.start_soon(cancel)
            result = await runtime.invoke("traced", arguments, timeout=timeout and timeout / SECOND)
        group.cancel_scope.cancel()
    return result


def kinds_of(result: ToolResult) -> frozenset[str]:
    """Say what a failure is, in the words of ``KINDS``."""
    failure = result.error
    if failure is None:
        return frozenset()
    causes: list[tuple[type[Exception], str]] = [
        (BlipError, "blip"),
        (ToolCanceledError, "canceled"),
        (TimeoutError, "deadline"),
        (InvalidArgumentsError, "invalid_args"),
        (InvalidOutputError, "invalid_output"),
        (ToolNotFoundError, "not_found"),
    ]
    kinds = {word for kind, word in causes if isinstance(failure.cause, kind)}
    if result.stop_reason == "deadline" or (failure.category == "timeout" and failure.cause is None):
        kinds.add("deadline")
    if result.stop_reason == "attempts":
        kinds.add("exhausted")
    return frozenset(kinds)


@pytest.mark.virtual
@pytest.mark.parametrize("case", TRACES.cases, ids=names)
async def test_calls_go_as_in_the_seed(case: Case, asserted: Callable) -> None:
    """A call under a policy of the seed has the recorded attempts, at the recorded times, and the recorded end."""
    numbers, expected = TRACES.expect(case)
    assert attrs.evolve(expected, category=category(expected, case)) == await observe(case)
    asserted(TRACES, case, numbers)


def test_the_differences_cover_as_many_cases_as_agreed() -> None:
    """No difference covers more cases, or fewer, than when it was agreed on."""
    assert {0: 73, 5: 1, 6: 3, 7: 3, 23: 2, 28: 3, 35: 2} == TRACES.counts()
