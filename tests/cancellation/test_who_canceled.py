"""The table of who canceled, row by row, in every way of asking for a call, in virtual time on both backends."""

import anyio
import pytest
from anyio.lowlevel import checkpoint

from harbor_async import Delivery, ErrorClass, ToolError
from harbor_async.testing import block
from tests.cancellation.ways import each_way, make, steal_cancellation, summary

pytestmark = pytest.mark.virtual


@each_way
async def test_the_timeout_of_an_attempt_is_a_failure_that_is_retried(ask):
    """Three attempts of 1 s with waits of 0.5 and 1 s fail after 4.5 s, naming tool and limit (R007, R038)."""
    starts = []

    async def slow():
        starts.append(anyio.current_time())
        await anyio.sleep(9)

    result = await ask(make(slow))
    assert ("failed", "timeout", 3, "attempts") == summary(result)
    assert [0, 1.5, 3.5] == starts
    assert 4.5 == result.elapsed == anyio.current_time()
    assert "'slow' did not end within 1 s" == result.error.message
    assert result.is_retryable


@each_way
@pytest.mark.parametrize("effect", ["write", "external", "stateful"])
async def test_a_timeout_of_a_declared_effect_is_not_retried(ask, effect):
    """What may have happened is done once, and the answer is ambiguous (R026, R074)."""

    async def slow():
        await anyio.sleep(9)

    result = await ask(make(slow, side_effect=effect))
    assert ("failed", "timeout", 1, "unsafe") == summary(result)
    assert result.error.ambiguous
    assert Delivery.UNKNOWN == result.error.delivery
    assert not result.is_retryable


@each_way
@pytest.mark.parametrize("options", [{"side_effect": "write", "idempotent": True}, {"side_effect": "read"}, {}])
async def test_a_timeout_of_what_may_be_repeated_is_retried(ask, options):
    """An idempotent, a reading and an undeclared tool are tried again, and nothing is ambiguous."""

    async def slow():
        await anyio.sleep(9)

    result = await ask(make(slow, **options))
    assert ("failed", "timeout", 3, "attempts") == summary(result)
    assert not result.error.ambiguous


@each_way
async def test_the_deadline_of_a_call_is_timed_out(ask):
    """A deadline in mid-attempt ends the call as ``timed_out``, and a retry by the model cannot help."""

    async def slow():
        await anyio.sleep(9)

    result = await ask(make(slow), timeout=0.25)
    assert ("timed_out", "timeout", 1, "deadline") == summary(result)
    assert 0.25 == result.elapsed
    assert ErrorClass.TIMEOUT == result.error.error_class
    assert not result.is_retryable


@each_way
async def test_a_deadline_in_a_wait_between_attempts_is_not_waited_for(ask):
    """A wait that does not fit before the deadline is not begun: the failure is the answer, at once (N04)."""

    async def slow():
        await anyio.sleep(9)

    result = await ask(make(slow), timeout=1.25)
    assert ("failed", "timeout", 1, "deadline") == summary(result)
    assert 1 == result.elapsed


@each_way
async def test_a_deadline_in_a_later_attempt_is_timed_out(ask):
    """A deadline that passes in attempt 2 ends the call as ``timed_out`` after two attempts."""

    async def slow():
        await anyio.sleep(9)

    result = await ask(make(slow), timeout=2)
    assert ("timed_out", "timeout", 2, "deadline") == summary(result)
    assert 2 == result.elapsed


@each_way
async def test_a_deadline_that_cuts_a_declared_effect_is_ambiguous(ask):
    """A write that its call's deadline cut may have happened."""

    async def slow():
        await anyio.sleep(9)

    result = await ask(make(slow, side_effect="write"), timeout=0.25)
    assert ("timed_out", "timeout", 1, "deadline") == summary(result)
    assert result.error.ambiguous


@each_way
async def test_a_deadline_of_zero_has_passed(ask):
    """With ``timeout=0`` the function is not run, and nothing was sent."""
    ran = []

    async def quick():
        ran.append(1)

    result = await ask(make(quick, side_effect="write"), timeout=0)
    assert ("timed_out", "timeout", 0, "deadline") == summary(result)
    assert Delivery.NOT_SENT == result.error.delivery
    assert not result.error.ambiguous
    assert [] == ran


@each_way
async def test_a_timeout_of_zero_ends_an_attempt_at_once(ask):
    """``ToolPolicy(timeout=0)`` means zero: even a function that does not wait is late."""

    async def quick():
        return 1

    assert ("failed", "timeout", 1, "attempts") == summary(await ask(make(quick, timeout=0, attempts=1)))


