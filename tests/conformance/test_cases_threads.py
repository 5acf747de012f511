"""Reported faults of worker threads: how many live, who waits for them, and what becomes of those that are left."""

import contextvars
import functools
import threading
from collections import Counter
from functools import partial

import anyio
import pytest

from harbor_async import ToolCall, ToolResult
from tests.conformance.support import (
    CANCELED,
    SUCCEEDED,
    Caller,
    call,
    canceled,
    cuts,
    invoke,
    make,
    settle,
    summary,
)
from tests.unit.thread.gate import PATIENCE, Gate, assert_free, limited

timed = pytest.mark.timed(grace=PATIENCE)
LEFT = ("failed", "timeout", 1, "unsafe")
REAL_TIMEOUT = 0.25
"""Seconds of a timeout in real time: more than a thread takes to begin, since one that comes late never does."""
NEVER_BEGUN = ("timed_out", "timeout", 0, "deadline")


async def answered(pace, gate, ask, *passing, threads=1):
    """Return what ``ask()`` gives, when so many threads have come and so many seconds have passed since."""
    got = []

    async def note() -> None:
        got.append(await ask())

    async with anyio.create_task_group() as group:
        group.start_soon(note)
        await gate.came(threads)
        for seconds in passing:
            await pace.pass_time(seconds)
    return got[0]


@timed
async def test_n07_sync_deadline(pace, gate: Gate):
    """A plain function that goes on is left at its timeout: the answer comes then and says that it still runs."""

    def held() -> str:
        gate.hold()
        return "v"

    timeout = pace(0.1, REAL_TIMEOUT)
    async with limited(make(held, timeout=timeout)) as runtime:
        result = await answered(pace, gate, partial(runtime.invoke, "held"), timeout)
        assert 1 == gate.live  # the answer has come all the same
        assert (1, 1) == (runtime.statistics().threads, runtime.statistics().background)
        gate.open()
        await assert_free(runtime)
    assert LEFT == summary(result)
    assert result.error.background
    assert result.to_wire()["error"]["background"] is True
    assert result.value is None
    pace.check(timeout, result.elapsed)


@timed
async def test_n07b_thread_cap(pace, gate: Gate):
    """Ten calls, two threads: no more than two ever live, the other eight time out at the deadline and never run."""

    def held() -> None:
        gate.hold()

    timeout, deadline = pace(0.02, REAL_TIMEOUT), pace(0.1, 2 * REAL_TIMEOUT)
    async with limited(make(held, timeout=timeout), threads=2) as runtime:
        calls = [ToolCall(str(number), "held") for number in range(10)]
        ask = partial(runtime.invoke_many, calls, timeout=deadline)
        results = await answered(pace, gate, ask, timeout, deadline - timeout, threads=2)
        assert (2, 2, 2) == (gate.live, gate.peak, gate.runs)
        assert (2, 2) == (runtime.statistics().threads, runtime.statistics().background)
        gate.open()
        await gate.went(2)
        await assert_free(runtime)
    assert {LEFT: 2, NEVER_BEGUN: 8} == Counter(map(summary, results))
    assert [2, 8] == [Counter(result.error.background for result in results)[is_left] for is_left in (True, False)]
    assert (2, 2) == (gate.peak, gate.runs)
    for result in results:
        pace.check(timeout if result.attempts else deadline, result.elapsed)


async def cut_in_the_queue(by):
    """Cancel a call that waits for the only thread, and return its answer and whether it has run in the end."""
    gate = Gate()
    ran = []

    def held() -> None:
        gate.hold()

    def queued() -> None:
        ran.append(1)

    async with limited(make(held), tool := make(queued)) as runtime, runtime.batch() as busy:
        try:
            busy.start(ToolCall("", "held"))
            await gate.came()
            if by == "handle":
                async with runtime.batch() as batch:
                    handle = batch.start(call(tool))
                    await settle()
                    handle.cancel()
                    got = summary(await handle.result())
            else:
                got = await Caller(by).run(lambda: runtime.invoke("queued"), settle)
        finally:
            gate.open()
        await assert_free(runtime)
    return got, ran


async def test_n07d_queued_cancel():
    """A call that the caller cancels while it waits for a thread never runs."""
    for by in cuts():
        assert (CANCELED, []) == await cut_in_the_queue(by)


async def test_r063_a_queued_call_that_is_canceled():
    """A call whose handle is canceled while it waits for the only thread never runs, and has made no attempt."""
    assert (canceled(0), []) == await cut_in_the_queue("handle")


@timed
async def test_r005_a_nested_thread_is_joined(pace, gate: Gate):
    """A plain tool without a timeout, called by one whose timeout passes, is joined and never dropped in silence."""
    log = []
    timeout, longer = pace(0.05, REAL_TIMEOUT), pace(0.1, 0.05)

    def inner() -> str:
        gate.hold()
        log.append("inner has ended")
        return "v"

    nested = make(inner, timeout=None)

    async def outer() -> None:
        await runtime.call(nested)

    async def open_late() -> None:
        await gate.came()
        await pace.pass_time(timeout)
        await pace.pass_time(longer)
        assert [] == log
        gate.open()

    async with limited(make(outer, timeout=timeout)) as runtime:
        async with anyio.create_task_group() as group:
            group.start_soon(open_late)
            result = await runtime.invoke("outer")
            log.append("outer is answered")
        await assert_free(runtime)
    assert ["inner has ended", "outer is answered"] == log
    assert ("failed", "timeout", 1, "attempts") == summary(result)
    assert not result.error.background
    pace.check(timeout + longer, result.elapsed)
    if pace.is_virtual:
        assert "'outer' did not end within 0.05 s and went on for another 0.1 s" == result.error.message
    else:
        assert "and went on for another" in result.error.message


