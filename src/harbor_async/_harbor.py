"""Harbor's own reading of a retry policy: its defaults, its waits, its rules of text.

It is kept for two readers: someone who moves a program over from Harbor and wants the numbers to stay what they were,
and the recorded runs of Harbor itself, which are tests here. ``ToolPolicy.harbor`` is the way in; the shell knows
nothing of this module. Durations are whole nanoseconds, as in the seed, so that its waits come out to the last digit.
"""

import math
from collections.abc import Iterable, Iterator
from typing import cast

import attrs

from ._categories import ErrorClass
from .errors import InvalidArgumentsError, InvalidToolError, ToolCanceledError, ToolError, ToolNotFoundError

NANOSECONDS = 1_000_000_000

DEFAULT_RETRY_ON: tuple[str, ...] = (ErrorClass.TRANSIENT, ErrorClass.TIMEOUT, ErrorClass.SERVER_ERROR)

_LONGEST_WAIT = 2.0**62
"""The seed stops its growth at half of its largest duration, so that adding jitter cannot overflow."""

_JITTER = 0.1
"""The largest jitter, as a share of the *base*: it does not grow with the wait."""


def _require(name: str, expected: str, value: object, *, holds: bool) -> None:
    if not holds:
        msg = f"ToolPolicy.harbor({name}=): expected {expected}; got {value!r}"
        raise InvalidToolError(msg)


def _is_number(value: object, *kinds: type) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool) and math.isfinite(cast("float", value))


def _words(value: Iterable[str] | None) -> tuple[str, ...] | None:
    if value is None:
        return None
    given = cast("object", value)
    words = tuple(value) if isinstance(given, Iterable) and not isinstance(given, str) else (None,)
    _require("retry_on", "words of error classes, or None", value, holds=all(isinstance(word, str) for word in words))
    return cast("tuple[str, ...]", words)


def nanoseconds(name: str, seconds: float) -> int:
    """Return ``seconds`` as whole nanoseconds.

    Raises:
        InvalidToolError: ``seconds`` is no finite number.
    """
    _require(name, "a finite number of seconds", seconds, holds=_is_number(seconds, int, float))
    return round(seconds * NANOSECONDS)


@attrs.frozen(kw_only=True)
class HarborSettings:
    """A Harbor policy, word for word. Zero, None and the empty word mean "not said".

    Attributes:
        timeout_ms: Milliseconds that an attempt may take. Negative: no bound.
        max_retries: Attempts after the first. Negative: none.
        backoff_base_ns: Nanoseconds, the base of the wait. Negative: never wait.
        backoff_mult: Growth from one wait to the next. Negative: none, as if it were 1.
        backoff_max_ns: Longest wait in nanoseconds. Negative: no bound.
        retry_on: Words of the classes that are retried. Empty: nothing is, unless nothing else is said either.
        validate: What is checked: ``both``, ``in``, ``out``; any other word means neither.

    Raises:
        InvalidToolError: A value is of another type, or ``backoff_mult`` is not finite.
    """

    timeout_ms: int = 0
    max_retries: int = 0
    backoff_base_ns: int = 0
    backoff_mult: float = 0.0
    backoff_max_ns: int = 0
    retry_on: tuple[str, ...] | None = attrs.field(default=None, converter=_words)
    validate: str = ""

    def __attrs_post_init__(self) -> None:
        """Check the type of each value; any number is legal."""
        for name in ("timeout_ms", "max_retries", "backoff_base_ns", "backoff_max_ns"):
            _require(name, "an int", getattr(self, name), holds=_is_number(getattr(self, name), int))
        _require("backoff_mult", "a finite number", self.backoff_mult, holds=_is_number(self.backoff_mult, int, float))
        _require("validate", "a word", self.validate, holds=isinstance(cast("object", self.validate), str))

    @property
    def is_zero(self) -> bool:
        """Whether nothing is said at all; an empty ``retry_on`` says nothing here."""
        return attrs.evolve(self, retry_on=self.retry_on or None) == HarborSettings()

    @property
    def attempts(self) -> int:
        """Runs of the function at the most, the first one included."""
        return 1 + max(0, self.max_retries)

    @property
    def validates_input(self) -> bool:
        """Whether Harbor checks the arguments. Here they are checked always."""
        return self.validate in {"both", "in"}

    @property
    def validates_output(self) -> bool:
        """Whether the result is checked."""
        return self.validate in {"both", "out"}


