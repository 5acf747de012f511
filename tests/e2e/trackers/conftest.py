"""One server of each kind for all tests of a process."""

from pathlib import Path

import pytest

from . import servers


@pytest.fixture(scope="session")
def roundup_server():
    with servers.roundup() as server:
        yield server


@pytest.fixture(scope="session")
def redmine_server():
    with servers.redmine() as server:
        yield server


def pytest_collection_modifyitems(config, items):
    """Run these on asyncio and trio as they are: another event loop changes nothing of what a server answers."""
    others = {"asyncio-debug", "uvloop"}
    dropped = [
        item
        for item in items
        if item.path.is_relative_to(Path(__file__).parent)
        and others & {getattr(item, "callspec", None) and item.callspec.params.get("anyio_backend")}
    ]
    config.hook.pytest_deselected(items=dropped)
    items[:] = [item for item in items if item not in dropped]
