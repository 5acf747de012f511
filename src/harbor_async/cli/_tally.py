"""What is counted of a run: in a size that does not grow with the number of calls."""

import math
from collections import Counter
from typing import Final

from .._categories import Outcome
from .._results import ToolResult

_GROWTH: Final = 1.01
_LOG_GROWTH: Final = math.log(_GROWTH)
_LEAST: Final = 1e-7
"""Seconds; whatever is shorter counts as this."""


class Quantiles:
    """Quantiles of positive numbers, each within 0.5 % of a true one.

    It counts how many numbers fall between two powers of 1.01, some 2,000 counters from 0.1 µs to a day.
    Source: C. Masson et al., "DDSketch", VLDB 2019, with a relative accuracy of 0.5 %.
    """

    def __init__(self) -> None:
        """Begin without a number."""
        self._buckets: Counter[int] = Counter()
        self.count: int = 0

    def add(self, value: float) -> None:
        """Count ``value``."""
        self._buckets[math.ceil(math.log(max(value, _LEAST)) / _LOG_GROWTH)] += 1
        self.count += 1

    def quantile(self, share: float) -> float:
        """Return the number that ``share`` of all numbers (0 < share ≤ 1) do not exceed; NaN if there is none."""
        rank = math.ceil(share * self.count)
        for bucket in sorted(self._buckets):
            rank -= self._buckets[bucket]
            if rank <= 0:
                return 2 * _GROWTH**bucket / (_GROWTH + 1)
        return math.nan


class Tally:
    """Outcomes, categories and times of the results of one run."""

    def __init__(self) -> None:
        """Begin without a result."""
        self.ends: Counter[tuple[Outcome, str]] = Counter()
        """How often each pair of outcome and category came; the category of a success is empty."""
        self.times: Quantiles = Quantiles()
        """Seconds from start to answer, of the calls whose function ran."""

    def add(self, result: ToolResult) -> None:
        """Count one result."""
        self.ends[result.outcome, "" if result.error is None else result.error.category.value] += 1
        if result.attempts:
            self.times.add(result.elapsed)

    def rows(self) -> list[tuple[Outcome, str, int]]:
        """Return each outcome and category with its count: by outcome, the most frequent first, equals by name."""
        order = list(Outcome)
        ends = [(outcome, category, count) for (outcome, category), count in self.ends.items()]
        return sorted(ends, key=lambda end: (order.index(end[0]), -end[2], end[1]))

    @property
    def calls(self) -> int:
        """How many results there are."""
        return self.ends.total()

    @property
    def failures(self) -> int:
        """How many of them did not succeed."""
        return self.calls - self.ends[Outcome.SUCCEEDED, ""]
