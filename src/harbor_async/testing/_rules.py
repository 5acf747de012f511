"""What the conformance suites have in common.

A suite is a class whose methods are named as pytest collects them. It needs neither pytest nor ``assert``, which pytest
explains in test modules alone: each failure is an ``AssertionError`` that says what was expected. It is no abstract
class: pytest would pass over a suite that lacks ``make``, without a word.
"""

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final
from unittest import SkipTest

from .._backend import parts

MAKE: Final = "a suite needs a method make() that returns what is to be tested"


def require(condition: object, message: str) -> None:
    """Fail unless ``condition`` is true.

    Raises:
        AssertionError: With ``message``.
    """
    if not condition:
        raise AssertionError(message)


def skip_unless(condition: object, message: str) -> None:
    """End the test where its rule is not about this object; pytest and unittest count it as skipped.

    Raises:
        SkipTest: With ``message``.
    """
    if not condition:
        raise SkipTest(message)


@contextmanager
def expect(kind: type[BaseException], what: str) -> Generator[list[BaseException]]:
    """Fail unless the block raises ``kind``, which is then in the list.

    Raises:
        AssertionError: It raises nothing, or something else.
    """
    caught: list[BaseException] = []
    try:
        yield caught
    except kind as exc:
        caught.append(exc)
    except Exception as exc:
        msg = f"{what}: expected {kind.__name__}; {type(exc).__name__} was raised"
        raise AssertionError(msg) from exc
    else:
        msg = f"{what}: expected {kind.__name__}; nothing was raised"
        raise AssertionError(msg)


@contextmanager
def no_error(what: str) -> Generator[None]:
    """Fail when the block raises.

    Raises:
        AssertionError: It does.
    """
    try:
        yield
    except AssertionError:
        raise
    except Exception as exc:
        leaf: BaseException = exc
        while parts(leaf):
            leaf = parts(leaf)[0]
        msg = f"{what}: {type(leaf).__name__} was raised: {leaf}"
        raise AssertionError(msg) from exc


@asynccontextmanager
async def opened(made: Any) -> AsyncGenerator[Any]:
    """Enter what ``make`` returned, if it is an async context manager, and give what is to be tested.

    A failure leaves when that is closed: a task group in it would wrap the failure into a group.
    """
    failure: Exception | None = None
    if hasattr(made, "__aenter__"):
        async with made as it:
            try:
                yield it
            except (AssertionError, SkipTest) as exc:
                failure = exc
    else:
        yield made
    if failure is not None:
        raise failure
