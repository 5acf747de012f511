from collections.abc import Iterator

import pytest

from tests.unit.thread.gate import Gate


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Return a closed gate, which is open when the test has ended, so that no thread is left in it."""
    gate = Gate()
    yield gate
    gate.open()
