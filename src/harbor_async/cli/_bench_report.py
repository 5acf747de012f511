"""The results of ``bench`` as JSON."""

import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, Final

import attrs
import msgspec

from ._bench_histogram import Histogram
from ._bench_load import SYNTHETIC, Order
from ._bench_record import Record

_PERCENTILES: Final = (50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99)


def describe_machine() -> dict[str, Any]:
    """Return what a figure is worth nothing without: versions, system and processors."""
    return {
        "harbor_async": version("harbor-async"),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": platform.platform(),
        "processors": os.cpu_count(),
    }


def encode_report(began: str, records: Sequence[Record]) -> bytes:
    """Return the results as JSON: times in seconds, memory in bytes, null for what is not known or has no meaning.

    Args:
        began: When, as ISO 8601.
        records: At least one.
    """
    report = {
        "machine": describe_machine(),
        "began": began,
        **_describe_order(records[0].order),
        "runs": [_describe_run(record) for record in records],
    }
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"


def _describe_order(order: Order) -> dict[str, Any]:
    load = msgspec.to_builtins(order.load)
    for word in ("rate", "arrivals") if order.load.rate is None else ("in_flight",):
        load[word] = None
    return {
        "catalog": order.catalog,
        "tool": order.tool,
        # Another tool's arguments may be secret.
        "arguments": msgspec.json.decode(order.arguments.strip() or b"{}") if order.catalog == SYNTHETIC else None,
        "load": load,
        "timeout": order.timeout,
        "limits": order.limits,
    }


def _describe_run(record: Record) -> dict[str, Any]:
    return {
        "backend": record.label,
        "ended_by": record.cause or None,
        "calls": record.tally.calls,
        "outcomes": [
            {"outcome": outcome.value, "category": category or None, "calls": count}
            for outcome, category, count in record.tally.rows()
        ],
        "cut": record.cut,
        "oldest_cut": record.oldest or None,
        "elapsed": record.elapsed,
        "completed": record.completed,
        "rate": record.rate,
        "latency": _describe_times(record.latency),
        "from_start": _describe_times(record.service) if record.order.load.rate is not None else None,
        "timers_late": _describe_times(record.lag),
        "memory_bytes": record.memory or None,
        "cpu": record.cpu or None,
        "points": [attrs.asdict(point) for point in record.points],
    }


def _describe_times(histogram: Histogram) -> dict[str, Any] | None:
    if not histogram.count:
        return None
    return {
        "count": histogram.count,
        "mean": histogram.mean,
        "min": histogram.minimum,
        "max": histogram.maximum,
        "percentiles": {f"{percent:g}": time for percent, time in histogram.percentiles(_PERCENTILES).items()},
        "hdr": histogram.encode(),
    }
