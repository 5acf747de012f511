"""Making, opening and closing a tracker's file, and what is said of a file or a disk that is not as it should be."""

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from harbor_async import Delivery, ErrorCategory
from harbor_async.tracker.writers import SQLiteTracker
from tests.unit.tracker.sqlite_files import Hand, bodies, edit, error_of, fail, is_closed, look, make_tracker

NOT_SENT = Delivery.NOT_SENT


@pytest.fixture
def hand(monkeypatch):
    return Hand(monkeypatch)


async def test_create_makes_a_whole_file(folder):
    """A new file stands alone in its folder, in WAL mode, and may be read by whom the system lets."""
    await SQLiteTracker.create(folder / "issues.db")
    assert ["issues.db"] == [path.name for path in folder.iterdir()]
    with closing(sqlite3.connect(folder / "issues.db")) as connection:
        assert [("wal",), ("ok",)] == [
            *connection.execute("PRAGMA journal_mode"),
            *connection.execute("PRAGMA integrity_check"),
        ]
    mask = os.umask(0)
    os.umask(mask)
    assert 0o644 & ~mask == stat.S_IMODE((folder / "issues.db").stat().st_mode)


@pytest.mark.parametrize("name", ["issues.db", "issues.db-wal", "issues.db-journal"])
async def test_create_takes_no_name_that_is_taken(folder, name):
    """A file that is there is left as it is, and so is one whose log was left behind; both are a ``conflict``."""
    (folder / name).write_text("precious")
    category, delivery, message = await error_of(SQLiteTracker.create(folder / "issues.db"))
    assert (ErrorCategory.CONFLICT, Delivery.REFUSED, True) == (category, delivery, name in message)
    assert [(name, "precious")] == [(path.name, path.read_text()) for path in folder.iterdir()]


async def test_create_twice_at_once(folder):
    """Of several that make one file at once one does, the others find a ``conflict``, and the file is whole."""
    ends = []

    async def create():
        try:
            await SQLiteTracker.create(folder / "issues.db")
        except Exception as exc:  # noqa: BLE001 - compared below
            ends.append(exc.category)
        else:
            ends.append(None)
        await SQLiteTracker(folder / "issues.db").list()

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(create)
    assert [None, *[ErrorCategory.CONFLICT] * 4] == sorted(ends, key=lambda end: end is not None)
    # Two connections that are closed in the same moment may each leave the log to the other.
    assert {"issues.db"} == {path.name for path in folder.iterdir()} - {"issues.db-wal", "issues.db-shm"}


async def test_create_in_no_folder(folder):
    """In a folder that is not there no file can be made, and nothing is left."""
    category, delivery, _ = await error_of(SQLiteTracker.create(folder / "missing" / "issues.db"))
    assert (ErrorCategory.AUTH_FAILED, NOT_SENT) == (category, delivery)
    assert [] == list(folder.iterdir())


@pytest.mark.parametrize("name", ["a b%20c?mode=memory#.db", "Ünïcode 🙂.db", ":memory:", "file:x.db", "'.db"])
async def test_odd_names(folder, name):
    """A file may have any name that the system allows; none is taken for a URI or for memory."""
    tracker = await make_tracker(folder, name=name)
    assert [name] == [path.name for path in folder.iterdir()]
    assert "open" == (await SQLiteTracker(str(tracker.path)).get("T-1")).state


async def test_relative_path(folder, monkeypatch):
    """A relative path is meant from where the program is."""
    monkeypatch.chdir(folder)
    await SQLiteTracker.create("issues.db")
    assert () == await SQLiteTracker(Path("issues.db")).list()


async def test_missing_file(folder):
    """A file that is not there is ``not_found``, told by its name, and is not made by accident."""
    tracker = SQLiteTracker(folder / "issues.db")
    for call in (tracker.__aenter__, tracker.list, lambda: tracker.close("T-1", "", key="1")):
        category, delivery, message = await error_of(call())
        assert (ErrorCategory.NOT_FOUND, NOT_SENT, True) == (category, delivery, "issues.db" in message)
    assert [] == list(folder.iterdir())


