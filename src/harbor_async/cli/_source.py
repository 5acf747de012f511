"""The calls of a file, read as they are wanted."""

from collections import deque

import anyio

from .._line import LineSplitter
from .._pipe import Reader
from ._read import ReadCall, read_line


class Source:
    """Hands out the calls of a stream of lines, to any number of tasks. It reads no further than it is asked.

    Attributes:
        reader: What it reads.
        lines: How many lines were read so far, blank ones included.
        is_ended: Whether all of the stream has been read.
    """

    def __init__(self, reader: Reader) -> None:
        """Hand out the calls in ``reader``. Made inside the event loop that uses it."""
        self.reader = reader
        self.lines: int = 0
        self.is_ended: bool = False
        self._splitter = LineSplitter()
        self._ready: deque[ReadCall] = deque()
        self._lock = anyio.Lock(fast_acquire=True)

    async def next(self) -> ReadCall | None:
        """Return the next call, None after the last. A checkpoint where it has to wait for the stream.

        Raises:
            OSError: The stream cannot be read.
        """
        while not self._ready and not self.is_ended:
            async with self._lock:
                if not self._ready and not self.is_ended:
                    await self._fill()
        return self._ready.popleft() if self._ready else None

    def take_rest(self) -> list[ReadCall]:
        """Return the calls that were read and not handed out."""
        rest = list(self._ready)
        self._ready.clear()
        return rest

    async def _fill(self) -> None:
        chunk = await self.reader.read()
        self.is_ended = not chunk
        for number, line in self._splitter.feed(chunk) if chunk else self._splitter.finish():
            self.lines = number
            self._ready.extend(read_line(number, line))
