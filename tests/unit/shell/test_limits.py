"""Places to run in: how many run, in which order they get their turn, and who is sent away. Virtual time."""

import anyio
import pytest

from harbor_async import Catalog, Limits, Runtime, ToolCall, describe
from harbor_async.errors import OverloadedError
from harbor_async.testing import wait_all_tasks_blocked

pytestmark = pytest.mark.virtual


class Meter:
    """A tool that notes its order and how many run at once."""

    def __init__(self):
        self.running = self.peak = 0
        self.order: list[int] = []

    async def work(self, n: int, seconds: float = 1.0) -> int:
        self.running += 1
        self.peak = max(self.peak, self.running)
        self.order.append(n)
        await anyio.sleep(seconds)
        self.running -= 1
        return n


def calls(number, seconds=1.0):
    return [ToolCall(str(n), "work", {"n": n, "seconds": seconds}) for n in range(number)]


async def test_no_more_run_at_once_than_there_are_places():
    """800 calls in 8 places: 8 at once, 100 rounds, an answer to each in the order of the calls (R006)."""
    meter = Meter()
    async with Runtime(Catalog([describe(meter.work)]), limits=Limits(max_running=8)) as runtime:
        results = await runtime.invoke_many(calls(800, 0.005))
    assert 8 == meter.peak
    assert [*range(800)] == [result.value for result in results]
    assert [str(n) for n in range(800)] == [result.call_id for result in results]
    assert pytest.approx(0.5) == anyio.current_time()


async def test_turns_come_in_the_order_of_the_calls():
    """First come, first served, also among calls of different callers."""
    meter = Meter()
    async with (
        Runtime(Catalog([describe(meter.work)]), limits=Limits(max_running=1)) as runtime,
        anyio.create_task_group() as group,
    ):
        for n in range(5):
            group.start_soon(runtime.invoke, "work", {"n": n})
            await wait_all_tasks_blocked()
    assert [0, 1, 2, 3, 4] == meter.order


async def test_a_newcomer_does_not_overtake_the_queue():
    """A call that comes just when a place is free waits behind those that came before."""
    meter = Meter()
    async with (
        Runtime(Catalog([describe(meter.work)]), limits=Limits(max_running=1)) as runtime,
        anyio.create_task_group() as group,
    ):

        async def two():
            await runtime.invoke("work", {"n": 0})
            await runtime.invoke("work", {"n": 2})

        group.start_soon(two)
        await wait_all_tasks_blocked()
        group.start_soon(runtime.invoke, "work", {"n": 1})
    assert [0, 1, 2] == meter.order


async def test_a_full_queue_sends_away():
    """One more than may wait is ``rejected`` / ``rate_limited``, was not sent, and may be tried again."""
    meter = Meter()
    async with Runtime(Catalog([describe(meter.work)]), limits=Limits(max_running=1, max_queued=2)) as runtime:
        results = await runtime.invoke_many(calls(5))
    assert ["succeeded"] * 3 + ["rejected"] * 2 == [result.outcome for result in results]
    away = results[3]
    assert ("rate_limited", "not_sent", 0, "rejected") == (
        away.error.category,
        away.error.delivery,
        away.attempts,
        away.stop_reason,
    )
    assert away.is_retryable
    assert [0, 1, 2] == meter.order


async def test_no_queue_at_all_runs_what_has_a_place():
    """``max_queued=0``: a call gets a place at once or is sent away."""
    meter = Meter()
    async with Runtime(Catalog([describe(meter.work)]), limits=Limits(max_running=2, max_queued=0)) as runtime:
        results = await runtime.invoke_many(calls(3))
        assert ["succeeded", "succeeded", "rejected"] == [result.outcome for result in results]
        assert "succeeded" == (await runtime.invoke("work", {"n": 9})).outcome


async def test_a_program_that_is_sent_away_gets_an_error():
    """``call`` raises ``OverloadedError``."""
    tool = describe(Meter().work)
    async with (
        Runtime(Catalog([tool]), limits=Limits(max_running=1, max_queued=0)) as runtime,
        anyio.create_task_group() as group,
    ):
        group.start_soon(runtime.invoke, "work", {"n": 0})
        await wait_all_tasks_blocked()
        with pytest.raises(OverloadedError, match="0 calls wait"):
            await runtime.call(tool, 1)
        assert "rejected" == (await runtime.invoke("work", {"n": 2})).outcome


async def test_invalid_calls_take_no_place():
    """Unknown names and bad arguments are answered while every place is taken."""
    async with (
        Runtime(Catalog([describe(Meter().work)]), limits=Limits(max_running=1, max_queued=0)) as runtime,
        anyio.create_task_group() as group,
    ):
        group.start_soon(runtime.invoke, "work", {"n": 0})
        await wait_all_tasks_blocked()
        assert "not_found" == (await runtime.invoke("wark", {"n": 0})).error.category
        assert "validation" == (await runtime.invoke("work", {"n": "0"})).error.category


async def test_two_runtimes_share_no_places():
    """Each has its own."""
    tool = describe(Meter().work)
    limits = Limits(max_running=1, max_queued=0)
    async with (
        Runtime(Catalog([tool]), limits=limits) as one,
        Runtime(Catalog([tool]), limits=limits) as two,
        anyio.create_task_group() as group,
    ):
        group.start_soon(one.invoke, "work", {"n": 0})
        await wait_all_tasks_blocked()
        assert "succeeded" == (await two.invoke("work", {"n": 1})).outcome
