"""When a failed attempt is followed by another, after which wait, and what the host's switches change. Virtual time."""

import anyio
import pytest
import stamina
import stamina.instrumentation

from harbor_async import (
    Backoff,
    Catalog,
    ErrorCategory,
    Runtime,
    ToolContext,
    ToolError,
    ToolPolicy,
    ToolResult,
    describe,
)
from harbor_async.testing import ScriptedRandom

pytestmark = pytest.mark.virtual
WAIT = Backoff(initial=0.5, factor=2, maximum=8, jitter=0)


class Recorder:
    """A tool that fails as told, and notes when it was run."""

    def __init__(self, *errors: BaseException | None):
        self.errors = list(errors)
        self.starts: list[float] = []

    async def fails(self) -> str:
        self.starts.append(anyio.current_time())
        error = self.errors[min(len(self.starts), len(self.errors)) - 1]
        if error is not None:
            raise error
        return "value"


async def run(recorder, policy=None, *, timeout=None, random=None, **options) -> ToolResult:
    tool = describe(recorder.fails, policy=policy or ToolPolicy(wait=WAIT), **options)
    async with Runtime(Catalog([tool]), random=random) as runtime:
        return await runtime.invoke("fails", timeout=timeout)


def reset() -> ConnectionError:
    return ConnectionError("reset")


async def test_a_failure_is_followed_by_a_success():
    """Two failures and a value are three attempts and a success, after the two waits."""
    recorder = Recorder(reset(), TimeoutError(), None)
    result = await run(recorder)
    assert ("succeeded", "value", 3, None) == (result.outcome, result.value, result.attempts, result.stop_reason)
    assert [0, 0.5, 1.5] == recorder.starts
    assert 1.5 == result.elapsed


async def test_attempts_count_the_first_run():
    """``attempts=4`` means the first run and up to three retries, each after its wait (R097)."""
    recorder = Recorder(TimeoutError("too slow"))
    result = await run(recorder)
    assert ("failed", "timeout", 4, "attempts") == (result.outcome, result.error.category, 4, result.stop_reason)
    assert [0, 0.5, 1.5, 3.5] == recorder.starts


async def test_a_wait_is_as_long_as_chance_says():
    """Full jitter takes each wait from zero up to its bound: u = 0, ¼ and ½ leave all, three quarters and half."""
    recorder = Recorder(reset())
    random = ScriptedRandom([0, 0.25, 0.5])
    await run(recorder, ToolPolicy(wait=Backoff(initial=1, factor=2, jitter=1)), random=random)
    assert [0, 1, 1 + 1.5, 1 + 1.5 + 2] == recorder.starts
    assert 3 == random.used


async def test_a_success_draws_no_number():
    """A call that succeeds at once asks for no chance."""
    random = ScriptedRandom([])
    assert "value" == (await run(Recorder(None), random=random)).value
    assert 0 == random.used


async def test_without_a_bound_of_attempts_the_deadline_ends_it():
    """``attempts=None`` retries until a wait does not fit before the deadline."""
    recorder = Recorder(reset())
    result = await run(recorder, ToolPolicy(attempts=None, wait=Backoff(initial=1, factor=1, jitter=0)), timeout=4.5)
    assert [0, 1, 2, 3, 4] == recorder.starts
    assert ("failed", "api_request", 5, "deadline") == (
        result.outcome,
        result.error.category,
        result.attempts,
        result.stop_reason,
    )
    assert 4 == result.elapsed


async def test_a_wait_that_ends_at_the_deadline_is_not_begun():
    """A wait exactly as long as what is left does not fit."""
    result = await run(Recorder(reset()), timeout=0.5)
    assert (1, "deadline", 0) == (result.attempts, result.stop_reason, result.elapsed)


async def test_the_other_sides_wait_is_kept():
    """``retry_after`` overrides our wait, longer and shorter, and is told in the envelope (N17)."""
    recorder = Recorder(ToolError(category="rate_limited", retry_after=5), ToolError(retry_after=0.25), None)
    result = await run(recorder)
    assert [0, 5, 5.25] == recorder.starts
    assert "succeeded" == result.outcome


async def test_the_other_sides_wait_is_cut_to_the_longest():
    """No wait is longer than the policy's longest (N17)."""
    recorder = Recorder(ToolError(retry_after=1e9), None)
    await run(recorder)
    assert [0, 8] == recorder.starts


