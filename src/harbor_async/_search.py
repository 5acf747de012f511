"""Full-text search over tools, by SQLite's FTS5 in memory."""

import re
from collections.abc import Iterable
from threading import Lock
from weakref import finalize

from ._tool import Tool

_WEIGHTS = (8.0, 2.0, 4.0)
"""How much a hit in the name, the description and the tags counts."""


class SearchIndex:
    """An index of some tools, as they were when it was built. Any thread may search it."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        """Index names, descriptions and tags."""
        import sqlite3  # noqa: PLC0415 - only a search needs it, and some builds of Python have none

        self._tools = tuple(tools)
        self._lock = Lock()
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        finalize(self, self._connection.close)  # an index goes when its tools do, and nobody is told to close it
        self._connection.execute(
            "CREATE VIRTUAL TABLE tool USING fts5(name, description, tags, tokenize = 'porter unicode61')"
        )
        self._connection.executemany(
            "INSERT INTO tool (rowid, name, description, tags) VALUES (?, ?, ?, ?)",
            (
                (row, f"{tool.name} {_split_name(tool.name)}", tool.description, " ".join(tool.tags))
                for row, tool in enumerate(self._tools)
            ),
        )

    def search(self, query: str, tags: frozenset[str], limit: int) -> list[Tool]:
        """Return the best ``limit`` tools that hold any word of ``query`` and all of ``tags``, best first."""
        words = re.findall(r"\w+", query)
        found: Iterable[Tool] = self._tools
        if words:
            match = " OR ".join(f'"{word}"*' for word in words)
            with self._lock:
                rows: list[tuple[int]] = self._connection.execute(
                    "SELECT rowid FROM tool WHERE tool MATCH ? ORDER BY bm25(tool, ?, ?, ?), name",
                    (match, *_WEIGHTS),
                ).fetchall()
            found = [self._tools[row] for (row,) in rows]
        return [tool for tool in found if tags.issubset(tool.tags)][:limit]


def _split_name(name: str) -> str:
    """Return the words that a name is made of: ``getUserByID2`` has get, User, By, ID and 2."""
    return " ".join(re.findall(r"[^\W\d_]?[^\W\d_A-Z]+|[A-Z]+(?![a-z])|\d+", name))
