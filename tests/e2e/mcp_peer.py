"""An MCP server of the standard library alone, for tests of our client: over stdio, or over HTTP with ``http PORT``.

It speaks 2025-11-25, keeps the methods of all frames that came (the tool ``frames`` tells them), and does on request
what servers do at their worst.
"""

import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

FRAMES: list[dict[str, Any]] = []
SESSIONS: set[str] = set()
CANCELED: dict[Any, threading.Event] = {}
TOOLS = ["echo", "slow", "frames", "die", "more", "status", "cut", "stream", "forget", "garbage", "deaf"]
DEAF = threading.Event()
LOCK = threading.Lock()


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}], **more}


def note(frame: dict[str, Any]) -> None:
    with LOCK:
        FRAMES.append(frame)
    if frame.get("method") == "notifications/cancelled":
        CANCELED.setdefault(frame["params"]["requestId"], threading.Event()).set()


def told() -> list[list[Any]]:
    with LOCK:
        return [
            [frame.get("method"), frame.get("id", (frame.get("params") or {}).get("requestId"))] for frame in FRAMES
        ]


def answer(frame: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request; errors of the protocol are no part of this."""
    method, params = frame["method"], frame.get("params") or {}
    if method == "initialize":
        capabilities = {"tools": {"listChanged": True}}
        info = {"name": "peer", "version": "1"}
        return {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]}
    arguments = params.get("arguments") or {}
    match params["name"]:
        case "slow":
            canceled = CANCELED.setdefault(frame["id"], threading.Event())
            canceled.wait(arguments.get("for", 10))
            time.sleep(arguments.get("after", 0))
        case "die":
            os._exit(1)
        case "more":
            TOOLS.append(arguments["name"])
        case "frames":
            return text("", structuredContent={"frames": told()})
        case "deaf":
            DEAF.set()
        case "forget":
            SESSIONS.clear()
    return text("done", structuredContent={"pid": os.getpid(), **arguments})


def error(frame: dict[str, Any]) -> dict[str, Any] | None:
    if frame["method"] in {"initialize", "tools/list", "tools/call"}:
        return None
    return {"jsonrpc": "2.0", "id": frame["id"], "error": {"code": -32601, "message": "no such method"}}


def stdio() -> None:
    def write(message: dict[str, Any]) -> None:
        with LOCK:
            sys.stdout.write(json.dumps(message) + "\n")
            sys.stdout.flush()

    def handle(frame: dict[str, Any]) -> None:
        name = (frame.get("params") or {}).get("name")
        if name == "garbage":
            sys.stdout.write("this is no frame\n")
        write(error(frame) or {"jsonrpc": "2.0", "id": frame["id"], "result": answer(frame)})
        if name == "more":
            write({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})

    for line in sys.stdin:
        frame = json.loads(line)
        note(frame)
        if "method" in frame and "id" in frame:
            threading.Thread(target=handle, args=(frame,), daemon=True).start()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        return

    def do_GET(self) -> None:
        self.reply(405)

    def do_DELETE(self) -> None:
        note({"method": "DELETE"})
        self.reply(200)

    def do_POST(self) -> None:
        frame = json.loads(self.rfile.read(int(self.headers["content-length"])))
        session = self.headers.get("mcp-session-id")
        if session is not None and session not in SESSIONS:
            self.reply(404)
            return
        note(frame)
        if "id" not in frame or "method" not in frame:
            if DEAF.is_set() and frame["method"] == "notifications/cancelled":
                time.sleep(30)
            self.reply(202)
            return
        if wrong := error(frame):
            self.reply(404, wrong)
            return
        self.call(frame)

    def call(self, frame: dict[str, Any]) -> None:
        params = frame.get("params") or {}
        arguments = params.get("arguments") or {}
        result = {"jsonrpc": "2.0", "id": frame["id"], "result": None}
        match params.get("name"):
            case "status":
                self.reply(arguments["status"], **{"retry-after": str(arguments.get("wait", ""))})
                return
            case "cut":
                self.send_response(200)
                self.send_header("content-type", arguments.get("type", "application/json"))
                self.send_header("content-length", "1000")
                self.end_headers()
                self.wfile.write(b'data: {"jsonrpc":')
                self.close_connection = True
                return
            case "garbage":
                self.reply(200, {"no": "frame"})
                return
            case "stream":
                self.stream([{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}, result], answer(frame))
                return
        value = answer(frame)
        headers = {}
        if frame["method"] == "initialize":
            SESSIONS.add(session := f"s{len(SESSIONS)}-{time.monotonic_ns()}")
            headers = {"mcp-session-id": session}
        self.reply(200, {**result, "result": value}, **headers)

    def stream(self, messages: list[dict[str, Any]], value: Any) -> None:
        messages[-1]["result"] = value
        body = "".join(f"event: message\ndata: {json.dumps(message)}\n\n" for message in messages).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def reply(self, status: int, body: Any = None, **headers: str) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        try:
            self.send_response(status)
            for name, value in {"content-type": "application/json", **headers}.items():
                if value:
                    self.send_header(name, value)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except OSError:  # whoever asked has gone
            self.close_connection = True


class Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True


if __name__ == "__main__":
    if sys.argv[1:2] == ["http"]:
        server = Server(("127.0.0.1", int(sys.argv[2])), Handler)
        sys.stdout.write(f"{server.server_port}\n")
        sys.stdout.flush()
        server.serve_forever()
    else:
        stdio()
