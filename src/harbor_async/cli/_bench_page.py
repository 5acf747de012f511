"""The results of ``bench`` as a page of HTML that needs nothing but itself."""

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any, Final, TypeAlias

from ._bench_figures import describe_load, figure_rows, remarks
from ._bench_histogram import Histogram
from ._bench_plot import XY, Style
from ._bench_record import Point, Record
from ._bench_report import describe_machine
from ._report import show_seconds

_Line: TypeAlias = tuple[str, list[tuple[float, float]]]

_COLORS: Final = ("#1f6feb", "#d1480a", "#1a7f37", "#8250df", "#9a6700", "#bf3989")
_STYLE: Final[Any] = Style(
    background="transparent",
    plot_background="transparent",
    foreground="#555",
    foreground_strong="#111",
    foreground_subtle="#bbb",
    colors=_COLORS,
    font_family="system-ui, sans-serif",
    label_font_size=13,
    major_label_font_size=13,
    title_font_size=17,
    legend_font_size=14,
    guide_stroke_dasharray="0",
    guide_stroke_color="#e4e4e4",
    major_guide_stroke_dasharray="0",
    major_guide_stroke_color="#e4e4e4",
)
_CSS: Final = """
body { font: 16px/1.5 system-ui, sans-serif; color: #111; background: #fff; max-width: 60rem; margin: 2rem auto;
       padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0; }
table { border-collapse: collapse; margin: 1.5rem 0; }
th, td { padding: .15rem 1.2rem .15rem 0; text-align: left; font-weight: normal; }
thead th { border-bottom: 1px solid #bbb; font-weight: bold; }
td { text-align: right; font-variant-numeric: tabular-nums; }
thead th + th { text-align: right; }
figure { margin: 1rem 0; }
svg { width: 100%; height: auto; }
.remark { color: #a40e26; }
.small { color: #555; font-size: .85rem; }
"""
_NOTE: Final = (
    "Latencies count from when a call was due to its answer, rejected calls left out. "
    "“From its start” counts from when the call began, and so hides what a stall does to the calls behind it."
)


def make_page(began: str, records: Sequence[Record]) -> bytes:
    """Return the page.

    Args:
        began: When, as ISO 8601.
        records: At least one.
    """
    machine = ", ".join(f"{name} {value}" for name, value in describe_machine().items())
    title = escape(describe_load(records[0].order))
    parts = [
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>',
        f'<meta name="viewport" content="width=device-width">\n<style>{_CSS}</style>\n</head>\n<body>',
        f'<h1>{title}</h1>\n<p class="small">harbor-async bench, {escape(began)}; {escape(machine)}</p>',
        *(f'<p class="remark">{escape(remark)}</p>' for record in records for remark in remarks(record)),
        _table(records),
        *(f"<figure>{chart}</figure>" for chart in _charts(records)),
        f'<p class="small">{_NOTE}</p>',
        "</body>\n</html>\n",
    ]
    return "\n".join(parts).encode()


def _table(records: Sequence[Record]) -> str:
    head = "".join(f"<th>{escape(record.label)}</th>" for record in records)
    rows = (
        f"<tr><th>{escape(name)}</th>{''.join(f'<td>{escape(text)}</td>' for text in texts)}</tr>"
        for name, texts in figure_rows(records)
    )
    return f"<table>\n<thead><tr><th></th>{head}</tr></thead>\n<tbody>\n{chr(10).join(rows)}\n</tbody>\n</table>"


def _charts(records: Sequence[Record]) -> Iterable[str]:
    lines = [(record.label, _distribution(record.latency)) for record in records]
    lines += [
        (f"{record.label}, from its start", _distribution(record.service)) for record in records if record.service.count
    ]
    farthest = max((line[-1][0] for _, line in lines if line), default=1.0)
    tens = [10**digits for digits in range(int(math.log10(farthest)) + 1)]
    heights = [seconds for _, line in lines for _, seconds in line]
    yield _chart(
        "Latency by percentile",
        lines,
        show_seconds,
        logarithmic=True,
        x_labels=[{"value": ten, "label": f"{100 - 100 / ten:.10g} %"} for ten in tens],
        y_labels=_steps(min(heights), max(heights)) if heights else None,
    )
    yield _over_time("Calls a second", records, lambda point: point.calls / point.length, _number)
    yield _over_time("Calls in flight", records, lambda point: point.in_flight, _number)
    yield _over_time("Longest latency", records, lambda point: point.slowest, _time)


def _distribution(histogram: Histogram) -> list[tuple[float, float]]:
    """Return how many calls there are to each that took longer, and how long that is; of the longest, all calls."""
    most = histogram.count
    return [(100 / max(100 - percent, 100 / most), max(seconds, 1e-7)) for percent, seconds in histogram.distribution()]


def _steps(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 of each power of ten, from the last one below ``low`` to the first above ``high``."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    below = max(step for step in steps if step <= low)
    above = min(step for step in steps if step >= high)
    return [step for step in steps if below <= step <= above]


def _over_time(
    title: str, records: Sequence[Record], pick: Callable[[Point], float], show: Callable[[float], str]
) -> str:
    lines = [
        (record.label, [(point.time, pick(point)) for point in record.points if point.length]) for record in records
    ]
    return _chart(title, lines, show, x_title="seconds", include_x_axis=True, x_value_formatter=_number)


def _number(value: float) -> str:
    return f"{value:,.10g}"


def _time(seconds: float) -> str:
    return show_seconds(seconds) if seconds else "0"


def _chart(title: str, lines: Sequence[_Line], show: Callable[[float], str], **options: Any) -> str:
    """Return a chart as SVG, without the scripts that it would fetch from elsewhere."""
    chart: Any = XY(
        title=title,
        style=_STYLE,
        js=(),
        show_dots=False,
        stroke_style={"width": 2},
        width=960,
        height=380,
        legend_at_bottom=True,
        disable_xml_declaration=True,
        value_formatter=show,
        **options,
    )
    for name, line in lines:
        chart.add(name, line)
    return str(chart.render(is_unicode=True))