@each_way
@pytest.mark.parametrize("at", [0.5, 1.25, 2.0])
@pytest.mark.parametrize("by_deadline", [True, False])
async def test_the_callers_cancellation_leaves_as_itself(ask, at, by_deadline):
    """Cut in attempt 1, in the wait after it and in attempt 2, the call leaves at once, without answer (N05, R001)."""
    log = []

    async def ticks():
        try:
            while True:
                await anyio.sleep(0.125)
                log.append(anyio.current_time())
        finally:
            log.append("ended")

    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:

            async def cut():
                await anyio.sleep(at)
                scope.cancel()

            if by_deadline:
                scope.deadline = at
            else:
                group.start_soon(cut)
            await ask(make(ticks))
            raise AssertionError("an answer came")
    assert scope.cancelled_caught
    assert at == anyio.current_time()
    seen = log.copy()
    await anyio.sleep(5)
    assert seen == log  # nothing ticks on
    assert (2 if at == 2.0 else 1) == log.count("ended")


@each_way
async def test_a_caller_that_was_canceled_before_gets_no_answer(ask):
    """In a scope that is canceled already, or whose deadline has passed, the function never starts."""
    ran = []

    async def quick():
        ran.append(1)

    for scope in (anyio.CancelScope(), anyio.CancelScope(deadline=-1)):
        with scope:
            if scope.deadline > 0:
                scope.cancel()
            await ask(make(quick))
            raise AssertionError("an answer came")
        assert scope.cancelled_caught
    assert [] == ran


@each_way
async def test_a_shield_keeps_the_callers_cancellation_out(ask):
    """Inside a shield of the caller's the call is answered though a scope further out is canceled."""

    async def slow():
        await anyio.sleep(0.5)
        return "here"

    with anyio.CancelScope() as outer:
        outer.cancel()
        with anyio.CancelScope(shield=True):
            result = await ask(make(slow))
    assert "here" == result.value


@each_way
async def test_equal_deadlines_are_the_callers(ask):
    """A scope of the caller's that ends with the attempt wins: no answer, no retry (N04b)."""
    starts = []

    async def slow():
        starts.append(anyio.current_time())
        await anyio.sleep(9)

    with anyio.CancelScope(deadline=1) as scope:
        await ask(make(slow, timeout=1))
        raise AssertionError("an answer came")
    assert scope.cancelled_caught
    assert [0] == starts


@each_way
async def test_the_deadline_of_the_call_wins_over_the_timeout_of_its_attempt(ask):
    """When both pass at once the call is over."""

    async def slow():
        await anyio.sleep(9)

    assert ("timed_out", "timeout", 1, "deadline") == summary(await ask(make(slow), timeout=1))


@each_way
async def test_a_foreign_cancellation_is_a_failure_and_not_retried(ask):
    """A cancellation that no open scope asked for is answered as ``canceled``; the caller lives on (N01)."""

    async def broken():
        raise await steal_cancellation()

    result = await ask(make(broken, side_effect="write"))
    assert ("failed", "canceled", 1, "canceled") == summary(result)
    assert result.error.ambiguous
    assert not result.is_retryable
    await anyio.sleep(1)


@each_way
async def test_a_foreign_cancellation_before_any_wait_is_the_same(ask):
    """A cancellation that is raised by a function which never waited is answered as ``canceled``."""
    foreign = await steal_cancellation()

    async def broken():
        raise foreign

    assert ("failed", "canceled", 1, "canceled") == summary(await ask(make(broken)))


@each_way
async def test_a_scope_of_the_tools_own_is_its_own(ask):
    """A tool that cancels its own scopes by hand or by deadline is not canceled (R084)."""

    async def careful():
        with anyio.CancelScope() as scope:
            scope.cancel()
            await anyio.sleep(9)
        with anyio.move_on_after(0.25):
            await anyio.sleep(9)
        return "went on"

    result = await ask(make(careful))
    assert "went on" == result.value
    assert 0.25 == result.elapsed


@each_way
@pytest.mark.parametrize("own", ["raised", "fail_after"])
async def test_a_timeout_error_of_the_tools_own_keeps_its_words(ask, own):
    """``TimeoutError`` from the tool is category and class ``timeout``, in its own words, and retried (N03, R097)."""

    async def impatient():
        if own == "raised":
            await anyio.sleep(0.25)
            raise TimeoutError("tool own")
        with anyio.fail_after(0.25):
            await anyio.sleep(9)

    result = await ask(make(impatient, timeout=5))
    assert ("failed", "timeout", 3, "attempts") == summary(result)
    assert ("tool own" if own == "raised" else "TimeoutError") == result.error.message
    assert ErrorClass.TIMEOUT == result.error.error_class
    assert 0.25 * 3 + 0.5 + 1 == result.elapsed


