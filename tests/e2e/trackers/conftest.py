"""One server of each kind for all tests of a process."""

from pathlib import Path

import pytest

from . import servers


@pytest.fixture(scope="session")
def roundup_server():
    with servers.roundup() as server:
        yield server


def pytest_collection_modifyitems(config, items):
    servers.drop_other_loops(config, items, Path(__file__).parent)
