"""Runs the calls of a stream, so many at once, and writes each result as it ends."""

import json
import math
import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final

import anyio
import attrs
import msgspec
from anyio.lowlevel import checkpoint

from .._catalog import Catalog
from .._categories import ErrorCategory, Outcome
from .._pipe import Reader, Writer
from .._results import Failure, ToolCall, ToolResult
from .._runtime import Runtime
from ._read import ReadCall
from ._source import Source
from ._tally import Tally
from ._usage import UsageError, reason

_CANCELED = "the run was ended before this call had its answer"


@attrs.define
class Ending:
    """How a run ended.

    Attributes:
        tally: What was counted.
        elapsed: Seconds that it took.
        is_read: Whether every line was read.
        code: The exit code; None: as the results have it.
        cause: What ended it before its time; empty if nothing did.
    """

    tally: Tally = attrs.field(factory=Tally)
    elapsed: float = 0.0
    is_read: bool = False
    code: int | None = None
    cause: str = ""

    @property
    def exit_code(self) -> int:
        """The exit code of the program."""
        return int(self.tally.failures > 0) if self.code is None else self.code


@attrs.frozen
class Job:
    """One run of a file.

    Attributes:
        catalog: The tools.
        calls: File descriptor of the calls.
        results: File descriptor of the results.
        max_running: Most calls at once.
        timeout: The deadline of each call, in seconds; None: no deadline.
    """

    catalog: Catalog
    calls: int
    results: int
    max_running: int
    timeout: float | None


SIGINT_CODE: Final = 128 + signal.SIGINT

Stop = Callable[[int, str], None]
"""Ends a run. Takes the exit code and the cause; the first ones count."""
Watch = Callable[[Reader, Tally], Any]
"""Returns a context manager within which progress is shown, and whose value redraws it when called."""


async def run_job(job: Job, watch: Watch) -> Ending:
    """Run all calls of a stream.

    No more than ``max_running`` calls are in hand, so the stream may be endless. A result is written when its call
    ends. SIGINT and SIGTERM end the run: what has finished is written, and so is a ``canceled`` result for each call
    that was read.

    Raises:
        UsageError: The calls cannot be read or the results cannot be written.
    """
    ending = Ending()
    started = anyio.current_time()
    async with Runtime(job.catalog) as runtime:
        crew = _Crew(job, runtime, ending)
        async with anyio.create_task_group() as group:
            group.start_soon(stop_at_signal, crew.stop)
            with watch(crew.source.reader, ending.tally) as redraw:
                group.start_soon(_redraw, redraw)
                await crew.run()
            group.cancel_scope.cancel()
    ending.elapsed = anyio.current_time() - started
    ending.is_read = crew.source.is_ended
    if crew.error is not None:
        raise crew.error
    return ending


class _Crew:
    """The tasks that take calls, run them and write their results; there is always one that waits for a call."""

    def __init__(self, job: Job, runtime: Runtime, ending: Ending) -> None:
        self.source = Source(Reader(job.calls))
        self._job = job
        self._runtime = runtime
        self._ending = ending
        self._writer = Writer(job.results)
        self._group = anyio.create_task_group()
        self._workers = 0
        self._idle = 0
        self._in_hand: dict[ReadCall, float] = {}
        self.error: UsageError | None = None

    async def run(self) -> None:
        async with self._group:
            self._spawn()
        now = anyio.current_time()
        for item, since in self._in_hand.items():
            catalog = self._job.catalog
            is_effect = item.call.name in catalog and catalog.resolve(item.call.name).tool.declares_effect
            self._record(item, _cancel(item.call, now - since, is_ambiguous=is_effect), is_cut=True)
        for item in self.source.take_rest():
            self._record(item, _refuse(item) or _cancel(item.call))
        if self.error is None:
            with self._writing():
                await self._writer.flush()

    def stop(self, code: int, cause: str) -> None:
        if not self._ending.cause:
            self._ending.code, self._ending.cause = code, cause
        self._group.cancel_scope.cancel()

    def _spawn(self) -> None:
        self._workers += 1
        self._idle += 1
        self._group.start_soon(self._work)

    async def _work(self) -> None:
        while (item := await self._pull()) is not None:
            self._idle -= 1
            if not self._idle and self._workers < self._job.max_running:
                self._spawn()
            result = _refuse(item) or await self._invoke(item)
            if result is None:
                return
            self._record(item, result)
            with self._writing():
                await self._writer.flush()
            self._idle += 1
            await checkpoint()  # tools that never wait would leave no turn to the others

    async def _pull(self) -> ReadCall | None:
        try:
            return await self.source.next()
        except OSError as exc:
            self._fail(f"cannot read the calls: {reason(exc)}", exc)
            return None

    async def _invoke(self, item: ReadCall) -> ToolResult | None:
        self._in_hand[item] = anyio.current_time()
        result = await invoke(self._runtime, item.call, self._job.timeout, self.stop)
        if result is not None:
            del self._in_hand[item]
        return result

    def _record(self, item: ReadCall, result: ToolResult, *, is_cut: bool = False) -> None:
        self._ending.tally.add(result)
        self._writer.add(encode_record(result, item.line, is_cut=is_cut))

    @contextmanager
    def _writing(self) -> Generator[None]:
        try:
            yield
        except OSError as exc:
            self._fail(f"cannot write the results: {reason(exc)}", exc)

    def _fail(self, message: str, cause: OSError) -> None:
        if self.error is None:
            self.error = UsageError(message)
            self.error.__cause__ = cause
        self._group.cancel_scope.cancel()


