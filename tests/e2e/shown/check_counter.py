"""A sink of your own, and the suite that checks it."""

from collections import Counter

import pytest

import harbor_async as ha
from harbor_async.testing import SinkConformance

pytestmark = pytest.mark.anyio  # on every event loop; with anyio_mode = "auto" in pyproject.toml it is not needed


class EventCounter:
    """Counts events by their type."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    async def emit(self, event: ha.ToolEvent) -> None:
        self.counts[event.type] += 1


class TestEventCounter(SinkConformance):
    def make(self) -> EventCounter:
        return EventCounter()
