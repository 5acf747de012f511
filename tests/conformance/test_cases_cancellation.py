"""Reported faults of cancellation: who has canceled, what leaves, and what still runs afterwards."""

import asyncio
import os
import sys

import anyio
import pytest
from anyio.lowlevel import checkpoint

from harbor_async import Catalog, EventType, Outcome, Runtime
from tests.cancellation.ways import steal_cancellation
from tests.conformance.support import (
    CANCELED,
    LAST,
    SUCCEEDED,
    Caller,
    Listener,
    call,
    canceled,
    cuts,
    invoke,
    invoke_many,
    is_asyncio,
    make,
    settle,
    summary,
)


@pytest.mark.timed
@pytest.mark.parametrize("whose", ["asyncio", "loop"])
async def test_n01_foreign_cancel(pace, whose):
    """A cancellation that a library raises by itself ends that call alone, as canceled; the caller lives on."""

    async def a() -> None:
        await anyio.sleep(0.01)
        raise asyncio.CancelledError("lib") if whose == "asyncio" else await steal_cancellation()

    async def b() -> str:
        await anyio.sleep(0.05)
        return "ok"

    started = anyio.current_time()
    results = await invoke_many(make(a, attempts=3), make(b))
    assert [canceled(), SUCCEEDED] == [*map(summary, results)]
    assert "ok" == results[1].value
    pace.check(0.05, anyio.current_time() - started)
    if is_asyncio():
        assert 0 == asyncio.current_task().cancelling()
    await checkpoint()  # nothing is pending


@pytest.mark.parametrize("stage", ["attempt", "backoff"])
async def test_n05_outer_cancel(stage):
    """A caller's cancellation leaves in attempt 1 and in the wait after it, told of once; a handle's is an answer."""
    runs = []
    listener = Listener()

    async def work() -> None:
        runs.append(1)
        if stage == "backoff":
            raise ConnectionError("reset")
        await anyio.sleep_forever()

    tool = make(work, attempts=3, wait=300)
    async with Runtime(Catalog([tool]), sinks=[listener]) as runtime:
        for by in cuts():
            for ask in (lambda: runtime.invoke("work"), lambda: runtime.invoke_many([call(tool)])):
                runs.clear()
                assert CANCELED == await Caller(by).run(ask, settle)
                assert 1 == len(runs)
        runs.clear()
        async with runtime.batch() as batch:
            handle = batch.start(call(tool))
            await settle()
            handle.cancel()
            assert canceled() == summary(await handle.result())
        assert 1 == len(runs)
    told = [
        EventType.INVOKED,
        EventType.ATTEMPT,
        *([EventType.RETRY] if stage == "backoff" else []),
        EventType.CANCELED,
    ]
    assert told * (2 * len(cuts()) + 1) == listener.types("work")


async def test_n05_outer_cancel_of_all():
    """The cancellation is told of even where it strikes the task that the runtime itself is in."""
    listener = Listener()

    async def work() -> None:
        await anyio.sleep_forever()

    async def ask() -> None:
        async with Runtime(Catalog([make(work)]), sinks=[listener]) as runtime:
            await runtime.invoke("work")

    for by in cuts():
        listener.events.clear()
        assert CANCELED == await Caller(by).run(ask, settle)
        assert [EventType.INVOKED, EventType.ATTEMPT, EventType.CANCELED] == listener.types("work")


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit])
async def test_n18_systemexit(kind):
    """Interrupts leave bare after one attempt, when the sibling has tidied up; ``GeneratorExit`` is a failure."""
    log = []
    started = anyio.Event()

    async def stops() -> None:
        await started.wait()
        log.append("stops")
        raise kind

    async def sibling() -> str:
        started.set()
        try:
            await (checkpoint() if kind is GeneratorExit else anyio.sleep_forever())
        finally:
            with anyio.CancelScope(shield=True):
                await checkpoint()
                log.append("tidy")
        return "unharmed"

    tools = make(stops, attempts=3), make(sibling)
    if kind is GeneratorExit:
        results = await invoke_many(*tools)
        assert [("failed", "unknown", 1, "permanent"), SUCCEEDED] == [*map(summary, results)]
    else:
        with pytest.raises(kind):
            await invoke_many(*tools)
    assert ["stops", "tidy"] == sorted(log)


async def test_n22_gather_in_tool():
    """What a tool spawns past all structure is not seen by the runtime; counting the tasks shows that it is left."""
    release, ended = anyio.Event(), anyio.Event()

    async def bad() -> None:
        await checkpoint()
        raise ValueError("bad")

    async def slow() -> None:
        await release.wait()
        ended.set()

    async def spawns() -> None:
        if is_asyncio():
            await asyncio.gather(bad(), slow())
        else:
            import trio

            trio.lowlevel.spawn_system_task(slow)
            await bad()

    def tasks() -> list[str]:
        return [task.name for task in anyio.get_running_tasks() if task.coro.__qualname__.endswith(".slow")]

    assert ("failed", "unknown", 1, "permanent") == summary(await invoke(make(spawns)))
    assert 1 == len(tasks())
    release.set()
    await ended.wait()
    await settle()
    assert [] == tasks()


