"""What every parity test needs: the recorded cases, the numbered differences, and the count of each.

A *section* is one list of cases in one file. It knows how to put the seed's recorded answer in our words, and which
numbered differences hold. For each case the first difference that applies computes the answer that we must give; if
none applies, the seed's answer must come out. So every case is asserted, and none is excused.
"""

import json
from collections import Counter
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import attrs

VECTORS = Path(__file__).parent / "vectors"
AS_SEED = 0
"""The number under which cases without a difference are counted."""


@attrs.frozen
class Case:
    """One recorded run of a seed program."""

    section: str
    name: str
    input: dict[str, Any]
    expected: dict[str, Any]
    note: str | None = None


@attrs.frozen
class Difference:
    """A difference on purpose: which cases it covers, and what becomes of the seed's answer there."""

    number: int
    applies: Callable[[Case], bool]
    ours: Callable[[Any, Case], Any]


@attrs.define(slots=False)
class Section:
    """One list of cases of one file, with what is known about it."""

    file: str
    key: str
    answer: Callable[[Case], Any]
    differences: tuple[Difference, ...] = ()

    @cached_property
    def cases(self) -> list[Case]:
        return [
            Case(self.key, case["name"], case["input"], case["expected"], case.get("note"))
            for case in load(self.file)[self.key]
        ]

    def expect(self, case: Case) -> tuple[int, Any]:
        """Return the number of the difference that covers ``case`` (0: none) and the answer we must give."""
        seed = self.answer(case)
        for difference in self.differences:
            if difference.applies(case):
                ours = difference.ours(seed, case)
                assert seed != ours, f"difference {difference.number} changes nothing in {case.name}"
                return difference.number, ours
        return AS_SEED, seed

    def counts(self) -> dict[int, int]:
        """Return how many cases each difference covers."""
        return dict(sorted(Counter(self.expect(case)[0] for case in self.cases).items()))


def load(file: str) -> dict[str, Any]:
    """Read one file of recorded cases."""
    return json.loads((VECTORS / f"{file}.json").read_text(encoding="utf-8"))


def names(case: Case) -> str:
    """The id of a case in pytest's output."""
    return case.name.encode("unicode_escape").decode()
