"""Who cancels a synchronous tool, and what becomes of its thread. Real time on every loop; no test waits for it."""

import asyncio
import gc
import logging
import threading
from contextlib import suppress

import anyio
import pytest
from anyio import from_thread

from harbor_async import Catalog, Limits, Runtime, ToolCall
from tests.unit.thread.gate import PATIENCE, WAYS, Gate, assert_free, limited, make, ways

HOUR = 3600.0
LOOPS = [("asyncio", {}), ("asyncio", {"debug": True}), ("trio", {})]
with suppress(ImportError):
    import uvloop

    LOOPS.append(("asyncio", {"loop_factory": uvloop.new_event_loop}))
each_loop = pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: "-".join([loop[0], *loop[1]]))
on_asyncio = pytest.mark.parametrize(
    "loop", [loop for loop in LOOPS if loop[0] == "asyncio"], ids=lambda loop: "-".join([loop[0], *loop[1]])
)


def holding(gate: Gate, **options):
    def held() -> str:
        gate.hold()
        return "v"

    return make(held, **options)


@pytest.mark.parametrize("way", WAYS)
async def test_the_callers_scope_leaves_a_thread_that_has_an_end(gate: Gate, way):
    """A caller that is canceled leaves at once, as canceled; the thread keeps its place until it ends."""
    async with limited(holding(gate, timeout=HOUR), max_running=1) as runtime:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(ways(runtime, runtime.catalog.resolve("held"))[way])
                await gate.came()
                scope.cancel()
        assert scope.cancelled_caught
        assert 1 == gate.live
        with anyio.move_on_after(0.05):
            await runtime.invoke("meet")
            raise AssertionError("there was a place for another thread")
        gate.open()
        await assert_free(runtime)


@pytest.mark.parametrize("way", WAYS)
async def test_the_callers_scope_waits_for_a_thread_that_has_no_end(gate: Gate, way):
    """Without timeout and deadline the thread is joined, so that nothing runs on when the cancellation leaves."""
    async with limited(holding(gate), max_running=1) as runtime:
        ends = []

        async def ask(scope):
            with scope:
                await ways(runtime, runtime.catalog.resolve("held"))[way]()
            ends.append((scope.cancelled_caught, gate.live))

        async with anyio.create_task_group() as group:
            scope = anyio.CancelScope()
            group.start_soon(ask, scope)
            await gate.came()
            scope.cancel()
            await anyio.wait_all_tasks_blocked()
            assert [] == ends
            gate.open()
        assert [(True, 0)] == ends
        await assert_free(runtime)


@on_asyncio
@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("way", [*WAYS, "bare"])
def test_task_cancel_waits_for_a_thread_that_has_no_end(gate: Gate, loop, way, times):
    """``task.cancel()``, however often, joins the thread as a scope does, and leaves as a cancellation."""

    async def main():
        tool = holding(gate)
        async with limited(tool, max_running=1) as runtime:
            task = asyncio.ensure_future(tool() if way == "bare" else ways(runtime, tool)[way]())
            await gate.came()
            for _ in range(times):
                task.cancel()
                await anyio.wait_all_tasks_blocked()
                assert not task.done()
            gate.open()
            await asyncio.wait([task])
            assert task.cancelled()
            assert 0 == gate.live
            await assert_free(runtime)

    anyio.run(main, backend=loop[0], backend_options=loop[1])


@on_asyncio
@pytest.mark.parametrize("way", WAYS)
def test_task_cancel_leaves_a_thread_that_has_an_end(gate: Gate, loop, way):
    """``task.cancel()`` leaves at once when the call has a timeout; the thread keeps its place until it ends."""

    async def main():
        tool = holding(gate, timeout=HOUR)
        async with limited(tool, max_running=1) as runtime:
            task = asyncio.ensure_future(ways(runtime, tool)[way]())
            await gate.came()
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
            assert 1 == gate.live
            gate.open()
            await assert_free(runtime)

    anyio.run(main, backend=loop[0], backend_options=loop[1])


@pytest.mark.parametrize("timeout", [HOUR, None])
async def test_a_handle_cancels_a_thread(gate: Gate, timeout):
    """``handle.cancel()`` is ``failed`` / ``canceled``: at once where the call has an end, else with the thread."""
    async with limited(holding(gate, timeout=timeout, attempts=3), max_running=1) as runtime:
        async with runtime.batch() as batch:
            handle = batch.start(ToolCall("", "held"))
            await gate.came()
            handle.cancel()
            if timeout is None:
                await anyio.wait_all_tasks_blocked()
                assert not handle.done
                gate.open()
            result = await handle.result()
        assert ("failed", "canceled", 1, "canceled", None) == (
            result.outcome,
            result.error.category,
            result.attempts,
            result.stop_reason,
            result.value,
        )
        assert (timeout is not None) == result.error.background
        gate.open()
        await assert_free(runtime)
    assert 1 == gate.runs


