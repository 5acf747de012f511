"""What is read. Synchronous; each function is one transaction of its own."""

import sqlite3
from datetime import datetime

import attrs

from ...._categories import ErrorCategory
from ..._writer import Issue
from ._failure import refuse


@attrs.frozen
class Change:
    """One entry of an issue's history.

    Attributes:
        at: When, in UTC.
        op: ``add``, ``comment``, ``transition``, ``close`` or ``link_pr``.
        source: The state before; None where it stayed.
        target: The state after; None where it stayed.
        text: The comment, the reason of a close, or the URL of a link; empty where there is none.
    """

    at: datetime
    op: str
    source: str | None
    target: str | None
    text: str


def read_issue(connection: sqlite3.Connection, id: str) -> Issue:
    """Return an issue.

    Raises:
        TrackerError: There is none (``not_found``).
    """
    found = _read_issues(connection, "WHERE id = ?", id)
    if not found:
        raise refuse(ErrorCategory.NOT_FOUND, "there is no issue of this id")
    return found[0]


def read_all(connection: sqlite3.Connection) -> tuple[Issue, ...]:
    """Return all issues, the oldest first."""
    return _read_issues(connection, "")


def _read_issues(connection: sqlite3.Connection, where: str, *values: str) -> tuple[Issue, ...]:
    query = f"""
        SELECT id, title, state, coalesce(is_closed, 0), url
        FROM issues LEFT JOIN states ON name = state LEFT JOIN links ON issue = id {where}
        ORDER BY number, seq
    """  # noqa: S608 - the text is ours
    rows: dict[str, tuple[str, str, bool, list[str]]] = {}
    for id, title, state, is_closed, url in connection.execute(query, values):
        links = rows.setdefault(id, (title, state, bool(is_closed), []))[3]
        if url is not None:
            links.append(url)
    return tuple(
        Issue(id, title, state, is_closed, tuple(links)) for id, (title, state, is_closed, links) in rows.items()
    )


def read_history(connection: sqlite3.Connection, id: str) -> tuple[Change, ...]:
    """Return what has happened to an issue, in the order in which it did.

    Raises:
        TrackerError: There is none (``not_found``).
    """
    query = """
        SELECT at, op, source, target, coalesce(body, text)
        FROM history LEFT JOIN comments USING (seq) WHERE history.issue = ? ORDER BY seq
    """
    found = tuple(Change(datetime.fromisoformat(at), *rest) for at, *rest in connection.execute(query, (id,)))
    if not found:
        read_issue(connection, id)
    return found


def has_comment(connection: sqlite3.Connection, id: str, key: str) -> bool:
    """Return whether issue ``id`` has the comment that was written with ``key``."""
    query = "SELECT 1 FROM writes JOIN comments USING (seq) WHERE key = ? AND issue = ?"
    return connection.execute(query, (key, id)).fetchone() is not None
