"""A worker thread for what blocks, which is always waited for."""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar, cast

import anyio
from anyio.to_thread import run_sync

from ...._backend import Backend

T = TypeVar("T")


class Hop:
    """Runs functions in worker threads, one after the other."""

    def __init__(self, backend: Backend) -> None:
        """Run them for tasks of this event loop."""
        self._backend = backend
        self._limiter = anyio.CapacityLimiter(1)

    async def __call__(self, function: Callable[[], T]) -> T:
        """Return what ``function`` returns in a thread. When this has ended, so has the thread, whatever is canceled.

        A cancellation that comes before the thread has begun keeps it from beginning. One that comes later is answered
        with the value if it comes from a scope, which then cancels the next checkpoint, and leaves when the thread has
        ended if it is ``task.cancel()``.
        """
        # Whoever takes it: the thread, which then runs, or this task, and then it never does. Popping is atomic.
        turn = [function]
        ended = anyio.Event()

        def run() -> T:
            work = take(turn)
            try:
                return cast("T", None) if work is None else work()  # None is for nobody
            finally:
                self._backend.run_sync_soon(ended.set)

        try:
            return await run_sync(run, limiter=self._limiter)
        finally:
            if take(turn) is None:
                await wait_anyway(ended, self._backend)


async def wait_anyway(event: anyio.Event, backend: Backend) -> None:
    """Wait for ``event``, which comes soon, whatever is canceled meanwhile."""
    while not event.is_set():
        # A scope shields against scopes, and not against ``task.cancel()``.
        with anyio.CancelScope(shield=True), suppress(backend.canceled):
            await event.wait()


def take(items: list[T]) -> T | None:
    """Take the last item, or None; no two threads get the same."""
    try:
        return items.pop()
    except IndexError:
        return None
