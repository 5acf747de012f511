from collections.abc import Callable

import pytest

CUTS = "cuts"


@pytest.fixture
def cuts(request: pytest.FixtureRequest) -> Callable[[int], None]:
    """Count the cuts that a sweep has made."""
    return lambda made: request.node.user_properties.append((CUTS, made))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many cuts were made, in whatever process."""
    made = [
        value
        for report in terminalreporter.getreports("passed")
        for kind, value in report.user_properties
        if kind == CUTS
    ]
    if made:
        terminalreporter.section("cancel sweeps")
        terminalreporter.write_line(f"{sum(made)} cuts in {len(made)} sweeps")
