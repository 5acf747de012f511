"""What the writers over command lines share: commands and exits as values, a transport, turns.

No shell is between: an argument is an argument, whatever stands in it. A program that is canceled, or takes too long,
is killed with all that it has started.
"""

import errno
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from subprocess import PIPE
from typing import Any, Final, Protocol, Self, TypeAlias, TypeVar, runtime_checkable

import anyio
import anyio.abc
import attrs
from anyio.lowlevel import checkpoint_if_cancelled

from ... import _backend
from ..._categories import Delivery, ErrorCategory
from ..._json import has_surrogate
from ..._policy import check_seconds
from ...errors import InvalidToolError, clip
from .._writer import TrackerError
from ._sqlite._lock import end_of_patience, pauses

T = TypeVar("T")

_MOST_TEXT: Final = 500
"""Characters of a message. A model needs the reason, and not a page."""
_CHUNK: Final = 65_536
_MARGIN: Final = 0.01
"""Seconds before a deadline at which a program that only reads is given up, so that the caller hears that."""
_GRACE: Final = 5.0
"""Seconds to wait for the end of what was killed. It takes milliseconds, but for a system that cannot end it at all."""
_PASSED: Final = (
    *("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ", "USER", "LOGNAME", "XDG_CONFIG_HOME"),
    *("SYSTEMROOT", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "HOMEDRIVE", "HOMEPATH"),
)
"""What a program needs of the environment. The rest stays here: it may hold tokens."""


@attrs.frozen
class Command:
    """A command line.

    Attributes:
        argv: The program and its arguments.
        stdin: What it reads.
        is_read: Whether it changes nothing, so that no failure of it leaves a doubt.
    """

    argv: tuple[str, ...]
    stdin: bytes = b""
    is_read: bool = False


@attrs.frozen
class Exit:
    """How a program ended.

    Attributes:
        code: Its exit status; below 0 the signal that ended it.
        stdout: What it wrote.
        stderr: What it wrote there.
        is_whole: Whether both ended before the most that is kept.
    """

    code: int
    stdout: bytes = b""
    stderr: bytes = b""
    is_whole: bool = True


@runtime_checkable
class CommandTransport(Protocol):
    """Runs programs. ``ProcessTransport`` does it here; another may do it in a container, or on another machine."""

    async def run(self, command: Command, /) -> Exit:
        """Run ``command`` to its end; that it failed is no error yet.

        Raises:
            TrackerError: It could not be started (``not_sent``), or did not end (``unknown``).
        """
        ...


ClassifyExit: TypeAlias = Callable[[Exit], TrackerError | None]
"""Says what went wrong; None for a success."""


class ProcessTransport:
    """Runs programs as processes of this machine, each in a group of its own.

    They get ``PATH``, ``HOME`` and what else a program needs of the environment, and nothing that may hold a token.
    """

    def __init__(
        self,
        *,
        timeout: float = 30.0,
        folder: str | os.PathLike[str] | None = None,
        environment: Mapping[str, str] | None = None,
        max_output_bytes: int = 10_000_000,
    ) -> None:
        """Prepare; nothing is started yet.

        Args:
            timeout: Most seconds of one run. It counts where no deadline comes before.
            folder: Where programs run; None: where this one does.
            environment: Variables that they get besides.
            max_output_bytes: Most bytes that are kept of what one writes, of each stream. The rest is read and dropped.

        Raises:
            InvalidToolError: A number that makes no sense.
        """
        check_seconds("timeout", timeout)
        if type(max_output_bytes) is not int or max_output_bytes < 1:
            msg = "max_output_bytes: expected a whole number above 0"
            raise InvalidToolError(msg)
        self._timeout = timeout
        self._folder = folder
        self._environment = {name: os.environ[name] for name in _PASSED if name in os.environ} | dict(environment or {})
        self._most = max_output_bytes

    async def run(self, command: Command, /) -> Exit:
        """Run ``command`` to its end.

        Raises:
            TrackerError: It is not installed (``unsupported``), could not be started, or ran for too long
                (``timeout``).
        """
        timeout = self._timeout
        if command.is_read:  # nothing is lost with it, and the caller hears that
            timeout = min(timeout, anyio.current_effective_deadline() - anyio.current_time() - _MARGIN)
        await checkpoint_if_cancelled()
        with anyio.move_on_after(timeout):
            process = await self._start(command)
            try:
                return await self._talk(process, command.stdin)
            finally:
                await _end(process)
        msg = f"{_name(command)} did not end in time"
        raise TrackerError(msg, category=ErrorCategory.TIMEOUT, delivery=_doubt(command))

    async def _start(self, command: Command) -> anyio.abc.Process:
        try:
            # In full, for a cancellation within it would kill the program and leave what that has started.
            with anyio.CancelScope(shield=True):
                return await anyio.open_process(
                    command.argv,
                    stdin=PIPE,
                    stdout=PIPE,
                    stderr=PIPE,
                    cwd=self._folder,
                    env=self._environment,
                    start_new_session=True,
                )
        except (OSError, ValueError) as exc:
            raise self._explain(command, exc) from exc
        raise AssertionError  # nobody cancels that scope

    def _explain(self, command: Command, error: Exception) -> TrackerError:
        name, category = _name(command), ErrorCategory.UNSUPPORTED
        if isinstance(error, (FileNotFoundError, NotADirectoryError)):
            is_there = self._folder is None or os.path.isdir(self._folder)  # noqa: PTH112 - a path of any kind
            what = f"{name} is not installed" if is_there else f"the folder in which {name} is to run is missing"
        elif isinstance(error, PermissionError):
            what = f"{name} may not be run"
        elif isinstance(error, ValueError):
            what, category = f"an argument of {name} has what no argument can have", ErrorCategory.VALIDATION
        elif isinstance(error, OSError) and error.errno == errno.E2BIG:
            what, category = f"the text is too long for the arguments of {name}", ErrorCategory.VALIDATION
        else:
            what, category = f"{name} could not be started", ErrorCategory.API_REQUEST
        return TrackerError(what, category=category, delivery=Delivery.NOT_SENT)

    async def _talk(self, process: anyio.abc.Process, stdin: bytes) -> Exit:
        stdout, stderr = bytearray(), bytearray()
        async with anyio.create_task_group() as group:
            group.start_soon(_feed, process.stdin, stdin)
            group.start_soon(self._keep, process.stdout, stdout)
            group.start_soon(self._keep, process.stderr, stderr)
        code = await process.wait()
        is_whole = max(len(stdout), len(stderr)) <= self._most
        return Exit(code, bytes(stdout[: self._most]), bytes(stderr[: self._most]), is_whole)

    async def _keep(self, stream: Any, kept: bytearray) -> None:
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            while True:
                chunk = await stream.receive(_CHUNK)
                if len(kept) <= self._most:
                    kept += chunk


