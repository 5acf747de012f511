"""``Runtime.statistics`` at known moments."""

from typing import Any

import anyio
import attrs
import pytest

from harbor_async import Catalog, HarborError, Runtime, Statistics, ToolCall, ToolEvent
from harbor_async.testing import wait_all_tasks_blocked
from tests.unit.limits.support import Log, X, call, make, runtime, until
from tests.unit.thread.gate import PATIENCE, Gate, assert_free, limited, pass_time

virtual = pytest.mark.virtual


@pytest.fixture
def gate():
    """Return a closed gate, which is open when the test has ended, so that no thread is left in it."""
    gate = Gate()
    yield gate
    gate.open()


def seen(statistics: Statistics) -> tuple[dict[str, int], dict[str, int]]:
    """Return who runs and who waits, by tool, after a look at the sums."""
    running, queued = dict(statistics.running_by_tool), dict(statistics.queued_by_tool)
    assert (sum(running.values()), sum(queued.values())) == (statistics.running, statistics.queued)
    assert 0 not in {*running.values(), *queued.values()}
    return running, queued


@virtual
async def test_running_and_queued_are_told_by_tool():
    """Calls that run and calls that wait for a place, a tool, a group or a tenant are counted under their tool."""
    log = Log()
    tools = make(log.work, "a"), make(log.work, "b", max_running=1), make(log.work, "c", exclusive="g")
    async with runtime(*tools, max_running=4, max_running_per_tenant=1) as rt, anyio.create_task_group() as group:
        assert ({}, {}) == seen(rt.statistics())
        group.start_soon(rt.invoke_many, [call(tool, f"{tool}{n}") for n in range(2) for tool in "abc"])
        await wait_all_tasks_blocked()
        assert ({"a": 2, "b": 1, "c": 1}, {"b": 1, "c": 1}) == seen(rt.statistics())
        for name in "xy":
            group.start_soon(lambda name=name: rt.invoke("a", {"name": name}, identity=X))
        await anyio.sleep(1.5)
        assert ({"a": 1, "b": 1, "c": 1}, {"a": 1}) == seen(rt.statistics())
        await anyio.sleep(5)
        assert ({}, {}) == seen(rt.statistics())


@virtual
async def test_a_call_that_waits_for_its_approval_is_queued():
    """It runs from when it is approved."""
    log = Log()

    async def approve(*_: object) -> bool:
        await anyio.sleep(1)
        return True

    async with runtime(make(log.work, approve=approve)) as rt, anyio.create_task_group() as group:
        group.start_soon(rt.invoke_many, [call("work", "a")])
        await wait_all_tasks_blocked()
        assert ({}, {"work": 1}) == seen(rt.statistics())
        await anyio.sleep(1.5)
        assert ({"work": 1}, {}) == seen(rt.statistics())


@virtual
async def test_a_call_between_two_attempts_runs():
    """A wait between attempts counts as running, also of a tool without parameters."""

    async def flaky() -> None:
        raise ConnectionError

    tool = make(flaky, attempts=2)
    async with runtime(tool) as rt, anyio.create_task_group() as group:
        for ask in (lambda: rt.invoke("flaky"), lambda: rt.invoke_many([ToolCall("", "flaky")])):
            group.start_soon(ask)
        await anyio.sleep(0.5)
        assert ({"flaky": 2}, {}) == seen(rt.statistics())


@virtual
async def test_every_way_of_asking_is_counted():
    """``invoke``, ``call``, a batch, a stream and a nested call each count once."""
    log = Log()
    tool = make(log.work, "inner")

    async def outer() -> None:
        await rt.call(tool, "nested")

    async def stream() -> None:
        async with rt.stream([call("inner", "s0"), call("inner", "s1")]) as results:
            _ = [result async for result in results]

    async with runtime(tool, make(outer), max_running=9) as rt, anyio.create_task_group() as group:
        group.start_soon(rt.invoke, "outer")
        group.start_soon(rt.call, tool, "c")
        group.start_soon(stream)
        group.start_soon(rt.invoke_many, [call("inner", "b")])
        await wait_all_tasks_blocked()
        assert ({"outer": 1, "inner": 5}, {}) == seen(rt.statistics())


