"""Time in two forms: virtual and exact, or real and short."""

import time

import anyio
import pytest

from harbor_async.testing import block
from tests.unit.thread.gate import pass_time

_EARLY = 0.01
"""Seconds by which a real timer may fire too soon: loops cut their clocks to milliseconds."""


class Pace:
    """Says how long things take in this run, so that one test is exact in virtual time and harmless in real time.

    In real time nothing is said about the speed: an end that is to come first lies whole seconds before the other one.

    Attributes:
        is_virtual: Whether time is virtual.
    """

    def __init__(self, *, is_virtual: bool) -> None:
        self.is_virtual = is_virtual

    def __call__(self, virtual: float, real: float) -> float:
        """Return the seconds of this run."""
        return virtual if self.is_virtual else real

    def check(self, expected: float, elapsed: float) -> None:
        """Fail unless ``elapsed`` is what was expected: exactly that in virtual time, no less in real time."""
        if self.is_virtual:
            assert pytest.approx(expected, abs=1e-9) == elapsed
        else:
            assert expected - _EARLY <= elapsed

    def block(self, seconds: float) -> None:
        """Keep the event loop for so long."""
        (block if self.is_virtual else time.sleep)(seconds)

    async def pass_time(self, seconds: float) -> None:
        """Let so much time pass though threads are under way, and what follows from it happen."""
        await (pass_time if self.is_virtual else anyio.sleep)(seconds)
