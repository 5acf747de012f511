"""Reported faults of retries: what is tried again, when, and how often."""

import asyncio
import math
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise

import anyio
import pytest

from harbor_async import Backoff, Catalog, ErrorClass, Runtime, ToolError, ToolPolicy, describe
from harbor_async.errors import InvalidOutputError
from harbor_async.testing import ScriptedRandom
from tests.conformance.support import invoke, is_asyncio, make, summary


@pytest.mark.timed
@pytest.mark.parametrize("rule", ["retry_on", "classify"])
async def test_n06_predicate_eats_cancel(pace, rule):
    """A retry rule that says yes to all gets to see neither a cancellation nor an interrupt."""
    seen, runs = [], []
    kind = {
        "retry_on": {"retry_on": lambda exc: not seen.append(exc)},
        "classify": {"classify": lambda exc: seen.append(exc) or ErrorClass.TRANSIENT},
    }
    policy = ToolPolicy(5.0, 3, Backoff(initial=0.1, jitter=0), **kind[rule])

    async def hangs() -> None:
        runs.append("hangs")
        await anyio.sleep_forever()

    async def stops() -> None:
        runs.append("stops")
        raise KeyboardInterrupt

    started = anyio.current_time()
    with pytest.raises(TimeoutError):  # noqa: PT012 - a timeout leaves from its block
        if is_asyncio():
            await asyncio.wait_for(invoke(describe(hangs, policy=policy)), 0.05)
        with anyio.fail_after(0.05):
            await invoke(describe(hangs, policy=policy))
    pace.check(0.05, anyio.current_time() - started)
    with pytest.raises(KeyboardInterrupt):
        await invoke(describe(stops, policy=policy))
    assert (["hangs", "stops"], []) == (runs, seen)


CONNECTION = ConnectionError("reset")
RETRIED = ("failed", "api_request", 3, "attempts")
PERMANENT = ("failed", "unknown", 1, "permanent")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ExceptionGroup("g", [CONNECTION]), RETRIED),
        (ExceptionGroup("g", [ExceptionGroup("h", [CONNECTION])]), RETRIED),
        (ExceptionGroup("g", [CONNECTION, ValueError("value")]), PERMANENT),
        (ExceptionGroup("g", [ExceptionGroup("h", [CONNECTION]), ValueError("value")]), PERMANENT),
        (BaseExceptionGroup("g", [CONNECTION, KeyboardInterrupt()]), KeyboardInterrupt),
        (BaseExceptionGroup("g", [BaseExceptionGroup("h", [SystemExit()])]), SystemExit),
    ],
    ids=["one", "nested one", "mixed", "nested mixed", "interrupt", "nested interrupt"],
)
async def test_n10_exception_group(error, expected):
    """A group with one leaf is that leaf, a mixed one permanent, and one that holds an interrupt lets that out."""

    async def work() -> None:
        raise error

    tool = make(work, attempts=3)
    if isinstance(expected, type):
        with pytest.raises(expected):
            await invoke(tool)
    else:
        assert expected == summary(await invoke(tool))


@pytest.mark.parametrize("mixed", [False, True])
async def test_n10_exception_group_of_a_task_group(mixed):
    """The same of a group that the tool's own task group has raised."""

    async def fails(error: Exception) -> None:
        raise error

    async def work() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(fails, CONNECTION)
            if mixed:
                group.start_soon(fails, ValueError("value"))

    result = await invoke(make(work, attempts=3))
    assert (PERMANENT if mixed else RETRIED) == summary(result)
    assert (ErrorClass.PERMANENT if mixed else ErrorClass.TRANSIENT) == result.error.error_class


class AnswerError(Exception):
    """An error answer of HTTP, as clients raise it."""

    def __init__(self, retry_after: str) -> None:
        super().__init__("busy")
        self.status_code = 503
        self.headers = {"Retry-After": retry_after}

    @property
    def response(self) -> "AnswerError":
        return self


