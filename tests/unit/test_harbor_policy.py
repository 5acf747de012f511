from typing import Any

import pytest

from harbor_async._categories import ErrorCategory, ErrorClass
from harbor_async._policy import ToolPolicy
from harbor_async.errors import InvalidToolError, ToolError


@pytest.mark.parametrize(
    "settings",
    [
        {"timeout_ms": 1.5},
        {"timeout_ms": True},
        {"max_retries": "3"},
        {"backoff_base": float("nan")},
        {"backoff_max": float("inf")},
        {"backoff_base": None},
        {"backoff_mult": float("nan")},
        {"backoff_mult": False},
        {"retry_on": "timeout"},
        {"retry_on": [503]},
        {"retry_on": 5},
        {"validate": None},
        {"classify": "text"},
    ],
)
def test_values_of_another_type_are_refused(settings: dict[str, Any]) -> None:
    """Any number and any word has a meaning in Harbor; a value that is neither is refused by name."""
    (name,) = settings
    with pytest.raises(InvalidToolError, match=name):
        ToolPolicy.harbor(**settings)


def test_a_tool_error_that_names_its_class_is_not_read_for_words() -> None:
    """An error that says what it is falls back to the built-in rules, whatever its text."""
    classify = ToolPolicy.harbor().classify
    assert classify is not None
    assert classify(ToolError("status 503", error_class=ErrorClass.PERMANENT)) is None
    assert classify(ToolError("status 503", category=ErrorCategory.NOT_FOUND)) is None
    assert classify(ToolError("status 503")) is ErrorClass.SERVER_ERROR


def test_causes_that_form_a_ring_are_read_once() -> None:
    """Two errors that name each other as their cause are classed like any other."""
    first, second = RuntimeError("status 500"), RuntimeError("boom")
    first.__cause__, second.__cause__ = second, first
    classify = ToolPolicy.harbor().classify
    assert classify is not None
    assert classify(first) is ErrorClass.SERVER_ERROR


def test_a_native_cancellation_among_the_causes_is_permanent() -> None:
    """An error raised from a cancellation is as permanent as the cancellation."""
    error = RuntimeError("stopped")
    error.__cause__ = KeyboardInterrupt()
    classify = ToolPolicy.harbor().classify
    assert classify is not None
    assert classify(error) is ErrorClass.PERMANENT


def test_another_classifier_is_kept() -> None:
    """``classify=None`` asks for the built-in rules, and a function of one's own stands."""

    def mine(error: Exception) -> ErrorClass | None:
        return None

    assert ToolPolicy.harbor(classify=None).classify is None
    assert ToolPolicy.harbor(timeout_ms=-1, classify=mine).classify is mine
