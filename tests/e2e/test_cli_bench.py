"""``harbor-async bench``: its processes, files, signals and display."""

import json
import os
import re
import signal
import subprocess
import sys
import threading

import psutil
import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

from tests.e2e.cli import COMMAND, run

pytestmark = pytest.mark.timeout(120)
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals and pseudo-terminals")
TOOLS = """
import os, sys, time
import anyio
import harbor_async as ha

calls = 0
print("printed by the catalog")

@ha.tool
async def stall() -> None:
    '''Block the event loop for 200 ms in the 31st call.'''
    global calls
    calls += 1
    if calls == 31:
        time.sleep(0.2)

@ha.tool(policy=ha.ToolPolicy(timeout=None))
async def wait() -> None:
    '''Say that it has begun, and wait for ever.'''
    print("begun", os.getpid(), flush=True)
    await anyio.sleep_forever()

@ha.tool(policy=ha.ToolPolicy(timeout=None))
async def stay() -> None:
    '''Wait, and heed no cancellation.'''
    with anyio.CancelScope(shield=True):
        await wait()

@ha.tool
async def crash() -> None:
    '''End the process without a word, after some calls.'''
    global calls
    calls += 1
    await anyio.sleep(0.2 if calls > 20 else 0)
    if calls > 20:
        os._exit(9)

@ha.tool
async def add(a: int) -> int:
    return sys.stdin.read() and a

catalog = ha.Catalog([stall, wait, stay, crash, add])
"""


@pytest.fixture
def catalog(tmp_path):
    path = tmp_path / "shop.py"
    path.write_text(TOOLS)
    return path


def bench(*arguments, **options):
    return run("bench", *arguments, "--warm-up", "0", **options)


def begin(*arguments, **options):
    """Start the command, and return its process; standard error is open."""
    command = [*COMMAND, "bench", *map(str, arguments), "--warm-up", "0"]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **options)


def read_begun(process):
    """Wait until a tool of the process for a backend says that it has begun, and return that process's id."""
    return next(int(line.split()[1]) for line in process.stderr if line.startswith("begun"))


def test_backends_are_compared_in_turn(tmp_path):
    """Each backend is measured in a process of its own, and the table, the JSON, the log and the page have them all."""
    pytest.importorskip("uvloop")
    files = {name: tmp_path / f"result.{name}" for name in ("json", "html", "hdr-log")}
    names = ["asyncio", "trio", "uvloop", "asyncio"]
    labels = ["asyncio", "trio", "uvloop", "asyncio-2"]
    options = [f"--backend={name}" for name in names] + [f"--{name}={path}" for name, path in files.items()]
    done = bench("synthetic", "tail", '{"median": 0.001}', "--count", "60", "--in-flight", "6", *options)
    assert (0, "") == (done.returncode, done.stderr)
    lines = done.stdout.splitlines()
    assert "synthetic tail: closed loop, 6 in flight, 60 calls after 0 s of warm-up" == lines[0]
    assert [labels, ["calls", *["60"] * 4]] == [line.split() for line in lines[1:3]]
    report = json.loads(files["json"].read_text())
    assert [(label, 60) for label in labels] == [(each["backend"], each["calls"]) for each in report["runs"]]
    assert all(each["memory_bytes"] > 1_000_000 for each in report["runs"])
    assert [4, 4] == [files["html"].read_text().count(text) for text in ("<svg", "</svg>")]
    reader = HistogramLogReader(str(files["hdr-log"]), HdrHistogram(1, 3_600_000_000_000, 3))
    found = {}
    while (histogram := reader.get_next_interval_histogram()) is not None:
        found[histogram.get_tag()] = found.get(histogram.get_tag(), 0) + histogram.get_total_count()
    reader.close()
    assert dict.fromkeys(labels, 60) == found


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_open_loop_shows_a_stall(backend, catalog, tmp_path):
    """A call that blocks for 200 ms delays the 19 that are due at 100 a second meanwhile: of 100 calls p95 is 150 ms.

    They are late by 190, 180, … ms, and p95 is the sixth slowest. A slow machine only adds to that.
    """
    report = tmp_path / "report.json"
    done = bench(catalog, "stall", "--rate", "100", "--count", "100", "--backend", backend, "--json", report)
    assert 0 == done.returncode
    (found,) = json.loads(report.read_text())["runs"]
    assert found["latency"]["percentiles"]["95"] >= 0.15
    assert found["timers_late"]["max"] >= 0.19
    assert found["from_start"]["max"] >= 0.2


def test_exit_code_and_limits():
    """Calls that are rejected make the code 1, and are counted by outcome and category."""
    options = ("--rate", "1000", "--count", "5", "--max-running", "1", "--max-queued", "1", "--timeout", "9")
    done = bench("synthetic", "sleep", '{"seconds": 0.3}', *options)
    assert 1 == done.returncode
    rows = [line.split() for line in done.stdout.splitlines()]
    assert [["succeeded", "2"], ["rejected", "rate_limited", "3"]] == rows[-2:]
    assert done.stdout.splitlines()[0].endswith("max_running 1, max_queued 1, timeout 9 s")


