"""What the command keeps of the samples of a process: histograms, the log, and what happened over time."""

import math
import random
from array import array

import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

import harbor_async as ha
from harbor_async.cli._bench_figures import describe_load, figure_rows, remarks
from harbor_async.cli._bench_histogram import Histogram, HistogramLog
from harbor_async.cli._bench_load import Arrivals, Ended, Load, Phase, Sample
from harbor_async.cli._bench_record import Record
from tests.unit.cli.bench import make_order

OK = (ha.Outcome.SUCCEEDED, "", 1)


def sample(time, latencies=(), *, phase=Phase.MEASURING, in_flight=1.0, services=(), lags=(), ends=()):
    parts = (array("d", values).tobytes() for values in (latencies, services, lags))
    return Sample(phase, time, in_flight, *parts, list(ends))


def record_of(*samples, load=None, log=None):
    record = Record("asyncio", make_order(load or Load(duration=1)), log)
    for each in samples:
        record.add(each)
    return record


@pytest.mark.parametrize("percent", [50, 90, 99, 99.9, 100])
def test_percentiles_have_three_digits(percent):
    """A percentile is within 0.1 % of the one of the sorted times, over six orders of magnitude."""
    chance = random.Random(7)
    times = sorted(10 ** chance.uniform(-5, 1) for _ in range(10_000))
    histogram = Histogram()
    histogram.add(times)
    expected = times[math.ceil(percent / 100 * len(times)) - 1]
    assert math.isclose(expected, histogram.percentiles([percent])[percent], rel_tol=0.001)
    assert math.isclose(times[0], histogram.minimum, rel_tol=0.01)
    assert math.isclose(times[-1], histogram.maximum, rel_tol=0.001)
    assert math.isclose(sum(times) / len(times), histogram.mean, rel_tol=0.001)


def test_times_out_of_range_count_as_the_nearest():
    """A clock that goes back counts as no time, a day as an hour, and none is lost."""
    histogram = Histogram()
    histogram.add([-1.0, 0.0, 86_400.0])
    assert 3 == histogram.count
    assert 0 == histogram.minimum
    assert math.isclose(3600, histogram.maximum, rel_tol=0.001)


def test_empty_histogram():
    """Of no times there is no percentile and no distribution, and the rest is 0."""
    histogram = Histogram()
    assert ({}, [], 0, 0, 0) == (
        histogram.percentiles([50]),
        list(histogram.distribution()),
        histogram.minimum,
        histogram.maximum,
        histogram.mean,
    )


def test_log_is_read_by_the_reader_of_the_format(tmp_path):
    """Every interval is a line with its tag, its length and a histogram in nanoseconds, and times begin at a base."""
    path = tmp_path / "bench.hlog"
    log = HistogramLog(path, "title")
    for tag, times in {"asyncio": [0.001] * 3, "trio-2": [0.25]}.items():
        histogram = Histogram()
        histogram.add(times)
        log.write(tag, 1.0, histogram)
    reader = HistogramLogReader(str(path), HdrHistogram(1, 3_600_000_000_000, 3))
    first, second = reader.get_next_interval_histogram(), reader.get_next_interval_histogram()
    assert reader.get_next_interval_histogram() is None
    reader.close()
    assert (["asyncio", "trio-2"], [3, 1]) == (
        [first.get_tag(), second.get_tag()],
        [first.get_total_count(), second.get_total_count()],
    )
    assert math.isclose(1e6, first.get_max_value(), rel_tol=0.001)
    assert math.isclose(0.25e9, second.get_max_value(), rel_tol=0.001)
    lines = path.read_text().splitlines()
    assert ["#[title]", "#[Histogram log format version 1.2]"] == lines[:2]
    assert ["#[StartTime: ", "#[BaseTime: ", '"StartTimestamp"'] == [
        line[: len(mark)]
        for line, mark in zip(lines[2:], ("#[StartTime: ", "#[BaseTime: ", '"StartTimestamp"'), strict=False)
    ]


def test_log_has_a_histogram_for_each_second_and_the_rest(tmp_path):
    """25 samples of a tenth of a second are two intervals of a second and one of a half; every call is in one."""
    path = tmp_path / "bench.hlog"
    samples = [sample(number / 10, [0.001, 0.002]) for number in range(1, 26)]
    record = record_of(*samples, log=HistogramLog(path, "title"))
    record.end(Ended(2.5, 0, 0.0, ""))
    lines = [line.split(",") for line in path.read_text().splitlines() if line.startswith("Tag=")]
    # An interval ends as it is read, by the command's own clock; the first ones here at about 0, the log's base.
    assert ["Tag=asyncio"] * 3 == [line[0] for line in lines]
    assert [20, 20, 10] == [HdrHistogram.decode(line[4].encode()).get_total_count() for line in lines]


def test_warm_up_and_waiting():
    """Nothing of the warm-up counts; calls that end while it waits for the last ones count, but in no rate."""
    record = record_of(
        sample(1.0, [9.0], phase=Phase.WARMING_UP, lags=[9.0], ends=[OK]),
        sample(0.5, [0.1, 0.2], ends=[OK, OK]),
        sample(1.0, [0.3], ends=[OK]),
        sample(1.5, [0.9], phase=Phase.WAITING, ends=[OK]),
    )
    assert (4, 3, 1.0, 3.0) == (record.tally.calls, record.completed, record.elapsed, record.rate)
    assert (4, 0) == (record.latency.count, record.lag.count)
    assert math.isclose(0.9, record.latency.maximum, rel_tol=0.001)


