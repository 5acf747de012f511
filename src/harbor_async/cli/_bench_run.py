"""Measures one backend after the other, each in a process of its own, and takes what they tell."""

import signal
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from subprocess import PIPE
from typing import Final

import anyio
import msgspec
import psutil
from anyio.abc import ByteReceiveStream, Process
from anyio.streams.text import TextReceiveStream

from .._line import LineSplitter
from ._bench_load import Ended, Message, Sample
from ._bench_record import Record
from ._usage import UsageError, reason

_CHILD: Final = [sys.executable, "-m", f"{__package__}._bench_child"]
_REDRAW: Final = 0.25
"""Seconds between two looks of the display: the percentiles of an HDR histogram take milliseconds."""
_LAST_WORDS: Final = 0.5
"""Seconds to read the standard error of a process that has ended: one that it has started may keep it open."""


class Conductor:
    """Measures what is ordered.

    Attributes:
        records: Those that were begun.
        code: The exit code that a signal or the end of a process asks for; 0: none has.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self.records: list[Record] = []
        self.code = 0
        self._cause = ""
        self._process: Process | None = None
        self._error: UsageError | None = None
        self._decoder: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)

    async def run(self, records: Iterable[Record], redraw: Callable[[], None]) -> None:
        """Fill ``records`` in turn. SIGINT and SIGTERM end it, with what was measured; a second one waits for no tool.

        Args:
            records: They hold the orders.
            redraw: Called every so often.

        Raises:
            UsageError: A process has refused its order.
        """
        async with anyio.create_task_group() as group:
            group.start_soon(self._heed_signals)
            group.start_soon(_redraw, redraw)
            for record in records:
                self.records.append(record)
                await self._measure(record)
                if self._error is not None or self.code:
                    break
            redraw()
            group.cancel_scope.cancel()
        if self._error is not None:
            raise self._error

    async def _measure(self, record: Record) -> None:
        # In a session of its own: Ctrl-C reaches the command alone, which ends the process by its standard input.
        async with await anyio.open_process(_CHILD, stdout=PIPE, stderr=PIPE, start_new_session=True) as process:
            self._process = process
            async with anyio.create_task_group() as group:
                group.start_soon(_relay, process.stderr)
                await self._give(process, msgspec.json.encode(record.order) + b"\n")
                await self._listen(process, record)
                await process.wait()
                group.cancel_scope.deadline = anyio.current_time() + _LAST_WORDS
        self._process = None
        record.cause = self._cause or record.cause
        self.code = self.code or int(bool(record.cause))

    async def _give(self, process: Process, order: bytes) -> None:
        assert process.stdin is not None  # noqa: S101 - for the type checkers: it is a pipe
        with suppress(anyio.BrokenResourceError):  # it has ended already, and its standard error says why
            await process.stdin.send(order)
        if self.code:
            await process.stdin.aclose()

    async def _listen(self, process: Process, record: Record) -> None:
        """Take all that the process tells."""
        assert process.stdout is not None  # noqa: S101 - as above
        watched = psutil.Process(process.pid)
        splitter = LineSplitter()
        async for chunk in process.stdout:
            for _, line in splitter.feed(chunk):
                message = self._decoder.decode(line or b"")
                try:
                    if isinstance(message, Sample):
                        record.add(message, *_look_at(watched))
                        continue
                    if isinstance(message, Ended):
                        record.end(message)
                    else:
                        self._error = UsageError(message.reason)
                except OSError as exc:
                    self._error = UsageError(f"cannot write the log: {reason(exc)}")
                    self._error.__cause__ = exc
                    process.kill()
                return
        record.lose(f"the end of its process, with code {await process.wait()}")

    async def _heed_signals(self) -> None:
        try:
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                async for number in signals:
                    await self._stop(number)
        except NotImplementedError:  # asyncio on Windows: Ctrl-C arrives as KeyboardInterrupt
            return

    async def _stop(self, number: signal.Signals) -> None:
        process = self._process
        if self.code:
            if process is not None:
                process.kill()
            return
        self.code, self._cause = 128 + number, signal.Signals(number).name
        if process is not None and process.stdin is not None:
            await process.stdin.aclose()


def _look_at(process: psutil.Process) -> tuple[int, float]:
    """Return the resident memory in bytes and the processor time in seconds of a process; zeros if it has ended."""
    try:
        with process.oneshot():
            times = process.cpu_times()
            return process.memory_info().rss, times.user + times.system
    except psutil.Error:
        return 0, 0.0


async def _relay(source: ByteReceiveStream | None) -> None:
    """Write what comes to standard error, where the display can place it above itself."""
    assert source is not None  # noqa: S101 - as above
    async for text in TextReceiveStream(source, errors="replace"):
        sys.stderr.write(text)
        sys.stderr.flush()


async def _redraw(redraw: Callable[[], None]) -> None:
    while True:
        redraw()
        await anyio.sleep(_REDRAW)
