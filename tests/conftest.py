"""How every test of this repository runs.

An async test needs no mark. It runs on asyncio, asyncio debug, uvloop if present, and trio, and fails when it blocks
the event loop or leaves a task behind. Marks:

- ``virtual``: in virtual time, on asyncio, asyncio debug, asyncio with eager tasks from Python 3.12, and trio.
  ``virtual(grace=0.05)`` for threads and real I/O.
- ``asyncio_only``: what it tests runs on asyncio only, as a framework of others may.
- ``blocks_loop``: it blocks the loop on purpose.
"""

import importlib.util
import os
import sys
from collections.abc import AsyncIterator, Iterator
from inspect import iscoroutinefunction
from typing import Any

import anyio
import pytest

from harbor_async.testing import virtual_backend
from tests.support import blocking

VIRTUAL = ["asyncio", "asyncio-debug", *(["asyncio-eager"] if sys.version_info >= (3, 12) else []), "trio"]
HAS_UVLOOP = importlib.util.find_spec("uvloop") is not None or ("HARBOR_CI" in os.environ and os.name != "nt")
REAL = ["asyncio", "asyncio-debug", *(["uvloop"] if HAS_UVLOOP else []), "trio"]

blocking.install()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "virtual(**options): run in virtual time; options as of virtual_backend().")
    config.addinivalue_line("markers", "asyncio_only: not on trio, for a framework of others does not run there.")
    config.addinivalue_line("markers", "blocks_loop: the test blocks the event loop on purpose.")


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: Any, name: str, obj: Any) -> None:
    if collector.istestfunction(obj, name):
        inner = obj.hypothesis.inner_test if hasattr(obj, "hypothesis") else obj
        if iscoroutinefunction(inner):
            pytest.mark.usefixtures("unblocked_loop", "no_task_left")(obj)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "anyio_backend" in metafunc.fixturenames:
        is_virtual = metafunc.definition.get_closest_marker("virtual") is not None
        is_narrow = metafunc.definition.get_closest_marker("asyncio_only") is not None
        backends = [name for name in (VIRTUAL if is_virtual else REAL) if not (is_narrow and name == "trio")]
        metafunc.parametrize("anyio_backend", backends, indirect=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse a test that has another name in each process: it could not be asked for, nor run on several."""
    if odd := sorted({item.nodeid for item in items if " at 0x" in item.nodeid}):
        msg = f"give these parameters ids without an address: {', '.join(odd)}"
        raise pytest.UsageError(msg)


@pytest.fixture
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """Return the backend that this run of the test is for; a new event loop for each test."""
    name, _, flavor = request.param.partition("-")
    virtual = request.node.get_closest_marker("virtual")
    if virtual is not None:
        return virtual_backend(name, debug=flavor == "debug", eager=flavor == "eager", **virtual.kwargs)
    if name == "uvloop":
        return "asyncio", {"use_uvloop": True}
    return name, {"debug": bool(flavor)} if name == "asyncio" else {}


@pytest.fixture
def unblocked_loop(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that blocks its event loop."""
    with blocking.blocking_calls() as calls:
        yield
    if calls and request.node.get_closest_marker("blocks_loop") is None:
        pytest.fail("the event loop was blocked by " + ", ".join(calls))


@pytest.fixture
async def no_task_left(anyio_backend: Any) -> AsyncIterator[None]:
    """Fail a test after which a task is left that was not there before."""
    before = tasks()
    yield
    left = [name for number, name in tasks().items() if number not in before]
    assert left == [], f"tasks left behind: {left}"


def tasks() -> dict[int, str]:
    """Return the running tasks, without those that are nobody's here.

    They are one that anyio's plugin makes for each call into the loop, and one that sse-starlette, below the MCP SDK,
    keeps in each asyncio loop that has sent an event.
    """
    others = {"TestRunner._call_in_runner_task", "_shutdown_watcher"}
    return {task.id: task.name for task in anyio.get_running_tasks() if task.coro.__qualname__ not in others}
