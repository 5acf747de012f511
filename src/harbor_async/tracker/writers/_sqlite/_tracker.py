"""``SQLiteTracker``."""

import os
import sqlite3
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

from anyio.lowlevel import EventLoopToken, current_token

from .... import _backend
from ...._categories import Delivery, ErrorCategory
from ...._json import has_surrogate
from ..._writer import Issue, TrackerError
from ._change import Effect, add, close, comment, link_pr, transition, write_once
from ._file import make_file
from ._hop import Hop
from ._read import Change, has_comment, read_all, read_history, read_issue
from ._session import Session

T = TypeVar("T")


class SQLiteTracker:
    """A tracker in an SQLite file: issues, comments, links, their history, and the workflow of their states.

    Any number of processes, threads and event loops may use one file at once. A write has been committed, and is on
    the disk, when its method returns; with the same ``key`` it is done once, however often it is sent. ::

        await SQLiteTracker.create("issues.db")
        async with SQLiteTracker("issues.db") as tracker:
            await tracker.add("T-1", "It leaks")
            await tracker.close("T-1", "mended", key="7f3a")

    ``async with`` keeps the file open. Without it the first call opens the file, and it is closed again when no call
    is running: as good for a few calls, and slow for many that come one after the other.

    Each method raises ``TrackerError``. Delivery ``refused`` and ``not_sent``: nothing was written. ``unknown``: the
    commit itself failed. Another process that has the file locked is waited for until shortly before the deadline, at
    most five seconds, and is then ``api_request`` and ``not_sent``.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Prepare for the tracker in the file at ``path``, which ``create`` has made. Nothing is opened yet."""
        self.path: Path = Path(path)
        self._sessions: dict[EventLoopToken, Session] = {}

    @classmethod
    async def create(cls, path: str | os.PathLike[str]) -> Self:
        """Make the file of a new tracker, without issues, and return its tracker.

        Its workflow leads from ``open`` over ``in_progress`` and ``in_review`` to ``closed``; it stands in the tables
        ``states`` and ``moves`` of the file and may be changed there.

        Raises:
            TrackerError: There is such a file already (``conflict``), or it cannot be made.
        """
        tracker = cls(path)
        await Hop(_backend.current())(partial(make_file, tracker.path))
        return tracker

    async def __aenter__(self) -> Self:
        """Open the file and keep it open.

        Raises:
            TrackerError: It is missing (``not_found``), is no tracker's, or cannot be opened.
        """
        await self._enter()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the file when the last call has ended."""
        await self._leave(self._session())

    async def add(self, id: str, title: str) -> None:
        """Add an issue in the first state.

        Raises:
            TrackerError: There is an issue of this id (``conflict``), or it was not added.
        """
        _check_text(id, title)
        await self._change(partial(add, id=id, title=title))

    async def comment(self, id: str, body: str, /, *, key: str) -> None:
        """Add a comment to issue ``id``.

        Raises:
            TrackerError: It was not added. ``conflict``: ``key`` was used for another write.
        """
        await self._write("comment", comment, id, body, key)

    async def transition(self, id: str, to_state: str, /, *, key: str) -> None:
        """Move issue ``id`` to ``to_state``, in any letter case. One that is there stays as it is.

        Raises:
            TrackerError: It was not moved. ``validation``: there is no such state, or no move to it; the message lists
                the moves that there are. ``conflict``: as for ``comment``.
        """
        await self._write("transition", transition, id, to_state, key)

    async def close(self, id: str, reason: str, /, *, key: str) -> None:
        """Move issue ``id`` to the first closed state that it can reach. A closed one stays as it is.

        Raises:
            TrackerError: As for ``transition``.
        """
        await self._write("close", close, id, reason, key)

    async def link_pr(self, id: str, pr_url: str, /, *, key: str) -> None:
        """Link a pull request to issue ``id``. One that is linked stays as it is.

        Raises:
            TrackerError: As for ``comment``.
        """
        await self._write("link_pr", link_pr, id, pr_url, key)

    async def find_comment(self, id: str, /, *, key: str) -> bool:
        """Say whether issue ``id`` has the comment that was written with ``key``.

        Raises:
            TrackerError: The file could not be read.
        """
        _check_text(id, key)
        return await self._read(partial(has_comment, id=id, key=key))

    async def get(self, id: str, /) -> Issue:
        """Return issue ``id``.

        Raises:
            TrackerError: There is none (``not_found``), or the file could not be read.
        """
        _check_text(id)
        return await self._read(partial(read_issue, id=id))

    async def list(self) -> tuple[Issue, ...]:
        """Return all issues, the oldest first.

        Raises:
            TrackerError: The file could not be read.
        """
        return await self._read(read_all)

    async def history(self, id: str, /) -> tuple[Change, ...]:
        """Return what has happened to issue ``id``, in the order in which it did.

        Raises:
            TrackerError: There is none (``not_found``), or the file could not be read.
        """
        _check_text(id)
        return await self._read(partial(read_history, id=id))

    async def _write(self, op: str, effect: Effect, id: str, text: str, key: str) -> None:
        _check_text(id, text, key)
        await self._change(partial(write_once, op=op, effect=effect, id=id, text=text, key=key))

    async def _change(self, change: Callable[[sqlite3.Connection], object]) -> None:
        async with self._open() as session:
            await session.write(change)

    async def _read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        async with self._open() as session:
            return await session.read(query)

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[Session]:
        session = await self._enter()
        try:
            yield session
        finally:
            await self._leave(session)

    async def _enter(self) -> Session:
        session = self._session()
        session.users += 1
        if not session.is_open:
            try:
                await session.open()
            except BaseException:
                await self._leave(session)
                raise
        return session

    def _session(self) -> Session:
        """Return the session of the running event loop."""
        token = current_token()
        session = self._sessions.get(token)
        if session is None:
            session = self._sessions[token] = Session(self.path, _backend.current())
        return session

    async def _leave(self, session: Session) -> None:
        session.users -= 1
        if not session.users:
            del self._sessions[current_token()]
            await session.close()


def _check_text(*texts: object) -> None:
    """Refuse what the file cannot hold."""
    for text in texts:
        if not isinstance(text, str):
            msg = f"expected text; got {type(text).__name__}"
        elif has_surrogate(text):
            msg = "half of a surrogate pair is no text"
        else:
            continue
        raise TrackerError(msg, category=ErrorCategory.VALIDATION, delivery=Delivery.NOT_SENT)
