"""The connection that the tasks of one event loop share."""

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio

from ...._backend import Backend
from ._commit import Commits
from ._file import open_file
from ._hop import Hop
from ._lock import insist

T = TypeVar("T")


class Session:
    """A connection that is opened for the first user, and closed after the last.

    Attributes:
        users: How many use it now.
    """

    def __init__(self, path: Path, backend: Backend) -> None:
        """Prepare a connection to the file at ``path``."""
        self.users = 0
        self._path = path
        self._backend = backend
        self._hop = Hop(backend)
        self._commits = Commits(backend, self._hop)
        self._connection: sqlite3.Connection | None = None
        self._opening = anyio.Lock(fast_acquire=True)

    async def open(self) -> None:
        """Open the connection, if no other user has.

        Raises:
            TrackerError: The file is missing, is no tracker's, or cannot be opened.
        """
        async with self._opening:
            if self._connection is None:
                await insist(self._hop, self._backend, self._connect)

    def _connect(self) -> None:
        self._connection = open_file(self._path)  # kept here, for a canceled task gets no value

    async def close(self) -> None:
        """Close the connection, if it is open."""
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                with anyio.CancelScope(shield=True), suppress(sqlite3.Error):
                    await self._hop(connection.close)
            finally:
                connection.close()  # does nothing, but where ``task.cancel()`` came before the thread had begun

    @property
    def is_open(self) -> bool:
        """Whether the connection is open."""
        return self._connection is not None

    async def read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """Return what ``query`` reads.

        Raises:
            TrackerError: It could not be read.
        """
        assert self._connection is not None  # noqa: S101 - its user has opened it
        return await insist(self._hop, self._backend, partial(query, self._connection))

    async def write(self, change: Callable[[sqlite3.Connection], object]) -> None:
        """Do ``change``, as ``Commits.write``."""
        assert self._connection is not None  # noqa: S101 - as above
        await self._commits.write(self._connection, change)
