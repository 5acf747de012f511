from collections import defaultdict
from collections.abc import Callable

import pytest

from tests.parity.differences import DIFFERENCES
from tests.parity.harness import AS_SEED, Case, Numbers, Section

ASSERTED = pytest.StashKey[dict[tuple[str, str], dict[int, set[str]]]]()


def pytest_configure(config: pytest.Config) -> None:
    """Start with nothing asserted."""
    config.stash[ASSERTED] = defaultdict(lambda: defaultdict(set))


@pytest.fixture
def asserted(pytestconfig: pytest.Config) -> Callable[[Section, Case, Numbers], None]:
    """Count a case once its answer has been asserted."""

    def count(section: Section, case: Case, numbers: Numbers) -> None:
        for number in numbers:
            pytestconfig.stash[ASSERTED][section.file, section.key][number].add(case.name)

    return count


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print how many cases were asserted, and how many each numbered difference covers."""
    sections = config.stash[ASSERTED]
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
