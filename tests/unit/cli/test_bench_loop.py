"""Closed and open loops, in virtual time; the times of calls are worked out by hand."""

import math
import sys
from itertools import islice, pairwise
from statistics import fmean, pstdev

import anyio
import pytest
from anyio.lowlevel import checkpoint

import harbor_async as ha
from harbor_async.cli._bench_load import Arrivals, Load
from harbor_async.cli._bench_loop import arrivals
from harbor_async.testing import block
from tests.unit.cli.bench import measure

pytestmark = pytest.mark.virtual
EIGHTH = 0.125
SUCCEEDED = (ha.Outcome.SUCCEEDED, "")


def near(seconds):
    """Three digits, as the histogram has them."""
    return pytest.approx(seconds, rel=2e-3)


async def eighth() -> None:
    await anyio.sleep(EIGHTH)


def stalling():
    """Return a tool of 1 ms whose 501st call blocks the event loop for 200 ms first."""
    calls = 0

    async def stall() -> None:
        nonlocal calls
        calls += 1
        if calls == 501:
            block(0.2)
        await anyio.sleep(0.001)

    return stall


async def test_closed_loop_hides_a_stall():
    """One call at a time: of 1,000 calls the one that blocks takes 201 ms, and no other is late; p99.9 is 1 ms."""
    record = await measure(stalling(), Load(in_flight=1, count=1000))
    found = record.latency.percentiles([99, 99.9])
    assert {99: near(0.001), 99.9: near(0.001)} == found
    assert near(0.201) == record.latency.maximum


async def test_open_loop_shows_a_stall():
    """At 100 a second the 19 calls that are due during the stall are late, too: by 190, 180, … 10 ms, and 1 ms each.

    Of 1,000 calls the slowest are 201, 191, … 11 ms. So p99, the 11th slowest, is 101 ms, p99.9, the second, 191 ms.
    From their own starts all but the one that blocks are as fast as in the closed loop.
    """
    record = await measure(stalling(), Load(rate=100, count=1000))
    found = record.latency.percentiles([98, 99, 99.9])
    assert {98: near(0.001), 99: near(0.101), 99.9: near(0.191)} == found
    assert near(0.201) == record.latency.maximum
    assert {99.9: near(0.001)} == record.service.percentiles([99.9])


async def test_closed_loop_keeps_its_calls_in_flight():
    """5 workers with calls of 1/8 s begin 9 calls each within 17/16 s. All 45 count, and 40 have ended in that time."""
    record = await measure(eighth, Load(in_flight=5, duration=1.0625))
    assert (45, 40) == (record.tally.calls, record.completed)
    assert math.isclose(1.0625, record.elapsed)
    assert math.isclose(40 / 1.0625, record.rate)
    assert {50: near(EIGHTH), 100: near(EIGHTH)} == record.latency.percentiles([50, 100])
    within = [point.in_flight for point in record.points if point.time <= 1.0625]
    assert [pytest.approx(5)] * len(within) == within
    assert 45 == sum(point.calls for point in record.points)


async def test_count_is_exact_and_elapsed_is_until_the_last_answer():
    """10 calls of 1/8 s, 4 at a time, are 10 calls in 3/8 s."""
    record = await measure(eighth, Load(in_flight=4, count=10))
    assert ({SUCCEEDED: 10}, 10) == (record.tally.ends, record.completed)
    assert math.isclose(0.375, record.elapsed)


async def test_open_loop_waits_for_no_answer():
    """8 calls a second of 3/8 s each begin every 1/8 s: three are in flight once the first has ended."""

    async def slow() -> None:
        await anyio.sleep(3 * EIGHTH)

    record = await measure(slow, Load(rate=8, duration=2.0))
    assert 16 == record.tally.calls
    assert {0: near(3 * EIGHTH), 100: near(3 * EIGHTH)} == record.latency.percentiles([0, 100])
    within = [point.in_flight for point in record.points if 0.75 < point.time <= 2]
    assert [pytest.approx(3)] * len(within) == within


async def test_warm_up_does_not_count():
    """The calls of half a second of warm-up are made, and are in no figure; time begins after it."""
    calls = 0

    async def counted() -> None:
        nonlocal calls
        calls += 1
        await anyio.sleep(EIGHTH)

    record = await measure(counted, Load(rate=8, warm_up=0.5, duration=1.0))
    assert (12, 8, 8) == (calls, record.tally.calls, record.latency.count)
    assert math.isclose(1, record.elapsed)
    assert record.points[0].time <= 0.1


