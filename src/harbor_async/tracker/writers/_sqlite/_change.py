"""What a write does. Synchronous, inside a transaction that its caller began and will commit."""

import sqlite3
from collections.abc import Callable
from hashlib import sha256
from typing import Final

import msgspec

from ...._categories import ErrorCategory
from ._failure import refuse

Connection = sqlite3.Connection
Effect = Callable[[Connection, str, str], "int | None"]
"""Changes an issue; takes its id and the text of the write, returns the history's number, None where it was done."""

_ADD_HISTORY: Final = "INSERT INTO history (issue, op, source, target, text) VALUES (?, ?, ?, ?, ?)"


def write_once(connection: Connection, op: str, effect: Effect, id: str, text: str, key: str) -> None:
    """Do a write, unless that of ``key`` has been done.

    Raises:
        TrackerError: It is refused; nothing was changed.
    """
    fingerprint = sha256(msgspec.json.encode([op, id, text])).digest()
    done = connection.execute("SELECT fingerprint FROM writes WHERE key = ?", (key,)).fetchone()
    if done is None:
        seq = effect(connection, id, text)
        connection.execute("INSERT INTO writes (key, fingerprint, seq) VALUES (?, ?, ?)", (key, fingerprint, seq))
    elif done[0] != fingerprint:
        raise refuse(ErrorCategory.CONFLICT, "this idempotency key was used for another write")


def add(connection: Connection, id: str, title: str) -> None:
    """Add an issue, in the first state."""
    first = connection.execute("SELECT name FROM states ORDER BY position LIMIT 1").fetchone()
    if first is None:
        raise refuse(ErrorCategory.UNSUPPORTED, "the tracker has no states")
    if connection.execute("SELECT 1 FROM issues WHERE id = ?", (id,)).fetchone() is not None:
        raise refuse(ErrorCategory.CONFLICT, "there is an issue of this id already")
    connection.execute("INSERT INTO issues (id, title, state) VALUES (?, ?, ?)", (id, title, first[0]))
    connection.execute(_ADD_HISTORY, (id, "add", None, first[0], ""))


def comment(connection: Connection, id: str, body: str) -> int:
    """Add a comment."""
    _state_of(connection, id)
    seq = _record(connection, (id, "comment", None, None, ""))
    connection.execute("INSERT INTO comments (seq, issue, body) VALUES (?, ?, ?)", (seq, id, body))
    return seq


def link_pr(connection: Connection, id: str, url: str) -> int | None:
    """Link a pull request, unless it is linked."""
    _state_of(connection, id)
    if connection.execute("SELECT 1 FROM links WHERE issue = ? AND url = ?", (id, url)).fetchone() is not None:
        return None
    seq = _record(connection, (id, "link_pr", None, None, url))
    connection.execute("INSERT INTO links (issue, url, seq) VALUES (?, ?, ?)", (id, url, seq))
    return seq


def transition(connection: Connection, id: str, to_state: str) -> int | None:
    """Move an issue, unless it is there."""
    current = _state_of(connection, id)
    target = _find_state(connection, current, to_state)
    return None if target == current else _move(connection, id, "transition", current, target)


def close(connection: Connection, id: str, reason: str) -> int | None:
    """Move an issue to the first closed state that it can reach, unless it is in one."""
    current = _state_of(connection, id)
    closed = [name for (name,) in connection.execute("SELECT name FROM states WHERE is_closed ORDER BY position")]
    if current in closed:
        return None
    moves = _moves_from(connection, current)
    target = next((name for name in closed if name in moves), None)
    if target is None:
        raise refuse(ErrorCategory.VALIDATION, f"the workflow has no close here: {_tell_moves(current, moves)}")
    return _move(connection, id, "close", current, target, reason)


def _state_of(connection: Connection, id: str) -> str:
    found = connection.execute("SELECT state FROM issues WHERE id = ?", (id,)).fetchone()
    if found is None:
        raise refuse(ErrorCategory.NOT_FOUND, "there is no issue of this id")
    state: str = found[0]
    return state


def _find_state(connection: Connection, current: str, wanted: str) -> str:
    """Return the state that ``wanted`` means, which is ``current`` or can be reached from there in one move."""
    names = [name for (name,) in connection.execute("SELECT name FROM states ORDER BY position")]
    alike = [name for name in names if name.casefold() == wanted.casefold()]
    moves = _moves_from(connection, current)
    found = wanted if wanted in alike else alike[0] if len(alike) == 1 else None
    if found is None or (found != current and found not in moves):
        wrong = "there is no move to this state" if found else "there are several such states" if alike else ""
        raise refuse(ErrorCategory.VALIDATION, f"{wrong or 'there is no such state'}: {_tell_moves(current, moves)}")
    return found


def _moves_from(connection: Connection, state: str) -> list[str]:
    query = "SELECT target FROM moves JOIN states ON name = target WHERE source = ? ORDER BY position"
    return [name for (name,) in connection.execute(query, (state,))]


def _tell_moves(state: str, moves: list[str]) -> str:
    return f"from {state!r} the issue can go to {', '.join(map(repr, moves)) or 'no other'}"


def _move(connection: Connection, id: str, op: str, source: str, target: str, text: str = "") -> int:
    connection.execute("UPDATE issues SET state = ? WHERE id = ?", (target, id))
    return _record(connection, (id, op, source, target, text))


def _record(connection: Connection, row: tuple[str, str, str | None, str | None, str]) -> int:
    seq = connection.execute(_ADD_HISTORY, row).lastrowid
    assert seq is not None  # noqa: S101 - after an INSERT there is one
    return seq
