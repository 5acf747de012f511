"""Bytes to lines of bounded length."""

from collections.abc import Iterator
from typing import Final

MAX_LINE_BYTES: Final = 16 * 1024 * 1024
"""Longest line. Four times ``Limits.max_arguments_bytes``: escaped arguments and a message of several calls fit."""
_BOM: Final = b"\xef\xbb\xbf"


class LineSplitter:
    """Splits a stream of bytes into numbered lines, and keeps no more of it than one line may be long."""

    def __init__(self, limit: int = MAX_LINE_BYTES) -> None:
        """Begin at line 1; ``limit`` is the length of the longest line in bytes, its end not counted."""
        self._limit = limit
        self._number = 0
        self._rest = bytearray()
        self._is_too_long = False

    def feed(self, chunk: bytes) -> Iterator[tuple[int, bytes | None]]:
        """Yield the number and text of each line that ends in ``chunk``; None stands for one that is too long."""
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            self._keep(chunk[start:end])
            start = end + 1
            yield self._end_line()
        self._keep(chunk[start:])

    def finish(self) -> Iterator[tuple[int, bytes | None]]:
        """Yield the last line, if its end is missing."""
        if self._rest or self._is_too_long:
            yield self._end_line()

    def _keep(self, piece: bytes) -> None:
        if len(self._rest) + len(piece) > self._limit:
            self._is_too_long = True
            self._rest.clear()
        if not self._is_too_long:
            self._rest += piece

    def _end_line(self) -> tuple[int, bytes | None]:
        self._number += 1
        line = None if self._is_too_long else bytes(self._rest)
        if line is not None and self._number == 1:
            line = line.removeprefix(_BOM)  # some editors write it, and it is no part of the JSON
        self._is_too_long = False
        self._rest.clear()
        return self._number, line
