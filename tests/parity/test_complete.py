"""No case and no difference is forgotten."""

import pytest

from tests.parity.differences import DIFFERENCES
from tests.parity.harness import AS_SEED, VECTORS, Section, load
from tests.parity.test_catalog import COPIES, FILTERS, MIME, SEQUENCES
from tests.parity.test_derive_schema import SCHEMAS
from tests.parity.test_events import BUS, CASES, IDENTITIES
from tests.parity.test_invoke import ARGUMENTS, OUTCOMES
from tests.parity.test_invoke_types import CODEC, REGISTRATION
from tests.parity.test_policy_traces import TRACES
from tests.parity.test_policy_values import CLASSES, RESOLVED, WAITS
from tests.parity.test_tracker_values import RETRYABLE, ROUNDTRIP, SCHEMA
from tests.parity.test_tracker_write import JSON, RUN

SECTIONS = [
    *(RESOLVED, WAITS, CLASSES, TRACES),
    *(SEQUENCES, FILTERS, COPIES, MIME),
    SCHEMAS,
    *(ARGUMENTS, OUTCOMES, CODEC, REGISTRATION),
    *(SCHEMA, RETRYABLE, ROUNDTRIP),
    *(RUN, JSON),
    *(CASES, BUS, IDENTITIES),
]


@pytest.mark.parametrize("file", sorted(path.stem for path in VECTORS.glob("*.json")))
def test_every_recorded_case_is_run(file: str) -> None:
    """The sections of a file have as many cases as the file says that it has, and no name twice."""
    cases = [(case.section, case.name) for section in SECTIONS if section.file == file for case in section.cases]
    assert load(file)["count"] == len(cases) == len(set(cases))


def test_every_difference_is_listed_and_used() -> None:
    """Each number that covers a case has its line, and each line covers a case."""

    def numbers(section: Section) -> set[int]:
        return set(section.counts())

    assert set(DIFFERENCES) == set().union(*map(numbers, SECTIONS)) - {AS_SEED}