@pytest.mark.timed
@pytest.mark.blocks_loop
@pytest.mark.parametrize("first", ["cancel", "deadline", "neither"])
async def test_n29_cancel_deadline_race(pace, first):
    """The caller's cancel and the call's deadline in one tick, in each order, the loop blocked past both: canceled."""
    limit = pace(0.03125, 0.0625)

    async def race(by: str) -> str:
        started, caller = anyio.Event(), Caller(by)

        async def work() -> None:
            started.set()
            await anyio.sleep_forever()

        async def neighbour() -> None:
            await started.wait()
            if first == "cancel":
                caller.cancel()
            elif first == "neither":
                caller.cancel_later(limit)
            pace.block(2 * limit)
            if first == "deadline":
                caller.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(neighbour)
            return await caller.run(lambda: invoke(make(work), timeout=limit))

    assert [CANCELED] * len(cuts()) == [await race(by) for by in cuts()]


@pytest.mark.timed
async def test_r001_no_tick_after_the_cancel(pace):
    """A tool that ticks sees one cancellation, runs its ``finally``, and ticks no more once its caller is canceled."""
    log = []
    third = anyio.Event()

    async def ticks() -> None:
        try:
            while True:
                await anyio.sleep(0.01)
                log.append("tick")
                if 3 == log.count("tick"):
                    third.set()
        except anyio.get_cancelled_exc_class():
            log.append("cut")
            raise
        finally:
            log.append("finally")

    for by in cuts():
        log.clear()
        third = anyio.Event()
        assert CANCELED == await Caller(by).run(lambda: invoke(make(ticks)), third.wait)
        assert ["tick", "tick", "tick", "cut", "finally"] == log
        await anyio.sleep(pace(0.1, 0.03))
        assert ["tick", "tick", "tick", "cut", "finally"] == log


@pytest.mark.parametrize("way", ["stream", "batch"])
async def test_r002_fail_fast_leaves_nothing(way):
    """Who leaves at the first failure leaves no child task: the slow sibling was canceled and awaited."""
    log = []
    started = anyio.Event()

    async def boom() -> None:
        await started.wait()
        raise ValueError("boom")

    async def slow() -> None:
        started.set()
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await checkpoint()
            log.append("awaited")
            raise

    tools = make(boom), make(slow)
    calls = [call(tool) for tool in tools]
    before = {task.id for task in anyio.get_running_tasks()}
    async with Runtime(Catalog(tools)) as runtime:
        if way == "stream":
            async with runtime.stream(calls) as results:
                failed = await anext(aiter(results))
        else:
            async with runtime.batch() as batch:
                first, _ = [batch.start(call) for call in calls]
                failed = await first.result()
                batch.cancel()
            assert canceled() == summary(batch.results[1])
        assert before == {task.id for task in anyio.get_running_tasks()}
        assert ["awaited"] == log
    assert ("failed", "boom") == (failed.outcome, failed.error.message)


async def test_r011_own_and_outer_cancel():
    """A handle's cancel is an answer; the caller's leaves; of both at once the caller's counts."""

    async def work() -> None:
        await anyio.sleep_forever()

    tool = make(work)
    async with Runtime(Catalog([tool])) as runtime:

        async def in_batch(cut_handle: bool) -> list:
            async with runtime.batch() as batch:
                handles.append(batch.start(call(tool)))
                if cut_handle:
                    await settle()
                    handles[-1].cancel()
            return [summary(result) for result in batch.results]

        handles = []
        assert [canceled()] == await in_batch(cut_handle=True)
        for by in cuts():
            assert CANCELED == await Caller(by).run(lambda: in_batch(cut_handle=False), settle)
            for handle_first in (True, False):
                caller = Caller(by)

                async def cut_both(caller=caller, handle_first=handle_first) -> None:
                    await settle()
                    for cut in (handles[-1], caller)[:: 1 if handle_first else -1]:
                        cut.cancel()

                assert CANCELED == await caller.run(lambda: in_batch(cut_handle=False), cut_both)


async def test_r015_a_future_that_somebody_else_cancels():
    """A tool that awaits what somebody else has canceled fails as canceled; the caller's task lives on."""
    started = anyio.Event()
    cut: list = []

    async def waits() -> None:
        if is_asyncio():
            future = asyncio.get_running_loop().create_future()
            cut.append(future.cancel)
            started.set()
            await future
        else:
            started.set()
            raise await steal_cancellation()

    async def somebody() -> None:
        await started.wait()
        for cancel in cut:
            cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(somebody)
        assert canceled() == summary(await invoke(make(waits, attempts=3)))
    if is_asyncio():
        assert 0 == asyncio.current_task().cancelling()
    await checkpoint()


