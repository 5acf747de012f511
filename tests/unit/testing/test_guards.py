"""The guards of tests/conftest.py: what they find, and what they leave alone."""

import os
import queue
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep

import anyio
import anyio.to_thread
import pytest

from tests.support.blocking import blocking_calls

ROOT = Path(__file__).parents[3]


def receive_late():
    """Receive from a socket that blocks."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"x")
        ours.recv(1)


def wait_for_future():
    gate = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(gate.wait)
        with pytest.raises(TimeoutError):
            future.result(timeout=0.001)
        gate.set()


def wait_for_item():
    with pytest.raises(queue.Empty):
        queue.Queue().get(timeout=0.001)


def join_thread():
    thread = threading.Thread(target=time.sleep, args=[0.001])
    thread.start()
    thread.join()


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda: time.sleep(0.001), {"time.sleep"}),
        (lambda: sleep(0.001), {"time.sleep"}),
        (lambda: threading.Event().wait(0.001), {"Condition.wait"}),
        (wait_for_item, {"Condition.wait"}),
        (wait_for_future, {"Condition.wait", "Thread.join"}),
        (join_thread, {"Thread.join"}),
        (receive_late, {"socket.sendall", "socket.recv"}),
        (lambda: socket.getaddrinfo("localhost", 1), {"socket.getaddrinfo"}),
        (lambda: subprocess.run([sys.executable, "-c", ""], check=True), {"Popen.wait"}),
        (lambda: os.system("true"), {"os.system"}),
    ],
)
async def test_a_call_that_blocks_the_loop_is_found(call, names):
    """Each kind of blocking call is noted on every backend, with the line that made it."""
    with blocking_calls() as calls:
        call()
    assert names == {note.partition(" at ")[0] for note in calls}
    if names == {"time.sleep"}:
        assert calls[0].rpartition(":")[0].endswith(__file__)


async def test_what_does_not_block_is_left_alone():
    """Waiting through anyio, blocking in a thread, starting one, processes and sockets of the loop are no blocking."""

    async def serve(stream):
        await stream.aclose()

    with blocking_calls() as calls:
        await anyio.sleep(0.001)
        await anyio.to_thread.run_sync(time.sleep, 0.001)
        thread = threading.Thread(target=time.sleep, args=[0.001])
        thread.start()
        await anyio.to_thread.run_sync(thread.join)
        await anyio.run_process([sys.executable, "-c", "print(1)"])
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        async with listener, anyio.create_task_group() as group:
            group.start_soon(listener.serve, serve)
            port = listener.extra(anyio.abc.SocketAttribute.local_port)
            await (await anyio.connect_tcp("localhost", port)).aclose()
            group.cancel_scope.cancel()
        sleep(0)  # noqa: ASYNC251 - it is to go unnoticed
    assert [] == calls


def test_blocking_without_a_loop_is_left_alone():
    """Outside of event loops everything may block."""
    with blocking_calls() as calls:
        time.sleep(0.001)
        receive_late()
    assert [] == calls


@pytest.mark.timeout(60)  # another pytest, perhaps on a loaded machine
def test_the_guards_fail_a_test(tmp_path):
    """A test fails that blocks its loop, leaves a task or would hang; a mark excuses blocking; sync tests may block."""
    (tmp_path / "conftest.py").write_text("from tests.conftest import *\n")
    (tmp_path / "test_sample.py").write_text(
        "import asyncio, time, anyio, pytest\n"
        "async def test_good(): await anyio.sleep(0)\n"
        "async def test_blocks(): time.sleep(0.001)\n"
        "@pytest.mark.blocks_loop\n"
        "async def test_excused(): time.sleep(0.001)\n"
        "async def test_leaks(anyio_backend_name):\n"
        "    if anyio_backend_name == 'asyncio':\n"
        "        asyncio.get_running_loop().stray = asyncio.create_task(asyncio.sleep(9), name='stray')\n"
        "def test_sync(): time.sleep(0.001)\n"
        "@pytest.mark.virtual(patience=0.05)\n"
        "async def test_hangs(): await anyio.Event().wait()\n"
    )
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nanyio_mode = auto\naddopts = -q -rA -p anyio.pytest_plugin -p no:cacheprovider\n"
    )
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {**os.environ, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # it starts in half the time
    command = [sys.executable, "-m", "pytest"]
    run = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    lines = [line.split() for line in run.stdout.splitlines()]
    ends = {(line[0], line[1].partition("::")[2]) for line in lines if line and line[0] in {"FAILED", "ERROR"}}
    asyncios = {"asyncio", "asyncio-debug", *({"uvloop"} if "[uvloop]" in run.stdout else ())}
    eager = ("asyncio-eager",) if sys.version_info >= (3, 12) else ()
    expected = {("ERROR", f"test_blocks[{name}]") for name in (*asyncios, "trio")}
    expected |= {("ERROR", f"test_leaks[{name}]") for name in asyncios}
    expected |= {("FAILED", f"test_hangs[{name}]") for name in ("asyncio", "asyncio-debug", *eager, "trio")}
    assert expected == {end for end in ends if end not in AFTER_A_HANG}, run.stdout
    assert "tasks left behind: ['stray']" in run.stdout
    assert "time.sleep at" in run.stdout
    assert "deadlock: every task waits" in run.stdout


AFTER_A_HANG = {("ERROR", f"test_hangs[{name}]") for name in ("asyncio", "asyncio-debug", "asyncio-eager")}
"""On asyncio the fixtures of a test that hangs cannot be closed: its task is still in it."""
