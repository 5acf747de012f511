"""What every parity test needs: the recorded cases, the numbered differences, and the count of each.

A *section* is one list of cases in one file. It knows how to put the seed's recorded answer in our words, and which
numbered differences hold. For each case the differences that apply make our answer out of the seed's, one after the
other; if none applies, the seed's answer must come out. So every case is asserted, and none is excused.
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

Numbers = tuple[int, ...]


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

    def expect(self, case: Case) -> tuple[Numbers, Any]:
        """Return the numbers of the differences that cover ``case``, and the answer that we must give."""
        numbers, answer = [], self.answer(case)
        for difference in self.differences:
            if difference.applies(case):
                seed, answer = answer, difference.ours(answer, case)
                assert seed != answer, f"difference {difference.number} changes nothing in {case.name}"
                numbers.append(difference.number)
        return tuple(numbers) or (AS_SEED,), answer

    def counts(self) -> dict[int, int]:
        """Return how many cases each difference covers; a case can be covered by several."""
        return dict(sorted(Counter(number for case in self.cases for number in self.expect(case)[0]).items()))


def named(*case_names: str) -> Callable[[Case], bool]:
    """Return the condition that a case is one of these."""
    return lambda case: case.name in case_names


def load(file: str) -> dict[str, Any]:
    """Read one file of recorded cases."""
    return json.loads((VECTORS / f"{file}.json").read_text(encoding="utf-8"))


def names(case: Case) -> str:
    """The id of a case in pytest's output."""
    return case.name.encode("unicode_escape").decode()