async def swallow():
    try:
        await anyio.sleep(9)
    except anyio.get_cancelled_exc_class():
        return "late"


@each_way
async def test_a_late_value_is_dropped(ask):
    """A tool that swallows its cancellation and returns is a timeout, attempt by attempt (N02)."""
    result = await ask(make(swallow))
    assert ("failed", "timeout", 3, "attempts") == summary(result)
    assert result.value is None
    assert not result.late


@each_way
async def test_a_late_value_is_dropped_at_the_deadline(ask):
    """The same at the deadline of the call."""
    result = await ask(make(swallow), timeout=0.25)
    assert ("timed_out", "timeout", 1, "deadline") == summary(result)
    assert result.value is None


@each_way
@pytest.mark.parametrize("timeout", [None, 0.25])
async def test_a_late_value_of_a_declared_effect_is_kept(ask, timeout):
    """An effect that finished after its time has happened: the value stands and is flagged."""
    result = await ask(make(swallow, side_effect="write"), timeout=timeout)
    assert ("succeeded", None, 1, None) == summary(result)
    assert "late" == result.value
    assert result.late


@each_way
async def test_a_late_value_never_holds_up_the_caller(ask):
    """A canceled caller gets no answer, though the tool swallowed the cancellation and declares an effect."""
    with anyio.CancelScope(deadline=0.25) as scope:
        await ask(make(swallow, side_effect="write"))
        raise AssertionError("an answer came")
    assert scope.cancelled_caught


@each_way
async def test_a_cancellation_turned_into_an_error_is_a_timeout_with_a_cause(ask):
    """What the tool made of its cancellation is the cause, without traceback, and does not count as itself (N09)."""

    async def lose():
        try:
            await anyio.sleep(9)
        except BaseException as exc:
            raise PermissionError("db lost") from exc

    result = await ask(make(lose))
    assert ("failed", "timeout", 3, "attempts") == summary(result)
    assert "'lose' did not end within 1 s" == result.error.message
    assert isinstance(result.error.cause, PermissionError)
    assert isinstance(result.error.cause.__cause__, anyio.get_cancelled_exc_class())
    assert result.error.cause.__traceback__ is result.error.cause.__cause__.__traceback__ is None


@each_way
async def test_an_error_in_the_cleanup_of_a_child_is_the_cause(ask):
    """A timeout whose cleanup fails in a child task is a timeout, and that error alone is the cause (N09b)."""

    async def child():
        try:
            await anyio.sleep(9)
        finally:
            raise ValueError("cleanup")

    async def parent():
        async with anyio.create_task_group() as group:
            group.start_soon(child)
            await anyio.sleep(9)

    result = await ask(make(parent))
    assert ("failed", "timeout", 3, "attempts") == summary(result)
    assert isinstance(result.error.cause, ValueError)


@each_way
async def test_a_cancellation_that_comes_out_as_itself_is_no_cause(ask):
    """A plain timeout has no cause."""

    async def parent():
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep, 9)
            await anyio.sleep(9)

    assert (await ask(make(parent))).error.cause is None


@each_way
async def test_shielded_cleanup_is_waited_for(ask):
    """A shield in the tool holds; the answer comes when the cleanup has ended and tells the overrun (N20)."""

    async def tidy():
        try:
            await anyio.sleep(9)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.5)

    result = await ask(make(tidy, attempts=1))
    assert ("failed", "timeout", 1, "attempts") == summary(result)
    assert 1.5 == result.elapsed
    assert "'tidy' did not end within 1 s and went on for another 0.5 s" == result.error.message


@each_way
@pytest.mark.parametrize("waits", ["never", "after", "before", "both"])
async def test_a_tool_that_blocks_the_loop_past_its_timeout_has_timed_out(ask, waits):
    """The clock is read after the attempt: the same on both backends, with and without a checkpoint (N08, R046)."""

    async def blocks():
        if waits in {"before", "both"}:
            await checkpoint()
        block(1.5)
        if waits in {"after", "both"}:
            await checkpoint()
        return "value"

    result = await ask(make(blocks, attempts=1))
    assert ("failed", "timeout", 1, "attempts") == summary(result)
    assert "'blocks' did not end within 1 s and went on for another 0.5 s" == result.error.message
    assert 1.5 == result.elapsed


