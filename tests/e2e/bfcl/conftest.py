from collections.abc import Callable

import pytest

COUNTS = pytest.StashKey[set[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Start with nothing counted."""
    config.stash[COUNTS] = set()


@pytest.fixture
def count(pytestconfig: pytest.Config) -> Callable[[str], None]:
    """Note a line of counts for the end of the run."""
    return pytestconfig.stash[COUNTS].add


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the counts."""
    if config.stash[COUNTS]:
        terminalreporter.section("replay of the BFCL sessions")
        for line in sorted(config.stash[COUNTS]):
            terminalreporter.write_line(line)
