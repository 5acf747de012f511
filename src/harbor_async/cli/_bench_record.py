"""What was measured on one backend: totals, and how they came about over time."""

from array import array
from typing import Final

import attrs

from ._bench_histogram import Histogram, HistogramLog
from ._bench_load import Ended, Order, Phase, Sample
from ._bench_loop import TICK
from ._tally import Tally

_INTERVAL: Final = 1.0
"""Seconds of one histogram of the log, about: they begin and end with a sample."""
_MOST_POINTS: Final = 600
"""Points in time; where there would be more, each two become one."""


@attrs.frozen
class Point:
    """A stretch of the measuring.

    Attributes:
        time: When it ended, in seconds since measuring began.
        length: How long it was, in seconds.
        calls: Calls that ended in it, rejected ones left out.
        in_flight: Calls that were under way in it, on average.
        slowest: The longest latency in it, in seconds; 0 without a call.
        memory: Resident memory at its end, in bytes; of several merged points the most. 0 where it is not known.
    """

    time: float
    length: float
    calls: int
    in_flight: float
    slowest: float
    memory: int

    def merge(self, later: "Point") -> "Point":
        """Return one point for this and the next one."""
        length = self.length + later.length
        area = self.length * self.in_flight + later.length * later.in_flight
        return Point(
            later.time,
            length,
            self.calls + later.calls,
            area / length if length else later.in_flight,
            max(self.slowest, later.slowest),
            max(self.memory, later.memory),
        )


class Record:
    """What was measured on one backend.

    Attributes:
        label: What it is called among those of a run.
        order: What was to be measured.
        phase: What its process was doing last; None before it did anything.
        in_flight: Calls that were under way since the sample before, on average.
        latency: Seconds from when each call was due to its answer; rejected calls left out.
        service: Seconds from when each call began. Empty in a closed loop: it begins there when it is due.
        lag: Seconds by which timers of the event loop came late.
        tally: How often each outcome and category came.
        points: What happened over time.
        completed: Calls that ended within ``elapsed``, rejected ones left out.
        elapsed: Seconds for which calls were counted. Those that began in that time may have ended later.
        memory: The most resident memory of the process, in bytes; 0 where it is not known.
        cpu: Seconds of processor time within ``elapsed``, about; 0 where it is not known.
        cut: Calls that were under way when the measuring was ended early. They are in no histogram.
        oldest: Seconds since the first of those was due.
        cause: What ended it early; empty if nothing did.
    """

    def __init__(self, label: str, order: Order, log: HistogramLog | None = None) -> None:
        """Begin with nothing; what comes goes into ``log``, too."""
        self.label = label
        self.order = order
        self.phase: Phase | None = None
        self.in_flight = 0.0
        self.latency = Histogram()
        self.service = Histogram()
        self.lag = Histogram()
        self.tally = Tally()
        self.points: list[Point] = []
        self.completed = 0
        self.elapsed = 0.0
        self.memory = 0
        self.cpu = 0.0
        self.cut = 0
        self.oldest = 0.0
        self.cause = ""
        self._log = log
        self._interval = Histogram()
        self._since = self._now = 0.0
        self._span = TICK
        self._cpu_before = 0.0

    @property
    def rate(self) -> float:
        """Calls that ended a second, rejected ones left out."""
        return self.completed / self.elapsed if self.elapsed else 0.0

    def add(self, sample: Sample, memory: int = 0, cpu: float = 0.0) -> None:
        """Take a sample, and the memory in bytes and processor time in seconds of the process at its time.

        Raises:
            OSError: The log cannot be written.
        """
        self.phase, self.in_flight = sample.phase, sample.in_flight
        if sample.phase is Phase.WARMING_UP:
            self._cpu_before = cpu
            return
        latencies = array("d", sample.latencies)
        self.latency.add(latencies)
        self.service.add(array("d", sample.services))
        self.lag.add(array("d", sample.lags))
        for outcome, category, count in sample.ends:
            self.tally.ends[outcome, category] += count
        if sample.phase is Phase.MEASURING:
            self.completed += len(latencies)
            self.elapsed = sample.time
            self.cpu = max(cpu - self._cpu_before, 0.0)
        self.memory = max(self.memory, memory)
        length, self._now = sample.time - self._now, sample.time
        self._add_point(
            Point(sample.time, length, len(latencies), sample.in_flight, max(latencies, default=0.0), memory)
        )
        self._interval.add(latencies)
        if sample.time - self._since > _INTERVAL - TICK / 2:
            self._end_interval()

    def end(self, ended: Ended) -> None:
        """Take the last word, and write to the log what is not there yet.

        Raises:
            OSError: The log cannot be written.
        """
        self.elapsed = ended.elapsed
        self.cut, self.oldest, self.cause = ended.cut, ended.oldest, ended.cause
        if self._interval.count:
            self._end_interval()

    def lose(self, cause: str) -> None:
        """Take the end of a process that has had no last word."""
        self.cause = cause
        self.cut = 0 if self.phase is Phase.WARMING_UP else round(self.in_flight)

    def _add_point(self, point: Point) -> None:
        points = self.points
        if points and (points[-1].length < self._span - TICK / 2 or point.length < TICK / 2):
            points[-1] = points[-1].merge(point)
            return
        points.append(point)
        if len(points) > _MOST_POINTS:
            pairs = zip(points[::2], points[1::2], strict=False)
            self.points = [first.merge(second) for first, second in pairs] + points[len(points) // 2 * 2 :]
            self._span *= 2

    def _end_interval(self) -> None:
        if self._log is not None:
            self._log.write(self.label, self._now - self._since, self._interval)
        self._since = self._now
        self._interval = Histogram()
