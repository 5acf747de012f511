"""Writes that wait for a lock, run out of time or are canceled: each is stored once or not at all, and says which.

A gate holds the worker thread before a statement, so that a test says where it is canceled.
"""

import asyncio
import sqlite3

import anyio
import pytest

from harbor_async import Catalog, Delivery, ErrorCategory, Outcome, Runtime, SideEffect, ToolCall, describe
from harbor_async.testing import cancel_sweep, wait_all_tasks_blocked
from harbor_async.tracker.writers import SQLiteTracker
from tests.unit.thread.gate import Gate
from tests.unit.tracker.sqlite_files import Hand, bodies, error_of, look, make_tracker

LOCKED = (ErrorCategory.API_REQUEST, Delivery.NOT_SENT)


@pytest.fixture
def gate():
    gate = Gate()
    yield gate
    gate.open()


@pytest.fixture
def hand(monkeypatch):
    return Hand(monkeypatch)


class Lock:
    """Another connection, as of another process, that has the file locked."""

    def __init__(self, tracker):
        self._connection = sqlite3.connect(tracker.path, isolation_level=None, check_same_thread=False)
        self._connection.execute("BEGIN IMMEDIATE")

    def release(self):
        self._connection.execute("ROLLBACK")
        self._connection.close()


def comment(tracker, number):
    return tracker.comment("T-1", f"{number:02}", key=str(number))


# --- locks ------------------------------------------------------------------------------------------------------


async def test_a_lock_is_waited_for(folder, hand):
    """A write that finds the file locked is done when the lock is gone."""
    async with await make_tracker(folder) as tracker:
        lock = Lock(tracker)
        tries = []

        def release(_):
            tries.append(1)
            if len(tries) == 4:
                lock.release()

        hand.at["BEGIN"] = release
        await comment(tracker, 1)
    assert (4, ["01"]) == (len(tries), bodies(tracker))


@pytest.mark.virtual
async def test_r113_a_lock_that_stays(folder):
    """Without a deadline a lock is waited for five seconds, then ``api_request`` and ``not_sent``: to be sent again."""
    async with await make_tracker(folder) as tracker:
        lock = Lock(tracker)
        start = anyio.current_time()
        ends = []

        async def write(number):
            ends.append((await error_of(comment(tracker, number)))[:2])

        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(write, number)
        assert [LOCKED] * 20 == ends
        assert pytest.approx(5.0) == anyio.current_time() - start
        lock.release()
        await comment(tracker, 1)
    assert ["01"] == bodies(tracker)


@pytest.mark.virtual(grace=0.1)
async def test_a_lock_at_a_deadline(folder):
    """Shortly before its deadline a write stops waiting, so that it can say that it was not sent; others wait on."""
    async with await make_tracker(folder) as tracker:
        lock = Lock(tracker)
        ends = []

        async def write(number):
            with anyio.fail_after(0.02):
                ends.append((await error_of(comment(tracker, number)))[:2])
            if len(ends) == 2:
                lock.release()

        async with anyio.create_task_group() as group:
            group.start_soon(write, 1)
            group.start_soon(comment, tracker, 2)
            group.start_soon(write, 3)
    assert [LOCKED] * 2 == ends
    assert ["02"] == bodies(tracker)


async def test_a_file_that_is_locked_whole(folder, hand):
    """Opening and reading, too, wait for a lock that keeps everybody out, and go on when it is gone."""
    tracker = await make_tracker(folder)
    with sqlite3.connect(tracker.path) as other:
        other.execute("PRAGMA journal_mode = DELETE")
    lock = sqlite3.connect(tracker.path, isolation_level=None, check_same_thread=False)
    lock.execute("BEGIN EXCLUSIVE")
    tries = []

    def release(_):
        tries.append(1)
        if len(tries) == 3:
            lock.execute("ROLLBACK")

    hand.at["PRAGMA"] = release
    assert "open" == (await tracker.get("T-1")).state
    other.close()
    lock.close()
    assert hand.is_closed()


@pytest.mark.parametrize("victim", [0, 1], ids=["first", "second"])
async def test_cancel_while_the_file_is_locked(folder, hand, gate, victim):
    """A write that is canceled while it waits for a lock leaves at once and is not stored; those beside it are."""
    gate.open()
    scopes = [anyio.CancelScope() for _ in range(4)]

    async def write(number):
        with scopes[number]:
            await comment(tracker, number)

    async with await make_tracker(folder) as tracker:
        lock = Lock(tracker)
        hand.at["BEGIN"] = lambda _: gate.hold()
        async with anyio.create_task_group() as group:
            for number in range(4):
                group.start_soon(write, number)
            await gate.came(2)
            scopes[victim].cancel()
            await gate.came(2)
            assert scopes[victim].cancelled_caught
            lock.release()
    assert [f"{number:02}" for number in range(4) if number != victim] == bodies(tracker)


