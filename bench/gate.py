"""A place where calls stand, so that what they hold can be counted."""

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

from .pair import Side


class Gate:
    """Holds whoever sleeps at it, until all have come; the last one counts the memory and opens it."""

    def __init__(self, event: Callable[[], Any]) -> None:
        """Make a gate.

        Args:
            event: Makes an event of the backend that runs.
        """
        self._event = event
        self._open = event()
        self._awaited = 0
        self._held = 0

    async def sleep(self, seconds: float) -> None:
        self._awaited -= 1
        if self._awaited == 0:
            gc.collect()
            self._held = tracemalloc.get_traced_memory()[0]
            self._open.set()
        await self._open.wait()

    async def measure(self, side: Side, calls: int) -> float:
        """Return the bytes that each of ``calls`` holds that ``side`` has brought to the gate at once."""
        before = 0
        tracemalloc.start(1)
        try:
            for _ in range(2):  # the first fills caches and free lists
                self._awaited, self._open = calls, self._event()
                gc.collect()
                before = tracemalloc.get_traced_memory()[0]
                await side(calls)
        finally:
            tracemalloc.stop()
        return (self._held - before) / calls
