"""Reported faults of timeouts and deadlines: whose limit it was, and what a tool makes of it."""

import anyio
import attrs
import pytest
from anyio.lowlevel import checkpoint

from harbor_async import Catalog, ErrorClass, Limits, Runtime, ToolCall, ToolContext, ToolPolicy, describe
from tests.conformance.support import CANCELED, SUCCEEDED, Caller, invoke, invoke_many, make, summary

pytestmark = pytest.mark.timed
TIMED_OUT = ("failed", "timeout", 1, "attempts")


async def hang() -> None:
    await anyio.sleep_forever()


async def test_n02_late_value(pace):
    """A tool that catches its cancellation and returns a value has timed out, and the value is dropped."""

    async def work() -> str:
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            return "late"

    result = await invoke(make(work, timeout=0.05))
    assert TIMED_OUT == summary(result)
    assert result.value is None
    assert not result.late
    assert "late" not in result.content
    pace.check(0.05, result.elapsed)


@pytest.mark.parametrize("own", ["raised", "fail_after"])
async def test_n03_own_timeout(pace, own):
    """A ``TimeoutError`` of the tool's own is no timeout of the policy: it comes at once, with the tool's words."""

    async def work() -> None:
        if own == "fail_after":
            with anyio.fail_after(0.05):
                await anyio.sleep_forever()
        await anyio.sleep(0.001)
        raise TimeoutError("tool own")

    result = await invoke(make(work, timeout=5.0))
    assert TIMED_OUT == summary(result)
    assert ErrorClass.TIMEOUT == result.error.error_class
    assert TimeoutError is type(result.error.cause)
    assert ("tool own" if own == "raised" else "TimeoutError") == result.error.message
    pace.check(0.001 if own == "raised" else 0.05, result.elapsed)
    assert ("failed", "timeout", 2, "attempts") == summary(await invoke(make(work, timeout=5.0, attempts=2)))


async def test_n04_budget(pace):
    """A wait that does not fit before the deadline is not begun: the attempt's failure is the answer, at once."""
    tool = make(hang, timeout=pace(0.05, 0.02), attempts=4, wait=pace(0.2, 300.0))
    result = await invoke(tool, timeout=pace(0.12, 250.0))
    assert ("failed", "timeout", 1, "deadline") == summary(result)
    pace.check(pace(0.05, 0.02), result.elapsed)


@pytest.mark.parametrize("way", ["invoke", "invoke_many"])
async def test_n04b_equal_deadlines(pace, way):
    """Where the caller's deadline and the attempt's are the same instant, it was the caller's: no answer, no retry."""
    runs = []
    scope = anyio.CancelScope()

    async def work(context: ToolContext) -> None:
        runs.append(context.attempt)
        scope.deadline = context.deadline
        await anyio.sleep_forever()

    tool = make(work, timeout=0.05, attempts=3)
    with scope:
        await (invoke(tool) if way == "invoke" else invoke_many(tool))
        raise AssertionError("an answer came")
    assert scope.cancelled_caught
    assert [1] == runs


@pytest.mark.blocks_loop
@pytest.mark.parametrize("waits", [True, False])
async def test_n08_blocking_async(pace, waits):
    """A tool that blocks the loop past its timeout has timed out on each loop, and the answer tells the overrun."""

    async def work() -> str:
        pace.block(pace(0.2, 0.05))
        if waits:
            await checkpoint()
        return "value"

    result = await invoke(make(work, timeout=pace(0.05, 0.02)))
    assert TIMED_OUT == summary(result)
    assert result.value is None
    if pace.is_virtual:
        assert "'work' did not end within 0.05 s and went on for another 0.15 s" == result.error.message
    else:
        assert "and went on for another" in result.error.message
    pace.check(pace(0.2, 0.05), result.elapsed)


async def test_n09_cancel_converted(pace):
    """A tool that turns its timeout into another error has timed out; that error and its own cause are kept."""

    async def work() -> None:
        try:
            await anyio.sleep_forever()
        except BaseException as e:
            raise RuntimeError("db lost") from e

    result = await invoke(make(work, timeout=0.05))
    assert TIMED_OUT == summary(result)
    assert ErrorClass.TIMEOUT == result.error.error_class
    assert (RuntimeError, "db lost") == (type(result.error.cause), str(result.error.cause))
    assert isinstance(result.error.cause.__cause__, anyio.get_cancelled_exc_class())
    pace.check(0.05, result.elapsed)


async def test_n09b_cleanup_group(pace):
    """An error of the cleanup in a tool's own task group does not hide the timeout; it is the cause."""

    async def child() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            raise ValueError("cleanup")

    async def work() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(child)
            await anyio.sleep_forever()

    result = await invoke(make(work, timeout=0.05))
    assert TIMED_OUT == summary(result)
    assert (ValueError, "cleanup") == (type(result.error.cause), str(result.error.cause))
    pace.check(0.05, result.elapsed)


