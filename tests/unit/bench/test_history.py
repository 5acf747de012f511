"""The history keeps a line for each release, and the documentation's table is made of it."""

import json

import pytest

from bench.history import HISTORY, PAGE, load, note, render
from bench.pair import Row
from bench.report import write

FACTS = {"python": "CPython 3.11.7", "processor": "any", "cores": 2, "load": 0.1, "packages": {"anyio": "4.16.0"}}


def write_figures(path, ratio):
    write(path, FACTS, [Row("work", "floor", 1e-6, ratio * 1e-6, ratio, ratio, ratio, ratio, rounds=5)])
    return path


def test_note(tmp_path):
    """A release is appended as one line, with the machine, the packages and each ratio by its key."""
    history = tmp_path / "history.jsonl"
    note(history, "0.1.0", write_figures(tmp_path / "a.json", 1.5))
    note(history, "0.2.0", write_figures(tmp_path / "b.json", 1.23456))
    lines = history.read_text(encoding="utf-8").splitlines()
    assert [("0.1.0", {"work / floor": 1.5}), ("0.2.0", {"work / floor": 1.235})] == [
        (release["version"], release["ratios"]) for release in map(json.loads, lines)
    ]
    assert FACTS == {key: json.loads(lines[0])[key] for key in FACTS}


def test_note_twice(tmp_path):
    """A release that is there already is refused, and the file stays as it was."""
    history, figures = tmp_path / "history.jsonl", write_figures(tmp_path / "a.json", 1.5)
    note(history, "0.1.0", figures)
    before = history.read_bytes()
    with pytest.raises(ValueError, match=r"^0\.1\.0 is in the history already$"):
        note(history, "0.1.0", figures)
    assert before == history.read_bytes()


def test_no_history(tmp_path):
    """Where there is no file there are no releases."""
    assert [] == load(tmp_path / "history.jsonl")


def test_table(tmp_path):
    """The table has a column for each release, and a dash where one did not measure."""
    history = tmp_path / "history.jsonl"
    note(history, "0.1.0", write_figures(tmp_path / "a.json", 1.5))
    table = render(load(history), shown=["work / floor", "other / floor"])
    assert [
        ["0.1.0"],
        ["work", "/", "floor", "1.50"],
        ["other", "/", "floor", "–"],
        [],
        ["0.1.0:", "CPython", "3.11.7,", "2", "cores,", "any,", "load", "0.1"],
    ] == [text.split() for text in table.splitlines()]


def test_page_shows_the_history():
    """The documentation's table is that of the committed history."""
    assert load(HISTORY)
    assert render(load(HISTORY)) == PAGE.read_text(encoding="utf-8")