def other_database(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE issues (id)")


def newer_version(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA application_id = {0x48425254}")
        connection.execute("PRAGMA user_version = 2")


NO_TRACKERS = {
    "folder": (Path.mkdir, "no file"),
    "empty": (Path.touch, "not a tracker's"),
    "text": (lambda path: path.write_text("issues: none\n" * 100), "no SQLite database"),
    "database": (other_database, "not a tracker's"),
    "newer": (newer_version, "schema version 2"),
}


@pytest.mark.parametrize("kind", NO_TRACKERS)
async def test_other_files(folder, kind):
    """What is no tracker's file, or a newer release's, is ``unsupported``; it is told why, and left as it is."""
    make, words = NO_TRACKERS[kind]
    path = folder / "issues.db"
    make(path)
    before = path.is_file() and path.read_bytes()
    tracker = SQLiteTracker(path)
    for call in (tracker.list, lambda: tracker.comment("T-1", "hello", key="1")):
        category, delivery, message = await error_of(call())
        assert (ErrorCategory.UNSUPPORTED, NOT_SENT, True) == (category, delivery, words in message)
    assert before == (path.is_file() and path.read_bytes())


async def test_damaged_file(folder):
    """A file whose pages were overwritten is ``unsupported``: damaged."""
    tracker = await make_tracker(folder, *(f"T-{number}" for number in range(300)))
    with tracker.path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (tracker.path.stat().st_size - 4096))
    for call in (tracker.list, lambda: tracker.comment("T-1", "hello", key="1")):
        category, delivery, message = await error_of(call())
        assert (ErrorCategory.UNSUPPORTED, NOT_SENT, True) == (category, delivery, "damaged" in message)


async def test_a_newer_sqlite_is_asked_for(folder, monkeypatch):
    """A Python whose SQLite has no strict tables is told so, before anything is made."""
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))
    for call in (SQLiteTracker.create(folder / "issues.db"), SQLiteTracker(folder / "issues.db").list()):
        category, delivery, message = await error_of(call)
        assert (ErrorCategory.UNSUPPORTED, NOT_SENT, True) == (category, delivery, "3.37" in message)
    assert [] == list(folder.iterdir())


# --- disks ------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("is_folder", [False, True])
async def test_file_without_permission(folder, is_folder):
    """Where file or folder may not be written to, a write is ``auth_failed``, and nothing is stored."""
    tracker = await make_tracker(folder)
    place, mode = (folder, 0o500) if is_folder else (tracker.path, 0o400)
    before = place.stat().st_mode
    place.chmod(mode)
    category, delivery, _ = await error_of(tracker.comment("T-1", "hello", key="1"))
    place.chmod(before)
    assert (ErrorCategory.AUTH_FAILED, NOT_SENT) == (category, delivery)
    assert [] == bodies(tracker)


async def test_file_that_is_only_to_be_read(folder, hand):
    """A connection that may not write, as on a disk that is only to be read, reads, and a write is ``auth_failed``."""
    async with await make_tracker(folder) as tracker:
        hand.opened[-1].execute("PRAGMA query_only = ON")
        for _ in range(2):
            category, delivery, _ = await error_of(tracker.comment("T-1", "hello", key="1"))
            assert (ErrorCategory.AUTH_FAILED, NOT_SENT) == (category, delivery)
        assert "open" == (await tracker.get("T-1")).state
        assert [] == bodies(tracker)


async def test_full_file(folder, hand):
    """A write for which there is no room is ``api_request``; those beside it, and later ones, are stored."""
    async with await make_tracker(folder) as tracker:
        (pages,) = hand.opened[-1].execute("PRAGMA page_count").fetchone()
        hand.opened[-1].execute(f"PRAGMA max_page_count = {pages + 3}")
        ends = {}

        async def write(body):
            try:
                await tracker.comment("T-1", body, key=body[:9])
            except Exception as exc:  # noqa: BLE001 - compared below
                ends[body[:9]] = exc.category, exc.delivery

        async with anyio.create_task_group() as group:
            for body in ("first", "too large" * 10_000, "last"):
                group.start_soon(write, body)
        assert {"too large": (ErrorCategory.API_REQUEST, NOT_SENT)} == ends
        await tracker.comment("T-1", "later", key="later")
        assert ["first", "last", "later"] == bodies(tracker)


@pytest.mark.parametrize(
    ("code", "category"),
    [
        (sqlite3.SQLITE_FULL, ErrorCategory.API_REQUEST),
        (sqlite3.SQLITE_IOERR_WRITE, ErrorCategory.API_REQUEST),
        (sqlite3.SQLITE_NOMEM, ErrorCategory.UNKNOWN),
    ],
)
@pytest.mark.parametrize(("statement", "delivery"), [("BEGIN", NOT_SENT), ("COMMIT", Delivery.UNKNOWN)])
async def test_disk_that_fails(folder, hand, statement, delivery, code, category):
    """Before the commit a failing disk has surely stored nothing; a commit that fails may be found by a recovery."""
    async with await make_tracker(folder) as tracker:
        hand.at[statement] = fail(code, "no luck")
        assert (category, delivery) == (await error_of(tracker.comment("T-1", "hello", key="1")))[:2]
        hand.at.clear()
        assert [] == bodies(tracker)
        await tracker.comment("T-1", "hello", key="1")
        assert ["hello"] == bodies(tracker)


