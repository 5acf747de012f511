"""Policies, waits and limits refuse nonsense when they are made; waits keep their bounds."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from harbor_async import Backoff, ErrorClass, Limits, ToolPolicy
from harbor_async.errors import InvalidToolError

NO_SECONDS = [-1, -0.001, math.nan, math.inf, -math.inf, True, "1", b"1", [], Fraction(1, 2), 1j]


@pytest.mark.parametrize("value", NO_SECONDS)
@pytest.mark.parametrize(
    "make",
    [
        lambda value: ToolPolicy(timeout=value),
        lambda value: Backoff(initial=value),
        lambda value: Backoff(maximum=value),
    ],
    ids=["timeout", "initial", "maximum"],
)
def test_what_is_no_number_of_seconds_is_refused(make, value):
    """Negative, NaN, infinite, bool, text and other types are refused with what was expected."""
    with pytest.raises(InvalidToolError, match="expected a finite number of seconds, 0 or more"):
        make(value)


@pytest.mark.parametrize("value", [0, 0.0, 1, 2.5, 1e9])
def test_zero_and_numbers_are_kept_as_they_are(value):
    """Zero means zero, and None means none."""
    assert value == ToolPolicy(timeout=value).timeout
    assert value == Backoff(initial=value).initial == Backoff(maximum=value).maximum
    assert ToolPolicy(timeout=None).timeout is Backoff(maximum=None).maximum is None


def test_a_first_wait_of_none_is_refused():
    """``Backoff.initial`` has no "none"; it is 0."""
    with pytest.raises(InvalidToolError, match=r"Backoff\.initial"):
        Backoff(initial=None)


@pytest.mark.parametrize(
    ("field", "values", "expected"),
    [
        ("factor", [0.99, 0, -1, math.nan, math.inf, True, "2", None], "a finite number of at least 1"),
        ("jitter", [-0.01, 1.01, math.nan, True, "1", None], "a finite number from 0 to 1"),
    ],
)
def test_factor_and_jitter_keep_their_ranges(field, values, expected):
    """Growth is at least 1, jitter a share from 0 to 1."""
    for value in values:
        with pytest.raises(InvalidToolError, match=f"Backoff.{field}: expected {expected}"):
            Backoff(**{field: value})


@pytest.mark.parametrize("value", [0, -1, 1.0, True, "3", math.inf, math.nan])
def test_attempts_are_a_number_of_runs(value):
    """The first run counts: less than one makes no sense, nor does a fraction."""
    with pytest.raises(InvalidToolError, match=r"ToolPolicy\.attempts: expected an int of at least 1"):
        ToolPolicy(attempts=value)


@pytest.mark.parametrize(
    "value", ["sometimes", "Transient", ErrorClass, BaseException, KeyboardInterrupt, 5, [5], [None]]
)
def test_a_retry_rule_of_something_else_is_refused(value):
    """Unknown words and what is no ``Exception`` are refused: they would never match, or match too much."""
    with pytest.raises(InvalidToolError, match=r"ToolPolicy\.retry_on: expected"):
        ToolPolicy(retry_on=value)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("timeout", {ErrorClass.TIMEOUT}),
        (["5xx", ErrorClass.TRANSIENT], {ErrorClass.SERVER_ERROR, ErrorClass.TRANSIENT}),
        (OSError, {OSError}),
        ((OSError, "timeout"), {OSError, ErrorClass.TIMEOUT}),
        ([], set()),
    ],
)
def test_a_retry_rule_is_kept_as_a_set(given, kept):
    """One word or type, or several."""
    assert kept == ToolPolicy(retry_on=given).retry_on


@pytest.mark.parametrize("field", ["wait", "classify", "check_output"])
def test_other_fields_of_another_type_are_refused(field):
    """A number is neither a wait, nor a function, nor a switch."""
    with pytest.raises(InvalidToolError, match=f"ToolPolicy.{field}: expected"):
        ToolPolicy(**{field: 1})


def test_a_policy_and_limits_are_values():
    """Equal when their fields are, usable as keys, and frozen."""
    assert ToolPolicy(1.0) == ToolPolicy(1.0) != ToolPolicy(2.0)
    assert 1 == len({ToolPolicy(retry_on=["timeout"]), ToolPolicy(retry_on="timeout")})
    for value in (ToolPolicy(), Backoff(), Limits()):
        with pytest.raises(AttributeError):
            value.timeout = 3


def test_the_defaults_are_the_documented_ones():
    """30 s an attempt, four attempts, waits from 0.1 s doubled up to 30 s, fully random, output checked."""
    assert ToolPolicy(30.0, 4, Backoff(0.1, 2.0, 30.0, 1.0), None, True) == ToolPolicy()
    assert (None, None, 40, 4_000_000, 64) == (
        Limits().max_running,
        Limits().max_queued,
        Limits().max_threads,
        Limits().max_arguments_bytes,
        Limits().max_depth,
    )


@pytest.mark.parametrize(
    ("field", "least", "optional"),
    [
        ("max_running", 1, True),
        ("max_queued", 0, True),
        ("max_threads", 1, False),
        ("max_arguments_bytes", 2, False),
        ("max_depth", 1, False),
    ],
)
def test_limits_keep_their_ranges(field, least, optional):
    """Each bound has its least value; a fraction, a bool and text are refused, None where there is a bound always."""
    assert least == getattr(Limits(**{field: least}), field)
    for value in [least - 1, -1, 1.5, True, "5", math.nan, *([] if optional else [None])]:
        with pytest.raises(InvalidToolError, match=f"Limits.{field}: expected an int of at least {least}"):
            Limits(**{field: value})


def test_waits_without_jitter_grow_up_to_their_maximum():
    """0.1, 0.2, 0.4, … and never more than the maximum."""
    wait = Backoff(initial=0.5, factor=2, maximum=3, jitter=0)
    assert [0.5, 1, 2, 3, 3] == [wait.delay(retry, 0.75) for retry in range(1, 6)]


def test_jitter_takes_a_share_off_a_wait():
    """With full jitter and u = 0.25 three quarters are left, with half of it seven eighths."""
    assert 0.75 == Backoff(initial=1, jitter=1).delay(1, 0.25)
    assert 0.875 == Backoff(initial=1, jitter=0.5).delay(1, 0.25)


seconds = st.floats(0, 1e6)


@given(
    st.builds(Backoff, seconds, st.floats(1, 1e3), st.none() | seconds, st.floats(0, 1)),
    st.integers(1, 10_000),
    st.floats(0, 1, exclude_max=True),
)
def test_every_wait_keeps_its_bounds(backoff, retry, u):
    """A wait is never negative, NaN, or longer than the maximum, and jitter takes no more than its share."""
    wait = backoff.delay(retry, u)
    longest = backoff.delay(retry, 0.0)
    assert 0 <= wait <= longest
    assert backoff.maximum is None or longest <= backoff.maximum
    assert wait >= longest * (1 - backoff.jitter) * (1 - 1e-9) or longest == math.inf
    assert longest <= backoff.delay(retry + 1, 0.0)