@each_way
@pytest.mark.parametrize("waits", [True, False])
async def test_a_tool_that_blocks_the_loop_past_the_deadline_is_timed_out(ask, waits):
    """The same for the deadline of the call."""

    async def blocks():
        block(0.5)
        if waits:
            await checkpoint()
        return "value"

    assert ("timed_out", "timeout", 1, "deadline") == summary(await ask(make(blocks), timeout=0.25))


@each_way
@pytest.mark.parametrize("waits", [True, False])
async def test_a_tool_that_blocks_the_loop_past_the_callers_deadline_has_no_answer(ask, waits):
    """The same for a scope of the caller's, which may need two checkpoints to deliver."""

    async def blocks():
        block(1.5)
        if waits:
            await checkpoint()
        return "value"

    with anyio.CancelScope(deadline=0.25) as scope:
        await ask(make(blocks))
        raise AssertionError("an answer came")
    assert scope.cancelled_caught


@each_way
async def test_an_error_at_the_very_end_of_the_timeout_is_a_timeout(ask):
    """An error that comes with the deadline in one tick is a timeout with that cause (R086)."""

    async def fails():
        block(1)
        raise ConnectionError("reset")

    result = await ask(make(fails, attempts=1))
    assert ("failed", "timeout", 1, "attempts") == summary(result)
    assert isinstance(result.error.cause, ConnectionError)


@each_way
async def test_an_error_just_before_the_timeout_is_itself(ask):
    """An error that came in time is classified as itself."""

    async def fails():
        block(0.75)
        raise ConnectionError("reset")

    assert ("failed", "api_request", 1, "attempts") == summary(await ask(make(fails, attempts=1)))


@each_way
async def test_a_tool_that_swallows_every_cancellation_ends_when_it_ends(ask):
    """A tool that goes on in spite of being canceled again and again is waited for."""

    async def deaf():
        while anyio.current_time() < 2:
            try:
                await anyio.sleep(0.5)
            except anyio.get_cancelled_exc_class():
                block(0.25)
        return "heard nothing"

    result = await ask(make(deaf, attempts=1))
    assert ("failed", "timeout", 1, "attempts") == summary(result)
    assert 2 == result.elapsed


@each_way
async def test_the_caller_wins_over_a_tool_that_blocks_past_everything(ask):
    """With the attempt's timeout, the call's deadline and the caller's all in the past, the caller's counts."""

    async def blocks():
        await checkpoint()
        block(9)
        await checkpoint()

    with anyio.CancelScope(deadline=3) as scope:
        await ask(make(blocks), timeout=2)
        raise AssertionError("an answer came")
    assert scope.cancelled_caught


@each_way
async def test_a_generator_exit_is_a_failure(ask):
    """``GeneratorExit`` from a tool is ``unknown``, is not retried and harms nobody (N18)."""

    async def leaves():
        raise GeneratorExit

    result = await ask(make(leaves))
    assert ("failed", "unknown", 1, "permanent") == summary(result)


@each_way
async def test_a_function_that_cancels_its_caller_gets_no_answer(ask):
    """A scope of the caller's that the function itself cancels counts, whether the function waits afterwards or not."""
    for waits in (True, False):
        with anyio.CancelScope() as scope:

            async def cuts(scope=scope, waits=waits):
                scope.cancel()
                if waits:
                    await anyio.sleep(1)
                return 1

            async def tool():
                return await cuts()

            await ask(make(tool))
            raise AssertionError("an answer came")
        assert scope.cancelled_caught


async def test_a_neighbour_that_blocks_the_loop_times_the_others_out(anyio_backend):
    """A call that had its result, but was held up past its timeout by another, timed out on every backend."""
    from harbor_async import Catalog, Runtime, ToolCall

    async def polite():
        await anyio.sleep(0.5)
        return "in time"

    async def rude():
        await anyio.sleep(0.25)
        block(2)
        return "blocked"

    catalog = Catalog([make(polite, attempts=1), make(rude, timeout=None)])
    async with Runtime(catalog) as runtime:
        results = await runtime.invoke_many([ToolCall("1", "polite"), ToolCall("2", "rude")])
    assert [("failed", "timeout", 1, "attempts"), ("succeeded", None, 1, None)] == [*map(summary, results)]


@each_way
async def test_a_tool_error_says_for_itself_even_when_it_says_canceled(ask):
    """A ``ToolError`` of category ``canceled`` is the tool's word, and is not retried."""

    async def says():
        raise ToolError("the user said stop", category="canceled")

    assert ("failed", "canceled", 1, "permanent") == summary(await ask(make(says)))