async def test_all_that_wait_are_canceled(folder, hand, gate):
    """When all who wait for a lock are canceled at once nothing is stored, and the tracker goes on."""
    gate.open()
    async with await make_tracker(folder) as tracker:
        lock = Lock(tracker)
        hand.at["BEGIN"] = lambda _: gate.hold()
        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(comment, tracker, number)
            await gate.came(2)
            group.cancel_scope.cancel()
        lock.release()
        await comment(tracker, 20)
    assert ["20"] == bodies(tracker)


async def test_a_call_that_is_canceled_before_it_begins(folder):
    """Within a canceled scope nothing is opened, read or written."""
    tracker = await make_tracker(folder)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await comment(tracker, 1)
    assert scope.cancelled_caught
    assert [] == bodies(tracker)


# --- in mid-transaction -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("statement", ["BEGIN", "INSERT", "COMMIT"])
async def test_cancel_in_a_transaction(folder, hand, gate, statement):
    """A transaction that has begun is waited for, and its writes are stored and succeed; what waits is withdrawn."""
    ends = {}

    async def write(number):
        ends[number] = "canceled"
        await comment(tracker, number)
        ends[number] = "stored"

    async with await make_tracker(folder) as tracker:
        hand.at[statement] = lambda _: gate.hold()
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(write, 0)
                await gate.came()
                for number in range(1, 4):
                    group.start_soon(write, number)
                await wait_all_tasks_blocked()
                scope.cancel()
                with anyio.CancelScope(shield=True):
                    await wait_all_tasks_blocked()
                    assert "canceled" == ends[0]  # so far
                    gate.open()
    assert {0: "stored", 1: "canceled", 2: "canceled", 3: "canceled"} == ends
    assert ["00"] == bodies(tracker)


async def test_a_reader_sees_no_half_transaction(folder, hand, gate):
    """A read waits for a transaction of the same connection, and sees nothing of it before it is committed."""
    seen = []

    async def read():
        seen.append((await tracker.get("T-1")).state)

    async with await make_tracker(folder) as tracker:
        hand.at["COMMIT"] = lambda _: gate.hold()
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: tracker.close("T-1", "", key="1"))
            await gate.came()
            for _ in range(3):
                group.start_soon(read)
            await wait_all_tasks_blocked()
            assert [] == seen
            gate.open()
    assert ["closed"] * 3 == seen


async def test_cancel_of_one_in_the_transaction_of_another(folder, hand, gate):
    """A write that another task is committing is waited for as well, and succeeds though it was canceled."""
    stored = []
    committing = Gate()
    scopes = [anyio.CancelScope() for _ in range(3)]

    async def write(number):
        with scopes[number]:
            await comment(tracker, number)
            stored.append(number)

    async with await make_tracker(folder) as tracker:
        hand.at = {"BEGIN": lambda _: gate.hold(), "COMMIT": lambda _: committing.hold()}
        async with anyio.create_task_group() as group:
            for number in range(3):
                group.start_soon(write, number)
            await gate.came()
            await wait_all_tasks_blocked()  # all three stand in line
            gate.open()
            await committing.came()
            for scope in scopes:
                scope.cancel()
            await wait_all_tasks_blocked()
            assert [] == stored
            committing.open()
    assert [0, 1, 2] == sorted(stored)
    assert ["00", "01", "02"] == bodies(tracker)


async def test_a_refusal_outlives_a_cancel(folder, hand, gate):
    """A write that was canceled in the transaction that refuses it tells its refusal, and not only that it was cut."""
    async with await make_tracker(folder) as tracker:
        hand.at["COMMIT"] = lambda _: gate.hold()
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:

                async def cancel():
                    await gate.came()
                    scope.cancel()
                    gate.open()

                group.start_soon(cancel)
                category = (await error_of(tracker.transition("T-1", "in_review", key="1")))[0]
                assert ErrorCategory.VALIDATION == category


@pytest.mark.parametrize("way", ["handle", "deadline"])
async def test_a_call_of_a_runtime_that_is_cut_in_mid_commit(folder, hand, gate, way):
    """A call that its handle or its deadline ends while it commits is ``succeeded``, and told to be late."""
    async with await make_tracker(folder) as tracker:

        async def write(number: int) -> None:
            await comment(tracker, number)

        hand.at["COMMIT"] = lambda _: gate.hold()
        tool = describe(write, name="write", side_effect=SideEffect.EXTERNAL)
        async with Runtime(Catalog([tool])) as runtime:
            async with runtime.batch(timeout=0.05 if way == "deadline" else None) as batch:
                handle = batch.start(ToolCall("1", "write", {"number": 1}))
                await gate.came()
                if way == "handle":
                    handle.cancel()
                else:
                    await anyio.sleep_until(anyio.current_time() + 0.06)
                gate.open()
            result = batch.results[0]
    assert (Outcome.SUCCEEDED, True, ["01"]) == (result.outcome, result.late, bodies(tracker))


