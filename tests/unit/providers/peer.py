"""A server of the tests' own making, in memory: it keeps every frame that came, and answers as a test says."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, JSONRPCNotification, JSONRPCResponse

Frame = dict[str, Any]
OBJECT = {"type": "object"}


def text(words: str, **more: Any) -> Frame:
    return {"content": [{"type": "text", "text": words}], **more}


class RefusalError(Exception):
    """A handler answers with a JSON-RPC error."""

    def __init__(self, code: int, message: str = "no") -> None:
        super().__init__(message)
        self.code = code


class Peer:
    """A server of 2025-11-25. Each ``open`` is a connection; ``drop`` ends the last one."""

    name = "peer"

    def __init__(self, *tools: Frame, on_call: Callable[[Frame], Awaitable[Frame]] | None = None) -> None:
        self.tools = list(tools) or [{"name": "echo", "inputSchema": OBJECT}]
        self.on_call = on_call or self._echo
        self.frames: list[Frame] = []
        self.opened = 0
        self.is_deaf = False
        self.fails: list[Exception] = []
        self.capabilities: Frame = {"tools": {"listChanged": True}}
        self._line: Any = None

    async def _echo(self, params: Frame) -> Frame:
        return text("echo", structuredContent=params["arguments"])

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Any]:
        self.opened += 1
        if self.fails:
            raise self.fails.pop(0)
        to_client, from_server = anyio.create_memory_object_stream[Any](100)
        to_server, from_client = anyio.create_memory_object_stream[Any](0)
        self._line = to_client
        async with to_client, from_server, to_server, from_client, anyio.create_task_group() as group:
            group.start_soon(self._serve, from_client, to_client, group)
            try:
                yield from_server, to_server
            finally:
                group.cancel_scope.cancel()

    def drop(self) -> None:
        """End the connection, as a process that dies does."""
        self._line.close()

    def tell(self, method: str, **params: Any) -> None:
        """Send a notification."""
        told = JSONRPCNotification(jsonrpc="2.0", method=method, params=params or None)
        self._line.send_nowait(SessionMessage(told))

    def answer(self, id: Any, result: Frame) -> None:
        """Answer a request, perhaps late."""
        self._line.send_nowait(SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=id, result=result)))

    def of(self, method: str) -> list[Frame]:
        """The frames of one method."""
        return [frame for frame in self.frames if frame.get("method") == method]

    async def _serve(self, from_client: Any, to_client: Any, group: Any) -> None:
        async for message in from_client:
            frame = message.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
            self.frames.append(frame)
            if self.is_deaf:
                await anyio.sleep_forever()
            if "id" in frame and "method" in frame:
                group.start_soon(self._handle, frame, to_client)

    async def _handle(self, frame: Frame, to_client: Any) -> None:
        handlers = {"initialize": self._initialize, "tools/list": self._list, "tools/call": self.on_call}
        wire: Any
        try:
            if frame["method"] not in handlers:
                raise RefusalError(-32601)
            result = await handlers[frame["method"]](frame.get("params") or {})
            wire = JSONRPCResponse(jsonrpc="2.0", id=frame["id"], result=result)
        except RefusalError as exc:
            error = {"code": exc.code, "message": str(exc)}
            wire = JSONRPCError.model_validate({"jsonrpc": "2.0", "id": frame["id"], "error": error})
        try:
            await to_client.send(SessionMessage(wire))
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return

    async def _initialize(self, params: Frame) -> Frame:
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": self.capabilities,
            "serverInfo": {"name": "peer", "version": "1"},
        }

    async def _list(self, params: Frame) -> Frame:
        start = int(params.get("cursor") or 0)
        rest = {"nextCursor": str(start + 2)} if len(self.tools) > start + 2 else {}
        return {"tools": self.tools[start : start + 2], **rest}