def test_processor_time_and_memory():
    """Processor time is that of the measuring alone, memory the most that was seen."""
    record = record_of()
    record.add(sample(1, phase=Phase.WARMING_UP), 50, 3.0)
    record.add(sample(1), 70, 3.5)
    record.add(sample(2), 60, 4.0)
    record.add(sample(3, phase=Phase.WAITING), 65, 9.0)
    assert (70, 1.0) == (record.memory, record.cpu)
    record.add(sample(4), 0, 0.0)  # the process has ended before it was looked at
    assert 0 == record.cpu


def test_points_stay_few():
    """A quarter of an hour makes at most 600 points; calls, time and averages are kept, and no peak is lost."""
    samples = 9000
    record = record_of()
    for number in range(1, samples + 1):
        latency = 5.0 if number == 1700 else 0.001
        record.add(sample(number / 10, [latency], in_flight=number % 2 * 2.0), 10)
    points = record.points
    assert len(points) <= 600
    assert samples == sum(point.calls for point in points)
    assert math.isclose(900, sum(point.length for point in points))
    assert math.isclose(1, sum(point.length * point.in_flight for point in points) / 900)
    assert (5.0, 900.0) == (max(point.slowest for point in points), points[-1].time)
    lengths = [point.length for point in points[:-1]]
    assert max(lengths) < 1.01 * min(lengths)


def test_sliver_of_time_is_no_point_of_its_own():
    """The last sample may be a moment after the one before: it joins its point, or its rate would be a needle."""
    record = record_of(sample(0.1, [0.001] * 10), sample(0.101, [0.001]))
    (point,) = record.points
    assert (11, 0.101) == (point.calls, point.length)


def test_end_of_a_process_without_a_last_word():
    """What came before the end counts, and the calls that were under way then are told; those of a warm-up are not."""
    record = record_of(sample(0.5, [0.1], ends=[OK], in_flight=2.9))
    record.lose("an accident")
    assert (1, 3, "an accident") == (record.tally.calls, record.cut, record.cause)
    assert ["asyncio: ended early by an accident", "asyncio: 3 calls were cut off; no figure holds them"] == remarks(
        record
    )
    record = record_of(sample(0.5, phase=Phase.WARMING_UP, in_flight=3.0))
    record.lose("an accident")
    assert 0 == record.cut


def test_remarks():
    """Nothing is said where all went well; else what ended it, what was cut, and an open loop that falls behind."""
    load = Load(rate=10, duration=1)
    good = record_of(sample(1.0, [0.1] * 10, ends=[(ha.Outcome.FAILED, "unknown", 10)]), load=load)
    assert [] == remarks(good)
    cut = record_of(sample(1.0, [0.1] * 10, ends=[OK]), load=load)
    cut.end(Ended(1.0, 2, 0.25, "a tool"))
    age = "asyncio: 2 calls were cut off, up to 250 ms old; no figure holds them"
    assert ["asyncio: ended early by a tool", age] == remarks(cut)
    slow = record_of(sample(1.0, [0.1] * 9, ends=[(ha.Outcome.SUCCEEDED, "", 9)]), load=load)
    assert ["asyncio: fewer answers than calls that were due: it does not keep up with the rate"] == remarks(slow)


def test_rows_of_the_table():
    """The table has a column a record; an outcome that one lacks is 0 there, and what is not known a dash."""
    closed = record_of(sample(2.0, [0.01, 0.02], ends=[(ha.Outcome.SUCCEEDED, "", 2)], lags=[0.003]))
    other = record_of(sample(2.0, [0.03], ends=[(ha.Outcome.FAILED, "timeout", 1)]))
    other.add(sample(3.0), 2_000_000, 1.5)
    rows = dict(figure_rows([closed, other]))
    expected = {
        "calls": ["2", "1"],
        "calls a second": ["1", "0"],
        "latency p50": ["10 ms", "30 ms"],
        "latency max": ["20 ms", "30 ms"],
        "timers late max": ["3 ms", "-"],
        "memory": ["-", "2.0 MB"],
        "processor": ["-", "50%"],
        "succeeded": ["2", "0"],
        "failed timeout": ["0", "1"],
    }
    assert expected == {name: rows[name] for name in expected}
    assert not any(name.startswith("from its start") for name in rows)
    opened = record_of(sample(1.0, [0.2], services=[0.1]), load=Load(rate=1, duration=1))
    assert ["100 ms"] == dict(figure_rows([opened]))["from its start p99"]


@pytest.mark.parametrize(
    ("load", "options", "text"),
    [
        (
            Load(in_flight=1000, duration=10.0, warm_up=0.5),
            {"limits": {"max_running": 5}},
            "tool: closed loop, 1,000 in flight, 10 s after 0.5 s of warm-up, max_running 5",
        ),
        (
            Load(rate=5.0, arrivals=Arrivals.POISSON, count=7),
            {"catalog": "synthetic", "timeout": 2.0},
            "synthetic tool: open loop, 5 calls a second, poisson arrivals, 7 calls after 0 s of warm-up, timeout 2 s",
        ),
    ],
    ids=["closed", "open"],
)
def test_load_is_described_in_a_line(load, options, text):
    """The line above the table says all that was asked for."""
    assert text == describe_load(make_order(load, **options))
