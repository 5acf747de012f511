"""``tracker_write``: what it costs beside a plain tool, and 10,000 writes into one SQLite file beside a loop by hand.

``python -m bench.tracker`` measures the writes on both backends, with the times that single writes took.
"""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from hashlib import sha256
from itertools import count
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Final

import anyio
import attrs

from harbor_async import Catalog, Runtime, ToolCall, describe
from harbor_async.tracker import NAME, tracker_write
from harbor_async.tracker.writers import SQLiteTracker

from .pair import FULL, QUICK, Effort, Pair, Row, measure
from .report import heading, line, machine

MANY: Final = 10_000
BODY: Final = "The pump leaks at the lower seal."
ARGUMENTS: Final = json.dumps({"op": "comment", "id": "T-1", "body": BODY})


class NoWriter:
    """Does nothing."""

    async def comment(self, id: str, body: str, *, key: str) -> None: ...

    async def close(self, id: str, reason: str, *, key: str) -> None: ...

    async def transition(self, id: str, to_state: str, *, key: str) -> None: ...

    async def link_pr(self, id: str, pr_url: str, *, key: str) -> None: ...


@attrs.frozen
class Done:
    outcome: str
    op: str
    id: str


async def plain(op: str, id: str, body: str | None = None, reason: str | None = None) -> Done:
    """Do nothing with arguments as those of ``tracker_write``, and answer as it does."""
    return Done("succeeded", op, id)


async def tool(effort: Effort, backend: str) -> list[Row]:
    """Time ``tracker_write`` on a writer that does nothing, one call after the other."""
    async with Runtime(Catalog([tracker_write(NoWriter()), describe(plain)])) as runtime:

        async def run(name: str, calls: int) -> None:
            text = ""
            for _ in range(calls):
                text = (await runtime.invoke(name, ARGUMENTS)).content
            assert json.loads(text) == {"outcome": "succeeded", "op": "comment", "id": "T-1"}, text

        pair = Pair(f"tracker_write, {backend}", "a plain tool", partial(run, "plain"), partial(run, NAME), target=1.2)
        return [await measure(pair, effort)]


async def writes(effort: Effort, backend: str, *, issues: int = MANY, took: list[float] | None = None) -> list[Row]:
    """Time 10,000 comments at once, on so many issues, against a loop by hand that commits each.

    Args:
        effort: How long to measure.
        backend: The event loop that runs.
        issues: How many issues they are spread over; those on one issue run one after the other.
        took: Takes the seconds of each write, if given.
    """
    with TemporaryDirectory(dir=".") as folder:
        by_hand = await _make(Path(folder) / "by_hand.db", issues)
        tracker = await _make(Path(folder) / "ours.db", issues)
        keys = count()
        async with tracker, Runtime(Catalog([tracker_write(tracker)])) as runtime:
            ends: list[float] = []

            async def ours(calls: int) -> None:
                begun = perf_counter()
                ends.clear()
                async with runtime.stream(_calls(calls, issues)) as stream:
                    async for result in stream:
                        assert result.error is None, result
                        ends.append(perf_counter() - begun)
                if took is not None:
                    took[:] = ends

            async def floor(calls: int) -> None:
                _write_by_hand(by_hand.path, calls, issues, lambda: str(next(keys)))

            pair = Pair(f"{MANY:,} writes, {backend}", "sqlite3 by hand, a thread", floor, ours, calls=MANY, target=1.3)
            return [await measure(pair, effort.of(0.2))]


async def _make(path: Path, issues: int) -> SQLiteTracker:
    tracker = await SQLiteTracker.create(path)
    async with tracker, anyio.create_task_group() as group:
        for number in range(issues):
            group.start_soon(tracker.add, f"T-{number}", "A pump")
    return tracker


def _calls(calls: int, issues: int) -> list[ToolCall]:
    return [
        ToolCall(str(number), NAME, json.dumps({"op": "comment", "id": f"T-{number % issues}", "body": BODY}))
        for number in range(calls)
    ]


def _write_by_hand(path: Path, calls: int, issues: int, make_key: Callable[[], str]) -> None:
    """Do the statements of a comment, in a transaction each, with the pragmas of the tracker."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        execute = connection.execute
        execute("PRAGMA synchronous = FULL")
        for number in range(calls):
            id, key = f"T-{number % issues}", make_key()
            fingerprint = sha256(json.dumps(["comment", id, BODY]).encode()).digest()
            execute("BEGIN IMMEDIATE")
            assert execute("SELECT fingerprint FROM writes WHERE key = ?", (key,)).fetchone() is None
            assert execute("SELECT state FROM issues WHERE id = ?", (id,)).fetchone() is not None
            seq = execute("INSERT INTO history (issue, op) VALUES (?, 'comment')", (id,)).lastrowid
            execute("INSERT INTO comments (seq, issue, body) VALUES (?, ?, ?)", (seq, id, BODY))
            execute("INSERT INTO writes (key, fingerprint, seq) VALUES (?, ?, ?)", (key, fingerprint, seq))
            execute("COMMIT")


def main(*options: str) -> None:
    """Measure one backend in this process, or both in processes of their own."""
    backends = [option for option in options if option in {"asyncio", "trio"}]
    if not backends:
        print(heading(machine()), flush=True)
        for backend in ("asyncio", "trio"):
            subprocess.run([sys.executable, "-m", "bench.tracker", backend, *options], check=True)
        return
    effort = QUICK if "--quick" in options else FULL
    for issues in (MANY, 100):
        took: list[float] = []
        measured = partial(writes, effort, backends[0], issues=issues, took=took)
        (row,) = anyio.run(measured, backend=backends[0])
        cuts = quantiles(took, n=100)
        print(line(row))
        print(f"  on {issues:,} issues: p50 {cuts[49] * 1e3:.0f} ms, p99 {cuts[98] * 1e3:.0f} ms from the start of all")
    print(*(line(row) for row in anyio.run(tool, effort, backends[0], backend=backends[0])), sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
