"""Measure the MCP server against the SDK's low-level server and fastmcp: ``python -m bench.mcp [--rounds N]``.

Each server adds two numbers, in a process of its own; fastmcp lives in an environment of its own, which is made at the
first run. Over stdio 1,000 ``tools/call`` are written at once and all answers are read; over HTTP 50 connections send
1,000. Rounds are interleaved, and the ratios are of medians. What the client costs is the same for all.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
import venv
from itertools import product
from pathlib import Path
from statistics import median
from threading import Thread
from typing import Any

CALLS = 1000
CONNECTIONS = 50
PROJECT = Path(__file__).parent.parent

OURS = """
import sys, anyio, attrs
import harbor_async as ha
from harbor_async.serving.mcp import MCPServer
@attrs.frozen
class Sum:
    sum: int
@ha.tool
async def add(a: int, b: int) -> Sum:
    "Add."
    return Sum(a + b)
async def main():
    async with ha.Runtime(ha.Catalog([add])) as runtime:
        server = MCPServer(runtime)
        await (server.serve_stdio() if sys.argv[1] == "stdio" else server.serve_http(port=int(sys.argv[2])))
anyio.run(main, backend=BACKEND)
"""
RAW = """
import sys, anyio, uvicorn
import mcp_types as t
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
N = {"type": "integer"}
S = {"type": "object", "properties": {"a": N, "b": N}, "required": ["a", "b"]}
O = {"type": "object", "properties": {"sum": N}, "required": ["sum"]}
async def list_tools(ctx, params):
    return t.ListToolsResult(tools=[t.Tool(name="add", description="Add.", input_schema=S, output_schema=O)])
async def call(ctx, params):
    s = {"sum": params.arguments["a"] + params.arguments["b"]}
    return t.CallToolResult(content=[t.TextContent(type="text", text=str(s))], structured_content=s)
server = Server("raw", on_list_tools=list_tools, on_call_tool=call)
async def main():
    async with stdio_server() as (r, w):
        await server.run(r, w, server.create_initialization_options())
if sys.argv[1] == "stdio":
    anyio.run(main)
else:
    uvicorn.run(server.streamable_http_app(), port=int(sys.argv[2]), log_level="warning")
"""
FASTMCP = """
import sys
from fastmcp import FastMCP
from pydantic import BaseModel
class Sum(BaseModel):
    sum: int
m = FastMCP("fast")
@m.tool
async def add(a: int, b: int) -> Sum:
    "Add."
    return Sum(sum=a + b)
if sys.argv[1] == "stdio":
    m.run(show_banner=False)
else:
    m.run("http", port=int(sys.argv[2]), show_banner=False, log_level="warning", uvicorn_config={"access_log": False})
