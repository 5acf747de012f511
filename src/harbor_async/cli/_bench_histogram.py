"""Times in an HDR histogram: three significant digits from 0.1 µs to an hour."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any, Final

from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]  # it has no types
from hdrh.log import HistogramLogWriter  # type: ignore[import-untyped]  # as above

_LOWEST: Final = 100
_HIGHEST: Final = 3_600_000_000_000
"""Both in nanoseconds, the unit of the HdrHistogram log format. What is outside counts as the nearer of them."""
_TICKS: Final = 10
"""Points of the distribution for each halving of the distance to 100 %."""


class Histogram:
    """How often each time came."""

    def __init__(self) -> None:
        """Begin with none."""
        self.hdr: Any = HdrHistogram(_LOWEST, _HIGHEST, 3)

    def add(self, seconds: Iterable[float]) -> None:
        """Count times."""
        record = self.hdr.record_value
        for time in seconds:
            record(min(max(int(time * 1e9), 0), _HIGHEST))

    @property
    def count(self) -> int:
        """How many times there are."""
        return int(self.hdr.get_total_count())

    @property
    def mean(self) -> float:
        """Their mean in seconds; 0 if there is none."""
        return float(self.hdr.get_mean_value()) / 1e9

    @property
    def minimum(self) -> float:
        """The least, in seconds; 0 if there is none."""
        return float(self.hdr.get_min_value()) / 1e9 if self.count else 0.0

    @property
    def maximum(self) -> float:
        """The greatest, in seconds; 0 if there is none."""
        return float(self.hdr.get_max_value()) / 1e9

    def percentiles(self, wanted: Iterable[float]) -> dict[float, float]:
        """Return the seconds that so many percent of the times do not exceed; nothing where there is no time."""
        found: dict[float, int] = self.hdr.get_percentile_to_value_dict(list(wanted)) if self.count else {}
        return {percent: value / 1e9 for percent, value in found.items()}

    def distribution(self) -> Iterator[tuple[float, float]]:
        """Yield percent and seconds, in steps that become smaller towards 100 %."""
        for item in self.hdr.get_percentile_iterator(_TICKS):
            yield float(item.percentile_level_iterated_to), item.value_iterated_to / 1e9

    def encode(self) -> str:
        """Return it in the compressed form of HdrHistogram, version 2, in base64."""
        return str(self.hdr.encode().decode())


class HistogramLog:
    """Writes histograms of nanoseconds in the HdrHistogram log format, version 1.2; a tag tells whose each is."""

    def __init__(self, path: Path, title: str) -> None:
        """Write the head of the log into a file that is overwritten; the present time is its base.

        Raises:
            OSError: It cannot be written.
        """
        self._path = path
        self._began = monotonic()
        now = datetime.now(UTC)
        seconds = f"{now.timestamp():.3f} (seconds since epoch)"
        with path.open("w", encoding="utf-8") as file:
            writer: Any = HistogramLogWriter(file)
            writer.output_comment(f"[{title}]")
            writer.output_log_format_version()
            writer.output_comment(f"[StartTime: {seconds}, {now.isoformat(' ', 'seconds')}]")
            writer.output_comment(f"[BaseTime: {seconds}]")
            writer.output_legend()

    def write(self, tag: str, length: float, histogram: Histogram) -> None:
        """Write what was counted in the last ``length`` seconds.

        Raises:
            OSError: The file cannot be written.
        """
        end = monotonic() - self._began
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"Tag={tag},")  # the library reads tags and does not write them
            writer: Any = HistogramLogWriter(file)
            writer.output_interval_histogram(histogram.hdr, max(end - length, 0.0), end)
