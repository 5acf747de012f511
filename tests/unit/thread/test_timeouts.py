"""A thread that outlives its attempt: what the answer says, what follows, and what becomes of the late end.

In virtual time, which passes when the test says so: a thread is held at a gate, so that none of it depends on how fast
the machine is. ``grace`` only bounds how long a thread may take to come.
"""

import gc
import logging
import threading
import time
from collections import Counter
from functools import partial

import anyio
import pytest
from anyio import from_thread

from harbor_async import Catalog, Runtime, SideEffect, ToolCall, ToolContext, ToolResult
from harbor_async.errors import ToolTimeoutError
from harbor_async.testing import wait_all_tasks_blocked
from tests.unit.thread.gate import PATIENCE, Gate, assert_free, calls_of, invoke, limited, make, pass_time

virtual = pytest.mark.virtual(grace=PATIENCE)
MESSAGE = "'held' did not end within 1 s; its thread cannot be stopped and still runs"


async def ended_after(gate, seconds, ask, *args):
    """Return how ``ask(*args)`` ended, when its thread was held at the gate for so many seconds of virtual time."""
    ends = []

    async def note():
        ends.append(await ask(*args))

    async with anyio.create_task_group() as group:
        group.start_soon(note)
        await gate.came()
        await pass_time(seconds)
    (ended,) = ends
    return ended


def summary(result: ToolResult):
    error = result.error
    return result.outcome, error.category, error.background, result.attempts, result.stop_reason


async def test_a_timeout_is_kept_in_real_time(gate: Gate):
    """N07: on every real loop a thread that goes on is left at its timeout, and its call says so."""

    def held() -> str:
        gate.hold()
        return "v"

    started = time.monotonic()
    result = await invoke(make(held, timeout=0.25))
    took = time.monotonic() - started
    assert ("failed", "timeout", True, 1, "unsafe") == summary(result)
    assert 0.25 <= took < PATIENCE
    assert 1 == gate.live


@virtual
async def test_the_attempts_timeout_leaves_the_thread(gate: Gate):
    """N07: the answer comes at the timeout, says that the thread still runs, and is retryable for a model."""

    def held() -> str:
        gate.hold()
        return "v"

    async with Runtime(Catalog([make(held, timeout=1)])) as runtime:
        result = await ended_after(gate, 1, runtime.invoke, "held")
        assert 1 == gate.live
    assert ("failed", "timeout", True, 1, "unsafe") == summary(result)
    assert MESSAGE == result.error.message
    assert (1, None, False, True) == (
        result.elapsed,
        result.error.cause,
        result.error.ambiguous,
        result.is_retryable,
    )
    assert "not_sent" != result.error.delivery


@virtual
async def test_a_calls_deadline_leaves_the_thread(gate: Gate):
    """The deadline of a call cuts a thread that has no timeout of its own."""

    def held() -> None:
        gate.hold()

    async with Runtime(Catalog([make(held)])) as runtime:
        result = await ended_after(gate, 2, partial(runtime.invoke, timeout=2), "held")
        (again,) = await ended_after(gate, 2, partial(runtime.invoke_many, timeout=2), [ToolCall("", "held")])
    assert ("timed_out", "timeout", True, 1, "deadline") == summary(result) == summary(again)
    assert 2 == result.elapsed
    assert 2 == gate.live


@virtual
async def test_a_programs_call_is_a_tool_timeout(gate: Gate):
    """``rt.call`` raises ``ToolTimeoutError`` with the same message."""

    def held() -> None:
        gate.hold()

    described = make(held, timeout=1)

    async def ask(runtime):
        with pytest.raises(ToolTimeoutError) as caught:
            await runtime.call(described)
        return caught.value

    async with Runtime(Catalog([])) as runtime:
        error = await ended_after(gate, 1, ask, runtime)
    assert MESSAGE == str(error)