@pytest.mark.parametrize("kind", ["async", "sync"])
@pytest.mark.parametrize("cancel_first", [True, False])
async def test_r037_cancel_and_completion_in_one_tick(gate, kind, cancel_first):
    """A cancel in the tick in which a tool ends gives one answer, and whatever comes second changes nothing."""
    release = anyio.Event()

    async def waits() -> str:
        await release.wait()
        return "v"

    def held() -> str:
        gate.hold()
        return "v"

    tool = make(waits if kind == "async" else held, timeout=None)
    listener = Listener()
    async with Runtime(Catalog([tool]), sinks=[listener]) as runtime:
        async with runtime.batch() as batch:
            handle = batch.start(call(tool))
            if kind == "async":
                await settle()
            else:
                await gate.came()
            cuts = [handle.cancel, release.set if kind == "async" else gate.open]
            for cut in cuts if cancel_first else cuts[::-1]:
                cut()
            first = await handle.result()
            handle.cancel()
            batch.cancel()
            assert first is await handle.result()
        assert [first] == batch.results
    assert summary(first) in {SUCCEEDED, canceled()}
    assert (first.value is None) == (first.outcome == Outcome.FAILED)
    last = EventType.CANCELED if first.value is None else EventType.COMPLETED
    assert [last] == [event.type for event in listener.events if event.type in LAST] == listener.types(tool.name)[2:]


async def test_r052_a_nested_call_ends_with_its_parent():
    """A tool that calls another one through the runtime needs no code of its own for that one to be canceled."""
    log = []

    async def inner() -> None:
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            log.append("inner cut")
            raise

    nested = make(inner)

    async def outer() -> None:
        await runtime.call(nested)

    tool = make(outer)
    async with Runtime(Catalog([tool, nested])) as runtime:
        for by in cuts():
            log.clear()
            assert CANCELED == await Caller(by).run(lambda: runtime.invoke("outer"), settle)
            assert ["inner cut"] == log
        async with runtime.batch() as batch:
            handle = batch.start(call(tool))
            await settle()
            log.clear()
            handle.cancel()
            assert canceled() == summary(await handle.result())
        assert ["inner cut"] == log


async def test_r078_a_child_process_is_gone():
    """When the call of a tool that runs a child process has been canceled, that process is gone."""
    read, write = os.pipe()
    os.set_blocking(read, False)

    async def process() -> None:
        code = f"import os, time; os.write({write}, b'here'); time.sleep(600)"
        await anyio.run_process([sys.executable, "-c", code], pass_fds=[write])

    async def came() -> None:
        await anyio.wait_readable(read)
        assert b"here" == os.read(read, 9)

    try:
        tool = make(process)
        async with Runtime(Catalog([tool])) as runtime, runtime.batch() as batch:
            handle = batch.start(call(tool))
            await came()
            with pytest.raises(BlockingIOError):
                os.read(read, 9)  # the child lives
            handle.cancel()
            assert canceled() == summary(await handle.result())
            os.close(write)
            assert b"" == os.read(read, 9)  # nobody holds the other end any more
    finally:
        os.close(read)


@pytest.mark.timed
@pytest.mark.blocks_loop
@pytest.mark.parametrize("limit", ["timeout", "deadline"])
@pytest.mark.parametrize("is_late", [False, True])
async def test_r084_a_cancel_before_the_deadline(pace, limit, is_late):
    """An attempt that is canceled by hand before its limit is canceled, even if it gets to know after the limit."""

    async def work() -> None:
        await anyio.sleep_forever()

    allowed, at = pace(5.0, 0.3 if is_late else 5.0), pace(4.5, 0.02)
    tool = make(work, timeout=allowed if limit == "timeout" else None, attempts=3)
    deadline = allowed if limit == "deadline" else None
    async with Runtime(Catalog([tool])) as runtime, runtime.batch(timeout=deadline) as batch:
        handle = batch.start(call(tool))
        await anyio.sleep(at)
        handle.cancel()
        if is_late:
            pace.block(allowed)
        result = await handle.result()
    assert canceled() == summary(result)
    pace.check(at + (allowed if is_late else 0), result.elapsed)


@pytest.mark.timed
@pytest.mark.parametrize("cut", ["caller", "handle", "timeout"])
async def test_r089_except_star_cannot_hide_a_cancel(pace, cut):
    """A group and ``except*`` in a tool that lose the cancellation do not lose it for the runtime."""

    async def child() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            raise ValueError("of the child")

    async def works() -> str:
        try:
            if is_asyncio():
                async with asyncio.TaskGroup() as group:
                    group.create_task(child())
                    await anyio.sleep_forever()
            else:
                async with anyio.create_task_group() as group:
                    group.start_soon(child)
                    await anyio.sleep_forever()
        except* ValueError:
            pass
        return "nothing has happened"

    tool = make(works, timeout=pace(1.0, 0.02) if cut == "timeout" else None)
    if cut == "timeout":
        assert ("failed", "timeout", 1, "attempts") == summary(await invoke(tool))
    elif cut == "caller":
        for by in cuts():
            assert CANCELED == await Caller(by).run(lambda: invoke(tool), settle)
    else:
        async with Runtime(Catalog([tool])) as runtime, runtime.batch() as batch:
            handle = batch.start(call(tool))
            await settle()
            handle.cancel()
            assert canceled() == summary(await handle.result())
    if is_asyncio():
        assert 0 == asyncio.current_task().cancelling()
