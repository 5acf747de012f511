"""Places to run in, and the queue before them."""

from collections import deque
from contextvars import ContextVar

import anyio

from .errors import OverloadedError


class Ticket:
    """A turn.

    Attributes:
        is_granted: Whether its place was handed over.
    """

    __slots__ = ("_called", "_limiter", "is_granted")

    def __init__(self, limiter: "Limiter", *, is_granted: bool) -> None:
        """Make a turn that has come, or one that is waited for."""
        self._limiter: Limiter | None = limiter
        self.is_granted = is_granted
        self._called = None if is_granted else anyio.Event()

    def grant(self) -> None:
        """Hand a place over."""
        self.is_granted = True
        if self._called is not None:
            self._called.set()

    async def wait(self, _: object) -> None:
        """Wait until a place was handed over."""
        if self._called is not None:
            await self._called.wait()

    def leave(self) -> None:
        """Give the place back or leave the queue; nothing when that was done before."""
        limiter, self._limiter = self._limiter, None
        if limiter is not None:
            limiter.dismiss(self)


class Limiter:
    """At most ``max_running`` places, given in the order in which calls come.

    Attributes:
        running: Places that are taken.
    """

    def __init__(self, max_running: int, max_queued: int | None = None) -> None:
        """Open all places. Made inside the event loop that uses it."""
        self._max_running = max_running
        self._max_queued = max_queued
        self.running = 0
        self._queue: deque[Ticket] = deque()

    def join(self, *, is_bounded: bool = True) -> Ticket:
        """Take a free place that nobody waits for, or a turn at the end of the queue.

        Args:
            is_bounded: Whether ``max_queued`` holds.

        Raises:
            OverloadedError: ``max_queued`` calls wait already.
        """
        if self.running < self._max_running and not self._queue:
            self.running += 1
            return Ticket(self, is_granted=True)
        longest = self._max_queued
        if is_bounded and longest is not None and len(self._queue) >= longest:
            msg = f"{self.running} calls run and {len(self._queue)} wait, which is the limit; try again later"
            raise OverloadedError(msg)
        ticket = Ticket(self, is_granted=False)
        self._queue.append(ticket)
        return ticket

    def dismiss(self, ticket: Ticket) -> None:
        """Take a place back, for the first in the queue if any, or take ``ticket`` out of the queue."""
        if not ticket.is_granted:
            self._queue.remove(ticket)
        elif self._queue:
            self._queue.popleft().grant()
        else:
            self.running -= 1


HELD: ContextVar[tuple[Limiter, ...]] = ContextVar("harbor_async.held", default=())
"""The limiters in which the code that runs has a place."""
