"""What goes wrong in one run of a tool."""

import math
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final, TypeAlias, TypeVar, cast

import anyio
import attrs

from ..errors import InvalidToolError

R = TypeVar("R")

_TOLD: Final = 3
"""Cancellations after which a runtime tells that the tool has gone on each time (``tool.cancel_ignored``)."""


def _check_delay(_: object, __: object, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
        msg = f"Fault.delay: expected seconds, 0 or more, math.inf for a hang; got {value!r}"
        raise InvalidToolError(msg)


def is_error(value: object) -> bool:
    """Say whether ``value`` is an exception or a class of exceptions."""
    return isinstance(value, BaseException) or (isinstance(value, type) and issubclass(value, BaseException))


@attrs.frozen(kw_only=True)
class Fault:
    """What goes wrong in one attempt of a tool: it is late, hangs, fails, gives something else, or will not stop.

    First ``delay`` passes. Then ``error`` is raised, or ``value`` is returned, or else the tool is run.

    Attributes:
        delay: Seconds to wait; ``math.inf``: for ever, as ``HANG`` does.
        error: What to raise: a class makes a new one each time, an exception is raised as it is. None: nothing.
        value: What to return; left out: what the tool returns.
        after: Whether the tool is run before all this, so that its effect has happened by then.
        swallow: Whether cancellations are caught and ignored until the attempt has ended by itself.

    Raises:
        InvalidToolError: A value makes no sense, or the attempt could never end.
    """

    delay: float = attrs.field(default=0.0, validator=_check_delay)
    error: BaseException | type[BaseException] | None = None
    value: Any = ...
    after: bool = False
    swallow: bool = False

    def __attrs_post_init__(self) -> None:
        """Refuse what contradicts itself."""
        if self.error is not None and not is_error(self.error):
            reason = f"error: expected an exception, or a class of them; got {self.error!r}"
        elif self.error is not None and self.value is not ...:
            reason = "either an error or a value, not both"
        elif self.swallow and self.delay == math.inf:
            reason = "a hang that swallows its cancellation would never end; give it a delay"
        else:
            return
        msg = f"Fault: {reason}"
        raise InvalidToolError(msg)


HANG: Final = Fault(delay=math.inf)
"""The tool never answers, and ends when it is canceled."""

AnyFault: TypeAlias = Fault | BaseException | type[BaseException] | None
"""A ``Fault``, short for one the error that is raised, or None: nothing goes wrong."""


def to_fault(item: object) -> Fault:
    """Return what ``item`` is short for.

    Raises:
        InvalidToolError: It is nothing of the kind.
    """
    if isinstance(item, Fault):
        return item
    if item is None:
        return _NONE
    if is_error(item):
        return Fault(error=cast("BaseException | type[BaseException]", item))
    msg = f"expected a Fault, an exception, a class of exceptions or None; got {type(item).__name__}"
    raise InvalidToolError(msg)


_NONE: Final = Fault()


def chance(random: Callable[[], float], *faults: tuple[float, AnyFault]) -> Iterator[AnyFault]:
    """Return for each run what goes wrong in it, by chance: a script for ``inject``.

    ::

        shaky = inject(search, chance(Random(7).random, (0.1, ConnectionResetError), (0.01, HANG)))

    Args:
        random: Uniform numbers in [0, 1), one for each run.
        *faults: How likely, from 0 to 1, and what. Together they are at most 1; else nothing goes wrong.

    Returns:
        An endless iterator.

    Raises:
        InvalidToolError: A fault is none, or a probability is out of its range.
    """
    steps = [(share, to_fault(fault)) for share, fault in faults]
    if any(not 0 <= share <= 1 for share, _ in steps) or not sum(share for share, _ in steps) <= 1 + 1e-9:
        msg = "chance: expected probabilities from 0 to 1, together at most 1"
        raise InvalidToolError(msg)
    return _draw(random, steps)


def _draw(random: Callable[[], float], steps: list[tuple[float, Fault]]) -> Iterator[AnyFault]:
    while True:
        left = random()
        for share, fault in steps:
            left -= share
            if left < 0:
                yield fault
                break
        else:
            yield None


async def play(fault: Fault, run: Callable[[], Awaitable[R]]) -> R:
    """Do what ``fault`` says round ``run``, which runs the tool."""
    value: Any = fault.value
    if fault.after:
        ran = await _run(fault, run)
        value = ran if value is ... else value
    if fault.delay:
        await _wait(fault)
    if fault.error is not None:
        raise fault.error
    return await _run(fault, run) if value is ... else cast("R", value)


async def _run(fault: Fault, run: Callable[[], Awaitable[R]]) -> R:
    value: Any = None
    with anyio.CancelScope(shield=fault.swallow):
        value = await run()
    return cast("R", value)


async def _wait(fault: Fault) -> None:
    end = anyio.current_time() + fault.delay
    ignored = 0
    while True:
        try:
            # Shielded once that was told: a scope cancels again at each turn of the loop, and virtual time would stand
            # still. Not before: a tool that shields itself does not ignore.
            with anyio.CancelScope(shield=ignored > _TOLD):
                await (anyio.sleep_forever() if fault.delay == math.inf else anyio.sleep_until(end))
        except anyio.get_cancelled_exc_class():
            if not fault.swallow:
                raise
            ignored += 1
        else:
            return