async def test_an_effect_that_has_happened_stands(gate: Gate):
    """A joined thread of a tool with a declared effect that returns after its cancel has succeeded, and is late."""
    async with limited(holding(gate, side_effect="write")) as runtime, runtime.batch() as batch:
        handle = batch.start(ToolCall("", "held"))
        await gate.came()
        handle.cancel()
        gate.open()
        result = await handle.result()
    assert ("succeeded", "v", True) == (result.outcome, result.value, result.late)


async def test_an_effect_that_is_left_is_ambiguous(gate: Gate):
    """A thread of a tool with a declared effect that is left by its cancel may still have it."""
    async with limited(holding(gate, timeout=HOUR, side_effect="write")) as runtime, runtime.batch() as batch:
        handle = batch.start(ToolCall("", "held"))
        await gate.came()
        handle.cancel()
        result = await handle.result()
        gate.open()
    assert ("canceled", True, True, False) == (
        result.error.category,
        result.error.ambiguous,
        result.error.background,
        result.is_retryable,
    )


@pytest.mark.parametrize("timeout", [HOUR, None])
async def test_a_canceled_thread_may_stop_itself(gate: Gate, timeout):
    """``anyio.from_thread.check_cancelled`` raises in a thread whose handle was canceled, left or not."""
    raised = threading.Event()

    def asks() -> None:
        from_thread.check_cancelled()
        gate.hold()
        try:
            from_thread.check_cancelled()
        except BaseException:
            raised.set()
            raise

    async with limited(make(asks, timeout=timeout)) as runtime:
        async with runtime.batch() as batch:
            handle = batch.start(ToolCall("", "asks"))
            await gate.came()
            handle.cancel()
            gate.open()
        result = await handle.result()
        assert ("failed", "canceled", 1) == (result.outcome, result.error.category, result.attempts)
        await assert_free(runtime)
    assert raised.is_set()


@pytest.mark.parametrize("how", ["handle", "scope", "batch"])
@pytest.mark.parametrize("timeout", [HOUR, None])
async def test_a_call_that_is_canceled_in_the_queue_never_runs(gate: Gate, timeout, how):
    """N07d, R063: canceled while it waits for a thread it has made no attempt, and its place in the queue is gone."""
    runs = []

    def note(name: str) -> str:
        runs.append(name)
        return name

    async with limited(holding(gate), make(note, timeout=timeout)) as runtime:
        async with anyio.create_task_group() as group:
            group.start_soon(runtime.invoke, "held")
            await gate.came()
            async with runtime.batch() as batch:
                first, second, third = [batch.start(ToolCall(n, "note", {"name": n})) for n in "abc"]
                await anyio.wait_all_tasks_blocked()
                if how == "handle":
                    second.cancel()
                    result = await second.result()
                    assert 1 == gate.live
                    assert ("failed", "canceled", 0, "not_sent", False) == (
                        result.outcome,
                        result.error.category,
                        result.attempts,
                        result.error.delivery,
                        result.error.background,
                    )
                elif how == "scope":
                    with anyio.CancelScope() as scope:
                        async with anyio.create_task_group() as inner:
                            inner.start_soon(runtime.invoke, "note", {"name": "d"})
                            await anyio.wait_all_tasks_blocked()
                            scope.cancel()
                    assert scope.cancelled_caught
                else:
                    batch.cancel()
                gate.open()
            results = [await handle.result() for handle in (first, second, third)]
        await assert_free(runtime)
    left = {"handle": ["a", "c"], "scope": ["a", "b", "c"], "batch": []}[how]
    assert left == sorted(runs)
    assert left == [result.value for result in results if result.outcome == "succeeded"]
    assert all(result.attempts == 0 for result in results if result.outcome != "succeeded")


async def test_the_queue_for_threads_keeps_its_order(gate: Gate):
    """Calls get their threads in the order in which they came."""
    runs = []

    def note(name: str) -> None:
        runs.append(name)

    async with limited(holding(gate), make(note)) as runtime, anyio.create_task_group() as group:
        group.start_soon(runtime.invoke, "held")
        await gate.came()
        for name in "abcde":
            group.start_soon(runtime.invoke, "note", {"name": name})
            await anyio.wait_all_tasks_blocked()
        gate.open()
    assert list("abcde") == runs


async def test_a_failing_sibling_leaves_no_place_taken(gate: Gate):
    """An interrupt in one thread ends the batch; the calls that wait for a thread or are in one give theirs back."""

    def stops() -> None:
        from_thread.check_cancelled()
        raise SystemExit(3)

    async with limited(holding(gate, timeout=HOUR), make(stops), threads=2) as runtime:
        with pytest.raises(SystemExit, match="3"):  # noqa: PT012 - it leaves from the block
            async with runtime.batch() as batch:
                batch.start(ToolCall("", "held"))
                await gate.came()
                batch.start_all(ToolCall("", "stops") for _ in range(3))
        gate.open()
        await assert_free(runtime)


