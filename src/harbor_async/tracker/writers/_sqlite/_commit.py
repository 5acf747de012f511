"""The transactions: what waits to be written together is committed together.

A commit waits for the disk, which takes some twenty times as long as a write itself, and one commit can hold many
writes. So writes stand in line; the first of them leads: it takes a worker thread, which begins a transaction, does
every write that waits by then, each in a savepoint of its own, and commits. Then each of them has its answer, and the
next in the line leads. Nothing runs that does not belong to a waiting caller.
"""

import sqlite3
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final

import anyio

from ...._backend import Backend
from ...._categories import Delivery, ErrorCategory
from ..._writer import TrackerError
from ._failure import explain, is_busy
from ._hop import Hop, take, wait_anyway
from ._lock import end_of_patience, pauses

_MOST: Final = 256
"""Writes in one transaction. It holds the lock, and cannot be canceled, for some 4 ms; the commit is 1 µs of each."""


class _Write:
    """A write that waits for its answer.

    Attributes:
        end: When it gives up waiting for the lock.
        turn: Not empty until somebody takes the write: a thread, to do it, or its own task, to withdraw it.
        called: Set when it is answered, and when it is to lead.
        is_answered: Whether it is answered: it was in a transaction that has ended, or it gave up.
        is_stored: Whether the transaction was committed.
        error: Why it was not done.
    """

    __slots__ = ("_change", "called", "end", "error", "is_answered", "is_stored", "turn")

    def __init__(self, change: Callable[[sqlite3.Connection], object], end: float) -> None:
        self._change = change
        self.end = end
        self.turn = [True]
        self.called = anyio.Event()
        self.is_answered = False
        self.is_stored = False
        self.error: TrackerError | None = None

    def apply(self, connection: sqlite3.Connection) -> bool:
        """Do it in the running transaction, or undo it and note why; say whether there still is a transaction."""
        try:
            connection.execute("SAVEPOINT one")
            self._change(connection)
        except (sqlite3.Error, TrackerError) as exc:
            self.error = exc if isinstance(exc, TrackerError) else explain(exc)
            if not connection.in_transaction:
                return False
            connection.execute("ROLLBACK TO one")
        connection.execute("RELEASE one")
        return True

    def answer(self, error: TrackerError | None = None) -> None:
        """Let its task go on."""
        self.error = self.error or error
        self.is_answered = True
        self.called.set()


def _locked() -> TrackerError:
    return TrackerError(
        "the tracker's file: another connection has it locked (database is locked)",
        category=ErrorCategory.API_REQUEST,
        delivery=Delivery.NOT_SENT,
    )


class Commits:
    """The line of the writes of one connection."""

    def __init__(self, backend: Backend, hop: Hop) -> None:
        """Begin without a write."""
        self._backend = backend
        self._hop = hop
        self._waiting: deque[_Write] = deque()
        self._is_led = False

    async def write(self, connection: sqlite3.Connection, change: Callable[[sqlite3.Connection], object]) -> None:
        """Do ``change`` in a transaction, and return when that is on the disk.

        A cancellation that comes while it waits withdraws it: it is not done. One that comes later waits for the end of
        the transaction, and then it is answered as ``Hop`` answers.

        Raises:
            TrackerError: It was not done, or, with delivery ``unknown``, the commit failed.
        """
        write = _Write(change, end_of_patience(self._backend))
        self._waiting.append(write)
        if self._is_led:
            await self._follow(write)
        else:
            self._is_led = True
        if not write.is_answered:
            await self._lead(connection, write)
        if write.is_stored and write.error is None:
            return
        try:
            raise write.error or TrackerError("the transaction broke off")
        finally:
            del write  # or the error's traceback holds this frame, and the frame the error

    async def _follow(self, write: _Write) -> None:
        """Wait until the write is answered, or is to lead."""
        try:
            await write.called.wait()
        except BaseException:
            if take(write.turn) is not None:
                if write.called.is_set():
                    self._hand_over()
                raise
            await wait_anyway(write.called, self._backend)
            if self._backend.effective_deadline() > self._backend.time():
                raise  # it comes from no scope, and no checkpoint would raise it again

    async def _lead(self, connection: sqlite3.Connection, own: _Write) -> None:
        """Commit what waits, ``own`` first, as soon as no other connection has the lock."""
        try:
            for pause in pauses():
                if await self._commit(connection):
                    return
                now = self._backend.time()
                self._give_up(now)
                if own.is_answered:
                    return
                await anyio.sleep(min(pause, *(write.end - now for write in self._waiting)))
        except sqlite3.Error as exc:
            raise explain(exc) from exc
        finally:
            take(own.turn)
            self._hand_over()

    def _hand_over(self) -> None:
        """Have the next in the line lead."""
        while self._waiting:
            if self._waiting[0].turn:
                self._waiting[0].called.set()
                return
            self._waiting.popleft()
        self._is_led = False

    def _give_up(self, now: float) -> None:
        """Answer the writes that have waited long enough for the lock, and forget those that were withdrawn."""
        for write in self._waiting:
            if write.end <= now and take(write.turn) is not None:
                write.answer(_locked())
        self._waiting = deque(write for write in self._waiting if write.turn)

    async def _commit(self, connection: sqlite3.Connection) -> bool:
        """Do one transaction; False when another connection has the lock, and nothing was done.

        Raises:
            sqlite3.Error: It could not be begun.
        """
        group: list[_Write] = []
        try:
            return await self._hop(partial(self._transact, connection, group))
        finally:
            for write in group:
                write.answer()

    def _transact(self, connection: sqlite3.Connection, group: list[_Write]) -> bool:
        """Do it, in the thread; ``group`` takes the writes that were in it."""
        writes: Iterable[_Write] | None = self._take(group)
        while writes is not None:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.Error as exc:
                if not group:
                    if is_busy(exc):
                        return False
                    raise
                _fail(group, exc)
                break
            writes = _fill(connection, group, writes)
        return True

    def _take(self, group: list[_Write]) -> Iterator[_Write]:
        """Yield the writes that wait, those included that come meanwhile."""
        while len(group) < _MOST and self._waiting:
            write = self._waiting.popleft()
            if take(write.turn) is not None:
                group.append(write)
                yield write


def _fill(connection: sqlite3.Connection, group: list[_Write], writes: Iterable[_Write]) -> list[_Write] | None:
    """Do ``writes`` and commit; return those to do again, because one of the group has broken the transaction."""
    is_committing = False
    try:
        for write in writes:
            if not write.apply(connection):
                return [other for other in group if other.error is None]
        is_committing = True
        connection.execute("COMMIT")
        for write in group:
            write.is_stored = True
    except sqlite3.Error as exc:
        _fail(group, exc, is_committing=is_committing)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return None


def _fail(group: list[_Write], error: sqlite3.Error, *, is_committing: bool = False) -> None:
    for write in group:
        write.error = write.error or explain(error, is_committing=is_committing)