async def test_the_other_sides_wait_that_does_not_fit_ends_the_call():
    """A wait of 5 s before a deadline in 0.3 s is not begun, and its length is told (N17)."""
    result = await run(Recorder(ToolError(category="rate_limited", retry_after=5)), timeout=0.3)
    assert ("failed", 1, "deadline") == (result.outcome, result.attempts, result.stop_reason)
    assert 5 == result.error.retry_after
    assert 0 == result.elapsed
    assert result.is_retryable


@pytest.mark.parametrize("nonsense", [float("nan"), -1, float("inf"), "soon"])
async def test_nonsense_of_the_other_side_is_ignored(nonsense):
    """A wait that is no wait leaves ours (N17)."""
    recorder = Recorder(ToolError(retry_after=nonsense), None)
    await run(recorder)
    assert [0, 0.5] == recorder.starts


@pytest.mark.parametrize(
    ("error", "attempts", "stop_reason", "ambiguous"),
    [
        (reset(), 1, "unsafe", True),
        (TimeoutError(), 1, "unsafe", True),
        (ConnectionRefusedError(), 4, "attempts", False),
        (ToolError("x"), 1, "unsafe", True),
        (ToolError("x", delivery="not_sent"), 4, "attempts", False),
        (ToolError("x", delivery="refused"), 4, "attempts", False),
        (ValueError("x"), 1, "permanent", False),
    ],
)
async def test_a_declared_effect_is_repeated_only_when_it_surely_did_not_happen(
    error, attempts, stop_reason, ambiguous
):
    """Only what was not sent, or refused, is tried again (R026, R074)."""
    recorder = Recorder(error)
    result = await run(recorder, side_effect="external")
    assert (attempts, stop_reason) == (result.attempts, result.stop_reason) == (len(recorder.starts), stop_reason)
    assert ambiguous == result.error.ambiguous
    assert result.is_retryable == (not ambiguous and stop_reason != "permanent")


async def test_an_explicit_rule_is_obeyed_effects_or_not():
    """``retry_on=`` as written repeats a declared effect."""
    recorder = Recorder(reset())
    result = await run(recorder, ToolPolicy(wait=WAIT, retry_on=["transient"]), side_effect="write")
    assert (4, "attempts") == (result.attempts, result.stop_reason)
    assert result.error.ambiguous


@pytest.mark.parametrize(
    ("rule", "attempts"),
    [
        ("transient", 4),
        ("timeout", 1),
        ([], 1),
        (ConnectionError, 4),
        (OSError, 4),
        ((KeyError, "5xx"), 1),
        (lambda error: isinstance(error, ConnectionError), 4),
        (lambda error: False, 1),
        (lambda error: 1 / 0, 1),
    ],
    ids=["word", "other word", "nothing", "type", "base type", "several", "yes", "no", "broken"],
)
@pytest.mark.parametrize("grouped", [False, True])
async def test_a_rule_says_what_is_retried(rule, attempts, grouped):
    """Class words, types and functions; a rule that breaks says no; a group of one leaf is that leaf (N10)."""
    error = ExceptionGroup("g", [reset()]) if grouped else reset()
    result = await run(Recorder(error), ToolPolicy(wait=WAIT, retry_on=rule))
    assert attempts == result.attempts
    assert ("attempts" if attempts > 1 else "permanent") == result.stop_reason


@pytest.mark.parametrize("error", [TypeError("x"), ToolError("x", category="conflict"), PermissionError("x")])
async def test_what_is_permanent_is_tried_once(error):
    """A retry cannot help, and the answer says so."""
    result = await run(Recorder(error))
    assert (1, "permanent", False) == (result.attempts, result.stop_reason, result.is_retryable)


async def test_an_invalid_result_is_not_repeated():
    """A value that the annotation denies is an invalid output after one run (N33)."""
    runs = []

    async def wrong() -> int:
        runs.append(1)
        return "one"

    result = await describe(wrong).invoke()
    assert ("failed", ErrorCategory.UNKNOWN, 1, "invalid") == (
        result.outcome,
        result.error.category,
        result.attempts,
        result.stop_reason,
    )
    assert [1] == runs
    assert not result.is_retryable
    assert result.error.problems


async def test_each_attempt_has_its_number_and_its_deadline():
    """``ToolContext`` tells attempt 1, 2, 3, each ending 1 s after its start, or at the call's deadline."""
    seen = []

    async def fails(context: ToolContext):
        seen.append((context.attempt, context.deadline, context.call_id, context.tool))
        raise reset()

    tool = describe(fails, policy=ToolPolicy(1.0, 3, WAIT))
    async with Runtime(Catalog([tool])) as runtime:
        await runtime.invoke("fails", id="seven", timeout=2)
    assert [(1, 1, "seven", "fails"), (2, 1.5, "seven", "fails"), (3, 2, "seven", "fails")] == seen


