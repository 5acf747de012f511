"""What the command ``bench`` does once its options are understood."""

from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import anyio
import attrs

from ._bench_display import show_results, watch_bench
from ._bench_figures import describe_load
from ._bench_histogram import HistogramLog
from ._bench_load import Order
from ._bench_page import make_page
from ._bench_record import Record
from ._bench_report import encode_report
from ._bench_run import Conductor
from ._report import make_console
from ._usage import UsageError, reason


@attrs.frozen
class Outputs:
    """The files of results; None for one that is not wanted.

    Attributes:
        json: All figures.
        html: A page with plots.
        hdr_log: The latencies of each second.
    """

    json: Path | None
    html: Path | None
    hdr_log: Path | None


def run_bench(orders: Sequence[Order], outputs: Outputs) -> int:
    """Measure, show and write the results, and return the exit code.

    Args:
        orders: What is to be measured, the same on each backend; at least one.
        outputs: Where the results go, besides standard output.

    Raises:
        UsageError: An order is refused, or a file of results cannot be written.
    """
    began = datetime.now(UTC).isoformat(" ", "seconds")
    log = _prepare(outputs, f"harbor-async bench, {describe_load(orders[0])}")
    labels: Counter[str] = Counter()
    records: list[Record] = []
    for order in orders:
        labels[order.loop] += 1
        label = order.loop if labels[order.loop] == 1 else f"{order.loop}-{labels[order.loop]}"
        records.append(Record(label, order, log))
    conductor = Conductor()
    with watch_bench(conductor.records, make_console(stderr=True)) as redraw:
        anyio.run(conductor.run, records, redraw)
    done = conductor.records
    show_results(done, make_console())
    if outputs.json is not None:
        with _writing(outputs.json):
            outputs.json.write_bytes(encode_report(began, done))
    if outputs.html is not None:
        with _writing(outputs.html):
            outputs.html.write_bytes(make_page(began, done))
    return conductor.code or int(any(record.tally.failures for record in done))


def _prepare(outputs: Outputs, title: str) -> HistogramLog | None:
    """Empty the files of results, so that one that cannot be written is told before anything is measured."""
    paths = [path for path in (outputs.json, outputs.html, outputs.hdr_log) if path is not None]
    if len({path.resolve() for path in paths}) < len(paths):
        msg = "--json, --html and --hdr-log: expected another file for each"
        raise UsageError(msg)
    for path in paths:
        with _writing(path):
            path.write_bytes(b"")
    if outputs.hdr_log is None:
        return None
    with _writing(outputs.hdr_log):
        return HistogramLog(outputs.hdr_log, title)


@contextmanager
def _writing(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as exc:
        msg = f"cannot write the results: {reason(exc)}: {path}"
        raise UsageError(msg) from exc
