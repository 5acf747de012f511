"""Reading and writing file descriptors without blocking the event loop.

Pipes, sockets and terminals are waited for until the system says that they are ready; no thread is needed that might
hang in a read when the program wants to end. Files on disk are always ready.
"""

import os
import stat
from contextlib import suppress
from typing import Final

import anyio
from anyio.lowlevel import checkpoint

_CHUNK: Final = 64 * 1024
_PIPE_CHUNK: Final = 4096
"""A pipe that is ready takes this much without blocking. Source: pipe(7), PIPE_BUF on Linux."""
_MAX_BUFFER: Final = 1024 * 1024


def _is_file(fd: int) -> bool:
    return stat.S_ISREG(os.fstat(fd).st_mode)


class Reader:
    """Reads a file descriptor.

    Attributes:
        size: Bytes of a file on disk; None for everything else.
        position: Bytes read so far.
    """

    def __init__(self, fd: int) -> None:
        """Read ``fd``, which stays its opener's to close.

        Raises:
            OSError: It is not open.
        """
        self._fd = fd
        self.size: int | None = os.fstat(fd).st_size if _is_file(fd) else None
        self.position: int = 0

    async def read(self) -> bytes:
        """Return the next bytes, or none at the end. A checkpoint.

        Raises:
            OSError: The system cannot read it.
        """
        while True:
            if self.size is not None:
                await checkpoint()
            else:
                with suppress(PermissionError):  # from epoll: a device that is always ready, as /dev/null
                    await anyio.wait_readable(self._fd)
            try:
                chunk = os.read(self._fd, _CHUNK)
            except BlockingIOError:  # somebody else was faster, or has set the pipe to non-blocking
                continue
            self.position += len(chunk)
            return chunk


class Writer:
    """Writes to a file descriptor; what is added while another task writes goes with it."""

    def __init__(self, fd: int) -> None:
        """Write to ``fd``, which stays its opener's to close.

        Raises:
            OSError: It is not open.
        """
        self._fd = fd
        self._is_file = _is_file(fd)
        self._buffer = bytearray()
        self._lock = anyio.Lock(fast_acquire=True)

    def add(self, data: bytes) -> None:
        """Put ``data`` in the buffer."""
        self._buffer += data

    async def flush(self) -> None:
        """Hand the buffer to the system, or return at once if another task does so and the buffer is small.

        Raises:
            OSError: The system cannot write it.
        """
        if self._lock.locked() and len(self._buffer) < _MAX_BUFFER:
            return
        async with self._lock:
            while self._buffer:
                await self._write()

    async def _write(self) -> None:
        chunk = self._buffer
        if not self._is_file:
            with suppress(PermissionError):
                await anyio.wait_writable(self._fd)
            chunk = self._buffer[:_PIPE_CHUNK]
        with suppress(BlockingIOError):
            del self._buffer[: os.write(self._fd, chunk)]