def test_arguments_from_standard_input_and_a_tool_that_reads_it(catalog):
    """``-`` reads the arguments once for all calls; the tool itself finds its standard input empty."""
    done = bench(catalog, "add", "-", "--count", "3", input='{"a": 1}')
    assert ["failed", "unknown", "3"] == done.stdout.splitlines()[-1].split()  # an empty text is no int
    assert "printed by the catalog\n" == done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("shop.py", "ad", "{}"), "no tool named 'ad'; did you mean 'add'?"),
        (("shop.py", "add", '{"a": "x"}'), "tool 'add': invalid arguments: /a: expected integer"),
        (("gone.py", "add"), "there is no file 'gone.py'"),
        (("synthetic", "--backend", "curio"), "'--backend'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_usage(arguments, words, catalog):
    """What a backend's process finds wrong is said by the command in one line, and no table is made."""
    done = bench(*arguments, cwd=catalog.parent)
    assert (2, "") == (done.returncode, done.stdout)
    (said,) = (line for line in done.stderr.splitlines() if line != "printed by the catalog")
    assert said.startswith("harbor-async: ")
    assert words in said


@POSIX
@pytest.mark.parametrize(("backend", "number"), [("asyncio", signal.SIGINT), ("trio", signal.SIGTERM)])
def test_signal_ends_it_with_what_was_measured(backend, number, catalog, tmp_path):
    """After a signal the table and the files tell what was measured, and the next backend is not begun."""
    report = tmp_path / "report.json"
    options = ("--in-flight", "2", "--backend", backend, "--backend", "asyncio", "--json", report)
    with begin(catalog, "wait", *options, stdout=subprocess.PIPE) as process:
        child = read_begun(process)
        process.send_signal(number)
        table, _ = process.communicate(timeout=60)
    assert 128 + number == process.returncode
    assert f"{backend}: ended early by {number.name}" in table
    (found,) = json.loads(report.read_text())["runs"]
    assert (backend, number.name, 0, 2) == (found["backend"], found["ended_by"], found["calls"], found["cut"])
    assert not psutil.pid_exists(child)


@POSIX
def test_second_signal_waits_for_no_tool(catalog):
    """A tool that heeds no cancellation holds up the first Ctrl-C, and not the second; the table comes all the same."""
    with begin(catalog, "stay", "--in-flight", "1", stdout=subprocess.PIPE) as process:
        child = read_begun(process)
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.send_signal(signal.SIGINT)
        table, _ = process.communicate(timeout=60)
    assert 130 == process.returncode
    assert "asyncio: ended early by SIGINT" in table
    assert not psutil.pid_exists(child)


@POSIX
def test_nothing_outlives_the_command(catalog):
    """When the command is killed, the process that it has started finds that out and ends."""
    with begin(catalog, "wait", "--in-flight", "1", stdout=subprocess.DEVNULL) as process:
        child = psutil.Process(read_begun(process))
        process.kill()
        process.wait()
        gone, _ = psutil.wait_procs([child], timeout=60)
    assert [child] == gone


def test_process_that_ends_by_itself(catalog):
    """A tool that ends the process leaves a table of what came before, which names the code."""
    done = bench(catalog, "crash", "--in-flight", "1")
    assert 1 == done.returncode
    assert ["calls", "20"] in [line.split() for line in done.stdout.splitlines()]
    assert "asyncio: ended early by the end of its process, with code 9" in done.stdout
    assert "asyncio: 1 calls were cut off; no figure holds them" in done.stdout


@POSIX
def test_display_on_a_terminal(catalog):
    """On a terminal the load, a bar and the table so far are drawn, what tools print goes above, and all is erased."""
    import pty

    ours, theirs = pty.openpty()
    drawn = []

    def read():
        try:
            while data := os.read(ours, 4096):
                drawn.append(data)
        except OSError:  # how Linux says that the other side has closed it
            pass

    reader = threading.Thread(target=read)
    reader.start()
    command = [*COMMAND, "bench", str(catalog), "stall", "--rate", "50", "--warm-up", "0.2", "--duration", "0.8"]
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100", "LINES": "40"}
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, text=True, env=environment, check=False)
    os.close(theirs)
    reader.join()
    os.close(ours)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", b"".join(drawn).decode())
    assert "stall: open loop, 50 calls a second, constant arrivals, 0.8 s after 0.2 s of warm-up" in text
    assert "asyncio, measuring" in text
    assert "━━━" in text
    assert "printed by the catalog" in text
    assert b"".join(drawn).endswith(b"\x1b[2K")
    assert ["calls", "40"] == done.stdout.splitlines()[2].split()
