"""The running event loop, as the shell sees it."""

from collections.abc import Callable, Iterable
from typing import Any

import anyio
from anyio.lowlevel import checkpoint


class Backend:
    """The running event loop, as the shell sees it.

    Attributes:
        scope: The class of cancel scopes. anyio's own for the loop, or trio's: calling it skips the look-up in
            ``anyio.CancelScope``, a quarter of the cost of a scope.
        time: The loop's clock, in seconds.
        canceled: What a cancellation is raised as.
        foreign: What a library may raise as one: on trio asyncio's, too, for code that knows that alone.
        effective_deadline: ``anyio.current_effective_deadline`` without the look-up of the backend, half its cost.
        loop: asyncio's event loop; None on trio.
        thread: The identifier of the loop's thread.
        steps_first: Whether ``enter_scope`` can put a scope below those that a function has entered since ``enter``.
            It needs attributes that anyio and trio keep to themselves; without them every scope is entered at once.
    """

    scope: type[anyio.CancelScope]
    time: Callable[[], float]
    canceled: type[BaseException]
    foreign: tuple[type[BaseException], ...]
    effective_deadline: Callable[[], float]
    loop: Any = None
    thread: int
    steps_first: bool

    def enter(self) -> tuple[Any, int, float]:
        """Look at what surrounds the running task.

        Returns:
            The scope that is innermost now, for ``enter_scope``; how many native cancellations are pending; and the
            effective deadline.
        """
        raise NotImplementedError

    def enter_scope(self, place: Any, deadline: float) -> anyio.CancelScope:
        """Enter a scope in the ``place`` that ``enter`` gave: below all scopes that were entered since.

        Its ``__exit__`` must follow when those have been left.
        """
        raise NotImplementedError

    def cancelling(self) -> int:
        """Return how many native cancellations of the running task have been delivered and are pending."""
        return 0

    def is_canceled(self, pending: int) -> bool:  # noqa: ARG002 - for backends that have native cancellation
        """Say whether somebody outside the scopes of this call has canceled the running task.

        Asked outside those scopes. A deadline that has passed counts: a blocked loop may not have delivered it yet.

        Args:
            pending: ``cancelling()`` when the call was entered; more of them now mean a native cancellation.
        """
        return self.effective_deadline() <= self.time()

    def is_free(self, place: Any, outer: float) -> bool:  # noqa: ARG002 - for a backend that can tell by the place
        """Say whether nobody has canceled ``place``, which is not None, since ``enter`` gave these."""
        return self.effective_deadline() > self.time()

    def is_cut(self, scope: anyio.CancelScope) -> bool:
        """Say whether the running code is told that ``scope``, in which it is, or what is round that is canceled.

        It is not where it shields itself from that.
        """
        return scope.cancel_called

    def is_within(self, place: Any, scopes: Iterable[Any]) -> bool:
        """Say whether one of ``scopes`` is round the running code or ``place``, or is None.

        Yes, where that cannot be told.

        Args:
            place: What ``enter`` gave elsewhere, or None.
            scopes: Scopes of running calls.
        """
        return not self.steps_first or not (self._around(place) | {None}).isdisjoint(scopes)

    def _around(self, place: Any) -> set[Any]:
        """Return the scopes that are round the running code or ``place``."""
        raise NotImplementedError

    async def leave(self, pending: int, error: BaseException | None) -> None:  # noqa: ARG002 - as above
        """Let out the cancellation that ``is_canceled`` found.

        It returns only when there is none any more: a passed deadline that was put off before it was delivered.

        Args:
            pending: As for ``is_canceled``.
            error: What came out of the canceled code, if anything.
        """
        while self.effective_deadline() <= self.time():  # a blocked loop can need more than one checkpoint to deliver
            await checkpoint()

    def run_sync_soon(self, function: Callable[[], object]) -> None:
        """Have the loop call ``function`` soon; from any thread, and for nothing once the loop has ended."""
        raise NotImplementedError
