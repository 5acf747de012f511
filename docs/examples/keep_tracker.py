"""A tracker in a file, with a state of our own, and what a model does to it."""

import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

import harbor_async as ha
from harbor_async.tracker import NAME, tracker_write
from harbor_async.tracker.writers import SQLiteTracker

WORKFLOW = """
    INSERT INTO states (name) VALUES ('waiting');
    INSERT INTO moves (source, target) VALUES ('open', 'waiting'), ('waiting', 'open');
"""


def add_state(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(WORKFLOW)


async def main() -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "issues.db"
        await SQLiteTracker.create(path)
        await anyio.to_thread.run_sync(add_state, path)
        async with SQLiteTracker(path) as tracker, ha.Runtime(ha.Catalog([tracker_write(tracker)])) as rt:
            await tracker.add("T-1", "The pump drips")
            for arguments in [
                '{"op": "comment", "id": "T-1", "body": "Which pump?"}',
                '{"op": "transition", "id": "T-1", "toState": "Waiting"}',
                '{"op": "close", "id": "T-1"}',
                '{"op": "transition", "id": "T-1", "toState": "open"}',
                '{"op": "close", "id": "T-1", "reason": "A new seal was sent."}',
            ]:
                print((await rt.invoke(NAME, arguments)).content)
            for change in await tracker.history("T-1"):
                print(f"{change.op:<10} {change.source or '':<7} {change.target or '':<7} {change.text}".rstrip())


if __name__ == "__main__":
    anyio.run(main)
