"""What is measured of calls while they run."""

from array import array
from collections import Counter

from .._categories import Outcome
from .._results import ToolResult
from ._bench_load import Phase, Sample


class Meter:
    """What is measured, since it was last read. All times are seconds of one clock."""

    def __init__(self, now: float, *, is_open: bool) -> None:
        """Begin with nothing; ``is_open`` says that a call may begin later than it was due."""
        self.phase = Phase.WARMING_UP
        self.start = now
        self.cut = 0
        self.oldest = 0.0
        self.lags: array[float] = array("d")
        self._is_open = is_open
        self._latencies: array[float] = array("d")
        self._services: array[float] = array("d")
        self._ends: Counter[tuple[Outcome, str]] = Counter()
        self._in_flight = 0
        # The integral of what is in flight, less time × in flight: an addition a call, where the integral takes more.
        self._area = 0.0
        self._read_area = 0.0
        self._read_at = now

    def begin(self, now: float) -> None:
        """Count a call that begins."""
        self._in_flight += 1
        self._area -= now - self.start

    def end(self, due: float, begun: float, now: float, result: ToolResult | None) -> None:
        """Count a call that ends: with no result, if it was cut."""
        self._in_flight -= 1
        self._area += now - self.start
        if result is None:
            self.cut += 1
            self.oldest = max(self.oldest, now - due)
            return
        error = result.error
        self._ends[result.outcome, "" if error is None else error.category.value] += 1
        if result.outcome is not Outcome.REJECTED:
            self._latencies.append(now - due)
            if self._is_open:
                self._services.append(now - begun)

    def turn(self, phase: Phase, now: float) -> Sample:
        """Begin a phase, and return what came in the one before. Measuring begins at 0, with no call under way."""
        sample = self.read(now)
        self.phase = phase
        if phase is Phase.MEASURING:
            self.start = now
            self.cut = 0
            self._area = self._read_area = 0.0
        return sample

    def read(self, now: float) -> Sample:
        """Return what came since the last time, and forget it."""
        area = self._area + (now - self.start) * self._in_flight
        length = now - self._read_at
        in_flight = (area - self._read_area) / length if length else float(self._in_flight)
        self._read_area, self._read_at = area, now
        sample = Sample(
            self.phase,
            now - self.start,
            in_flight,
            self._latencies.tobytes(),
            self._services.tobytes(),
            self.lags.tobytes(),
            [(outcome, category, count) for (outcome, category), count in self._ends.items()],
        )
        for part in (self._latencies, self._services, self.lags):
            del part[:]
        self._ends.clear()
        return sample
