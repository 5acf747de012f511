import pytest

CUTS = pytest.StashKey[list[int]]()


@pytest.fixture
def cuts(pytestconfig: pytest.Config) -> list[int]:
    """Collect how many cuts each sweep has made."""
    return pytestconfig.stash.setdefault(CUTS, [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print how many cuts were made."""
    made = config.stash.get(CUTS, [])
    if made:
        terminalreporter.section("cancel sweeps")
        terminalreporter.write_line(f"{sum(made)} cuts in {len(made)} sweeps")
