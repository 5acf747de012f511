"""Places to run in, and the queue before them."""

from collections import deque

import anyio

from ._limits import Limits
from .errors import OverloadedError


class Ticket:
    """A turn in the queue.

    Attributes:
        is_granted: Whether a place was handed over.
    """

    __slots__ = ("_called", "is_granted")

    def __init__(self) -> None:
        """Join the end of a queue."""
        self.is_granted = False
        self._called = anyio.Event()

    def grant(self) -> None:
        """Hand a place over."""
        self.is_granted = True
        self._called.set()

    async def wait(self, _: object) -> None:
        """Wait until a place was handed over."""
        await self._called.wait()


class Limiter:
    """At most ``max_running`` places; calls that wait get one in the order in which they came."""

    def __init__(self, limits: Limits) -> None:
        """Open all places. Made inside the event loop that uses it."""
        self._limits = limits
        self._running = 0
        self._queue: deque[Ticket] = deque()

    def take_nowait(self) -> bool:
        """Take a free place that nobody waits for; say whether there was one."""
        most = self._limits.max_running
        if most is not None and (self._running >= most or self._queue):
            return False
        self._running += 1
        return True

    def join(self, *, is_bounded: bool = True) -> Ticket:
        """Queue for a place.

        Args:
            is_bounded: Whether ``max_queued`` holds; not so for a stream, which pulls no more than it may.

        Raises:
            OverloadedError: ``max_queued`` calls wait already.
        """
        most = self._limits.max_queued
        if is_bounded and most is not None and len(self._queue) >= most:
            msg = f"{self._running} calls run and {len(self._queue)} wait, which is the limit; try again later"
            raise OverloadedError(msg)
        ticket = Ticket()
        self._queue.append(ticket)
        return ticket

    def abandon(self, ticket: Ticket) -> None:
        """Leave the queue, or give back the place that was handed over meanwhile."""
        if ticket.is_granted:
            self.release()
        else:
            self._queue.remove(ticket)

    def release(self) -> None:
        """Give a place back: to the first in the queue, if any."""
        if self._queue:
            self._queue.popleft().grant()
        else:
            self._running -= 1
