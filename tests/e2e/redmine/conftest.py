"""These have a nox session of their own, ``redmine``: they take minutes, and most of one to set the server up."""

import os
from pathlib import Path

import pytest

from tests.e2e.trackers import servers

collect_ignore_glob = [] if "HARBOR_REDMINE" in os.environ else ["test_*.py"]


@pytest.fixture(scope="session")
def redmine_server():
    with servers.redmine() as server:
        yield server


@pytest.fixture(scope="session")
def roundup_server():
    with servers.roundup() as server:
        yield server


def pytest_collection_modifyitems(config, items):
    servers.drop_other_loops(config, items, Path(__file__).parent)