async def _feed(stream: Any, data: bytes) -> None:
    with suppress(anyio.BrokenResourceError):  # one that reads nothing has closed it
        if data:
            await stream.send(data)
        await stream.aclose()


async def _end(process: anyio.abc.Process) -> None:
    """Kill what still runs, and give back what belongs to it."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            if sys.platform == "win32":
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)
    with anyio.move_on_after(_GRACE, shield=True):
        await process.aclose()


class CommandTracker:
    """A writer over a command line. A subclass builds commands, and says with ``classify`` what an exit means.

    It runs one program at a time: the programs lock a file of theirs, and one that finds it locked gives up. Where a
    program of somebody else has it locked, it is run again until shortly before the deadline, at most five seconds.
    """

    def __init__(self, transport: CommandTransport | None, classify: ClassifyExit) -> None:
        """Use ``transport``; None: a ``ProcessTransport``."""
        self._transport: CommandTransport = ProcessTransport() if transport is None else transport
        self._classify = classify
        self._turns: anyio.Lock | None = None

    async def __aenter__(self) -> Self:
        """Begin to take calls of the running event loop.

        Raises:
            InvalidToolError: It is open already.
        """
        if self._turns is not None:
            msg = "this writer is open already; make one for each place that opens it"
            raise InvalidToolError(msg)
        self._turns = anyio.Lock()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Take no more calls."""
        self._turns = None

    @asynccontextmanager
    async def _turn(self) -> AsyncGenerator[None]:
        """Wait until no other operation runs."""
        if self._turns is None:
            msg = "the writer is not open: use it inside 'async with'"
            raise TrackerError(msg, category=ErrorCategory.UNSUPPORTED, delivery=Delivery.NOT_SENT)
        async with self._turns:
            yield

    async def _run(self, command: Command, read: Callable[[Exit], T]) -> T:
        """Run a command, and return what ``read`` makes of its exit.

        Raises:
            TrackerError: It failed, or what it wrote is not what was expected.
        """
        backend = _backend.current()
        end = end_of_patience(backend)
        for pause in pauses():
            begun = backend.time()
            try:
                result = await self._transport.run(command)
                failure = self._classify(result)
                if failure is None:
                    return read(result)
            except TrackerError as exc:
                raise _short(exc, command) from exc.__cause__
            is_locked = (failure.category, failure.delivery) == (ErrorCategory.API_REQUEST, Delivery.NOT_SENT)
            now = backend.time()
            # A run that the deadline cuts leaves a doubt; the next one may take twice as long as this one.
            if not is_locked or now + pause + 2 * (now - begun) >= end:
                raise _short(failure, command)
            await anyio.sleep(pause)
        raise AssertionError  # there is always another pause


def said(result: Exit) -> str:
    """Return what a program says of its failure."""
    return result.stderr.decode(errors="replace").strip() or result.stdout.decode(errors="replace").strip()


def unreadable() -> TrackerError:
    """Return the error of a program that ended well, and wrote something else than it writes."""
    return TrackerError("the program wrote something else than was expected", category=ErrorCategory.API_STATUS)


def check_text(*texts: object) -> None:
    """Refuse what no argument of a program can carry.

    Raises:
        TrackerError: It is no text, or has a NUL or half of a surrogate pair in it (``validation``).
    """
    for text in texts:
        if not isinstance(text, str) or "\0" in text or has_surrogate(text):
            msg = "expected text, without a NUL and without half of a surrogate pair"
            raise TrackerError(msg, category=ErrorCategory.VALIDATION, delivery=Delivery.NOT_SENT)


def _short(error: TrackerError, command: Command) -> TrackerError:
    """Return ``error`` with a message that is one line of bounded length; no failure of a reading one is in doubt."""
    delivery = _doubt(command) if error.delivery is Delivery.UNKNOWN else error.delivery
    category = error.category or ErrorCategory.UNKNOWN
    message = clip(" ".join(error.message.split()), _MOST_TEXT)
    return TrackerError(message, category=category, delivery=delivery, retry_after=error.retry_after)


def _doubt(command: Command) -> Delivery:
    return Delivery.NOT_SENT if command.is_read else Delivery.UNKNOWN


def _name(command: Command) -> str:
    return os.path.basename(command.argv[0])  # noqa: PTH119 - a name, not a path of this machine
