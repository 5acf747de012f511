"""What the shell does round one call: frozen values, checked when they are made."""

import math
from collections.abc import Callable, Iterable
from typing import Protocol, TypeAlias, cast

import attrs

from . import _harbor
from ._categories import ErrorClass
from .errors import InvalidToolError

RetryOn: TypeAlias = Iterable[ErrorClass | str | type[Exception]] | Callable[[Exception], bool]
Classifier: TypeAlias = Callable[[Exception], ErrorClass | None]


class Wait(Protocol):
    """How long to wait before a retry. ``Backoff`` is the one that ships."""

    def delay(self, retry: int, u: float) -> float:
        """Return the seconds to wait before retry number ``retry`` (from 1); ``u`` is uniform in [0, 1)."""
        ...


def check_seconds(name: str, value: object, *, optional: bool = True) -> None:
    """Refuse everything but a finite number of seconds ≥ 0.

    Raises:
        InvalidToolError: ``value`` is negative, NaN, infinite, a bool or no number.
    """
    if optional and value is None:
        return
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not 0 <= cast("float", value) < math.inf:
        none = ", or None for none" if optional else ""
        msg = f"{name}: expected a finite number of seconds, 0 or more{none}; got {value!r}"
        raise InvalidToolError(msg)


def _number(name: str, value: object, low: float, high: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high or value == math.inf:
        span = f"of at least {low:g}" if high == math.inf else f"from {low:g} to {high:g}"
        msg = f"{name}: expected a finite number {span}; got {value!r}"
        raise InvalidToolError(msg)


@attrs.frozen
class Backoff:
    """Exponential waits with jitter: ``min(maximum, initial * factor**(n-1)) * (1 - jitter * u)``.

    Source: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015 ("full jitter" is ``jitter=1``).

    Attributes:
        initial: Seconds before the first retry, before jitter.
        factor: Growth from one retry to the next; at least 1.
        maximum: Longest wait in seconds. None: no bound.
        jitter: Share of the wait that is random, 0 (none) to 1 (full).

    Raises:
        InvalidToolError: A value is out of its range or of another type.
    """

    initial: float = 0.1
    factor: float = 2.0
    maximum: float | None = 30.0
    jitter: float = 1.0

    def __attrs_post_init__(self) -> None:
        """Check each number."""
        check_seconds("Backoff.initial", self.initial, optional=False)
        _number("Backoff.factor", self.factor, 1, math.inf)
        check_seconds("Backoff.maximum", self.maximum)
        _number("Backoff.jitter", self.jitter, 0, 1)

    def delay(self, retry: int, u: float) -> float:
        """Return the seconds to wait before retry number ``retry`` (from 1); ``u`` is uniform in [0, 1)."""
        ceiling = math.inf if self.maximum is None else self.maximum
        if not self.initial:
            return 0.0
        try:
            wait = self.initial * self.factor ** (retry - 1)
        except OverflowError:
            wait = math.inf
        return float(min(ceiling, wait) * (1 - self.jitter * u))


def _retry_on(value: object) -> "frozenset[ErrorClass | type[Exception]] | Callable[[Exception], bool] | None":
    if value is None or (callable(value) and not isinstance(value, type)):
        return cast("Callable[[Exception], bool] | None", value)
    items = (value,) if isinstance(value, (str, type)) else value
    if not isinstance(items, Iterable):
        msg = f"ToolPolicy.retry_on: expected error classes, exception types or a function; got {value!r}"
        raise InvalidToolError(msg)
    kept: set[ErrorClass | type[Exception]] = set()
    for item in cast("Iterable[object]", items):
        if isinstance(item, type) and issubclass(item, Exception):
            kept.add(item)
        elif isinstance(item, str) and item in set(ErrorClass):
            kept.add(ErrorClass(item))
        else:
            words = ", ".join(ErrorClass)
            msg = f"ToolPolicy.retry_on: expected one of {words}, or a subclass of Exception; got {item!r}"
            raise InvalidToolError(msg)
    return frozenset(kept)


def _is_wait(value: object) -> bool:
    return callable(getattr(value, "delay", None))


@attrs.frozen
class ToolPolicy:
    """What the shell does round one call.

    Input is always validated: decoding is validation.

    Attributes:
        timeout: Seconds that one attempt may take; its clock starts when the attempt does. None: no bound.
        attempts: Runs of the function at the most, the first one included; at least 1. None: no bound but the deadline.
        wait: Seconds between attempts; anything with ``delay(retry, u)``.
        retry_on: What is retried: error classes or their words, exception types, or a function of the exception.
            None: transient errors, timeouts and 5xx, and for a tool that declares an effect only what surely had none.
            What is written here is obeyed as written, effects or not.
        check_output: Whether a result is checked against the out schema.
        classify: Asked first for the class of an exception; None from it falls back to the built-in rules.

    Raises:
        InvalidToolError: A value is out of its range or of another type.
    """

    timeout: float | None = 30.0
    attempts: int | None = 4
    wait: Wait = Backoff()
    retry_on: "frozenset[ErrorClass | type[Exception]] | Callable[[Exception], bool] | None" = attrs.field(
        default=None, converter=_retry_on
    )
    check_output: bool = True
    classify: Classifier | None = attrs.field(default=None, kw_only=True)

    def __attrs_post_init__(self) -> None:
        """Check each value."""
        check_seconds("ToolPolicy.timeout", self.timeout)
        attempts: object = self.attempts
        if attempts is not None and (isinstance(attempts, bool) or not isinstance(attempts, int) or attempts < 1):
            msg = f"ToolPolicy.attempts: expected an int of at least 1, or None for no bound; got {attempts!r}"
            raise InvalidToolError(msg)
        if not _is_wait(self.wait):
            msg = f"ToolPolicy.wait: expected a Backoff, or an object with delay(retry, u); got {self.wait!r}"
            raise InvalidToolError(msg)
        if not isinstance(self.check_output, bool):
            msg = f"ToolPolicy.check_output: expected True or False; got {self.check_output!r}"
            raise InvalidToolError(msg)
        if self.classify is not None and not callable(self.classify):
            msg = f"ToolPolicy.classify: expected a function of an exception, or None; got {self.classify!r}"
            raise InvalidToolError(msg)

    @classmethod
    def harbor(
        cls,
        *,
        timeout_ms: int = 0,
        max_retries: int = 0,
        backoff_base: float = 0.0,
        backoff_mult: float = 0.0,
        backoff_max: float = 0.0,
        retry_on: Iterable[ErrorClass | str] | None = None,
        validate: str = "",
        classify: Classifier | None = _harbor.classify_text,
    ) -> "ToolPolicy":
        """Build the policy that Harbor's own settings mean, with its defaulting, its waits and its text classifier.

        Danger: it retries as Harbor does, so a tool that declares an effect is run again after a failure that may
        have had it. Zero and the empty word mean Harbor's default; "none" is said with a negative number.

        Args:
            timeout_ms: Milliseconds an attempt may take; 0 means 30,000, negative no bound.
            max_retries: Attempts after the first; 0 means 3, negative none.
            backoff_base: Seconds; the first wait is ``backoff_base * backoff_mult``. 0 means 0.1, negative no waits.
            backoff_mult: Growth from one wait to the next; 0 means 2, negative none.
            backoff_max: Seconds of the longest wait; 0 means 30, negative no bound.
            retry_on: Class words. None means transient, timeout and 5xx; so does an empty one when nothing else is
                set, and otherwise it means none. ``permanent`` and unknown words are never retried.
            validate: ``""`` and ``both`` check the result, and so does ``out``; any other word does not. Arguments
                are checked whatever it says.
            classify: The classifier; None for classification by type and attributes.

        Raises:
            InvalidToolError: A value is of another type, or a number is not finite.
        """
        settings = _harbor.resolve(
            _harbor.HarborSettings(
                timeout_ms=timeout_ms,
                max_retries=max_retries,
                backoff_base_ns=_harbor.nanoseconds("backoff_base", backoff_base),
                backoff_mult=backoff_mult,
                backoff_max_ns=_harbor.nanoseconds("backoff_max", backoff_max),
                retry_on=retry_on,
                validate=validate,
            )
        )
        timeout = settings.timeout_ms / 1000 if settings.timeout_ms > 0 else None
        if timeout is None and classify is _harbor.classify_text:
            classify = _harbor.classify_text_untimed
        return cls(
            timeout=timeout,
            attempts=settings.attempts,
            wait=_harbor.HarborBackoff(settings.backoff_base_ns, settings.backoff_mult, settings.backoff_max_ns),
            retry_on={ErrorClass(word) for word in settings.retry_on or () if word in _harbor.DEFAULT_RETRY_ON},
            check_output=settings.validates_output,
            classify=classify,
        )
