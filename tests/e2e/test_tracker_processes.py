"""Several processes write to one tracker, are cut short and killed: no answer lies, nothing is lost or done twice."""

import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from harbor_async.tracker.writers import SQLiteTracker
from tests.e2e.tracker_worker import SHARED, arguments_of

WORKER = Path(__file__).with_name("tracker_worker.py")
BACKENDS = ["asyncio", "trio", "asyncio", "trio"]
VICTIM = 3
WRITES = 500

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")


async def make(path, processes, writes):
    async with await SQLiteTracker.create(path) as tracker, anyio.create_task_group() as group:
        ids = [f"S-{index}" for index in range(SHARED)]
        names = [arguments_of(number, index) for number in range(processes) for index in range(writes)]
        for id in ids + [name["id"] for name in names if name["op"] == "close"]:
            group.start_soon(tracker.add, id, "shared")


def start(path, number, writes, *when):
    """Start a process; its answers come through a pipe."""
    command = [sys.executable, str(WORKER), str(path), str(number), str(writes), BACKENDS[number], *when]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def answers(lines, number):
    """Return outcome, delivery and attempts of each answer, by the name of its write."""
    words = [line.split() for line in lines if line.endswith("\n")]  # the last line of a killed one may be cut
    assert len({index for index, *_ in words}) == len(words), "a call was answered twice"
    return {f"{number}-{index}": (outcome, delivery, int(attempts)) for index, outcome, delivery, attempts in words}


def stored(path):
    """Return how often each write stands in the history, after a look at the file's health."""
    with closing(sqlite3.connect(path)) as connection:
        assert [("ok",)] == connection.execute("PRAGMA integrity_check").fetchall()
        assert [] == connection.execute("PRAGMA foreign_key_check").fetchall()
        query = "SELECT coalesce(body, text) FROM history LEFT JOIN comments USING (seq) WHERE op <> 'add'"
        found = Counter(name for (name,) in connection.execute(query))
        assert set(found) == {key for (key,) in connection.execute("SELECT key FROM writes")}
        return found


@pytest.mark.timeout(120)
def test_processes_write_at_once_and_one_is_killed(tmp_path, capsys):
    """2 processes on asyncio and 2 on trio send 500 writes each, with cancels and deadlines; one is killed half-way.

    What was answered ``succeeded`` is stored once, what was ``not_sent`` or ``refused`` is not, nothing is stored
    twice; and all of that still holds when the killed one has sent all its writes again, with the same keys.
    """
    path = tmp_path / "issues.db"
    anyio.run(make, path, len(BACKENDS), WRITES)
    processes = [start(path, number, WRITES) for number in range(len(BACKENDS))]
    victim = processes[VICTIM]
    early = [victim.stdout.readline() for _ in range(WRITES // 3)]
    victim.send_signal(signal.SIGKILL)
    first = {}
    for number, process in enumerate(processes):
        lines = process.communicate(timeout=60)[0].splitlines(keepends=True)
        first |= answers(early + lines if process is victim else lines, number)
        assert (-signal.SIGKILL if process is victim else 0) == process.returncode
    check(first, stored(path))

    again = start(path, VICTIM, WRITES)
    second = answers(again.communicate(timeout=60)[0].splitlines(keepends=True), VICTIM)
    assert 0 == again.returncode
    now = stored(path)
    # What the killed one did not send in one of its runs may be there from the other.
    both = [*first.items(), *second.items()]
    check({name: end for name, end in both if end[0] == "succeeded" or not name.startswith(f"{VICTIM}-")}, now)

    ends = Counter(f"{outcome} {delivery}" for outcome, delivery, _ in first.values())
    with capsys.disabled():
        print(f"\n{len(first)} answers: {dict(sorted(ends.items()))}; {now.total()} stored")  # noqa: T201 - its figures
    assert ends["succeeded -"] > WRITES


def check(ends, found):
    """Check each answer against what is stored."""
    assert {1} == set(found.values()), "a write is stored twice"
    succeeded = {name for name, (outcome, _, _) in ends.items() if outcome == "succeeded"}
    assert set() == succeeded - set(found), "a write that succeeded is lost"
    unsent = {name for name, (_, delivery, _) in ends.items() if delivery in {"not_sent", "refused"}}
    assert set() == unsent & set(found), "a write that was not sent is stored"


@pytest.mark.parametrize("number", [0, 1], ids=BACKENDS[:2])
@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_round_a_commit(tmp_path, number, when):
    """Killed before it commits a process has stored nothing, after it all; and what it sends again is there once."""
    path = tmp_path / "issues.db"
    anyio.run(make, path, 2, 9)
    process = start(path, number, 9, when)
    assert "" == process.communicate(timeout=30)[0]
    assert -signal.SIGKILL == process.returncode
    assert (when == "after") == bool(stored(path))
    for _ in range(2):
        process = start(path, number, 9)
        ends = answers(process.communicate(timeout=30)[0].splitlines(keepends=True), number)
        assert [("succeeded", "-", 1)] * 9 == list(ends.values())
        assert dict.fromkeys(ends, 1) == stored(path)