def _refuse(item: ReadCall) -> ToolResult | None:
    """Answer a call that could not be read."""
    if item.problem is None:
        return None
    failure = Failure(ErrorCategory.VALIDATION, item.problem.message, problems=(item.problem,))
    return ToolResult(item.call.id, item.call.name, Outcome.FAILED, error=failure, stop_reason="invalid")


def _cancel(call: ToolCall, elapsed: float = 0.0, *, is_ambiguous: bool = False) -> ToolResult:
    """Answer a call that the end of the run has cut off."""
    failure = Failure(ErrorCategory.CANCELED, _CANCELED, ambiguous=is_ambiguous)
    return ToolResult(call.id, call.name, Outcome.FAILED, error=failure, elapsed=elapsed, stop_reason="canceled")


async def invoke(runtime: Runtime, call: ToolCall, timeout: float | None, stop: Stop) -> ToolResult | None:
    """Answer a call, or ``stop`` and answer nothing if its tool wants to end the program."""
    try:
        return await runtime.invoke(call.name, call.arguments, id=call.id, timeout=timeout)
    except (KeyboardInterrupt, SystemExit) as exc:
        code = SIGINT_CODE if isinstance(exc, KeyboardInterrupt) else 1
        stop(code, f"tool {call.name!r}, which raised {type(exc).__name__}")
        return None


async def stop_at_signal(stop: Stop) -> None:
    """Call ``stop`` with the exit code and the cause when SIGINT or SIGTERM comes. A second one ends the process."""
    try:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            number = await anext(signals)
    except NotImplementedError:  # asyncio on Windows: Ctrl-C arrives as KeyboardInterrupt
        return
    for again in (signal.SIGINT, signal.SIGTERM):
        signal.signal(again, _quit)
    stop(128 + int(number), signal.Signals(number).name)


def _quit(number: int, _: object) -> None:
    """End the process at once: the event loops themselves would wait for a tool that shields itself from its end."""
    if os.isatty(2):
        os.write(2, b"\x1b[?25h\n")  # the progress bar has hidden the cursor
    os._exit(128 + number)


async def _redraw(redraw: Callable[[], None]) -> None:
    while True:
        redraw()
        await anyio.sleep(0.1)


def encode_record(result: ToolResult, line: int | None = None, *, is_cut: bool = False) -> bytes:
    """Return a result as one line of JSON: id, name, line, the envelope, attempts, elapsed and stop_reason.

    Args:
        result: The result.
        line: The line of its call; None: left out.
        is_cut: Whether it was cut off while it ran: then nobody counted its attempts, and they are null.
    """
    record: dict[str, Any] = {"id": result.call_id, "name": result.tool}
    if line is not None:
        record["line"] = line
    record |= result.to_wire()
    record |= {
        "attempts": None if is_cut else result.attempts,
        "elapsed": round(result.elapsed, 6) if math.isfinite(result.elapsed) else None,
        "stop_reason": result.stop_reason,
    }
    if result.late:
        record["late"] = True
    try:
        return msgspec.json.encode(record) + b"\n"
    except UnicodeEncodeError:  # a tool's error text with half a surrogate pair; the escaped form can say it
        return json.dumps(record).encode() + b"\n"