# --- task.cancel() ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("statement", ["BEGIN", "COMMIT"])
@pytest.mark.parametrize("count", [1, 2], ids=["once", "twice"])
@pytest.mark.parametrize("debug", [False, True], ids=["", "debug"])
def test_native_cancel_in_a_transaction(folder, hand, gate, statement, count, debug):
    """``task.cancel()`` leaves as itself, after the transaction has ended, and the connection is closed after that."""

    async def main():
        tracker = await make_tracker(folder)
        hand.at[statement] = lambda _: gate.hold()
        tasks = [asyncio.create_task(comment(tracker, number)) for number in range(3)]
        await gate.came()
        for _ in range(count):
            for task in tasks:
                task.cancel()
            await asyncio.sleep(0.01)
        assert not tasks[0].done()
        gate.open()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert [asyncio.CancelledError] * 3 == [type(end) for end in ends]
        assert hand.is_closed()
        assert bodies(tracker) in (["00"], ["00", "01", "02"])
        hand.at.clear()
        await comment(tracker, 0)
        assert 1 == bodies(tracker).count("00")

    asyncio.run(main(), debug=debug)


@pytest.mark.parametrize("moment", ["opening", "closing"])
def test_native_cancel_while_a_file_is_opened_or_closed(folder, hand, gate, moment):
    """``task.cancel()`` while a thread opens or closes the file leaves no connection open."""

    async def main():
        tracker = await make_tracker(folder)
        if moment == "opening":
            hand.at["PRAGMA"] = lambda _: gate.hold()
        else:
            hand.at["COMMIT"] = lambda _: loop.call_soon_threadsafe(task.cancel)
        loop = asyncio.get_running_loop()
        task = asyncio.create_task(comment(tracker, 1))
        if moment == "opening":
            await gate.came()
            task.cancel()
            await asyncio.sleep(0.01)
            assert not task.done()
            gate.open()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert hand.is_closed()

    asyncio.run(main())


# --- everywhere -------------------------------------------------------------------------------------------------

WAYS = [{"backend": "asyncio"}, {"backend": "asyncio", "native": True}, {"backend": "trio"}]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(map(str, way.values())))
@pytest.mark.parametrize("is_entered", [False, True], ids=["calls", "block"])
def test_a_cut_at_every_step(folder, hand, way, is_entered):
    """Canceled at any step: what was answered is stored, nothing is stored twice, and nothing is left open."""
    tracker = anyio.run(make_tracker, folder)
    answered = set()
    runs = []

    async def write(number):
        await tracker.comment("T-1", f"{len(runs)}-{number}", key=f"{len(runs)}-{number}")
        answered.add(f"{len(runs)}-{number}")

    async def write_all():
        await write(0)
        async with anyio.create_task_group() as group:
            for number in range(1, 4):
                group.start_soon(write, number)

    async def scenario():
        runs.append(1)
        try:
            if is_entered:
                async with tracker:
                    await write_all()
            else:
                await write_all()
        finally:
            assert hand.is_closed()
        return True

    def check(cut):
        stored = bodies(tracker)
        assert len(set(stored)) == len(stored)
        assert answered <= set(stored)
        assert cut.canceled == (cut.value is None)

    cuts = cancel_sweep(scenario, check=check, **way)
    assert cuts > 15
    assert 4 == sum(body.startswith(f"{len(runs)}-") for body in bodies(tracker))
    assert [("ok",)] == look(tracker, "PRAGMA integrity_check")


async def test_a_tracker_after_its_loop_was_left_in_a_hurry(folder):
    """A block that is left by an exception while others write closes the file when the last of them has ended."""
    tracker = await make_tracker(folder)
    with pytest.raises(ExceptionGroup):  # noqa: PT012 - what is raised inside leaves as a group
        async with anyio.create_task_group() as group, tracker:
            for number in range(10):
                group.start_soon(comment, tracker, number)
            await anyio.lowlevel.checkpoint()
            raise ValueError
    assert len(set(bodies(tracker))) == len(bodies(tracker))
    async with SQLiteTracker(tracker.path) as again:
        await comment(again, 0)
    assert 1 == bodies(tracker).count("00")
