"""``harbor-async run``: good and bad files, any size, pipes, and early ends."""

import json
import os
import signal
import subprocess
import sys

import pytest

from tests.e2e.cli import CATALOG, COMMAND, ends, results, run

BACKENDS = pytest.mark.parametrize("backend", ["asyncio", "trio"])
pytestmark = pytest.mark.timeout(120)


@BACKENDS
def test_bad_input_is_answered_line_by_line(backend, tmp_path):
    """Whatever a line holds, it gets one result and stops nothing: the last call runs."""
    lines = [
        b'{"id":"ok","name":"add","arguments":{"a":1}}',
        b"",
        b"{broken",
        b'"text"',
        b'{"arguments":{}}',
        b"\x80\x00\xff\x1b[2J",
        b'{"id":"unknown","name":"nope","arguments":{}}',
        b'{"id":"type","name":"add","arguments":{"a":"1"}}',
        b'{"id":"twice","name":"add","arguments":{"a":1,"a":2}}',
        b'{"id":"nan","name":"add","arguments":{"a":NaN}}',
        b'{"id":"deep","name":"add","arguments":{"a":' + b"[" * 5000 + b"]" * 5000 + b"}}",
        b'{"id":"10 MB","name":"size","arguments":{"text":"' + b"x" * 10_000_000 + b'"}}',
        b'{"id":"17 MB","name":"size","arguments":{"text":"' + b"x" * 17_000_000 + b'"}}',
        b'{"id":"last","name":"add","arguments":"{\\"a\\": 2}"}',
    ]
    (tmp_path / "calls.jsonl").write_bytes(b"\n".join(lines))
    done = run("run", CATALOG, tmp_path / "calls.jsonl", "--backend", backend)
    bad = ("failed", "validation")
    expected = {
        "ok": ("succeeded", None),
        "line-3": bad,
        "line-4": bad,
        "line-5": bad,
        "line-6": bad,
        "unknown": ("failed", "not_found"),
        "type": bad,
        "twice": bad,
        "nan": bad,
        "deep": bad,
        "10 MB": bad,
        "line-13": bad,
        "last": ("succeeded", None),
    }
    assert expected == ends(done.stdout)
    assert 1 == done.returncode
    found = results(done.stdout)
    numbers = [1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]
    assert numbers == sorted(record["line"] for record in found.values())
    codes = {
        id: found[id]["error"]["problems"][0]["code"] for id in ("type", "twice", "nan", "deep", "10 MB", "line-13")
    }
    expected_codes = {"type": "type", "twice": "duplicate", "nan": "syntax", "deep": "too_deep"}
    assert {**expected_codes, "10 MB": "too_large", "line-13": "too_large"} == codes
    assert max(map(len, done.stdout.splitlines())) < 1000
    assert "Traceback" not in done.stderr


@BACKENDS
def test_standard_input_and_output(backend):
    """``-`` is standard input; results are all that is on standard output, the table is on standard error."""
    done = run("run", CATALOG, "-", "--backend", backend, input='{"name":"add","arguments":{"a":1}}\n' * 3)
    assert [2, 2, 2] == [record["value"] for record in map(json.loads, done.stdout.splitlines())]
    assert "succeeded" in done.stderr
    assert 0 == done.returncode


def test_results_go_to_a_file_and_the_table_to_standard_output(tmp_path):
    """With -o the results are in the file, in place of what it held, and the table is on standard output."""
    output = tmp_path / "results.jsonl"
    output.write_text("old\n" * 100)
    done = run("run", CATALOG, "-", "-o", output, input='{"id":"1","name":"add","arguments":{"a":1}}')
    assert {"1": ("succeeded", None)} == ends(output.read_text())
    first = done.stdout.splitlines()
    assert [["outcome", "category", "calls"], ["succeeded", "1"], ["total", "1"]] == [
        line.split() for line in first[:3]
    ]
    assert "\x1b" not in done.stderr  # a progress bar is for terminals


def test_empty_file():
    """No calls: no results, and nothing has failed."""
    done = run("run", CATALOG, os.devnull)
    assert ("", 0) == (done.stdout, done.returncode)


