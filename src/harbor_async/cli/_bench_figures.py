"""What the results of ``bench`` say, in words: the same on the terminal and in the page."""

from collections.abc import Sequence
from typing import Final, TypeAlias

from ._bench_histogram import Histogram
from ._bench_load import SYNTHETIC, Order
from ._bench_record import Record
from ._report import show_seconds
from ._tally import Tally

Rows: TypeAlias = list[tuple[str, list[str]]]

_SHOWN: Final = (50.0, 90.0, 99.0, 99.9)
_KEEPS_UP: Final = 0.95
"""Share of an open loop's rate; fewer answers fall behind it."""


def describe_load(order: Order) -> str:
    """Return in one line what is measured."""
    load = order.load
    if load.rate is None:
        kind = f"closed loop, {load.in_flight:,} in flight"
    else:
        kind = f"open loop, {load.rate:,g} calls a second, {load.arrivals.value} arrivals"
    tool = f"{SYNTHETIC} {order.tool}" if order.catalog == SYNTHETIC else order.tool
    span = f"{load.duration:g} s" if load.count is None else f"{load.count:,} calls"
    parts = [f"{tool}: {kind}", f"{span} after {load.warm_up:g} s of warm-up"]
    parts += [f"{name} {value:,}" for name, value in order.limits.items()]
    if order.timeout is not None:
        parts.append(f"timeout {order.timeout:g} s")
    return ", ".join(parts)


def figure_rows(records: Sequence[Record]) -> Rows:
    """Return the rows of the table of results: a name, and a text for each record."""
    rows: Rows = [
        ("calls", [f"{record.tally.calls:,}" for record in records]),
        ("calls a second", [f"{record.rate:,.0f}" for record in records]),
        *_time_rows("latency", [record.latency for record in records], _SHOWN),
    ]
    if any(record.service.count for record in records):
        rows += _time_rows("from its start", [record.service for record in records], _SHOWN)
    rows += _time_rows("timers late", [record.lag for record in records], (99.0,))
    rows.append(("memory", [f"{record.memory / 1e6:,.1f} MB" if record.memory else "-" for record in records]))
    cpus = [record.cpu / record.elapsed if record.elapsed else 0.0 for record in records]
    rows.append(("processor", [f"{cpu:.0%}" if cpu > 0 else "-" for cpu in cpus]))
    total = Tally()
    for record in records:
        total.ends.update(record.tally.ends)
    for outcome, category, _ in total.rows():
        name = f"{outcome.value} {category}".rstrip()
        rows.append((name, [f"{record.tally.ends[outcome, category]:,}" for record in records]))
    return rows


def _time_rows(name: str, histograms: Sequence[Histogram], shown: Sequence[float]) -> Rows:
    found = [histogram.percentiles(shown) for histogram in histograms]
    rows: Rows = [
        (f"{name} p{percent:g}", [show_seconds(times[percent]) if times else "-" for times in found])
        for percent in shown
    ]
    most = [show_seconds(histogram.maximum) if histogram.count else "-" for histogram in histograms]
    return [*rows, (f"{name} max", most)]


def remarks(record: Record) -> list[str]:
    """Return what must be known beside the figures of a record; nothing, if all went well."""
    found: list[str] = []
    if record.cause:
        found.append(f"{record.label}: ended early by {record.cause}")
    if record.cut:
        age = f", up to {show_seconds(record.oldest)} old" if record.oldest else ""
        found.append(f"{record.label}: {record.cut:,} calls were cut off{age}; no figure holds them")
    rate = record.order.load.rate
    answers = record.tally.calls / record.elapsed if record.elapsed else 0.0
    if rate is not None and record.order.load.count is None and answers < _KEEPS_UP * rate and not record.cause:
        found.append(f"{record.label}: fewer answers than calls that were due: it does not keep up with the rate")
    return found