@timed
async def test_r008_hung_threads_hold_up_nobody(pace, gate: Gate):
    """Of fifty places five hang: 295 quick calls succeed, five are left, and their places come back in the end."""
    timeout = pace(0.05, REAL_TIMEOUT)
    hung = []

    def held() -> None:
        gate.hold()

    def quick(n: int) -> int:
        return n

    async with limited(make(held, timeout=timeout), make(quick), threads=50, max_running=50) as runtime:

        async def hang() -> None:
            hung.extend(await runtime.invoke_many([ToolCall(str(n), "held") for n in range(5)]))

        async with anyio.create_task_group() as group:
            group.start_soon(hang)
            await gate.came(5)
            results = await runtime.invoke_many([ToolCall(str(n), "quick", {"n": n}) for n in range(295)])
            await pace.pass_time(timeout)
        assert 5 == gate.live
        assert (5, 5) == (runtime.statistics().threads, runtime.statistics().background)
        gate.open()
        await gate.went(5)
        await assert_free(runtime)
        assert (0, 0) == (runtime.statistics().threads, runtime.statistics().background)
    assert [SUCCEEDED] * 295 == [*map(summary, results)]
    assert list(range(295)) == [result.value for result in results]
    assert [LEFT] * 5 == [*map(summary, hung)]
    assert [True] * 5 == [result.error.background for result in hung]


async def test_r044_a_thread_of_its_own():
    """A plain function does not run in the thread of the event loop, in whatever way it is called."""

    def ident() -> int:
        return threading.get_ident()

    tool = make(ident)
    async with limited(tool) as runtime:
        (batched,) = await runtime.invoke_many([call(tool)])
        found = [await tool(), await runtime.call(tool), (await runtime.invoke("ident")).value, batched.value]
    found.append((await tool.invoke()).value)
    assert threading.get_ident() not in found
    assert [int] * 5 == [type(ident) for ident in found]


async def test_r060_async_middleware_round_a_sync_tool():
    """A plain function stays in a thread behind async hooks and async wrappers."""
    asked = []

    def ident() -> int:
        return threading.get_ident()

    async def approve(*_: object) -> bool:
        await settle()
        asked.append(threading.get_ident())
        return True

    approved, bare = make(ident, approve=approve), make(ident)

    @functools.wraps(ident)
    async def wrapped() -> int:
        await settle()
        return await bare()

    for tool in (approved, make(wrapped)):
        result = await invoke(tool)
        assert SUCCEEDED == summary(result)
        assert threading.get_ident() != result.value
    assert [threading.get_ident()] == asked


@timed
async def test_r075_leaked_threads_are_capped(pace, gate: Gate):
    """Twenty calls that hang leak no more threads than there may be; a quick call after them is a result like any."""

    def held() -> None:
        gate.hold()

    def quick() -> str:
        return "v"

    timeout, deadline = pace(1.0, REAL_TIMEOUT), pace(3.0, 2 * REAL_TIMEOUT)
    async with limited(make(held, timeout=timeout), make(quick), threads=4) as runtime:
        calls = [ToolCall(str(number), "held") for number in range(20)]
        ask = partial(runtime.invoke_many, calls, timeout=deadline)
        results = await answered(pace, gate, ask, timeout, deadline - timeout, threads=4)
        assert {LEFT: 4, NEVER_BEGUN: 16} == Counter(map(summary, results))
        assert 4 == sum(result.error.background for result in results)
        ask = partial(runtime.invoke, "quick", timeout=0.05)
        if pace.is_virtual:
            got = []

            async def note() -> None:
                got.append(await ask())

            async with anyio.create_task_group() as group:
                group.start_soon(note)
                await settle()
                await pace.pass_time(0.05)
            (waited,) = got
        else:
            waited = await ask()
        assert (4, 4, 4) == (gate.live, gate.peak, gate.runs)
        assert (4, 4) == (runtime.statistics().threads, runtime.statistics().background)
        gate.open()
        await gate.went(4)
        answer = await runtime.invoke("quick")
        await assert_free(runtime)
    assert NEVER_BEGUN == summary(waited)
    assert (SUCCEEDED, "v") == (summary(answer), answer.value)
    assert {ToolResult} == {type(result) for result in (*results, waited, answer)}


variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


@pytest.mark.parametrize("is_sync", [False, True])
@pytest.mark.parametrize("way", ["invoke", "invoke_many", "call", "descriptor", "nested"])
async def test_n19_contextvars(is_sync, way):
    """What a tool sets in a context variable is seen neither by its caller nor by its next attempt."""
    seen = []

    def step() -> str:
        seen.append(variable.get())
        variable.set("leaked")
        if len(seen) == 1:
            raise ConnectionError("reset")
        return variable.get()

    async def step_async() -> str:
        value = step()
        await settle()
        return value

    tool = make(step if is_sync else step_async, attempts=2)

    async def outer() -> str:
        return await runtime.call(tool)

    token = variable.set("caller")
    async with limited(tool, nest := make(outer)) as runtime:
        if way == "invoke":
            value = (await runtime.invoke(tool.name)).value
        elif way == "invoke_many":
            value = (await runtime.invoke_many([call(tool)]))[0].value
        elif way == "call":
            value = await runtime.call(tool)
        elif way == "descriptor":
            value = (await tool.invoke()).value
        else:
            value = await runtime.call(nest)
        assert "caller" == variable.get()
    assert ("leaked", ["caller", "caller"]) == (value, seen)
    variable.reset(token)
