"""What is counted of a run."""

import math
import random

import pytest

import harbor_async as ha
from harbor_async.cli._report import show_seconds
from harbor_async.cli._tally import Quantiles, Tally


@pytest.mark.parametrize("share", [0.5, 0.95, 0.99, 1.0])
def test_quantiles_are_within_half_a_percent(share):
    """A quantile is within 0.5 % of the one of the sorted numbers, over six orders of magnitude."""
    chance = random.Random(7)
    numbers = sorted(10 ** chance.uniform(-5, 1) for _ in range(20_000))
    quantiles = Quantiles()
    for number in numbers:
        quantiles.add(number)
    expected = numbers[math.ceil(share * len(numbers)) - 1]
    assert math.isclose(expected, quantiles.quantile(share), rel_tol=0.005)


def test_quantiles_of_one_and_of_none():
    """Of one number each quantile is that number; of none it is NaN."""
    quantiles = Quantiles()
    assert math.isnan(quantiles.quantile(0.5))
    quantiles.add(0.2)
    assert math.isclose(0.2, quantiles.quantile(0.5), rel_tol=0.005)
    assert math.isclose(0.2, quantiles.quantile(0.99), rel_tol=0.005)


def test_quantiles_take_zero():
    """A clock that shows no difference is no error."""
    quantiles = Quantiles()
    quantiles.add(0.0)
    assert quantiles.quantile(0.5) < 1e-6


def test_tally_counts_ends_and_times_what_ran():
    """Outcomes and categories are counted; only calls whose function ran have a time."""
    tally = Tally()
    failure = ha.Failure(ha.ErrorCategory.VALIDATION, "no")
    tally.add(ha.ToolResult("1", "f", ha.Outcome.SUCCEEDED, attempts=1, elapsed=0.1))
    tally.add(ha.ToolResult("2", "f", ha.Outcome.FAILED, error=failure))
    tally.add(ha.ToolResult("3", "f", ha.Outcome.FAILED, error=failure))
    assert {(ha.Outcome.SUCCEEDED, ""): 1, (ha.Outcome.FAILED, "validation"): 2} == dict(tally.ends)
    assert (3, 2, 1) == (tally.calls, tally.failures, tally.times.count)


def test_rows_have_one_order():
    """Rows stand by outcome, the most frequent category first, and equals by name, in whatever order results came."""
    tally = Tally()
    for word in ("timeout", "not_found", "conflict", "timeout"):
        tally.add(ha.ToolResult("1", "f", ha.Outcome.FAILED, error=ha.Failure(ha.ErrorCategory(word), "no")))
    tally.add(ha.ToolResult("2", "f", ha.Outcome.SUCCEEDED))
    failed = [("timeout", 2), ("conflict", 1), ("not_found", 1)]
    expected = [(ha.Outcome.SUCCEEDED, "", 1), *((ha.Outcome.FAILED, word, count) for word, count in failed)]
    assert expected == tally.rows()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(12.3456, "12.3 s"), (1.0, "1 s"), (0.0123, "12.3 ms"), (4.5e-5, "45 µs"), (1e-8, "under 1 µs")],
)
def test_seconds_are_shown_in_a_unit_that_suits(seconds, text):
    """Three digits, in the largest unit of which there is one."""
    assert text == show_seconds(seconds)
