"""Trackers to write to, one module each."""

from ._sqlite import Change, SQLiteTracker

__all__ = ["Change", "SQLiteTracker"]