def resolve(settings: HarborSettings) -> HarborSettings:
    """Fill in what is not said with Harbor's defaults; what is said stays, odd or not."""
    retry_on = None if settings.is_zero else settings.retry_on
    return HarborSettings(
        timeout_ms=settings.timeout_ms or 30_000,
        max_retries=settings.max_retries or 3,
        backoff_base_ns=settings.backoff_base_ns or 100_000_000,
        backoff_mult=settings.backoff_mult or 2.0,
        backoff_max_ns=settings.backoff_max_ns or 30_000_000_000,
        retry_on=DEFAULT_RETRY_ON if retry_on is None else retry_on,
        validate=settings.validate or "both",
    )


@attrs.frozen
class HarborBackoff:
    """Harbor's waits: ``min(maximum, base * mult**n + 0.1 * base * u)`` before retry ``n``.

    The first wait is already multiplied once, the jitter is a tenth of the base however long the wait has grown, and
    the bound cuts the jitter too. Nothing here has a default: zero is zero, and means "none" as below.

    Attributes:
        base_ns: Nanoseconds. 0 or less: never wait.
        mult: Growth from one wait to the next. 0 or less: none.
        maximum_ns: Longest wait in nanoseconds. 0 or less: no bound but about 146 years.
    """

    base_ns: int
    mult: float
    maximum_ns: int

    def delay_ns(self, retry: int, u: float) -> int:
        """Return the nanoseconds to wait before retry number ``retry`` (from 1), fractions cut off as the seed does."""
        if self.base_ns <= 0 or retry <= 0:
            return 0
        try:
            wait = self.base_ns * float(self.mult if self.mult > 0 else 1) ** retry
        except OverflowError:
            wait = math.inf
        total = int(min(wait, _LONGEST_WAIT)) + int(u * _JITTER * self.base_ns)
        return min(total, self.maximum_ns) if self.maximum_ns > 0 else total

    def delay(self, retry: int, u: float) -> float:
        """Return the seconds to wait before retry number ``retry`` (from 1); ``u`` is uniform in [0, 1)."""
        return self.delay_ns(retry, u) / NANOSECONDS


def classify_text(error: Exception, *, attempt_timeout: bool = True) -> ErrorClass | None:
    """Class an exception by the words in its text, as Harbor does.

    The rules are wrong in both directions ("order 500 not found" is a server error, "request timed out" is none), so
    prefer the built-in ones, which go by type and attributes. They are Harbor's, in Harbor's order:

    1. A ``TimeoutError`` of this process, itself or among its causes: ``timeout``; without an attempt timeout it can
       only be the caller's, hence ``permanent``. One with an ``errno`` comes from the operating system, and its words
       decide.
    2. A cancellation, invalid arguments, an unknown tool, itself or among its causes: ``permanent``.
    3. ``status 5``, or 500, 502, 503 or 504 between two spaces: ``5xx``.
    4. ``timeout`` or ``deadline exceeded``: ``timeout``.
    5. Anything else: ``transient``.

    Args:
        error: What the tool raised.
        attempt_timeout: Whether an attempt has a timeout under this policy.

    Returns:
        The class, or None for a ``ToolError`` that says its own: Harbor has no such error, and its word is better.
    """
    chain = list(_with_causes(error))
    if any(isinstance(link, TimeoutError) and link.errno is None for link in chain):
        return ErrorClass.TIMEOUT if attempt_timeout else ErrorClass.PERMANENT
    if any(isinstance(link, _PERMANENT) or not isinstance(link, Exception) for link in chain):
        return ErrorClass.PERMANENT
    if isinstance(error, ToolError) and (error.error_class or error.category):
        return None
    text = str(error).lower()
    if "status 5" in text or any(f" {code} " in text for code in (500, 502, 503, 504)):
        return ErrorClass.SERVER_ERROR
    if "timeout" in text or "deadline exceeded" in text:
        return ErrorClass.TIMEOUT
    return ErrorClass.TRANSIENT


def classify_text_untimed(error: Exception) -> ErrorClass | None:
    """Class an exception by the words in its text, under a policy whose attempts have no timeout."""
    return classify_text(error, attempt_timeout=False)


_PERMANENT = (ToolCanceledError, InvalidArgumentsError, ToolNotFoundError)


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield ``error``, what it was raised from, and the members of groups, each once."""
    seen: set[int] = set()
    pending = [error]
    while pending:
        link = pending.pop()
        if id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        if link.__cause__ is not None:
            pending.append(link.__cause__)
        if isinstance(link, BaseExceptionGroup):
            pending.extend(cast("BaseExceptionGroup[BaseException]", link).exceptions)