async def test_a_runtime_may_be_closed_while_a_thread_runs(gate: Gate):
    """Leaving the runtime neither waits for a thread that was left nor is troubled by its end."""
    async with limited(holding(gate, timeout=HOUR)) as runtime, runtime.batch() as batch:
        batch.start(ToolCall("", "held"))
        await gate.came()
        batch.cancel()
    assert 1 == gate.live
    gate.open()
    await gate.went()
    await anyio.wait_all_tasks_blocked()


@each_loop
def test_a_loop_may_end_while_a_thread_runs(gate: Gate, loop, caplog):
    """A thread that ends after its event loop is gone troubles nobody: no error in the thread, nothing unraisable."""
    threads = []
    caplog.set_level(logging.ERROR)

    def held() -> str:
        threads.append(threading.current_thread())
        gate.hold()
        return "v"

    async def main():
        async with limited(make(held, timeout=HOUR)) as runtime, runtime.batch() as batch:
            batch.start(ToolCall("", "held"))
            await gate.came()
            batch.cancel()
        return batch.results

    (result,) = anyio.run(main, backend=loop[0], backend_options=loop[1])
    assert result.error.background
    assert 1 == gate.live
    gate.open()
    anyio.run(gate.went)
    if loop[0] == "asyncio":  # trio keeps its threads for the next
        threads[0].join(PATIENCE)
        assert not threads[0].is_alive()
    gc.collect()
    assert [] == caplog.records


async def test_every_way_out_frees_its_place(gate: Gate):
    """Value, exception, bad output, cancel in the queue, a thread that is left and one that is joined: none is lost."""

    def left() -> None:
        gate.hold()

    def joined() -> None:
        gate.hold()

    def fails() -> None:
        raise ValueError

    def lies() -> int:
        return "text"

    def quick() -> str:
        return "v"

    tools = [make(left, timeout=HOUR), make(joined), make(fails), make(lies), make(quick)]
    async with limited(*tools, threads=2, max_running=8) as runtime:
        async with runtime.batch() as batch:
            held = [batch.start(ToolCall("", name)) for name in ("left", "joined")]
            await gate.came(2)
            queued = [batch.start(ToolCall("", name)) for name in ("quick", "fails", "lies", "quick", "fails")]
            batch.start(ToolCall("", "quick")).cancel()
            await anyio.wait_all_tasks_blocked()
            for handle in (*held, *queued[3:]):
                handle.cancel()
            gate.open()
        await assert_free(runtime)
    assert ["canceled", "canceled", None, "unknown", "unknown", "canceled", "canceled", "canceled"] == [
        result.error and result.error.category for result in batch.results
    ]
    assert [1, 1, 1, 1, 1, 0, 0, 0] == [result.attempts for result in batch.results]


async def test_a_storm_of_tiny_timeouts():
    """Of 500 calls with tiny timeouts none is lost, live threads never exceed the limit, and every place comes back."""
    gate = Gate()
    policy = {"timeout": 0.002, "attempts": 2, "idempotent": True}

    def quick() -> str:
        gate.hold(0.0005)
        return "v"

    def slow() -> str:
        gate.hold(0.004)
        return "v"

    def fails() -> str:
        gate.hold(0.001)
        raise ConnectionError

    tools = [make(quick, **policy), make(slow, **policy), make(fails, **policy)]
    async with limited(*tools, threads=4) as runtime:
        calls = [ToolCall(str(n), tools[n % 3].name) for n in range(500)]
        results = await runtime.invoke_many(calls, timeout=0.5)
        await assert_free(runtime)
    assert [call.id for call in calls] == [result.call_id for result in results]
    assert gate.peak <= 4
    assert 0 == gate.live
    for result in results:
        assert result.attempts <= 2
        assert result.outcome == "succeeded" or result.error.category in {"timeout", "api_request"}
        assert result.attempts > 0 or (result.outcome == "timed_out" and not result.error.background)
    assert gate.runs <= sum(result.attempts for result in results)


async def test_two_runtimes_have_their_own_threads(gate: Gate):
    """The threads of one runtime that hang hold up no other."""
    async with limited(holding(gate)) as one, limited() as other, anyio.create_task_group() as group:
        group.start_soon(one.invoke, "held")
        await gate.came()
        await assert_free(other)
        gate.open()


async def test_one_descriptor_in_many_loops():
    """One plain tool serves loops on asyncio and trio in several threads at once."""

    def double(n: int) -> int:
        return 2 * n

    shared = make(double, timeout=HOUR)
    before = repr(shared)

    async def serve() -> list[int]:
        async with Runtime(Catalog([shared]), limits=Limits(max_threads=2)) as runtime:
            results = await runtime.invoke_many([ToolCall("", "double", {"n": n}) for n in range(20)])
            return [result.value for result in results]

    found = []

    def run(backend: str) -> None:
        found.append(anyio.run(serve, backend=backend))

    async with anyio.create_task_group() as group:
        for backend in ("asyncio", "trio", "asyncio", "trio"):
            group.start_soon(anyio.to_thread.run_sync, run, backend)
    assert [[2 * n for n in range(20)]] * 4 == found
    assert before == repr(shared)
