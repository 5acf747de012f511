"""``harbor-async serve``, as clients and service managers run it."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.serving.wire import MODERN, call

CATALOG = Path(__file__).parent / "mcp" / "serve_catalog.py"
COMMAND = [sys.executable, "-m", "harbor_async.cli", "serve"]
PATIENCE = 60  # imports alone take seconds on a loaded machine

both = pytest.mark.parametrize("backend", ["asyncio", "trio"])
pytestmark = pytest.mark.timeout(2 * PATIENCE)


def start(*options: str) -> subprocess.Popen:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*COMMAND, str(CATALOG), *options], **pipes)


def send(server: subprocess.Popen, *messages: dict) -> None:
    server.stdin.writelines(json.dumps(message).encode() + b"\n" for message in messages)
    server.stdin.flush()


@both
def test_requests_in_a_pipe_are_answered(backend):
    """What is piped in is answered, what a tool prints is kept off the wire, and the end is a success."""
    with start("--backend", backend) as server:
        out, err = server.communicate(json.dumps(call(MODERN, 1, "talk")).encode() + b"\n", timeout=PATIENCE)
    (answer,) = map(json.loads, out.splitlines())
    assert (1, "said", 0) == (answer["id"], answer["result"]["content"][0]["text"], server.returncode)
    assert {b"by print", b"by a child"} <= set(err.splitlines())


@both
def test_sigterm_lets_calls_end(backend):
    """A call that runs is answered after SIGTERM; nothing more is read, and the exit code is 0."""
    with start("--backend", backend) as server:
        send(server, call(MODERN, 1, "linger", seconds=1.0))
        assert b"begun" == server.stderr.readline().strip()
        server.send_signal(signal.SIGTERM)
        answer = json.loads(server.stdout.readline())
        code = server.wait(PATIENCE)
    assert ("lingered", 0) == (answer["result"]["content"][0]["text"], code)


@both
def test_sigterm_cuts_what_does_not_end(backend):
    """A call that outlasts ``--drain`` is canceled, and the exit code says that there was one."""
    with start("--backend", backend, "--drain", "0.1") as server:
        send(server, call(MODERN, 1, "linger", seconds=600.0))
        assert b"begun" == server.stderr.readline().strip()
        server.send_signal(signal.SIGTERM)
        code = server.wait(PATIENCE)
        assert b"canceled" in server.stderr.read()
    assert 128 + signal.SIGTERM == code


@both
def test_http_says_where_it_listens_and_drains(backend):
    """The line on standard error names the URL; SIGTERM ends the server with success when nothing runs."""
    with start("--backend", backend, "--http", "127.0.0.1:0") as server:
        line = server.stderr.readline().decode()
        server.send_signal(signal.SIGTERM)
        code = server.wait(PATIENCE)
    assert re.fullmatch(r"harbor-async: 2 tools at http://127\.0\.0\.1:\d+/mcp\n", line)
    assert 0 == code


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--http", "8000"], "--http: expected HOST:PORT, as 127.0.0.1:8000; got '8000'"),
        (["--http", "0.0.0.0:0"], "0.0.0.0 can be reached from elsewhere: say by --allow-host under which names"),
        (["--auth", "a:b"], "--auth, --allow-host and --allow-origin are for --http"),
        (["--http", "127.0.0.1:0", "--auth", "json:nobody"], "json has no attribute 'nobody'"),
        (["--http", "127.0.0.1:0", "--auth", "json:__name__"], "__name__ is of type str, and no function"),
        (
            ["--http", "192.0.2.1:0", "--allow-host", "x"],
            "cannot listen at 192.0.2.1:0: Cannot assign requested address",
        ),
    ],
)
def test_wrong_options_are_one_line(options, said):
    """What the user can mend is one line and exit code 2. 192.0.2.0/24 is nobody's (RFC 5737)."""
    ended = subprocess.run(
        [*COMMAND, str(CATALOG), *options], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert 2 == ended.returncode
    assert said in ended.stderr
    assert 1 == len(ended.stderr.splitlines())