"""
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
}
HELLO = {
    "jsonrpc": "2.0",
    "id": "hello",
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def call(era: str, number: int) -> bytes:
    params: dict[str, Any] = {"name": "add", "arguments": {"a": number, "b": 1}}
    if era == "2026-07-28":
        params["_meta"] = META
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode()


def stdio(command: list[str], era: str) -> float:
    """Return calls a second over one pipelined session."""
    process = subprocess.Popen(
        [*command, "stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdin is not None
    assert process.stdout is not None
    source, sink = process.stdout, process.stdin
    if era != "2026-07-28":
        sink.write(json.dumps(HELLO).encode() + b"\n")
        sink.flush()
        source.readline()
        sink.write(json.dumps(READY).encode() + b"\n")
    sink.write(call(era, 0) + b"\n")
    sink.flush()
    assert json.loads(source.readline())["result"]["structuredContent"] == {"sum": 1}
    data = b"".join(call(era, number) + b"\n" for number in range(1, CALLS + 1))
    started = time.perf_counter()
    Thread(target=lambda: (sink.write(data), sink.flush()), daemon=True).start()
    left = set(range(1, CALLS + 1))
    while left:
        answer = json.loads(source.readline())
        assert answer["result"]["structuredContent"] == {"sum": answer["id"] + 1}
        left.remove(answer["id"])
    elapsed = time.perf_counter() - started
    sink.close()
    process.wait(20)
    return CALLS / elapsed


async def post(streams: Any, port: int, body: bytes, **more: str) -> tuple[bytes, bytes]:
    """Send a request over a connection; return head and body of the answer."""
    reader, writer = streams
    headers = {
        "host": f"127.0.0.1:{port}",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "content-length": str(len(body)),
        **{name.replace("_", "-"): value for name, value in more.items()},
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"POST /mcp HTTP/1.1\r\n{lines}\r\n".encode() + body)
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    assert head.split()[1] in {b"200", b"202"}, head
    if b"content-length:" in head:
        return head, await reader.readexactly(int(head.split(b"content-length:")[1].split()[0]))
    answer = b""
    while size := int(await reader.readline(), 16) if b"chunked" in head else 0:
        answer += (await reader.readexactly(size + 2))[:-2]
    if b"chunked" in head:
        await reader.readline()
    return head, answer


async def load(port: int, era: str) -> float:
    more = {"mcp_protocol_version": era}
    if era == "2026-07-28":
        more |= {"mcp_method": "tools/call", "mcp_name": "add"}
    else:
        streams = await asyncio.open_connection("127.0.0.1", port)
        head, _ = await post(streams, port, json.dumps(HELLO).encode())
        more["mcp_session_id"] = head.split(b"mcp-session-id:")[1].split()[0].decode()
        await post(streams, port, json.dumps(READY).encode(), **more)
        streams[1].close()

    async def work(first: int) -> None:
        streams = await asyncio.open_connection("127.0.0.1", port)
        for number in range(first, CALLS + 1, CONNECTIONS):
            _, answer = await post(streams, port, call(era, number), **more)
            assert b'"sum":%d' % (number + 1) in answer.replace(b" ", b""), answer
        streams[1].close()

    started = time.perf_counter()
    await asyncio.gather(*(work(first) for first in range(1, CONNECTIONS + 1)))
    return CALLS / (time.perf_counter() - started)


async def wait_port(port: int) -> None:
    for _ in range(600):
        try:
            (await asyncio.open_connection("127.0.0.1", port))[1].close()
        except OSError:
            await asyncio.sleep(0.1)
        else:
            return


def http(command: list[str], era: str, port: int) -> float:
    process = subprocess.Popen([*command, "http", str(port)], stderr=subprocess.DEVNULL)
    try:
        asyncio.run(wait_port(port))
        asyncio.run(load(port, era))  # to be warm
        return asyncio.run(load(port, era))
    finally:
        process.terminate()
        process.wait(30)


def fastmcp_python() -> str:
    folder = Path(tempfile.gettempdir()) / "harbor-async-bench-fastmcp"
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "fastmcp>=4,<5"], check=True)
    return str(python)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--fastmcp", help="a Python that has fastmcp; else an environment is made for it")
    options = parser.parse_args()
    commands = {
        "ours": [sys.executable, "-c", OURS.replace("BACKEND", '"asyncio"')],
        "ours on trio": [sys.executable, "-c", OURS.replace("BACKEND", '"trio"')],
        "SDK": [sys.executable, "-c", RAW],
        "fastmcp": [options.fastmcp or fastmcp_python(), "-c", FASTMCP],
    }
    rates: dict[tuple[str, str, str], list[float]] = {}
    port = 18_700
    for turn in range(options.rounds):
        for era, (name, command) in product(("2026-07-28", "2025-11-25"), commands.items()):
            rates.setdefault(("stdio", era, name), []).append(stdio(command, era))
            port += 1
            rates.setdefault(("http", era, name), []).append(http(command, era, port))
        print(f"round {turn + 1} of {options.rounds}", file=sys.stderr)
    for way, era in product(("stdio", "http"), ("2026-07-28", "2025-11-25")):
        medians = {name: median(rates[way, era, name]) for name in commands}
        for name, rate in medians.items():
            ratios = f"{rate / medians['fastmcp']:.2f} × fastmcp, cost {medians['SDK'] / rate:.2f} × the SDK's"
            print(f"{way:5} {era} {name:12} {rate:6.0f} calls/s  {ratios}")


if __name__ == "__main__":
    main()
