"""What an error of SQLite means for a caller."""

import sqlite3
from typing import Final

from ...._categories import Delivery, ErrorCategory
from ..._writer import TrackerError

_CODE_MASK: Final = 0xFF
"""The low byte of an extended result code is its primary code. Source: sqlite.org/rescode.html."""

_BY_CODE: Final = {
    sqlite3.SQLITE_BUSY: (ErrorCategory.API_REQUEST, "another connection has the file locked"),
    sqlite3.SQLITE_LOCKED: (ErrorCategory.API_REQUEST, "another connection has the file locked"),
    sqlite3.SQLITE_FULL: (ErrorCategory.API_REQUEST, "there is no room on the disk"),
    sqlite3.SQLITE_IOERR: (ErrorCategory.API_REQUEST, "the disk or its file system failed"),
    sqlite3.SQLITE_PROTOCOL: (ErrorCategory.API_REQUEST, "the locks of the file could not be taken"),
    sqlite3.SQLITE_READONLY: (ErrorCategory.AUTH_FAILED, "the file or its folder may not be written to"),
    sqlite3.SQLITE_PERM: (ErrorCategory.AUTH_FAILED, "the file may not be accessed"),
    sqlite3.SQLITE_CANTOPEN: (
        ErrorCategory.AUTH_FAILED,
        "the file cannot be opened; its folder must be writable, too, for the log beside it",
    ),
    sqlite3.SQLITE_NOTADB: (ErrorCategory.UNSUPPORTED, "the file is no SQLite database"),
    sqlite3.SQLITE_CORRUPT: (ErrorCategory.UNSUPPORTED, "the file is damaged"),
    sqlite3.SQLITE_TOOBIG: (ErrorCategory.VALIDATION, "the text is too long for the file"),
    sqlite3.SQLITE_CONSTRAINT: (ErrorCategory.VALIDATION, "a rule of the file forbids it"),
}


def is_busy(error: sqlite3.Error) -> bool:
    """Return whether another connection's lock was in the way: the same may work soon."""
    return _code(error) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def explain(error: sqlite3.Error, *, is_committing: bool = False) -> TrackerError:
    """Return what ``error`` means.

    Args:
        error: What SQLite said.
        is_committing: Whether it came from COMMIT. A commit that failed may still be found in the log by the next who
            recovers it, so that only one which a lock kept from beginning has surely not happened.
    """
    category, meaning = _BY_CODE.get(_code(error), (ErrorCategory.UNKNOWN, "SQLite failed"))
    is_unknown = is_committing and not is_busy(error)
    delivery = Delivery.UNKNOWN if is_unknown else Delivery.NOT_SENT
    if category is ErrorCategory.VALIDATION:
        delivery = Delivery.REFUSED
    found = TrackerError(f"the tracker's file: {meaning} ({error})", category=category, delivery=delivery)
    found.__cause__ = error
    return found


def refuse(category: ErrorCategory, message: str) -> TrackerError:
    """Return the error of a request that was understood, and denied: nothing was changed."""
    return TrackerError(message, category=category, delivery=Delivery.REFUSED)


def _code(error: sqlite3.Error) -> int:
    """Return the primary result code; 0 where the error is the Python module's own."""
    return getattr(error, "sqlite_errorcode", 0) & _CODE_MASK