@virtual
async def test_a_thread_that_ends_in_time_is_a_success(gate: Gate):
    """Time that passes before the timeout changes nothing."""

    def held() -> str:
        gate.hold()
        return "v"

    async def open_late():
        await gate.came()
        await pass_time(0.5)
        gate.open()

    async with Runtime(Catalog([make(held, timeout=1)])) as runtime, anyio.create_task_group() as group:
        group.start_soon(open_late)
        result = await runtime.invoke("held")
    assert ("succeeded", "v", 0.5) == (result.outcome, result.value, result.elapsed)


@virtual
@pytest.mark.parametrize("effect", [None, SideEffect.READ, SideEffect.WRITE])
async def test_no_retry_while_the_thread_lives(gate: Gate, effect):
    """A second run beside the first is never begun for a tool that may not run twice at once, effect or none."""

    def held() -> None:
        gate.hold()

    described = make(held, timeout=1, attempts=3, **({} if effect is None else {"side_effect": effect}))
    result = await ended_after(gate, 1, invoke, described)
    assert ("failed", "timeout", True, 1, "unsafe") == summary(result)
    assert (effect is SideEffect.WRITE) == result.error.ambiguous
    assert 1 == gate.runs


@virtual
async def test_an_idempotent_tool_is_retried_beside_its_thread(gate: Gate):
    """A tool that declares itself idempotent runs again while its first thread lives, in a place of its own."""

    def held() -> None:
        gate.hold()

    described = make(held, timeout=1, attempts=3, side_effect=SideEffect.WRITE, idempotent=True)
    results = []
    async with limited(described, threads=3) as runtime:

        async def ask():
            results.append(await runtime.invoke("held"))

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            for _ in range(3):
                await gate.came()
                await pass_time(1)
        assert (3, 3) == (gate.live, gate.peak)
        gate.open()
        await assert_free(runtime)
    assert [("failed", "timeout", True, 3, "attempts")] == [summary(result) for result in results]
    assert not results[0].error.ambiguous


@virtual
async def test_an_idempotent_retry_waits_for_a_place(gate: Gate):
    """The second attempt needs a place as well: with one thread it waits for the first to end, and then succeeds."""

    def held() -> str:
        gate.hold()
        return "v"

    async with limited(make(held, timeout=1, attempts=2, idempotent=True)) as runtime:
        results = []

        async def ask():
            results.append(await runtime.invoke("held"))

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await gate.came()
            await pass_time(1)
            gate.open()
        await assert_free(runtime)
    assert [("succeeded", "v", 2)] == [(result.outcome, result.value, result.attempts) for result in results]
    assert 1 == gate.peak


@virtual
async def test_a_retry_that_waits_for_its_own_thread_says_so(gate: Gate):
    """A deadline that passes while the second attempt waits finds the first one's thread in the only place."""

    def held() -> None:
        gate.hold()

    async with limited(make(held, timeout=1, attempts=2, idempotent=True)) as runtime:
        results = []

        async def ask():
            results.append(await runtime.invoke("held", timeout=3))

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await gate.came()
            await pass_time(1)
            await pass_time(2)
        assert 1 == gate.live
    assert [("timed_out", "timeout", True, 1, "deadline")] == [summary(result) for result in results]


@virtual
async def test_an_error_beside_an_earlier_thread_says_so(gate: Gate):
    """A second attempt that fails at once answers for the first as well, whose thread still runs."""

    def held(context: ToolContext) -> None:
        if context.attempt > 1:
            raise LookupError("no such city")
        gate.hold()

    async with limited(make(held, timeout=1, attempts=2, idempotent=True), threads=2) as runtime:
        result = await ended_after(gate, 1, runtime.invoke, "held")
        assert 1 == gate.live
    assert ("failed", "unknown", True, 2, "permanent") == summary(result)


@virtual
async def test_a_thread_that_has_ended_is_not_told_of(gate: Gate):
    """A second attempt that got its place from the first one's thread answers for itself alone."""

    def held(context: ToolContext) -> None:
        if context.attempt > 1:
            raise LookupError("no such city")
        gate.hold()

    async with limited(make(held, timeout=1, attempts=2, idempotent=True)) as runtime:
        results = []

        async def ask():
            results.append(await runtime.invoke("held"))

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await gate.came()
            await pass_time(1)
            gate.open()
    assert [("failed", "unknown", False, 2, "permanent")] == [summary(result) for result in results]


