"""``tracker``: a tracker in a file, made, read and written to from the command line."""

import json
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.e2e.cli import COMMAND, run


@pytest.fixture
def issues(tmp_path):
    """Return a new tracker with one issue."""
    file = tmp_path / "issues.db"
    for arguments in (["init", file], ["add", file, "T-1", "The pump leaks"]):
        done = run("tracker", *arguments)
        assert (0, "") == (done.returncode, done.stderr)
    return file


def rows(command, *arguments):
    """Return the words of each line that ``tracker command`` prints."""
    done = run("tracker", command, *arguments)
    assert (0, "") == (done.returncode, done.stderr)
    return [line.split() for line in done.stdout.splitlines()]


def write(file, arguments, *options, **settings):
    """Return exit code and envelope of ``tracker write``."""
    done = run("tracker", "write", file, arguments, *options, **settings)
    assert "" == done.stderr
    return done.returncode, json.loads(done.stdout)


def count_comments(file):
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute("SELECT count(*) FROM comments").fetchone()[0]


@pytest.mark.timeout(60)  # nine new interpreters
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_life_of_an_issue(issues, backend):
    """Writes print the envelope of ``tracker_write``, and show in the list, the issue and its history."""
    assert [["id", "state", "title"], ["T-1", "open", "The", "pump", "leaks"]] == rows("list", issues)
    link = '{"op": "link_pr", "id": "T-1", "prURL": "https://example.org/1"}'
    done = {"outcome": "succeeded", "op": "link_pr", "id": "T-1"}
    assert (0, done) == write(issues, link, "--backend", backend)
    comment = '{"op": "comment", "id": "T-1", "body": "A new seal.\\n\\u001b[2J"}'
    assert (0, done | {"op": "comment"}) == write(issues, "-", "--backend", backend, input=comment)
    close = '{"op": "close", "id": "T-1", "reason": "mended"}'
    assert (0, done | {"op": "close"}) == write(issues, close, "--backend", backend, "--timeout", "30")
    assert [
        ["id", "T-1"],
        ["title", "The", "pump", "leaks"],
        ["state", "closed"],
        ["link", "https://example.org/1"],
        ["comment", "A", "new", "seal.\\n\\x1b[2J"],
    ] == rows("show", issues, "T-1")
    head, *lines = rows("history", issues, "T-1")
    assert ["at", "what", "from", "to", "text"] == head
    assert [
        ["add", "open"],
        ["link_pr", "https://example.org/1"],
        ["comment", "A", "new", "seal.\\n\\x1b[2J"],
        ["close", "open", "closed", "mended"],
    ] == [line[2:] for line in lines]


def test_a_write_that_fails(issues):
    """A refused write prints the envelope with its category, and ends with code 1."""
    code, envelope = write(issues, '{"op": "transition", "id": "T-1", "toState": "in_review"}')
    assert (1, "failed", "validation") == (code, envelope["outcome"], envelope["error"]["category"])
    assert envelope["error"]["message"].endswith("from 'open' the issue can go to 'in_progress', 'closed'")
    code, envelope = write(issues, '{"op": "close", "id": "T-2"}')
    assert (1, "not_found") == (code, envelope["error"]["category"])
    code, envelope = write(issues, "{")
    assert (1, "validation") == (code, envelope["error"]["category"])


def test_a_locked_file(issues):
    """A write that finds the file locked until its deadline is ``api_request`` or ``timeout``, and code 1."""
    other = sqlite3.connect(issues, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    code, envelope = write(issues, '{"op": "comment", "id": "T-1", "body": "x"}', "--timeout", "0.3")
    other.close()
    assert (1, True) == (code, envelope["error"]["category"] in {"api_request", "timeout"})
    assert 0 == count_comments(issues)


@pytest.mark.timeout(60)  # ten new interpreters
def test_wrong_usage_is_one_line_and_code_2(issues, tmp_path):
    """What is wrong with file, id or options is told in one line on standard error, with code 2."""
    (tmp_path / "text").write_text("no database" * 1000)
    cases = {
        ("init", "issues.db"): "there is already a 'issues.db'",
        ("init", "no/issues.db"): "cannot be opened",
        ("add", "issues.db", "T-1", "x"): "there is an issue of this id already",
        ("list", "missing.db"): "there is no tracker 'missing.db'",
        ("list", "text"): "no SQLite database",
        ("show", "issues.db", "T-2"): "there is no issue of this id",
        ("history", "issues.db", "T-2"): "there is no issue of this id",
        ("write", "missing.db", "{}"): "there is no tracker 'missing.db'",
        ("write", "issues.db", "{}", "--timeout", "-1"): "--timeout: expected a finite number of seconds",
        ("write", "issues.db"): "JSON",
    }
    for arguments, words in cases.items():
        done = run("tracker", *arguments, cwd=tmp_path)
        assert (2, "", 1) == (done.returncode, done.stdout, len(done.stderr.splitlines())), done.stderr
        assert done.stderr.startswith("harbor-async: ")
        assert words in done.stderr
    assert {"issues.db", "text"} == {path.name for path in tmp_path.iterdir()}


def opened(process):
    """Return the files that a process has open."""
    files = set()
    for descriptor in Path(f"/proc/{process.pid}/fd").iterdir():
        with suppress(OSError):  # closed meanwhile
            files.add(descriptor.readlink())
    return files


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_signal_ends_a_write(issues, backend):
    """A signal ends a write that waits for the lock with one line and its own code, and nothing is written."""
    other = sqlite3.connect(issues, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    command = [*COMMAND, "tracker", "write", str(issues), "-", "--backend", backend]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        process.stdin.write('{"op": "comment", "id": "T-1", "body": "x"}')
        process.stdin.close()
        process.stdin = None
        while issues not in opened(process) and process.poll() is None:
            time.sleep(0.01)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=30)
    assert (143, "", 1) == (process.returncode, said[0], len(said[1].splitlines())), said[1]
    assert "ended by SIGTERM" in said[1]
    other.close()
    assert 0 == count_comments(issues)
