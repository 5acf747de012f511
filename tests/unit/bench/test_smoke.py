"""The smoke run fails on a ratio that stays far out, and on nothing else."""

from pathlib import Path

from bench.pair import Row
from bench.report import heading, line, read, write
from bench.smoke import BASELINE, NAMES, TRIES, judge
from bench.suite import BENCHMARKS


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
    """The committed baseline was measured with the targets that the shell is accepted by."""
    targets = {row.key: row.target for row in read(BASELINE)[1] if row.target is not None}
    assert {
        "sequence, asyncio / by hand": 1.5,
        "sequence, trio / by hand": 2.2,
        "10,000 parallel, asyncio / by hand": 1.8,
    } == targets


def test_smoke_leaves_out_one():
    """The smoke run measures every benchmark but the longest."""
    assert {"parallel-trio"} == set(BENCHMARKS) - set(NAMES)


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