async def late_coroutine():
    raise AssertionError("nobody awaits it")


@virtual
@pytest.mark.parametrize("late", ["value", "exception", "interrupt", "stop", "coroutine"])
async def test_a_late_end_is_dropped(gate: Gate, late, caplog):
    """A late value, exception, interrupt or coroutine goes unheard: no warning, no log, nothing unraisable."""

    def held():
        gate.hold()
        match late:
            case "exception":
                raise ConnectionError(late)
            case "interrupt":
                raise KeyboardInterrupt
            case "stop":
                raise StopIteration
            case "coroutine":
                return late_coroutine()
            case _:
                return late

    caplog.set_level(logging.ERROR)
    async with limited(make(held, timeout=1)) as runtime:
        result = await ended_after(gate, 1, runtime.invoke, "held")
        gate.open()
        await gate.went()
        await assert_free(runtime)
        assert ("failed", "timeout", True, 1, "unsafe") == summary(result)
        assert result.value is None
    gc.collect()
    assert [] == caplog.records


@virtual
async def test_a_late_value_is_freed(gate: Gate):
    """What nobody gets is kept by nobody."""
    died = threading.Event()

    class Big:
        def __del__(self):
            died.set()

    def held():
        gate.hold()
        return Big()

    async with limited(make(held, timeout=1)) as runtime:
        await ended_after(gate, 1, runtime.invoke, "held")
        gate.open()
        await gate.went()
        await assert_free(runtime)
        gc.collect()
        assert died.is_set()


@virtual
async def test_waiting_for_a_thread_counts_for_the_deadline_and_not_the_timeout(gate: Gate):
    """A call that waits for 5 s for a thread still has its whole timeout of 1 s; its deadline passes at 9 s."""

    def held() -> None:
        gate.hold()

    def quick() -> str:
        return "v"

    async with limited(make(held), make(quick, timeout=1)) as runtime:
        results = []

        async def ask(timeout):
            results.append(await runtime.invoke("quick", timeout=timeout))

        async with anyio.create_task_group() as group:
            group.start_soon(runtime.invoke, "held")
            await gate.came()
            group.start_soon(ask, 4)
            group.start_soon(ask, 9)
            await wait_all_tasks_blocked()
            await pass_time(5)
            gate.open()
        await assert_free(runtime)
    timed_out, succeeded = results
    assert ("timed_out", "timeout", False, 0, "deadline") == summary(timed_out)
    assert "not_sent" == timed_out.error.delivery
    assert ("succeeded", 1, 5) == (succeeded.outcome, succeeded.attempts, succeeded.elapsed)


@virtual
async def test_live_threads_never_exceed_the_limit(gate: Gate):
    """N07b: with two threads that hang, eight of ten calls are timed out at their deadline and never run."""

    def held() -> None:
        gate.hold()

    async with limited(make(held, timeout=0.25), threads=2) as runtime:
        results = []

        async def ask():
            results.extend(await runtime.invoke_many(calls_of(runtime.catalog.resolve("held"), 10), timeout=1))

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await gate.came(2)
            await pass_time(0.25)
            await pass_time(0.75)
        assert (2, 2, 2) == (gate.live, gate.peak, gate.runs)
        gate.open()
        await gate.went(2)
        await assert_free(runtime)
    assert {("failed", "timeout", True, 1, "unsafe"): 2, ("timed_out", "timeout", False, 0, "deadline"): 8} == Counter(
        map(summary, results)
    )
    assert 2 == gate.runs


@virtual
async def test_hung_threads_hold_up_nobody_else(gate: Gate):
    """R008: of fifty places five hang; 295 quick calls succeed all the same, and the five places come back."""

    def held() -> None:
        gate.hold()

    def quick(n: int) -> int:
        return n

    async with limited(make(held, timeout=0.05), make(quick), threads=50, max_running=50) as runtime:
        calls = [ToolCall(str(n), "quick", {"n": n}) for n in range(295)]
        calls[0:0] = calls_of(runtime.catalog.resolve("held"), 5)
        results = []

        async def ask():
            results.extend(await runtime.invoke_many(calls))

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await gate.came(5)
            await pass_time(0.05)
        assert 5 == gate.live
        gate.open()
        await assert_free(runtime)
    assert [("failed", "timeout", True, 1, "unsafe")] * 5 == [summary(result) for result in results[:5]]
    assert list(range(295)) == [result.value for result in results[5:]]


