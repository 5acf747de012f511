"""MCP over two file descriptors: one JSON-RPC message a line.

The SDK's own transport reads lines of any length, takes one hop through a thread for each, goes on reading while nobody
takes its answers, and ends what runs as soon as its input ends. This one bounds a line, reads and writes what there is
at once, stops reading while too much is unwritten, and answers what it has read.
"""

import os
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Final, Self

import anyio
import msgspec
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from ..._json import is_object
from ..._line import LineSplitter
from ..._pipe import Reader, Writer

_MOST_UNWRITTEN: Final = 8 * 1024 * 1024
"""Bytes of answers that a client may leave unread before nothing more is read from it."""
_PATIENCE: Final = 5.0
"""Seconds that a client has to take the last answers."""


class _Stream:
    """What the SDK asks of both directions."""

    async def aclose(self) -> None:
        """Close."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        """Do nothing."""
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        """Close."""
        await self.aclose()


class Outgoing(_Stream):
    """What is to be written, and which requests have no answer yet."""

    def __init__(self, sink: int) -> None:
        """Prepare to write to the descriptor ``sink``."""
        self._writer = Writer(sink)
        self._unwritten = 0
        self._news = anyio.Event()
        self._room = anyio.Event()
        self._is_closed = False
        self._answered = anyio.Event()
        self._unanswered: set[str] = set()
        self.broken = anyio.Event()

    async def send(self, item: SessionMessage) -> None:
        """Have a message written, or wait until there is room for it.

        Raises:
            anyio.BrokenResourceError: Nobody reads any more.
        """
        await self.wait_room()
        if self._is_closed or self.broken.is_set():
            raise anyio.BrokenResourceError
        message = item.message
        line = message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        self._writer.add(line)
        self._unwritten += len(line)
        if isinstance(message, (JSONRPCResponse, JSONRPCError)):
            self.settle(message.id)
        self._news.set()

    async def wait_room(self) -> None:
        """Wait while too much is unwritten."""
        while self._unwritten >= _MOST_UNWRITTEN and not self.broken.is_set():
            await self._room.wait()

    async def write(self) -> None:
        """Write what there is to write, until this is closed and all is written, or nobody reads any more."""
        try:
            while self._unwritten or not self._is_closed:
                if self._unwritten:
                    self._unwritten = 0
                    await self._writer.flush()
                    self._room.set()
                    self._room = anyio.Event()
                else:
                    self._news = anyio.Event()
                    await self._news.wait()
        except OSError:
            self.broken.set()
            self._room.set()
            self._answered.set()

    async def aclose(self) -> None:
        """Take no more messages."""
        self._is_closed = True
        self._news.set()

    @property
    def unanswered(self) -> int:
        """How many requests have no answer yet."""
        return len(self._unanswered)

    def expect(self, id: object) -> None:
        """Note that a request has come."""
        self._unanswered.add(str(id))

    def settle(self, id: object) -> None:
        """Note that a request has its answer, or will get none."""
        self._unanswered.discard(str(id))
        if not self._unanswered:
            self._answered.set()

    async def wait_answered(self) -> None:
        """Wait until each request has its answer, or nobody reads any more."""
        while self._unanswered and not self.broken.is_set():
            self._answered = anyio.Event()
            await self._answered.wait()


class Incoming(_Stream):
    """The messages that are read, one a line."""

    def __init__(self, source: int, outgoing: Outgoing, max_line_bytes: int, patience: float | None) -> None:
        """Prepare to read the descriptor ``source``.

        Args:
            source: The descriptor.
            outgoing: Where what cannot be understood is refused.
            max_line_bytes: Length of the longest message.
            patience: Seconds that requests which have been read have for their answers when nothing more is read.
                None: as long as it takes.
        """
        self._reader = Reader(source)
        self._outgoing = outgoing
        self._splitter = LineSplitter(max_line_bytes)
        self._max_line_bytes = max_line_bytes
        self._patience = patience
        self._messages: deque[SessionMessage] = deque()
        self._reading: anyio.CancelScope | None = None
        self._is_stopped = False
        self._is_ended = False
        self.cut = 0

    def stop(self) -> None:
        """Read no more."""
        self._is_stopped = True
        if self._reading is not None:
            self._reading.cancel()

    async def receive(self) -> SessionMessage:
        """Return the next message.

        Raises:
            anyio.EndOfStream: There is none, and those that were read have their answers or patience is at its end.
        """
        while not self._messages and not self._is_ended:
            await self._fill()
        if self._messages:
            return self._messages.popleft()
        with anyio.move_on_after(self._patience):
            await self._outgoing.wait_answered()
        self.cut = self._outgoing.unanswered
        raise anyio.EndOfStream

    async def aclose(self) -> None:
        """Read no more."""
        self._is_ended = True

    async def _fill(self) -> None:
        chunk = b""
        if not self._is_stopped:
            with anyio.CancelScope() as self._reading, suppress(OSError):  # a terminal that has gone
                await self._outgoing.wait_room()
                chunk = await self._reader.read()
        self._is_ended = not chunk
        for _, line in self._splitter.feed(chunk) if chunk else self._splitter.finish():
            await self._take(line)

    async def _take(self, line: bytes | None) -> None:
        if line is None:
            await self._refuse(None, INVALID_REQUEST, f"the message has more than {self._max_line_bytes} bytes")
            return
        if not line.strip():
            return
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValidationError as exc:
            is_json = all(error["type"] != "json_invalid" for error in exc.errors(include_input=False))
            code = INVALID_REQUEST if is_json else PARSE_ERROR
            await self._refuse(_find_id(line) if is_json else None, code, "expected a JSON-RPC message")
            return
        if isinstance(message, JSONRPCRequest) and message.method != "subscriptions/listen":
            self._outgoing.expect(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._outgoing.settle((message.params or {}).get("requestId"))
        self._messages.append(SessionMessage(message))

    async def _refuse(self, id: int | str | None, code: int, text: str) -> None:
        error = JSONRPCError(jsonrpc="2.0", id=id, error=ErrorData(code=code, message=text))
        with suppress(anyio.BrokenResourceError):
            await self._outgoing.send(SessionMessage(error))

    def __aiter__(self) -> Self:
        """Go through the messages."""
        return self

    async def __anext__(self) -> SessionMessage:
        """Return the next message."""
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


def _find_id(line: bytes) -> int | str | None:
    try:
        said: Any = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None
    id = said.get("id") if is_object(said) else None
    return id if isinstance(id, (int, str)) and not isinstance(id, bool) else None


async def serve_stdio(
    server: Server[Any],
    source: int,
    sink: int,
    *,
    max_line_bytes: int,
    patience: float | None,
    stop: anyio.Event | None,
) -> int:
    """Serve one client, until it has closed its side, reads no more, or ``stop`` is set.

    Returns:
        How many requests had no answer when patience was at its end.
    """
    outgoing = Outgoing(sink)
    incoming = Incoming(source, outgoing, max_line_bytes, patience)

    async def stop_after(event: anyio.Event) -> None:
        await event.wait()
        incoming.stop()

    async with anyio.create_task_group() as writing:
        writing.start_soon(outgoing.write)
        async with anyio.create_task_group() as watching:
            for event in (outgoing.broken,) if stop is None else (outgoing.broken, stop):
                watching.start_soon(stop_after, event)
            await server.run(incoming, outgoing, server.create_initialization_options())
            watching.cancel_scope.cancel()
        writing.cancel_scope.deadline = anyio.current_time() + _PATIENCE
    return incoming.cut


@contextmanager
def claim() -> Generator[tuple[int, int]]:
    """Take standard input and output for messages alone: a tool that prints writes to standard error meanwhile."""
    source, sink, nothing = os.dup(0), os.dup(1), os.open(os.devnull, os.O_RDONLY)
    try:
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        yield source, sink
    finally:
        os.dup2(source, 0)
        os.dup2(sink, 1)
        for fd in (source, sink, nothing):
            os.close(fd)
