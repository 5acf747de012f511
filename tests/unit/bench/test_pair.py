"""The pair runner counts what it says: with clocks that only its own sides move, every figure is known beforehand."""

from random import Random
from statistics import median

import pytest

from bench.pair import Effort, Pair, interval, measure


class FakeClock:
    """Time that passes when a side works, and then as much as it says; a call may be slower in each round."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def side(self, *seconds, calls_seen=None):
        """Return a side whose calls take ``seconds`` each: one number a round, the last one for all that follow."""
        left = list(seconds)

        async def side(calls):
            self.now += calls * (left.pop(0) if len(left) > 1 else left[0])
            if calls_seen is not None:
                calls_seen.append(calls)

        return side


async def run(pair, effort, clock):
    return await measure(pair, effort, wall=clock, cpu=clock)


async def test_ratio_of_two_constant_sides():
    """Ours at 3 s a call against 2 s is 1.5, with an interval of no width."""
    clock = FakeClock()
    row = await run(Pair("work", "floor", clock.side(2.0), clock.side(3.0)), Effort(rounds=5, seconds=12.0), clock)
    assert (2.0, 3.0, 1.5) == (row.floor, row.ours, row.ratio)
    assert (1.5, 1.5) == (row.low, row.high)
    assert 1.5 == pytest.approx(row.cpu)
    assert (5, "work / floor") == (row.rounds, row.key)


async def test_each_side_fills_its_round():
    """The number of calls is each side's own: as many as fill the seconds of a round, however unequal the two are."""
    clock = FakeClock()
    floor, ours = [], []
    pair = Pair("work", "floor", clock.side(0.5, calls_seen=floor), clock.side(4.0, calls_seen=ours))
    await run(pair, Effort(rounds=2, seconds=8.0), clock)
    assert [16, 16] == floor[-2:]
    assert [2, 2] == ours[-2:]


async def test_call_longer_than_a_round():
    """Work that takes longer than a round is done once a round."""
    clock = FakeClock()
    seen = []
    await run(Pair("work", "floor", clock.side(1.0), clock.side(99.0, calls_seen=seen)), Effort(3, 2.0), clock)
    assert [1] * 4 == seen


async def test_fixed_calls():
    """A pair with a fixed number of calls is warmed up once and does that number in every round."""
    clock = FakeClock()
    floor, ours = [], []
    pair = Pair("work", "floor", clock.side(1.0, calls_seen=floor), clock.side(1.0, calls_seen=ours), calls=7)
    await run(pair, Effort(rounds=3), clock)
    assert [7] * 4 == floor
    assert [7] * 4 == ours


async def test_warm_up_does_not_count():
    """A first call of a thousand seconds leaves no trace in any figure."""
    clock = FakeClock()
    row = await run(Pair("work", "floor", clock.side(1.0), clock.side(1000.0, 1.0), calls=1), Effort(3), clock)
    assert (1.0, 1.0, 1.0) == (row.ours, row.ratio, row.high)


async def test_slow_stretch_hits_both():
    """The ratio is taken round by round: a machine ten times slower from the second round on changes nothing."""
    clock = FakeClock()
    slower = (1.0, 1.0, 10.0)  # warm-up, first round, the others
    pair = Pair("work", "floor", clock.side(*slower), clock.side(*(2 * each for each in slower)), calls=1)
    row = await run(pair, Effort(rounds=5), clock)
    assert (2.0, 2.0, 2.0) == (row.ratio, row.low, row.high)


async def test_rounds_alternate():
    """The sides take turns: A B A B."""
    clock = FakeClock()
    order = []

    def side(name):
        async def side(calls):
            order.append(name)
            clock.now += 1.0

        return side

    await run(Pair("work", "floor", side("A"), side("B"), calls=1), Effort(rounds=2), clock)
    assert ["A", "B", "A", "B", "A", "B"] == order


def test_interval_holds_the_median():
    """The interval lies within the sample, round its median, and is the same at each run."""
    ratios = [1.0, 1.1, 1.2, 1.3, 9.0]
    low, high = interval(ratios)
    assert 1.0 <= low <= median(ratios) <= high <= 9.0
    assert (low, high) == interval(ratios)


def test_interval_covers_the_true_median():
    """Of 50 samples from a known distribution, about 95 % have its median in their interval: at least 42."""
    random = Random(1)
    hits = 0
    for _ in range(50):
        low, high = interval([random.lognormvariate(0.0, 0.3) for _ in range(25)], random=random)
        hits += low <= 1.0 <= high
    assert 42 <= hits


def test_fewer_rounds():
    """Long work gets its share of the rounds, and never fewer than three."""
    assert [10, 3] == [Effort(25).of(0.4).rounds, Effort(5).of(0.4).rounds]