@virtual
async def test_leaked_threads_are_capped_and_a_quick_call_still_has_an_answer(gate: Gate):
    """R075: after twenty calls that hang in four threads a quick call waits, and is a ``ToolResult`` like any other."""

    def held() -> None:
        gate.hold()

    def quick() -> str:
        return "v"

    async with limited(make(held, timeout=1), make(quick), threads=4) as runtime:
        results = []

        async def ask():
            results.extend(await runtime.invoke_many(calls_of(runtime.catalog.resolve("held"), 20), timeout=3))

        async def ask_quick(timeout):
            results.append(await runtime.invoke("quick", timeout=timeout))

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await gate.came(4)
            await pass_time(3)
        async with anyio.create_task_group() as group:
            group.start_soon(ask_quick, 1)
            await wait_all_tasks_blocked()
            await pass_time(1)
        assert (4, 4) == (gate.live, gate.peak)
        gate.open()
        await ask_quick(None)
    assert [ToolResult] * 22 == [type(result) for result in results]
    assert 4 == sum(result.error is not None and result.error.background for result in results)
    assert ("timed_out", "timeout", False, 0, "deadline") == summary(results[20])
    assert "v" == results[21].value


@virtual
@pytest.mark.parametrize("way", ["timeout", "deadline"])
async def test_a_thread_may_ask_whether_it_is_canceled(gate: Gate, way):
    """``anyio.from_thread.check_cancelled`` ends a thread that was left, and its place comes back."""
    asked = threading.Event()

    def held() -> None:
        from_thread.check_cancelled()
        gate.hold()
        asked.set()
        from_thread.check_cancelled()
        raise AssertionError("it was not told")

    told = []

    def outer() -> None:
        try:
            held()
        except BaseException as exc:
            told.append(type(exc).__name__)
            raise

    timeout, deadline = (1, None) if way == "timeout" else (None, 1)
    async with limited(make(outer, timeout=timeout)) as runtime:
        result = await ended_after(gate, 1, partial(runtime.invoke, timeout=deadline), "outer")
        gate.open()
        await assert_free(runtime)
    assert result.error.background
    assert asked.is_set()
    assert [True] == [name.startswith("Cancel") for name in told]


@virtual
async def test_a_thread_without_an_end_of_its_own_is_waited_for(gate: Gate):
    """R005: a plain tool without a timeout inside an async one that times out is joined, and the overrun is told."""

    def inner() -> str:
        gate.hold()
        return "v"

    joined = make(inner)
    values = []

    async def outer() -> None:
        values.append(await runtime.call(joined))

    async def open_late():
        await gate.came()
        await pass_time(0.05)
        await pass_time(0.1)
        assert [] == results
        gate.open()

    results = []
    async with limited(make(outer, timeout=0.05)) as runtime:
        async with anyio.create_task_group() as group:
            group.start_soon(open_late)
            results.append(await runtime.invoke("outer"))
        await assert_free(runtime)
    (result,) = results
    assert ("failed", "timeout", False, 1) == summary(result)[:4]
    assert "'outer' did not end within 0.05 s and went on for another 0.1 s" == result.error.message
    assert 0 == gate.live


@virtual
async def test_a_nested_thread_with_an_end_of_its_own_is_left(gate: Gate):
    """The same, when the inner tool has a timeout: it is left as soon as the outer one is cut."""

    def inner() -> None:
        gate.hold()

    left = make(inner, timeout=30)

    async def outer() -> None:
        await runtime.call(left)

    async with limited(make(outer, timeout=1)) as runtime:
        result = await ended_after(gate, 1, runtime.invoke, "outer")
        assert 1 == gate.live
        assert 1 == result.elapsed
        gate.open()
        await assert_free(runtime)
    assert ("failed", "timeout") == (result.outcome, result.error.category)