def answer(retry_after: object) -> Exception:
    """Return an error that asks for such a wait: text in a header, a number in an attribute."""
    if isinstance(retry_after, str):
        return AnswerError(retry_after)
    return ToolError("busy", category="api_status", retry_after=retry_after)


def failing(error: Exception, starts: list[float]):
    async def work() -> None:
        starts.append(anyio.current_time())
        raise error

    return work


@pytest.mark.parametrize("asked", [5, 5.0, "5"])
async def test_n17_retry_after_that_does_not_fit(asked):
    """A wait that was asked for and does not fit before the deadline ends the call at once, and is told."""
    starts = []
    result = await invoke(make(failing(answer(asked), starts), attempts=3), timeout=4.5)
    assert ("failed", "api_status", 1, "deadline") == summary(result)
    assert 1 == len(starts)
    assert 5 == result.error.retry_after == result.to_wire()["error"]["retry_after"]
    assert result.elapsed < 4.5


@pytest.mark.timed
@pytest.mark.parametrize("asked", ["nan", "minus one", "a past date", "words", math.nan, -1, math.inf, True])
async def test_n17_retry_after_that_makes_no_sense(pace, asked):
    """Where no sensible wait was asked for, the policy's own waits are waited."""
    texts = {"nan": "NaN", "minus one": "-1", "a past date": "Fri, 31 Dec 1999 23:59:59 GMT", "words": "soon"}
    asked = texts.get(asked, asked) if isinstance(asked, str) else asked
    first = pace(0.1, 0.01)
    starts = []
    result = await invoke(make(failing(answer(asked), starts), attempts=3, wait=first))
    assert ("failed", "api_status", 3, "attempts") == summary(result)
    assert result.error.retry_after is None
    pace.check(first, starts[1] - starts[0])
    pace.check(2 * first, starts[2] - starts[1])


@pytest.mark.timed
@pytest.mark.parametrize("asked", [1e9, "1000000000", "a date"])
async def test_n17_retry_after_that_is_huge(pace, asked):
    """A wait that was asked for is cut to the policy's longest one."""
    if asked == "a date":
        asked = format_datetime(datetime.now(UTC) + timedelta(days=365), usegmt=True)
    longest = pace(30.0, 0.02)
    starts = []
    policy = ToolPolicy(attempts=2, wait=Backoff(initial=longest / 10, maximum=longest, jitter=0))
    result = await invoke(describe(failing(answer(asked), starts), policy=policy))
    assert ("failed", "api_status", 2, "attempts") == summary(result)
    pace.check(longest, starts[1] - starts[0])


class OddError(Exception):
    """A type that nobody knows."""


@pytest.mark.parametrize(
    ("error", "error_class"),
    [
        (ValueError("row 500 is invalid"), ErrorClass.PERMANENT),
        (ValueError("invalid value for timeout"), ErrorClass.PERMANENT),
        (PermissionError("permission denied"), ErrorClass.PERMANENT),
        (ValueError("400 Bad Request"), ErrorClass.PERMANENT),
        (KeyError("timeout"), ErrorClass.PERMANENT),
        (OddError("HTTP 503"), ErrorClass.TRANSIENT),
        (OddError("row 500 is invalid"), ErrorClass.TRANSIENT),
        (OddError("permission denied, deadline exceeded"), ErrorClass.TRANSIENT),
    ],
    ids=repr,
)
async def test_n24_classifier_words(error, error_class):
    """What an error means is told by its type and never by its words."""
    starts = []
    result = await invoke(make(failing(error, starts), attempts=4))
    assert error_class == result.error.error_class
    assert (4 if error_class is ErrorClass.TRANSIENT else 1) == len(starts) == result.attempts