async def test_stop_keeps_what_was_measured():
    """Ended after 5/16 s, two workers have had two calls each; the two under way are cut, 1/16 s old."""
    record = await measure(eighth, Load(in_flight=2, duration=10), stop_at=0.3125)
    assert ({SUCCEEDED: 4}, 2) == (record.tally.ends, record.cut)
    assert math.isclose(0.0625, record.oldest)
    assert math.isclose(0.3125, record.elapsed)
    assert "" == record.cause


async def test_stop_while_it_warms_up():
    """Ended before measuring begins, it has measured nothing, and no call that counts was cut."""
    record = await measure(eighth, Load(warm_up=1, duration=1), stop_at=0.3)
    assert (0, 0, 0, []) == (record.tally.calls, record.cut, record.elapsed, record.points)


@pytest.mark.parametrize("load", [Load(in_flight=3, duration=1), Load(rate=8, duration=1)], ids=["closed", "open"])
async def test_tool_that_ends_the_program(load):
    """A tool that calls sys.exit() ends the measuring, and is named."""

    async def leave() -> None:
        await anyio.sleep(EIGHTH)
        sys.exit(7)

    record = await measure(leave, load)
    assert "tool 'leave', which raised SystemExit" == record.cause
    assert 0 == record.tally.calls
    assert record.cut >= 1


async def test_rejected_calls_have_no_latency():
    """A refusal is quick and says nothing of the tool: it is counted, and is in no histogram and no rate."""

    async def second() -> None:
        await anyio.sleep(1)

    record = await measure(second, Load(rate=8, duration=0.75), limits=ha.Limits(max_running=1, max_queued=0))
    assert {SUCCEEDED: 1, (ha.Outcome.REJECTED, "rate_limited"): 5} == record.tally.ends
    assert (1, 0, 1) == (record.latency.count, record.completed, record.service.count)


async def test_failures_are_counted_by_category():
    """A call that passes its deadline is one that timed out, with a latency like any other."""

    async def second() -> None:
        await anyio.sleep(1)

    record = await measure(second, Load(in_flight=2, count=4), timeout=EIGHTH)
    assert {(ha.Outcome.TIMED_OUT, "timeout"): 4} == record.tally.ends
    assert {100: near(EIGHTH)} == record.latency.percentiles([100])


async def test_late_timers_show_how_long_the_loop_was_blocked():
    """A loop blocked from 505 to 705 ms is late for the 20 timers due at 510, 520, … 700 ms: by 195, 185, … 5 ms.

    The other 51, from 0 to 500 ms, come in time.
    """

    async def stall() -> None:
        await anyio.sleep(0.505)
        block(0.2)

    record = await measure(stall, Load(in_flight=1, count=1))
    assert near(0.195) == record.lag.maximum
    assert 71 == record.lag.count
    first, middle = 100 * 52 / 71, 100 * 61 / 71
    assert {first: near(0.005), middle: near(0.095)} == record.lag.percentiles([first, middle])


async def test_too_high_a_rate_leaves_turns_to_calls_that_run():
    """Calls that are overdue, 999 of them, are begun in small groups, so that those begun before go on and end."""
    calls = running = most = 0

    async def tool() -> None:
        nonlocal calls, running, most
        calls += 1
        running += 1
        most = max(most, running)
        if calls == 1:
            block(0.1)
        await checkpoint()
        running -= 1

    record = await measure(tool, Load(rate=10_000, count=1000))
    assert 1000 == record.tally.calls
    assert most <= 300
    assert near(0.1) == record.latency.maximum


def test_constant_arrivals():
    """The first call is due at once, and each later one at its multiple of the pause, without an error that adds up."""
    found = list(islice(arrivals(Load(rate=10), 10, 7.0), 1001))
    assert [7.0, 7.1, 7.2] == found[:3]
    assert 107.0 == found[1000]


def test_poisson_arrivals():
    """Pauses are exponential: mean and deviation are both 1/rate, and a seed gives the same ones again."""
    load = Load(rate=50, arrivals=Arrivals.POISSON, seed=3)
    found = [7.0, *islice(arrivals(load, 50, 7.0), 100_000)]
    pauses = [later - earlier for earlier, later in pairwise(found)]
    # Four standard errors: of the mean 0.02/√n, of the deviation about 0.02·√(2/n).
    assert math.isclose(0.02, fmean(pauses), rel_tol=4 / math.sqrt(100_000))
    assert math.isclose(0.02, pstdev(pauses), rel_tol=4 * math.sqrt(2 / 100_000))
    share = sum(pause > 0.02 for pause in pauses) / len(pauses)
    assert math.isclose(math.exp(-1), share, abs_tol=0.007)
    assert found[1:11] == list(islice(arrivals(load, 50, 7.0), 10))
    assert found[1] != next(arrivals(Load(rate=50, arrivals=Arrivals.POISSON, seed=4), 50, 7.0))
