"""How the reported faults run: those that are about time in virtual time, and on uvloop, which has none, in real time.

The mark ``timed(**options)`` asks for that, with the options of ``virtual_backend()``; such a test takes its seconds
from the fixture ``pace``.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from harbor_async.testing import virtual_backend
from tests.conformance.pace import Pace
from tests.unit.thread.gate import Gate


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "timed(**options): run in virtual time, but on uvloop in real time.")


@pytest.fixture
def anyio_backend(request: pytest.FixtureRequest, anyio_backend: Any) -> Any:
    """Return the backend that this run of the test is for, in virtual time where the test is timed."""
    timed = request.node.get_closest_marker("timed")
    name, _, flavor = request.param.partition("-")
    if timed is None or name == "uvloop":
        return anyio_backend
    return virtual_backend(name, debug=flavor == "debug", **timed.kwargs)


@pytest.fixture
def pace(request: pytest.FixtureRequest, anyio_backend: Any) -> Pace:
    """Return the pace of this run."""
    timed = request.node.get_closest_marker("timed") is not None
    return Pace(is_virtual=timed and request.node.callspec.params["anyio_backend"] != "uvloop")


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Return a closed gate, which is open when the test has ended, so that no thread is left in it."""
    gate = Gate()
    yield gate
    gate.open()