@pytest.mark.timed
async def test_n25_harbor_backoff(pace):
    """Harbor's waits are its own: multiplied before the first, a tenth of the base as jitter, and cut after it."""
    wait = ToolPolicy.harbor(backoff_base=0.1, backoff_mult=2, backoff_max=30).wait
    assert [0.2, 0.4, 0.8] == [wait.delay(retry, 0.0) for retry in (1, 2, 3)]
    assert [0.21, 0.41, 0.81] == [wait.delay(retry, 1.0) for retry in (1, 2, 3)]
    assert 30 == wait.delay(9, 0.0) == wait.delay(9, 1.0)  # 0.1 * 2**9 is more
    ours = ToolPolicy().wait
    assert pytest.approx([0.1, 0.2, 0.4]) == [ours.delay(retry, 0.0) for retry in (1, 2, 3)]
    assert [0, 0, 0] == [ours.delay(retry, 1.0) for retry in (1, 2, 3)]
    scale = pace(1.0, 0.02)
    policies = {
        "harbor": ToolPolicy.harbor(backoff_base=0.1 * scale, backoff_mult=2, backoff_max=30),
        "ours": ToolPolicy(wait=Backoff(initial=0.1 * scale)),
    }
    for name, waits in {"harbor": [0.205, 0.405, 0.805], "ours": [0.05, 0.1, 0.2]}.items():
        starts = []
        tool = describe(failing(CONNECTION, starts), policy=policies[name])
        async with Runtime(Catalog([tool]), random=ScriptedRandom([0.5] * 3)) as runtime:
            assert ("failed", "api_request", 4, "attempts") == summary(await runtime.invoke(tool.name))
        for (first, second), expected in zip(pairwise(starts), waits, strict=True):
            pace.check(expected * scale, second - first)


async def test_n33_output_invalid():
    """A value that violates the out schema is an invalid output after one attempt; the effect is not repeated."""
    effects = []

    async def work() -> int:
        effects.append(1)
        return "seven"

    for options in ({"side_effect": "write"}, {"idempotent": True}, {"side_effect": "read"}, {}):
        effects.clear()
        result = await invoke(make(work, attempts=4, **options))
        assert ("failed", "unknown", 1, "invalid") == summary(result)
        assert [1] == effects
        assert ErrorClass.PERMANENT == result.error.error_class
        assert not result.is_retryable
        assert InvalidOutputError is type(result.error.cause)


class ReadTimeout(TimeoutError):  # noqa: N818 - as clients of HTTP call it
    """No answer came in time."""


async def test_r026_an_effect_whose_answer_was_lost():
    """An external effect whose answer timed out is done once under the default policy, and said to be ambiguous."""
    effects = []

    async def work() -> None:
        effects.append("done")
        raise ReadTimeout("no answer")

    result = await invoke(describe(work, side_effect="external"))
    assert ("failed", "timeout", 1, "unsafe") == summary(result)
    assert ["done"] == effects
    assert result.error.ambiguous
    assert result.to_wire()["error"]["ambiguous"] is True
    assert not result.is_retryable
    assert {"category", "message", "ambiguous"} == result.to_wire()["error"].keys()
    assert "again" not in result.content


@pytest.mark.parametrize("error", [ConnectionError("reset"), TimeoutError("late"), OddError("odd")], ids=repr)
async def test_r074_an_effect_is_not_repeated(error):
    """An external effect that is not idempotent is executed once, whatever the attempts allow."""
    starts = []
    tool = make(failing(error, starts), attempts=4, side_effect="external", idempotent=False)
    result = await invoke(tool)
    assert (1, 1, "unsafe") == (len(starts), result.attempts, result.stop_reason)
    assert ("failed", True) == (result.outcome, result.error.ambiguous)
    starts.clear()
    again = make(failing(error, starts), attempts=4, side_effect="external", idempotent=True)
    assert (4, "attempts") == ((await invoke(again)).attempts, (await invoke(again)).stop_reason)


@pytest.mark.timed
async def test_r097_a_tool_that_always_times_out(pace):
    """A tool that raises ``TimeoutError`` each time is run once and three times more, with the waits between."""
    starts = []
    first = pace(0.1, 0.005)
    result = await invoke(make(failing(TimeoutError("late"), starts), attempts=4, wait=first))
    assert ("failed", "timeout", 4, "attempts") == summary(result)
    assert "late" == result.error.message
    for number, (before, after) in enumerate(pairwise(starts)):
        pace.check(first * 2**number, after - before)
