"""The files of results: JSON and the page."""

import json
import re
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest
from hdrh.histogram import HdrHistogram

import harbor_async as ha
from harbor_async.cli._bench_load import Ended, Load, Phase
from harbor_async.cli._bench_page import make_page
from harbor_async.cli._bench_record import Record
from harbor_async.cli._bench_report import encode_report
from tests.unit.cli.bench import make_order
from tests.unit.cli.test_bench_record import OK, sample


def test_the_page_leaves_no_finder_of_modules():
    """What draws the page does not meet other imports, which a host with warnings as errors would see."""
    assert [] == [finder for finder in sys.meta_path if type(finder).__module__ == "pygal"]


BEGAN = "2026-01-02 03:04:05+00:00"


def make_records(**options):
    """Return two records of an open loop: ten calls of 10 ms each, of which one ends late, and one rejected call."""
    records = []
    for label in ("asyncio", "trio"):
        record = Record(label, make_order(Load(rate=10, duration=1.0), **options))
        rejected = (ha.Outcome.REJECTED, "rate_limited", 1)
        record.add(sample(0.5, [0.01] * 5, services=[0.005] * 5, lags=[0.001], ends=[OK] * 5, in_flight=2.0), 1000, 1)
        record.add(sample(1.0, [0.01] * 4, services=[0.005] * 4, ends=[OK] * 4 + [rejected]), 3000, 2)
        record.add(sample(1.5, [0.01], services=[0.005], ends=[OK], phase=Phase.WAITING), 2000, 3)
        record.end(Ended(1.0, 0, 0.0, ""))
        records.append(record)
    return records


def test_json_holds_every_figure():
    """The JSON has what was asked for, what it was measured on, and for each backend its figures, in seconds."""
    report = json.loads(encode_report(BEGAN, make_records(timeout=3.0, limits={"max_running": 4})))
    assert {"harbor_async", "python", "system", "processors"} == set(report.pop("machine"))
    runs = report.pop("runs")
    load = {"in_flight": None, "rate": 10.0, "arrivals": "constant", "seed": 0, "warm_up": 0.0, "duration": 1.0}
    expected = {"began": BEGAN, "catalog": "shop.py", "tool": "tool", "arguments": None, "timeout": 3.0}
    assert expected | {"limits": {"max_running": 4}, "load": load | {"count": None}} == report
    assert ["asyncio", "trio"] == [run["backend"] for run in runs]
    run = runs[0]
    latency, points = run.pop("latency"), run.pop("points")
    assert 0.005 == pytest.approx(run.pop("from_start")["percentiles"]["50"], rel=0.001)
    assert 1 == run.pop("timers_late")["count"]
    outcomes = [{"outcome": "succeeded", "category": None, "calls": 10}]
    outcomes.append({"outcome": "rejected", "category": "rate_limited", "calls": 1})
    assert {
        "backend": "asyncio",
        "ended_by": None,
        "calls": 11,
        "outcomes": outcomes,
        "cut": 0,
        "oldest_cut": None,
        "elapsed": 1.0,
        "completed": 9,
        "rate": 9.0,
        "memory_bytes": 3000,
        "cpu": 2.0,
    } == run
    assert (10, ["50", "75", "90", "95", "99", "99.9", "99.99"]) == (latency["count"], list(latency["percentiles"]))
    assert [0.01] * 4 == [pytest.approx(latency[name], rel=0.01) for name in ("mean", "min", "max")] + [
        pytest.approx(latency["percentiles"]["99"], rel=0.001)
    ]
    assert 10 == HdrHistogram.decode(latency["hdr"].encode()).get_total_count()
    first = {"time": 0.5, "length": 0.5, "calls": 5, "in_flight": 2.0, "slowest": 0.01, "memory": 1000}
    assert first == points[0]
    assert 3 == len(points)


def test_json_holds_no_arguments_but_of_built_in_tools():
    """A report is passed on, and the arguments of a tool may be secret."""
    secret = encode_report(BEGAN, make_records(arguments=b'{"password": "xyzzy"}'))
    assert b"xyzzy" not in secret + make_page(BEGAN, make_records(arguments=b'{"password": "xyzzy"}'))
    built_in = make_records(catalog="synthetic", tool="sleep", arguments=b'{"seconds": 0.5}')
    assert {"seconds": 0.5} == json.loads(encode_report(BEGAN, built_in))["arguments"]
    empty = make_records(catalog="synthetic", tool="sleep", arguments=b" ")
    assert {} == json.loads(encode_report(BEGAN, empty))["arguments"]


def test_json_without_a_call():
    """What there is no figure of is null, not zero and no error."""
    record = Record("asyncio", make_order(Load(duration=1.0)))
    record.lose("an accident")
    (run,) = json.loads(encode_report(BEGAN, [record]))["runs"]
    assert ("an accident", 0, 0.0) == (run["ended_by"], run["calls"], run["rate"])
    assert [None] * 5 == [run[name] for name in ("latency", "from_start", "timers_late", "memory_bytes", "cpu")]


class Page(HTMLParser):
    """Collects what a browser would fetch, and the text of the table."""

    def __init__(self, page):
        super().__init__()
        self.fetched, self.cells, self.tag = [], [], ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tag = tag
        self.fetched += [value for name, value in attrs if name in {"src", "href", "xlink:href", "data"}]

    def handle_data(self, data):
        if self.tag in {"td", "th"} and data.strip():
            self.cells.append(data)


def test_page_needs_nothing_but_itself():
    """The page fetches nothing: no script, style, font or picture from elsewhere."""
    page = make_page(BEGAN, make_records()).decode()
    assert [] == Page(page).fetched
    assert [] == re.findall(r"url\(|@import", page)


def test_page_has_the_table_and_four_plots():
    """The page shows the figures of the terminal, and plots with a line for each record."""
    page = make_page(BEGAN, make_records()).decode()
    cells = Page(page).cells
    assert ["asyncio", "trio", "calls", "11", "11"] == cells[:5]
    assert ["rejected rate_limited", "1", "1"] == cells[-3:]
    charts = [ET.fromstring(text) for text in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]
    lines = [
        [node for node in chart.iter("{http://www.w3.org/2000/svg}path") if "line" in node.get("class", "").split()]
        for chart in charts
    ]
    titles = ["Latency by percentile", "Calls a second", "Calls in flight", "Longest latency"]
    assert titles == [chart.find("{http://www.w3.org/2000/svg}title").text for chart in charts]
    from_start_too = 4
    assert [from_start_too, 2, 2, 2] == [sum("reactive" in node.get("class") for node in found) for found in lines]


def test_page_shows_names_as_text():
    """A tool's name and what ended a run are text, whatever is in them."""
    record = make_records(tool="<script>alert(1)</script>")[0]
    record.cause = "tool '<img src=x>', which raised SystemExit"
    page = make_page(BEGAN, [record]).decode()
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "ended early by tool &#x27;&lt;img src=x&gt;&#x27;" in page


def test_page_without_a_call():
    """A run that was ended before its first answer makes a page all the same."""
    record = Record("trio", make_order(Load(duration=1.0)))
    record.lose("SIGINT")
    assert b"ended early by SIGINT" in make_page(BEGAN, [record])
    instant = Record("trio", make_order(Load(count=1)))
    instant.add(sample(0.1, [0.0], ends=[OK]))
    assert b"Latency by percentile" in make_page(BEGAN, [instant])