async def test_n20_shielded_cleanup(pace):
    """Shielded cleanup is waited for and its overrun told; a sibling is not held up."""
    cleanup = pace(0.4, 0.03)
    log = []

    async def tidies() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(cleanup)
            log.append("tidied")

    async def sibling() -> str:
        await anyio.sleep(pace(0.1, 0))
        log.append("sibling")
        return "unaffected"

    late, other = await invoke_many(make(tidies, timeout=0.05), make(sibling))
    assert [TIMED_OUT, SUCCEEDED] == [summary(late), summary(other)]
    assert ["sibling", "tidied"] == log
    pace.check(0.05 + cleanup, late.elapsed)
    pace.check(pace(0.1, 0), other.elapsed)
    if pace.is_virtual:
        assert "'tidies' did not end within 0.05 s and went on for another 0.4 s" == late.error.message
    else:
        assert "and went on for another" in late.error.message


async def test_r007_the_tools_own_timeout(pace):
    """A tool's own timeout wins over the one that the others share; the message names the tool and the seconds."""
    shared = ToolPolicy(timeout=pace(60.0, 0.04), attempts=1)
    own = attrs.evolve(shared, timeout=pace(10.0, 0.02))
    tools = [describe(hang, name="shared", policy=shared), describe(hang, name="own", policy=own)]
    results = await invoke_many(*tools)
    for result, tool in zip(results, tools, strict=True):
        assert TIMED_OUT == summary(result)
        seconds = tool.policy.timeout
        pace.check(seconds, result.elapsed)
        assert result.error.message.startswith(f"{tool.name!r} did not end within {seconds:g} s")


async def test_r022_a_deadline_over_a_batch(pace):
    """At a batch's deadline the finished calls have succeeded, and all others timed out, begun or not."""

    async def work(n: int) -> int:
        await (anyio.sleep_forever() if n >= 4 and not pace.is_virtual else anyio.sleep(pace(0.1, 0)))
        return n

    tool = make(work)
    async with Runtime(Catalog([tool]), limits=Limits(max_running=2)) as runtime:
        started = anyio.current_time()
        results = await runtime.invoke_many([ToolCall("", "work", {"n": n}) for n in range(10)], timeout=0.3)
        took = anyio.current_time() - started
    # Three times 0.1 is a little more than 0.3 in binary, so that the third pair ends just too late.
    assert [0, 1, 2, 3] == [result.value for result in results[:4]]
    assert [SUCCEEDED] * 4 == [*map(summary, results[:4])]
    assert [("timed_out", "timeout", 1, "deadline")] * 2 == [*map(summary, results[4:6])]
    assert [("timed_out", "timeout", 0, "deadline")] * 4 == [*map(summary, results[6:])]
    pace.check(0.3, took)


async def test_r038_a_tool_that_hangs(pace):
    """The timeout of a tool that hangs names the tool and its limit, in the envelope and to a program."""
    tool = make(hang, timeout=pace(6.0, 0.02))
    message = f"'hang' did not end within {pace(6, 0.02):g} s"
    result = await invoke(tool)
    assert TIMED_OUT == summary(result)
    assert result.error.message.startswith(message)
    assert message in result.content
    pace.check(pace(6.0, 0.02), result.elapsed)
    async with Runtime(Catalog([tool])) as runtime:
        with pytest.raises(TimeoutError, match=message):
            await runtime.call(tool)


@pytest.mark.blocks_loop
@pytest.mark.parametrize("limit", ["timeout", "deadline"])
async def test_r046_a_blocked_loop_is_told_afterwards(pace, limit):
    """A coroutine that blocks the loop past its limit is reported after the fact, the same on each loop."""

    async def work() -> str:
        pace.block(0.05)
        return "value"

    if limit == "timeout":
        result = await invoke(make(work, timeout=0.02))
        assert TIMED_OUT == summary(result)
        assert "went on for another" in result.error.message
    else:
        result = await invoke(make(work), timeout=0.02)
        assert ("timed_out", "timeout", 1, "deadline") == summary(result)
    assert result.value is None


@pytest.mark.blocks_loop
async def test_r086_an_error_and_a_limit_in_one_tick(pace):
    """Of an error and a limit in one tick the limit counts, and the error is its cause; over both the caller counts."""

    async def fails() -> None:
        pace.block(pace(0.03125, 0.04))
        raise ConnectionError("reset")

    for _ in range(3):
        result = await invoke(make(fails, timeout=0.03125))
        assert TIMED_OUT == summary(result)
        assert (ConnectionError, "reset") == (type(result.error.cause), str(result.error.cause))
        result = await invoke(make(fails), timeout=0.03125)
        assert ("timed_out", "timeout", 1, "deadline") == summary(result)
        assert (ConnectionError, "reset") == (type(result.error.cause), str(result.error.cause))
    caller = Caller("scope")
    caller.cancel_later(0.03125)
    assert CANCELED == await caller.run(lambda: invoke(make(fails, timeout=0.03125), timeout=0.03125))