@virtual
async def test_calls_that_are_refused_are_never_counted():
    """Wrong, unknown and rejected calls are gone at once."""
    async with runtime(make(Log().work), max_running=1, max_queued=0) as rt, anyio.create_task_group() as group:
        group.start_soon(rt.invoke, "work", {"name": "a"})
        await wait_all_tasks_blocked()
        for ask in (
            rt.invoke("work", {"nome": "a"}),
            rt.invoke("other"),
            rt.invoke("work", {"name": "b"}),
            rt.invoke_many([call("work", "c")] * 3),
        ):
            await ask
            assert ({"work": 1}, {}) == seen(rt.statistics())


async def test_threads_are_counted(gate: Gate):
    """A call that waits for a thread is queued; threads are those that are taken."""

    def held() -> None:
        gate.hold()

    async with runtime(make(held), max_threads=2) as rt:
        async with anyio.create_task_group() as group:
            group.start_soon(rt.invoke_many, [ToolCall("", "held")] * 3)
            await gate.came(2)
            await anyio.wait_all_tasks_blocked()
            now = rt.statistics()
            assert (2, 1, 2, 0) == (now.running, now.queued, now.threads, now.background)
            gate.open()
        await until(lambda: rt.statistics().threads == 0)
        now = rt.statistics()
        assert (0, 0, 0) == (now.running, now.queued, now.background)


@pytest.mark.virtual(grace=PATIENCE)
@pytest.mark.parametrize("idempotent", [False, True])
async def test_a_thread_that_is_left_behind_is_counted_until_it_ends(gate: Gate, idempotent):
    """It is one of the threads, in the background, and of no call; with each attempt one more."""

    def held() -> None:
        gate.hold()

    async with limited(make(held, timeout=1, attempts=2, idempotent=idempotent), threads=3) as rt:
        async with anyio.create_task_group() as group:
            group.start_soon(rt.invoke, "held")
            await gate.came()
            await pass_time(1)
            if idempotent:
                now = rt.statistics()
                assert (1, 0, 1, 1) == (now.running, now.queued, now.threads, now.background)
                await pass_time(1)
                await gate.came()
                now = rt.statistics()
                assert (1, 0, 2, 1) == (now.running, now.queued, now.threads, now.background)
                await pass_time(1)
        left = 2 if idempotent else 1
        now = rt.statistics()
        assert (0, 0, left, left) == (now.running, now.queued, now.threads, now.background)
        gate.open()
        await gate.went(left)
        await assert_free(rt)
        now = rt.statistics()
        assert (0, 0, 0, 0) == (now.running, now.queued, now.threads, now.background)


class Slow:
    """A sink that takes no event."""

    async def emit(self, event: ToolEvent) -> None:
        await anyio.sleep_forever()


@virtual
async def test_events_that_no_sink_took_are_counted():
    """Of 3 × 4,000 events to two sinks that have had no turn yet, 10,000 wait for each: the rest is lost."""

    async def quick() -> None: ...

    async with Runtime(Catalog([make(quick)]), sinks=[Slow(), Slow()]) as rt:
        for _ in range(4_000):
            await rt.invoke("quick")
        assert 2 * (3 * 4_000 - 10_000) == rt.statistics().dropped_events


@virtual
async def test_a_record_is_of_one_moment_and_cannot_be_changed():
    """A record that was taken stays as it is, and none of it can be written."""
    log = Log()
    async with runtime(make(log.work)) as rt, anyio.create_task_group() as group:
        before = rt.statistics()
        group.start_soon(rt.invoke, "work", {"name": "a"})
        await wait_all_tasks_blocked()
        now: Any = rt.statistics()
        assert ({}, {"work": 1}) == (dict(before.running_by_tool), dict(now.running_by_tool))
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            now.running = 5
        for counts in (now.running_by_tool, now.queued_by_tool):
            with pytest.raises(TypeError):
                counts["work"] = 5
        assert now == rt.statistics() != before


async def test_a_runtime_that_is_not_open_has_none():
    """Before it is entered and after it was left there is nothing to count."""
    rt = runtime(make(Log().work))
    with pytest.raises(HarborError, match="not open"):
        rt.statistics()
    async with rt:
        pass
    with pytest.raises(HarborError, match="not open"):
        rt.statistics()
