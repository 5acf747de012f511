"""A detector of calls that block the event loop.

It wraps the calls that block and notes each that is made while a loop runs in the same thread. It measures no time,
so a loaded machine gives no false alarm; a long computation, a bare lock and reading a file go unnoticed.
"""

import asyncio
import functools
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_LOOPS = {"asyncio", "anyio", "trio"}
_PLUMBING = {"threading", "queue", "concurrent", "subprocess", "socket", "contextlib", "functools"}
_found: list[str] | None = None


@contextmanager
def blocking_calls() -> Iterator[list[str]]:
    """Yield the list of the calls that block a loop while the block runs: what was called, and where."""
    global _found  # noqa: PLW0603 - the wrappers outlive any one test
    outer, _found = _found, []
    try:
        yield _found
    finally:
        _found = outer


def install() -> None:
    """Wrap the calls, once a process. Early, so that ``from time import sleep`` takes the wrapper."""
    _wrap(time, "sleep", lambda seconds: seconds > 0)
    _wrap(os, "system")
    _wrap(socket, "getaddrinfo", lambda *a, flags=0, **_: not (a[5] if a[5:] else flags) & socket.AI_NUMERICHOST)
    _wrap(socket, "gethostbyname")
    for name in ("accept", "connect", "recv", "recv_into", "recvfrom", "send", "sendall", "sendto"):
        _wrap(socket.socket, name, lambda sock, *_, **__: sock.gettimeout() != 0)
    _wrap(subprocess.Popen, "wait")
    _wrap(threading.Condition, "wait")  # and so Event, Semaphore, Barrier, Queue and concurrent.futures
    _wrap(threading.Thread, "join")


def _wrap(owner: Any, name: str, blocks: Callable[..., bool] = lambda *_, **__: True) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if _found is not None and _loop_runs_here() and blocks(*args, **kwargs):
            caller = _caller(sys._getframe(1))
            if caller is not None:
                _found.append(f"{owner.__name__}.{name} at {caller.f_code.co_filename}:{caller.f_lineno}")
        return original(*args, **kwargs)

    setattr(owner, name, wrapper)


def _loop_runs_here() -> bool:
    if asyncio._get_running_loop() is not None:
        return True
    trio = sys.modules.get("trio")
    return trio is not None and trio.lowlevel.in_trio_task()


def _caller(frame: FrameType | None) -> FrameType | None:
    """Return who called, or None where the call is a loop's own or the short wait of a thread's start."""
    while frame is not None and _package(frame) in _PLUMBING:
        if frame.f_code is threading.Thread.start.__code__:
            return None
        frame = frame.f_back
    return None if frame is None or _package(frame) in _LOOPS else frame


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__")).partition(".")[0]
