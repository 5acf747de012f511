"""Waiting while another connection, of this process or another, has the file locked."""

import sqlite3
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from typing import Final, TypeVar

import anyio

from ...._backend import Backend
from ._failure import explain, is_busy
from ._hop import Hop

T = TypeVar("T")

_PATIENCE: Final = 5.0
"""Seconds to wait where no deadline comes before; that of Python's own ``sqlite3.connect``."""
_MARGIN: Final = 0.01
"""Seconds before a deadline at which waiting ends, so that the caller hears that nothing was written."""
_PAUSES: Final = (0.001, 0.002, 0.005, 0.01, 0.015, 0.02)
"""Seconds between looks, those of SQLite's own busy handler as long as they are short. Source: its ``main.c``."""


def pauses() -> Iterator[float]:
    """Yield the pauses between one look at the lock and the next, without end."""
    return chain(_PAUSES, repeat(0.025))


def end_of_patience(backend: Backend) -> float:
    """Return when to stop waiting, on the event loop's clock."""
    return min(backend.time() + _PATIENCE, backend.effective_deadline() - _MARGIN)


async def insist(hop: Hop, backend: Backend, function: Callable[[], T]) -> T:
    """Return what ``function`` returns in a thread; run it again while it finds the file locked.

    The waits are ours and not SQLite's, so that a cancellation ends them at once.

    Raises:
        TrackerError: What SQLite's error means.
    """
    end = end_of_patience(backend)
    for pause in pauses():
        try:
            return await hop(function)
        except sqlite3.Error as exc:
            if not is_busy(exc) or backend.time() >= end:
                raise explain(exc) from exc
        await anyio.sleep(min(pause, max(0.0, end - backend.time())))
    raise AssertionError  # there is always another pause
