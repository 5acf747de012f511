"""A tracker in an SQLite file.

From below: ``_failure`` (what SQLite's errors mean), ``_file`` (making and opening a file), ``_change`` and ``_read``
(what is done inside a transaction, synchronous), ``_hop`` (a worker thread for it), ``_lock`` (waiting for another
connection), ``_commit`` (the transactions), ``_session`` (the connection of an event loop), ``_tracker``.
"""

from ._read import Change
from ._tracker import SQLiteTracker

__all__ = ["Change", "SQLiteTracker"]