@BACKENDS
def test_deadline_of_each_call(backend):
    """--timeout is each call's deadline."""
    calls = '{"id":"1","name":"wait"}\n{"id":"2","name":"add","arguments":{"a":1}}\n{"id":"3","name":"wait"}\n'
    done = run("run", CATALOG, "-", "--timeout", "0.1", "--max-running", "1", "--backend", backend, input=calls)
    late = ("timed_out", "timeout")
    assert {"1": late, "2": ("succeeded", None), "3": late} == ends(done.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@BACKENDS
def test_memory_does_not_grow_with_the_file(backend, tmp_path):
    """50 MB of calls through a pipe take no more than 15 MB of memory above the first call."""
    output = tmp_path / "results.jsonl"
    command = [*COMMAND, "run", str(CATALOG), "-", "-o", str(output), "--backend", backend]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        process.stdin.write(b'{"id":"first","name":"peak"}\n')
        block = b'{"name":"size","arguments":{"text":"%s"}}\n' % (b"x" * 2000) * 100
        for _ in range(250):
            process.stdin.write(block)
        process.stdin.write(b'{"id":"last","name":"peak"}\n')
        process.stdin.close()
        assert 0 == process.wait(100)
    found = results(output.read_text())
    assert 25_002 == len(found)
    assert found["last"]["value"] - found["first"]["value"] < 15_000


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@BACKENDS
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_a_run_cleanly(backend, number, tmp_path):
    """After a signal finished results are on disk, calls that were read are canceled, and the table says the rest."""
    output = tmp_path / "results.jsonl"
    command = [*COMMAND, "run", str(CATALOG), "-", "-o", str(output), "--backend", backend, "--max-running", "2"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        names = [("done", "add"), ("running", "wait"), ("running too", "wait"), ("queued", "add")]
        calls = [
            json.dumps({"id": id, "name": name, "arguments": {"a": 1} if name == "add" else {}}) for id, name in names
        ]
        process.stdin.write("\n".join([*calls, "bad", '{"id":"not read to its end']))
        process.stdin.flush()
        begun = (line for line in process.stderr if line == "begun\n")
        assert ["begun\n", "begun\n"] == [next(begun), next(begun)]
        process.send_signal(number)
        table, _ = process.communicate(timeout=30)
    assert 128 + number == process.returncode
    canceled = ("failed", "canceled")
    expected = {"done": ("succeeded", None), "running": canceled, "running too": canceled, "queued": canceled}
    assert expected | {"line-5": ("failed", "validation")} == ends(output.read_text())
    found = results(output.read_text())
    assert [True, True, None] == [found[id]["error"].get("ambiguous") for id in ("running", "running too", "queued")]
    assert [None, None, 0] == [found[id]["attempts"] for id in ("running", "running too", "queued")]
    assert f"ended early by {number.name}; the rest of the calls was not read" == table.splitlines()[-1]


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@BACKENDS
def test_second_signal_waits_for_nobody(backend, tmp_path):
    """A tool that heeds no cancellation holds up the first Ctrl-C, and not the second; finished results are on disk."""
    output = tmp_path / "results.jsonl"
    command = [*COMMAND, "run", str(CATALOG), "-", "-o", str(output), "--backend", backend]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        process.stdin.write('{"id":"1","name":"add","arguments":{"a":1}}\n{"name":"stay"}\n{"name":"wait"}\n')
        process.stdin.flush()
        begun = (line for line in process.stderr if line == "begun\n")
        assert ["begun\n", "begun\n"] == [next(begun), next(begun)]
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.send_signal(signal.SIGINT)
        assert 130 == process.wait(10)
    assert {"1": ("succeeded", None)} == ends(output.read_text())


@BACKENDS
def test_tool_that_ends_the_program(backend):
    """A tool that calls sys.exit() ends the run like a signal: each call has its answer, and the cause is told."""
    calls = '{"id":"1","name":"wait"}\n{"id":"2","name":"leave"}\n{"id":"3","name":"wait"}\n'
    done = run("run", CATALOG, "-", "--backend", backend, input=calls)
    assert dict.fromkeys("123", ("failed", "canceled")) == ends(done.stdout)
    assert "tool 'leave', which raised SystemExit" in done.stderr
    assert 1 == done.returncode


@BACKENDS
def test_reader_that_goes_away(backend):
    """A closed pipe behind the results ends the run with one line, however many calls are left."""
    command = [*COMMAND, "run", str(CATALOG), "-", "--backend", backend]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as process:
        process.stdout.close()
        process.stdin.write(b'{"name":"size","arguments":{"text":""}}\n')
        process.stdin.flush()
        assert 2 == process.wait(30)
        last = process.stderr.read().decode().splitlines()[-1]
    assert "harbor-async: cannot write the results: Broken pipe" == last


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@BACKENDS
def test_progress_is_drawn_on_a_terminal(backend, tmp_path):
    """On a terminal a bar shows how many calls are answered, and is gone before the table comes."""
    import pty

    (tmp_path / "calls.jsonl").write_text('{"name":"wait"}\n' * 3)
    ours, theirs = pty.openpty()
    arguments = [
        CATALOG,
        tmp_path / "calls.jsonl",
        "-o",
        tmp_path / "results",
        "--timeout",
        "0.3",
        "--backend",
        backend,
    ]
    command = [*COMMAND, "run", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, text=True) as process:
        os.close(theirs)
        drawn = b"".join(iter(lambda: read_terminal(ours), b"")).decode()
        table = process.stdout.read()
    os.close(ours)
    assert "0 calls, 0 failed" in drawn
    assert drawn.endswith("\x1b[?25h\r\x1b[1A\x1b[2K")
    assert ["timed_out", "timeout", "3"] == table.splitlines()[1].split()


def read_terminal(fd):
    try:
        return os.read(fd, 4096)
    except OSError:  # how Linux says that the other side has closed it
        return b""