async def test_each_attempt_gets_fresh_arguments():
    """What an attempt does to its arguments the next one does not see."""
    seen = []

    async def fails(items: list[int], more: dict[str, list[int]]):
        seen.append((items.copy(), {**more}))
        items.append(9)
        more["x"].append(9)
        more["y"] = []
        raise reset()

    tool = describe(fails, policy=ToolPolicy(wait=WAIT, attempts=3))
    for arguments in ('{"items": [1], "more": {"x": [2]}}', {"items": [1], "more": {"x": [2]}}):
        seen.clear()
        await tool.invoke(arguments)
        assert [([1], {"x": [2]})] * 2 == [(items, {"x": more["x"][:1]}) for items, more in seen[1:]]
        assert [1] == seen[0][0]
    assert {"items": [1], "more": {"x": [2]}} == arguments


# --- the host's switches of stamina -------------------------------------------------------------------------------


@pytest.fixture
def restored():
    yield
    stamina.set_testing(False)
    stamina.set_active(True)
    stamina.instrumentation.set_on_retry_hooks(None)


async def test_a_host_that_turned_retries_off_gets_one_attempt(restored):
    """``stamina.set_active(False)`` is obeyed."""
    stamina.set_active(False)
    recorder = Recorder(reset(), None)
    result = await run(recorder)
    assert (1, "attempts", [0]) == (result.attempts, result.stop_reason, recorder.starts)


@pytest.mark.parametrize(("options", "attempts"), [({}, 1), ({"attempts": 2}, 2), ({"attempts": 6}, 6)])
async def test_in_stamina_s_testing_mode_its_number_counts(restored, options, attempts):
    """``stamina.set_testing`` tries as often as it says, without waits."""
    stamina.set_testing(True, **options)
    recorder = Recorder(reset())
    result = await run(recorder)
    assert (attempts, "attempts") == (result.attempts, result.stop_reason)
    assert [0] * attempts == recorder.starts


async def test_a_capped_testing_mode_does_not_raise_our_number(restored):
    """``cap=True`` only lowers."""
    stamina.set_testing(True, attempts=9, cap=True)
    assert 4 == (await run(Recorder(reset()))).attempts


async def test_the_hosts_hooks_see_each_retry(restored):
    """An instrumentation hook is told the retries, their waits and their causes, and no arguments."""
    seen = []
    stamina.instrumentation.set_on_retry_hooks([seen.append])
    error = reset()
    await run(Recorder(error, error, None))
    assert [(1, 0.5, error), (2, 1.0, error)] == [(it.retry_num, it.wait_for, it.caused_by) for it in seen]
    assert [((), {}), ((), {})] == [(it.args, it.kwargs) for it in seen]


@pytest.mark.parametrize("kind", [RuntimeError, ConnectionError, KeyError])
async def test_a_hook_of_the_host_that_breaks_changes_no_answer(restored, kind):
    """A hook that raises costs no attempt, no wait and no answer."""

    def broken(details):
        raise kind("hook")

    stamina.instrumentation.set_on_retry_hooks([broken])
    recorder = Recorder(reset())
    result = await run(recorder)
    assert ("failed", "api_request", 4, "attempts") == (
        result.outcome,
        result.error.category,
        result.attempts,
        result.stop_reason,
    )
    assert [0, 0.5, 1.5, 3.5] == recorder.starts
    assert "reset" == result.error.message


async def test_a_hook_that_breaks_while_stamina_counts_leaves_our_number(restored):
    """In testing mode, with a hook that raises, a call that always fails still ends: after the policy's attempts."""

    def broken(details):
        raise KeyError("hook")

    stamina.set_testing(True, attempts=2)
    stamina.instrumentation.set_on_retry_hooks([broken])
    result = await run(Recorder(reset()))
    assert (4, "attempts") == (result.attempts, result.stop_reason)


async def test_two_calls_retry_side_by_side():
    """The waits of one call hold up no other."""
    first, second = Recorder(reset(), None), Recorder(reset(), None)
    async with anyio.create_task_group() as group:
        group.start_soon(run, first)
        await anyio.sleep(0.25)
        group.start_soon(run, second)
    assert ([0, 0.5], [0.25, 0.75]) == (first.starts, second.starts)
