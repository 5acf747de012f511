"""Tracker files for the tests, a look into them, and a hand on the connections that are made to them."""

import sqlite3
from contextlib import closing

from harbor_async.tracker import TrackerError
from harbor_async.tracker.writers import SQLiteTracker


async def make_tracker(folder, *ids, name="issues.db"):
    """Make a file with these issues (T-1 if none is named), and return its tracker, which is not entered."""
    tracker = await SQLiteTracker.create(folder / name)
    async with tracker:
        for id in ids or ["T-1"]:
            await tracker.add(id, f"title of {id}")
    return tracker


def look(tracker, query, *values):
    """Return the rows of a query, asked by a connection of its own."""
    with closing(sqlite3.connect(tracker.path)) as connection:
        return connection.execute(query, values).fetchall()


def edit(tracker, script):
    """Change the file as a person would, with foreign keys on, as SQLite's shell has it when told to."""
    with closing(sqlite3.connect(tracker.path)) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.executescript(script)


def bodies(tracker):
    """Return the bodies of all comments, sorted."""
    return [body for (body,) in look(tracker, "SELECT body FROM comments ORDER BY body")]


def steps(changes):
    """Return what a history says, without its times."""
    return [(change.op, change.source, change.target, change.text) for change in changes]


async def error_of(awaitable):
    """Return category, delivery and message of the ``TrackerError`` that comes out."""
    try:
        await awaitable
    except TrackerError as exc:
        return exc.category, exc.delivery, exc.message
    msg = "there was no error"
    raise AssertionError(msg)


class Hand:
    """Reaches into connections: what ``at`` says is called with the connection before each statement that it names.

    The file is real, and so are SQLite's locks; what a disk does when it fails is told here.
    """

    def __init__(self, monkeypatch):
        self.at = {}
        self.opened = []
        connect, hand = sqlite3.connect, self

        class Connection(sqlite3.Connection):
            def execute(self, sql, *values):
                act = hand.at.get(sql.split()[0])
                if act is not None:
                    act(self)
                return super().execute(sql, *values)

        def connect_by_hand(*args, **options):
            connection = connect(*args, factory=Connection, **options)
            hand.opened.append(connection)
            return connection

        monkeypatch.setattr(sqlite3, "connect", connect_by_hand)

    def is_closed(self):
        """Return whether no connection is open."""
        return all(is_closed(connection) for connection in self.opened)


def is_closed(connection):
    try:
        sqlite3.Connection.execute(connection, "SELECT 1")
    except sqlite3.ProgrammingError:
        return True
    return False


def fail(code, text):
    """Return what ``Hand.at`` calls to fail with this result code."""

    def act(connection):
        error = sqlite3.OperationalError(text)
        error.sqlite_errorcode = code
        raise error

    return act
