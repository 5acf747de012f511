from collections import defaultdict
from collections.abc import Callable

import pytest

from tests.parity.differences import DIFFERENCES
from tests.parity.harness import AS_SEED, Case, Numbers, Section

ASSERTED = "parity"


@pytest.fixture
def asserted(request: pytest.FixtureRequest) -> Callable[[Section, Case, Numbers], None]:
    """Count a case once its answer has been asserted."""

    def count(section: Section, case: Case, numbers: Numbers) -> None:
        request.node.user_properties.append((ASSERTED, (section.file, section.key, case.name, numbers)))

    return count


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many cases were asserted, and how many each numbered difference covers, in whatever process."""
    sections: dict[tuple[str, str], dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for report in terminalreporter.getreports("passed"):
        for file, key, name, numbers in (value for kind, value in report.user_properties if kind == ASSERTED):
            for number in numbers:
                sections[file, key][number].add(name)
    if not sections:
        return
    terminalreporter.section("parity with the seed programs")
    used: set[int] = set()
    for (file, key), covered in sorted(sections.items()):
        used |= covered.keys()
        parts = [f"{file}.json {key}: {len(set().union(*covered.values()))} cases"]
        parts += [f"{len(covered[AS_SEED])} as the seed"]
        parts += [f"{len(cases)} by {number}" for number, cases in sorted(covered.items()) if number]
        terminalreporter.write_line(", ".join(parts))
    for number in sorted(used - {AS_SEED}):
        terminalreporter.write_line(f"  {number:>2}  {DIFFERENCES[number]}")
