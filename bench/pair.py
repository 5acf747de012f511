"""Two ways to do the same work, timed against each other in one process.

The rounds are interleaved, A B A B, so that a slow second of the machine hits both; the ratio is the median of the
rounds' own ratios. Garbage is collected before each round and the collector is on during it, as it is in a program.
Each round ends with one turn of the event loop: what a call leaves to the loop (a timer to throw away, say) is paid
for in the round that made it.
"""

import gc
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from statistics import median
from time import perf_counter, process_time

import attrs
from anyio.lowlevel import checkpoint

Side = Callable[[int], Awaitable[None]]
"""Does the work so many times."""
Clock = Callable[[], float]

_DRAWS = 2000


@attrs.frozen
class Effort:
    """How long to measure.

    Attributes:
        rounds: Rounds a side.
        seconds: What one round takes, where the number of calls is free.
    """

    rounds: int
    seconds: float = 0.02

    def of(self, share: float) -> "Effort":
        """Return the effort for work whose rounds take long: a share of the rounds, and never fewer than three."""
        return attrs.evolve(self, rounds=max(3, round(self.rounds * share)))


FULL = Effort(rounds=25)
QUICK = Effort(rounds=5, seconds=0.01)


@attrs.frozen
class Pair:
    """What is compared.

    Attributes:
        name: The work.
        against: What stands on the other side, in words.
        floor: The other side.
        ours: Our side.
        calls: Times a round does the work, on both sides; None: as often as fills ``Effort.seconds``.
        target: The ratio that is promised, or None.
    """

    name: str
    against: str
    floor: Side
    ours: Side
    calls: int | None = None
    target: float | None = None


@attrs.frozen
class Row:
    """What was measured.

    Attributes:
        name: The work.
        against: The other side.
        floor: Median of its seconds a call, or of its bytes.
        ours: Median of ours.
        ratio: Median of the rounds' ratios, ours to floor, by the wall clock.
        low: Lower end of the ratio's 95 % interval.
        high: Upper end.
        cpu: The ratio by processor time, which hears less of other load on the machine.
        rounds: How many rounds that rests on.
        target: The ratio that is promised, or None.
        unit: Of ``floor`` and ``ours``: ``"s"`` or ``"bytes"``.
    """

    name: str
    against: str
    floor: float
    ours: float
    ratio: float
    low: float
    high: float
    cpu: float
    rounds: int
    target: float | None = None
    unit: str = "s"

    @classmethod
    def exact(cls, name: str, against: str, floor: float, ours: float, *, target: float | None = None) -> "Row":
        """Return the row of bytes that were counted, once, and have no interval."""
        ratio = ours / floor
        return cls(name, against, floor, ours, ratio, ratio, ratio, ratio, rounds=1, target=target, unit="bytes")

    @property
    def key(self) -> str:
        """Its name in the baseline."""
        return f"{self.name} / {self.against}"


async def measure(pair: Pair, effort: Effort, *, wall: Clock = perf_counter, cpu: Clock = process_time) -> Row:
    """Warm both sides up, and time them in turn.

    Args:
        pair: What is compared.
        effort: How long.
        wall: The clock that the ratio is taken by.
        cpu: The clock of processor time.
    """

    async def time(side: Side, calls: int) -> tuple[float, float]:
        start, start_cpu = wall(), cpu()
        await side(calls)
        await checkpoint()
        return (wall() - start) / calls, (cpu() - start_cpu) / calls

    async def calls_of(side: Side) -> int:
        """Return how many calls fill a round; finding that out is the warm-up."""
        if pair.calls is not None:
            await time(side, pair.calls)
            return pair.calls
        calls = 1
        while (each := (await time(side, calls))[0]) * calls < effort.seconds:
            calls *= 2
        return max(1, round(effort.seconds / each))

    sides = [(side, await calls_of(side)) for side in (pair.floor, pair.ours)]
    rounds: list[list[tuple[float, float]]] = []
    for _ in range(effort.rounds):
        rounds.append([])
        for side, calls in sides:
            gc.collect()
            rounds[-1].append(await time(side, calls))
    ratios = [ours[0] / floor[0] for floor, ours in rounds]
    low, high = interval(ratios)
    return Row(
        name=pair.name,
        against=pair.against,
        floor=median(floor[0] for floor, _ in rounds),
        ours=median(ours[0] for _, ours in rounds),
        ratio=median(ratios),
        low=low,
        high=high,
        cpu=sum(ours[1] for _, ours in rounds) / (sum(floor[1] for floor, _ in rounds) or 1.0),
        rounds=effort.rounds,
        target=pair.target,
    )


def interval(ratios: Sequence[float], *, random: Random | None = None) -> tuple[float, float]:
    """Return the 95 % interval of the median of ``ratios``: the percentile bootstrap.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap, chapter 13.
    """
    random = random or Random(0)
    medians = sorted(median(random.choices(ratios, k=len(ratios))) for _ in range(_DRAWS))
    return medians[int(_DRAWS * 0.025)], medians[int(_DRAWS * 0.975) - 1]


def repeat(function: Callable[..., object], *args: object) -> Side:
    """Return the side that calls a plain function."""

    async def side(calls: int) -> None:
        for _ in range(calls):
            function(*args)

    return side
