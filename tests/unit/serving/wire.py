"""Raw clients of an MCP server: what goes over the wire is written out, and nothing is mended."""

import json
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2

from harbor_async import Catalog, Limits, Runtime
from harbor_async._pipe import Reader, Writer
from harbor_async.serving.mcp import MCPServer

MODERN, LEGACY, OLDEST = "2026-07-28", "2025-11-25", "2025-06-18"
ERAS = [MODERN, LEGACY, OLDEST]
_CLIENT = {"name": "test", "version": "1"}
_META = "io.modelcontextprotocol/"
ENVELOPE = {_META + "protocolVersion": MODERN, _META + "clientCapabilities": {}, _META + "clientInfo": _CLIENT}


def request(era: str, id: Any, method: str, *, meta: dict | None = None, **params: Any) -> dict:
    meta = (ENVELOPE if era == MODERN else {}) | (meta or {})
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params | ({"_meta": meta} if meta else {})}


def call(era: str, id: Any, name: str, *, meta: dict | None = None, **arguments: Any) -> dict:
    return request(era, id, "tools/call", meta=meta, name=name, arguments=arguments)


def cancel(id: Any) -> dict:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}


def initialize(era: str) -> dict:
    return request(era, "init", "initialize", protocolVersion=era, capabilities={}, clientInfo=_CLIENT)


INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


class Peer:
    """A client at the other ends of two pipes."""

    def __init__(self, source: int, sink: int) -> None:
        self._reader, self._writer, self.sink = Reader(source), Writer(sink), sink
        self._lines: list[bytes] = []
        self._rest = b""

    async def send(self, *messages: dict | bytes) -> None:
        for message in messages:
            self._writer.add(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")
        await self._writer.flush()

    async def read(self) -> dict | None:
        """Return the next message; None at the end."""
        while not self._lines:
            chunk = await self._reader.read()
            if not chunk:
                return None
            *self._lines, self._rest = (self._rest + chunk).split(b"\n")
        return json.loads(self._lines.pop(0))

    async def ask(self, message: dict) -> dict:
        await self.send(message)
        return await self.read()

    async def greet(self, era: str) -> None:
        if era != MODERN:
            answer = await self.ask(initialize(era))
            assert era == answer["result"]["protocolVersion"]
            await self.send(INITIALIZED)

    def close(self) -> None:
        """Say that there is nothing more to come."""
        if self.sink >= 0:
            os.close(self.sink)
            self.sink = -1


@asynccontextmanager
async def stdio(
    catalog: Catalog, *, drain: float | None = 10, limits: Limits | None = None, **options: Any
) -> AsyncGenerator[tuple[Peer, Any]]:
    """Serve a catalog on two pipes; yields the client, and a namespace that holds ``stop`` and later ``cut``."""
    (server_in, client_out), (client_in, server_out) = os.pipe(), os.pipe()
    stop, ended = anyio.Event(), anyio.Event()
    state = type("State", (), {"stop": stop, "ended": ended, "cut": None})()

    async def serve() -> None:
        async with Runtime(catalog, limits=limits) as runtime:
            state.runtime = runtime
            server = MCPServer(runtime, **options)
            state.cut = await server.serve_stdio(stop=stop, drain=drain, descriptors=(server_in, server_out))
        os.close(server_out)
        ended.set()

    peer = Peer(client_in, client_out)
    async with anyio.create_task_group() as group:
        group.start_soon(serve)
        try:
            yield peer, state
        finally:
            peer.close()
            with anyio.move_on_after(5, shield=True):
                await ended.wait()
            group.cancel_scope.cancel()
    for fd in (server_in, client_in):
        os.close(fd)


class Web:
    """A client over HTTP."""

    def __init__(self, port: int, era: str, **headers: str) -> None:
        self.url, self.era = f"http://127.0.0.1:{port}/mcp", era
        self.headers = {"accept": "application/json, text/event-stream", **headers}
        self.http = httpx2.AsyncClient(timeout=15)

    def head(self, message: dict) -> dict[str, str]:
        if self.era != MODERN:
            return self.headers
        name = message.get("params", {}).get("name")
        routing = {"mcp-protocol-version": MODERN, "mcp-method": message["method"]}
        return self.headers | routing | ({"mcp-name": name} if name else {})

    async def post(self, message: dict) -> httpx2.Response:
        return await self.http.post(self.url, json=message, headers=self.head(message))

    async def ask(self, message: dict) -> list[dict]:
        """Return all messages of the answer."""
        return read(await self.post(message))

    async def greet(self) -> None:
        if self.era != MODERN:
            answer = await self.post(initialize(self.era))
            assert 200 == answer.status_code, answer.text
            self.headers |= {"mcp-session-id": answer.headers["mcp-session-id"], "mcp-protocol-version": self.era}
            assert 202 == (await self.post(INITIALIZED)).status_code


def read(response: httpx2.Response) -> list[dict]:
    if response.headers.get("content-type", "").startswith("text/event-stream"):
        return [
            json.loads(line[5:]) for line in response.text.splitlines() if line.startswith("data:") and line[5:].strip()
        ]
    return [response.json()]


@asynccontextmanager
async def web(
    catalog: Catalog, era: str = MODERN, *, limits: Limits | None = None, headers: dict | None = None, **options: Any
) -> AsyncGenerator[tuple[Web, Any]]:
    """Serve a catalog over HTTP; yields a client that has said hello, and a namespace as ``stdio`` does."""
    made = {key: options.pop(key) for key in ("filter", "page_size", "timeout") if key in options}
    stop = anyio.Event()
    state = type("State", (), {"stop": stop, "cut": None})()

    async def serve(*, task_status: Any) -> None:
        async with Runtime(catalog, limits=limits) as runtime:
            state.runtime = runtime
            state.cut = await MCPServer(runtime, **made).serve_http(
                port=0, stop=stop, task_status=task_status, **options
            )

    async with anyio.create_task_group() as group:
        state.port = await group.start(serve)
        client = Web(state.port, era, **(headers or {}))
        async with client.http:
            await client.greet()
            yield client, state
        group.cancel_scope.cancel()


def text(answer: dict) -> str:
    return answer["result"]["content"][0]["text"]


Serve = Callable[..., Any]
