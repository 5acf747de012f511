"""The smoke run fails on a ratio that stays far out, and on nothing else."""

from pathlib import Path

from bench.pair import Row
from bench.report import heading, line, read, write
from bench.smoke import BASELINE, NAMES, TRIES, judge
from bench.suite import BENCHMARKS

LONG_TARGETS = {
    "100,000 parallel, asyncio / by hand",
    "100,000, 200 at once / by hand with a semaphore",
    "100,000, 200, stream / by hand with a semaphore",
    "10,000 writes, asyncio / sqlite3 by hand, a thread",
}
"""Of benchmarks that take long: in the baseline once it was made in full."""


def make_row(ratio, name="work", target=None):
    return Row(name, "floor", 1e-6, ratio * 1e-6, ratio, ratio, ratio, ratio, rounds=5, target=target)


def verdict(tries, baseline):
    """Judge one benchmark that measures ``tries``, one after the other; return the failures and how often it ran."""
    runs = iter(tries)
    count = 0

    def measure(name):
        nonlocal count
        count += 1
        return next(runs)

    return judge(["one"], measure, baseline, tell=lambda text: None), count


def test_usual_ratio():
    """A ratio within half as much again of the baseline passes at the first try."""
    assert ([], 1) == verdict([[make_row(1.49)]], {"work / floor": 1.0})


def test_far_once():
    """A ratio that is far out once and then usual passes: a neighbour was busy."""
    assert ([], 2) == verdict([[make_row(9.0)], [make_row(1.0)]], {"work / floor": 1.0})


def test_far_always():
    """A ratio that is far out at every try fails, told with the least one and what was expected."""
    tries = [[make_row(9.0)], [make_row(3.0)], [make_row(8.0)], [make_row(7.0)]]
    assert len(tries) == TRIES
    assert (["work / floor: 3.00, expected about 1.00"], TRIES) == verdict(tries, {"work / floor": 1.0})


def test_each_ratio_has_its_own_best_try():
    """Two ratios of a benchmark may be good at different tries."""
    first = [make_row(9.0, "a"), make_row(1.0, "b")]
    second = [make_row(1.0, "a"), make_row(9.0, "b")]
    assert ([], 2) == verdict([first, second], {"a / floor": 1.0, "b / floor": 1.0})


def test_no_baseline():
    """A ratio that the baseline does not know fails at once: no further try can help."""
    assert (["work / floor: 1.00, no baseline"], 1) == verdict([[make_row(1.0)]], {})


def test_baseline_holds_the_promises():
    """The committed baseline tells the targets that the shell is accepted by; a short run may leave others out."""
    targets = {row.key: row.target for row in read(BASELINE)[1] if row.target is not None}
    targets = {key: target for key, target in targets.items() if key not in LONG_TARGETS}
    assert {
        "sequence, asyncio / by hand": 1.0,
        "sequence, trio / by hand": 1.5,
        "10,000 parallel, asyncio / by hand": 1.4,
        "peak a call, 200 at once / by hand with a semaphore": 1.0,
        "peak of all, 200, stream / a tenth of the calls": 1.1,
        "memory in flight, asyncio / by hand": 1.6,
        "retried once, no wait / one good call by hand": 20.0,
        "refused with 4 faults / one good call by hand": 8.0,
        "register a tool / one call by hand": 50.0,
        "import / anyio, attrs and msgspec": 1.5,
        "tracker_write, asyncio / a plain tool": 1.2,
    } == targets


def test_smoke_leaves_out_the_long_ones():
    """The smoke run measures every benchmark but those that take long, and those on a loop that need not be there."""
    left_out = {
        "memory-trio",
        "parallel-trio",
        "parallel-uvloop",
        "sequence-uvloop",
        "scale",
        "limit",
        "tracker-writes",
    }
    assert left_out == set(BENCHMARKS) - set(NAMES)


def test_line_tells_bytes():
    """A row of memory shows bytes, in kB or MB, and no interval but the ratio itself."""
    row = Row.exact("memory", "floor", 800_000.0, 1_200_000.0, target=1.6)
    amounts, ratios = ["800.00", "kB", "1.20", "MB"], ["1.50", "1.50–1.50", "1.50"]
    assert ["memory", "floor", *amounts, *ratios, "≤", "1.6", "met"] == line(row).split()


def test_json_round_trip(tmp_path):
    """What is written to a JSON file is read again as it was."""
    path = tmp_path / "figures.json"
    write(path, {"python": "any"}, [make_row(2.0, target=1.5)])
    assert ({"python": "any"}, [make_row(2.0, target=1.5)]) == read(path)


def test_page_shows_the_baseline():
    """The documentation's table is the committed baseline, line by line."""
    facts, rows = read(BASELINE)
    page = Path(__file__).parents[3] / "docs" / "explanation" / "performance.txt"
    assert [*heading(facts).splitlines(), *map(line, rows)] == page.read_text(encoding="utf-8").splitlines()


def test_line_tells_the_target():
    """A line says whether the promise was kept."""
    assert line(make_row(1.25, target=1.5)).endswith("≤ 1.5 met")
    assert line(make_row(1.75, target=1.5)).endswith("≤ 1.5 MISSED")