async def test_a_commit_that_finds_a_lock(folder, hand):
    """A commit that a lock keeps from beginning has surely stored nothing: ``not_sent``."""
    async with await make_tracker(folder) as tracker:
        hand.at["COMMIT"] = fail(sqlite3.SQLITE_BUSY, "database is locked")
        ends = (ErrorCategory.API_REQUEST, NOT_SENT)
        assert ends == (await error_of(tracker.comment("T-1", "hello", key="1")))[:2]
        assert [] == bodies(tracker)


async def test_a_failed_commit_is_told_to_all_in_it(folder, hand):
    """Each write of a transaction whose commit fails hears of it, save those that were refused before."""
    ends = []
    async with await make_tracker(folder) as tracker:
        hand.at["COMMIT"] = fail(sqlite3.SQLITE_IOERR_FSYNC, "no luck")

        async def write(number):
            call = tracker.comment("T-1" if number else "T-2", str(number), key=str(number))
            ends.append((number, *(await error_of(call))[:2]))

        async with anyio.create_task_group() as group:
            for number in range(5):
                group.start_soon(write, number)
        hand.at.clear()
        assert [
            (0, ErrorCategory.NOT_FOUND, Delivery.REFUSED),
            *((number, ErrorCategory.API_REQUEST, Delivery.UNKNOWN) for number in range(1, 5)),
        ] == sorted(ends)
        assert [] == bodies(tracker)


async def test_a_write_that_breaks_the_transaction_breaks_no_other(folder):
    """When a rule of the file rolls a whole transaction back, the writes beside the guilty one are stored."""
    ends = {}
    async with await make_tracker(folder) as tracker:
        edit(
            tracker,
            """
            CREATE TRIGGER rude BEFORE INSERT ON comments WHEN NEW.body LIKE '%3'
            BEGIN SELECT RAISE(ROLLBACK, 'no threes'); END
            """,
        )

        async def write(number):
            try:
                await tracker.comment("T-1", f"{number:02}", key=str(number))
            except Exception as exc:  # noqa: BLE001 - compared below
                ends[number] = exc.category, exc.delivery

        async with anyio.create_task_group() as group:
            for number in range(30):
                group.start_soon(write, number)
    assert dict.fromkeys((3, 13, 23), (ErrorCategory.VALIDATION, Delivery.REFUSED)) == ends
    assert [f"{number:02}" for number in range(30) if number % 10 != 3] == bodies(tracker)


# --- connections ------------------------------------------------------------------------------------------------


async def test_a_block_has_one_connection(folder, hand):
    """Within ``async with`` all calls share one connection; after it none is open, and the log is gone."""
    tracker = await make_tracker(folder)
    count = len(hand.opened)
    async with tracker:
        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(lambda number=number: tracker.comment("T-1", "hello", key=str(number)))
        async with tracker:
            await tracker.list()
        assert not is_closed(hand.opened[-1])
    assert count + 1 == len(hand.opened)
    assert hand.is_closed()
    assert ["issues.db"] == [path.name for path in folder.iterdir()]


async def test_commits_are_synced(folder, hand):
    """The tracker's connections wait for the disk at each commit: ``synchronous`` is FULL, which is 2."""
    async with await make_tracker(folder):
        assert [(2,)] == hand.opened[-1].execute("PRAGMA synchronous").fetchall()


async def test_without_a_block_calls_at_once_share_a_connection(folder, hand):
    """Without ``async with`` the first call opens the file, and after the last none has it open."""
    tracker = await make_tracker(folder)
    count = len(hand.opened)
    async with anyio.create_task_group() as group:
        for number in range(50):
            group.start_soon(lambda number=number: tracker.comment("T-1", "hello", key=str(number)))
    assert count + 1 == len(hand.opened)
    assert hand.is_closed()
    assert 50 == len(bodies(tracker))
    assert "open" == (await tracker.get("T-1")).state
    assert hand.is_closed()


async def test_a_file_that_cannot_be_opened_leaves_no_connection(folder, hand):
    """A file that is refused when it is opened is closed again, however often it is tried."""
    other_database(folder / "issues.db")
    tracker = SQLiteTracker(folder / "issues.db")
    count = len(hand.opened)
    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(error_of, tracker.list())
    assert len(hand.opened) > count
    assert hand.is_closed()


def test_one_tracker_on_several_loops(folder):
    """One object serves loops of both backends one after the other, and keeps nothing of any."""
    tracker = anyio.run(make_tracker, folder)

    async def use(number):
        async with tracker:
            await tracker.comment("T-1", str(number), key=str(number))

    for number, backend in enumerate(["asyncio", "trio", "asyncio", "trio"]):
        anyio.run(use, number, backend=backend)
    assert ["0", "1", "2", "3"] == bodies(tracker)
    assert [("ok",)] == look(tracker, "PRAGMA integrity_check")
