"""What the SQLite tracker does to its issues."""

import sqlite3
from datetime import UTC, datetime, timedelta

import anyio
import pytest

from harbor_async import Delivery, ErrorCategory
from harbor_async.tracker import (
    CloseWriter,
    CommentFinder,
    CommentWriter,
    Issue,
    IssueReader,
    LinkPRWriter,
    TransitionWriter,
)
from harbor_async.tracker.writers import SQLiteTracker
from tests.unit.tracker.sqlite_files import bodies, edit, error_of, look, make_tracker, steps

REFUSED = Delivery.REFUSED
WRITES = [
    ("close", "done", "later"),
    ("transition", "in_progress", "closed"),
    ("comment", "hello", "hello again"),
    ("link_pr", "https://example.org/1", "https://example.org/2"),
]
each_write = pytest.mark.parametrize(("op", "text", "other"), WRITES, ids=[write[0] for write in WRITES])


def test_it_can_do_everything():
    """The tracker satisfies each protocol of a writer and of a reader."""
    protocols = (CloseWriter, TransitionWriter, CommentWriter, LinkPRWriter, CommentFinder, IssueReader)
    assert [] == [protocol for protocol in protocols if not isinstance(SQLiteTracker("issues.db"), protocol)]


async def test_life_of_an_issue(folder):
    """Each write shows in the issue and in its history, in the order in which they were made, with its time."""
    async with await make_tracker(folder) as tracker:
        await tracker.transition("T-1", "in_progress", key="1")
        await tracker.comment("T-1", "on it", key="2")
        await tracker.link_pr("T-1", "https://example.org/2", key="3")
        await tracker.link_pr("T-1", "https://example.org/1", key="4")
        await tracker.close("T-1", "mended", key="5")
        issue = await tracker.get("T-1")
        history = await tracker.history("T-1")
    links = ("https://example.org/2", "https://example.org/1")
    assert Issue("T-1", "title of T-1", "closed", is_closed=True, links=links) == issue
    assert [
        ("add", None, "open", ""),
        ("transition", "open", "in_progress", ""),
        ("comment", None, None, "on it"),
        ("link_pr", None, None, "https://example.org/2"),
        ("link_pr", None, None, "https://example.org/1"),
        ("close", "in_progress", "closed", "mended"),
    ] == steps(history)
    times = [change.at for change in history]
    assert sorted(times) == times
    assert timedelta(0) <= datetime.now(UTC) - times[0] < timedelta(minutes=1)


async def test_list_is_in_order_of_age(folder):
    """``list`` returns all issues, the oldest first, and none of a new tracker."""
    async with await SQLiteTracker.create(folder / "issues.db") as tracker:
        assert () == await tracker.list()
        for id in ("Z", "A", "M"):
            await tracker.add(id, id)
        await tracker.link_pr("A", "https://example.org/2", key="1")
        await tracker.link_pr("A", "https://example.org/1", key="2")
        await tracker.close("M", "", key="3")
        links = ("https://example.org/2", "https://example.org/1")
        assert (
            Issue("Z", "Z", "open"),
            Issue("A", "A", "open", links=links),
            Issue("M", "M", "closed", is_closed=True),
        ) == await tracker.list()


@each_write
async def test_unknown_id(folder, op, text, other):
    """A write on an issue that is not there is ``not_found``, and its key stays free."""
    async with await make_tracker(folder) as tracker:
        category, delivery, _ = await error_of(getattr(tracker, op)("T-2", text, key="1"))
        assert (ErrorCategory.NOT_FOUND, REFUSED) == (category, delivery)
        await tracker.add("T-2", "late")
        await getattr(tracker, op)("T-2", text, key="1")
        assert 2 == len(await tracker.history("T-2"))


async def test_unknown_id_of_readers(folder):
    """``get`` and ``history`` of an unknown issue are ``not_found``, its id in another letter case included."""
    async with await make_tracker(folder) as tracker:
        for read in (tracker.get, tracker.history):
            category, delivery, _ = await error_of(read("t-1"))
            assert (ErrorCategory.NOT_FOUND, REFUSED) == (category, delivery)


async def test_an_id_is_added_once(folder):
    """Adding an issue of a known id is a ``conflict``, and the first one stays."""
    async with await make_tracker(folder) as tracker:
        category, delivery, _ = await error_of(tracker.add("T-1", "other"))
        assert (ErrorCategory.CONFLICT, REFUSED) == (category, delivery)
        assert (Issue("T-1", "title of T-1", "open"),) == await tracker.list()


# --- moves ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("to_state", ["in_progress", "IN_PROGRESS", "In_Progress"])
async def test_r107_states_match_in_any_letter_case(folder, to_state):
    """A state is found in any letter case, and the issue gets it as the file writes it."""
    async with await make_tracker(folder) as tracker:
        await tracker.transition("T-1", to_state, key="1")
        assert "in_progress" == (await tracker.get("T-1")).state


@pytest.mark.parametrize("to_state", ["in_review", "On Hold", "closd", "", "in_progress "])
async def test_r107_refused_moves_list_the_allowed_ones(folder, to_state):
    """An unknown state, or one without a move to it, is ``validation``; the message lists the moves that there are."""
    async with await make_tracker(folder) as tracker:
        category, delivery, message = await error_of(tracker.transition("T-1", to_state, key="1"))
        assert (ErrorCategory.VALIDATION, REFUSED) == (category, delivery)
        assert message.endswith(": from 'open' the issue can go to 'in_progress', 'closed'")
        assert [("add", None, "open", "")] == steps(await tracker.history("T-1"))


@each_write
async def test_done_already_is_success(folder, op, text, other):
    """Closing, moving or linking what is there already succeeds and leaves no trace; a comment is a new one."""
    async with await make_tracker(folder) as tracker:
        await getattr(tracker, op)("T-1", text, key="1")
        before = await tracker.history("T-1")
        await getattr(tracker, op)("T-1", text, key="2")
        assert (3 if op == "comment" else 2) == len(await tracker.history("T-1"))
        assert before == (await tracker.history("T-1"))[:2]


async def test_a_closed_issue_keeps_its_first_reason(folder):
    """A second close with another reason succeeds, and changes nothing."""
    async with await make_tracker(folder) as tracker:
        await tracker.close("T-1", "mended", key="1")
        await tracker.close("T-1", "stale", key="2")
        assert ("close", "open", "closed", "mended") == steps(await tracker.history("T-1"))[-1]


async def test_the_workflow_is_in_the_file(folder):
    """States and moves that are changed in the file hold at once, without opening it anew."""
    async with await make_tracker(folder) as tracker:
        edit(
            tracker,
            """
            INSERT INTO states (position, name, is_closed) VALUES (5, 'wontfix', 1), (6, 'Überfällig', 0);
            INSERT INTO moves VALUES ('open', 'Überfällig'), ('Überfällig', 'wontfix');
            UPDATE states SET name = 'backlog' WHERE name = 'open';
            """,
        )
        assert "backlog" == (await tracker.get("T-1")).state
        await tracker.transition("T-1", "ÜBERFÄLLIG", key="1")
        assert "Überfällig" == (await tracker.get("T-1")).state
        await tracker.close("T-1", "no", key="2")
        assert Issue("T-1", "title of T-1", "wontfix", is_closed=True) == await tracker.get("T-1")
        await tracker.add("T-2", "new")
        assert "backlog" == (await tracker.get("T-2")).state


async def test_a_close_takes_the_first_closed_state_that_it_can_reach(folder):
    """Of several closed states that there is a move to, a close takes the one whose position is first."""
    async with await make_tracker(folder) as tracker:
        edit(
            tracker,
            """
            INSERT INTO states (position, name, is_closed) VALUES (-2, 'out of reach', 1), (-1, 'done', 1);
            INSERT INTO moves VALUES ('open', 'done');
            """,
        )
        await tracker.close("T-1", "", key="1")
        assert "done" == (await tracker.get("T-1")).state


async def test_a_workflow_without_a_way_to_close(folder):
    """Where no closed state can be reached, a close is ``validation`` and lists the moves that there are."""
    async with await make_tracker(folder) as tracker:
        edit(tracker, "DELETE FROM moves WHERE target = 'closed'")
        category, delivery, message = await error_of(tracker.close("T-1", "", key="1"))
        assert (ErrorCategory.VALIDATION, REFUSED) == (category, delivery)
        assert message.endswith(": from 'open' the issue can go to 'in_progress'")
        edit(tracker, "DELETE FROM moves")
        assert (await error_of(tracker.close("T-1", "", key="1")))[2].endswith("the issue can go to no other")


async def test_states_that_differ_in_letter_case_alone(folder):
    """Of two states that differ in letter case the exact one is meant; a third way to write them is ``validation``."""
    async with await make_tracker(folder) as tracker:
        edit(
            tracker,
            """
            INSERT INTO states (name) VALUES ('Hold'), ('hold');
            INSERT INTO moves VALUES ('open', 'Hold'), ('open', 'hold');
            """,
        )
        category, _, message = await error_of(tracker.transition("T-1", "HOLD", key="1"))
        assert (ErrorCategory.VALIDATION, True) == (category, message.startswith("there are several such states"))
        await tracker.transition("T-1", "hold", key="2")
        assert "hold" == (await tracker.get("T-1")).state


async def test_a_tracker_without_states(folder):
    """A file whose workflow was emptied takes no issue, and says why."""
    async with await SQLiteTracker.create(folder / "issues.db") as tracker:
        edit(tracker, "DELETE FROM states")
        assert (ErrorCategory.UNSUPPORTED, REFUSED, "the tracker has no states") == await error_of(
            tracker.add("T-1", "x")
        )


# --- keys -------------------------------------------------------------------------------------------------------


@each_write
async def test_a_key_is_done_once(folder, op, text, other):
    """The same write with the same key is done once, also when the issue has moved on, and in another session."""
    tracker = await make_tracker(folder)
    for _ in range(3):
        await getattr(tracker, op)("T-1", text, key="1")
    assert 2 == len(await tracker.history("T-1"))
    if op in {"close", "transition"}:
        await tracker.transition("T-1", "closed", key="2")
        await tracker.transition("T-1", "open", key="3")
    before = await tracker.history("T-1")
    await getattr(tracker, op)("T-1", text, key="1")
    assert before == await tracker.history("T-1")


@each_write
@pytest.mark.parametrize("change", ["id", "text", "op"])
async def test_r115_a_key_is_of_one_write(folder, op, text, other, change):
    """A key that was used for another issue, text or operation is a ``conflict``, and nothing is changed."""
    async with await make_tracker(folder, "T-1", "T-2") as tracker:
        await getattr(tracker, op)("T-1", text, key="1")
        again = tracker.close if op != "close" else tracker.comment
        write = {
            "id": lambda: getattr(tracker, op)("T-2", text, key="1"),
            "text": lambda: getattr(tracker, op)("T-1", other, key="1"),
            "op": lambda: again("T-1", text, key="1"),
        }[change]
        category, delivery, _ = await error_of(write())
        assert (ErrorCategory.CONFLICT, REFUSED) == (category, delivery)
        assert [2, 1] == [len(await tracker.history(id)) for id in ("T-1", "T-2")]


async def test_a_key_that_had_nothing_to_do_is_kept(folder):
    """A close of a closed issue takes its key: repeated after the issue was opened again, it does not close it."""
    async with await make_tracker(folder) as tracker:
        await tracker.close("T-1", "", key="1")
        await tracker.close("T-1", "", key="2")
        await tracker.transition("T-1", "open", key="3")
        await tracker.close("T-1", "", key="2")
        assert "open" == (await tracker.get("T-1")).state


async def test_a_refused_write_leaves_its_key_free(folder):
    """A key whose write was refused can be used again, for what is allowed."""
    async with await make_tracker(folder) as tracker:
        await error_of(tracker.transition("T-1", "in_review", key="1"))
        await tracker.transition("T-1", "in_progress", key="1")
        assert "in_progress" == (await tracker.get("T-1")).state


async def test_find_comment(folder):
    """A comment is found by its key, on its own issue alone; the key of another operation is none of a comment."""
    async with await make_tracker(folder, "T-1", "T-2") as tracker:
        await tracker.comment("T-1", "hello", key="1")
        await tracker.close("T-1", "", key="2")
        asked = [("T-1", "1"), ("T-2", "1"), ("T-1", "2"), ("T-1", "3"), ("T-3", "1")]
        assert [True, False, False, False, False] == [await tracker.find_comment(id, key=key) for id, key in asked]


# --- texts ------------------------------------------------------------------------------------------------------

ODD = ["'; DROP TABLE issues; --", "Ünïcode 🙂", "a\nb\tc", "a\0b", " x ", "%_?", "\u202e"]


@pytest.mark.parametrize("text", ODD, ids=ascii)
async def test_texts_are_kept_as_they_are(folder, text):
    """Ids, titles, bodies, reasons, URLs and keys of any characters come back as they were written."""
    async with await SQLiteTracker.create(folder / "issues.db") as tracker:
        await tracker.add(text, text)
        await tracker.comment(text, text, key=text)
        await tracker.link_pr(text, text, key=f"{text}2")
        await tracker.close(text, text, key=f"{text}3")
        assert Issue(text, text, "closed", is_closed=True, links=(text,)) == await tracker.get(text)
        assert ["", text, text, text] == [change.text for change in await tracker.history(text)]
        assert await tracker.find_comment(text, key=text)


@pytest.mark.parametrize("text", ["\ud83d", None, 5, b"x"], ids=repr)
async def test_what_is_no_text_is_refused(folder, text):
    """Half of a surrogate pair, and what is no text at all, is ``validation`` wherever it stands."""
    async with await make_tracker(folder) as tracker:
        calls = [
            tracker.add(text, "x"),
            tracker.add("T-2", text),
            tracker.comment(text, "x", key="1"),
            tracker.comment("T-1", text, key="1"),
            tracker.comment("T-1", "x", key=text),
            tracker.get(text),
            tracker.history(text),
            tracker.find_comment(text, key="1"),
            tracker.find_comment("T-1", key=text),
        ]
        ends = {(await error_of(call))[:2] for call in calls}
        assert {(ErrorCategory.VALIDATION, Delivery.NOT_SENT)} == ends
        assert 1 == len(await tracker.history("T-1"))


async def test_blank_texts_are_refused_by_the_file(folder):
    """The file itself refuses a blank id, title, body and URL, as ``validation``."""
    async with await make_tracker(folder) as tracker:
        calls = [
            tracker.add("", "x"),
            tracker.add("T-2", " "),
            tracker.comment("T-1", "", key="1"),
            tracker.link_pr("T-1", " ", key="2"),
        ]
        assert {(ErrorCategory.VALIDATION, REFUSED)} == {(await error_of(call))[:2] for call in calls}
        assert [(1, 1)] == look(tracker, "SELECT (SELECT count(*) FROM issues), (SELECT count(*) FROM history)")


async def test_a_rule_of_the_users_own(folder):
    """A trigger that the user has put into the file can refuse a write, and its words come out."""
    async with await make_tracker(folder, "T-1", "T-2") as tracker:
        edit(
            tracker,
            """
            CREATE TRIGGER frozen BEFORE INSERT ON comments WHEN NEW.issue = 'T-1'
            BEGIN SELECT RAISE(ROLLBACK, 'T-1 is frozen'); END
            """,
        )
        await tracker.comment("T-2", "hello", key="1")
        category, delivery, message = await error_of(tracker.comment("T-1", "hello", key="2"))
        assert (ErrorCategory.VALIDATION, REFUSED, True) == (category, delivery, "T-1 is frozen" in message)
        assert ["hello"] == bodies(tracker)


# --- many at once -----------------------------------------------------------------------------------------------


async def test_writes_at_once_do_not_harm_each_other(folder):
    """Of many writes at once, some of which are refused, each has its own answer and each good one is stored once."""
    answers = {}

    async def write(number):
        call = tracker.comment("T-1" if number % 3 else "T-9", f"{number:03}", key=str(number))
        answers[number] = await error_of(call) if not number % 3 else await call

    async with await make_tracker(folder) as tracker, anyio.create_task_group() as group:
        for number in range(600):
            group.start_soon(write, number)
    assert [f"{number:03}" for number in range(600) if number % 3] == bodies(tracker)
    assert {ErrorCategory.NOT_FOUND} == {answers[number][0] for number in range(0, 600, 3)}
    assert {None} == {answers[number] for number in range(600) if number % 3}


async def test_writes_at_once_are_done_in_their_order(folder):
    """Writes that begin one after the other, and wait together, are stored in the order in which they began."""
    begun = []

    async def write(number):
        begun.append(str(number))
        await tracker.comment("T-1", str(number), key=str(number))

    async with await make_tracker(folder) as tracker, anyio.create_task_group() as group:
        for number in range(300):
            group.start_soon(write, number)
    assert 300 == len(begun)
    assert begun == [body for (body,) in look(tracker, "SELECT body FROM comments ORDER BY seq")]


async def test_one_key_at_once(folder):
    """The same write many times at once is done once, and each of them succeeds."""
    async with await make_tracker(folder) as tracker, anyio.create_task_group() as group:
        for _ in range(50):
            group.start_soon(lambda: tracker.comment("T-1", "hello", key="1"))
    assert ["hello"] == bodies(tracker)


async def test_two_trackers_of_one_file_at_once(folder):
    """Two connections write one file at once; each waits for the other's lock, and nothing is lost."""
    first = await make_tracker(folder)
    second = SQLiteTracker(first.path)

    async def write(tracker, number):
        for index in range(20):
            await tracker.comment("T-1", f"{number}-{index:02}", key=f"{number}-{index}")

    async with first, second, anyio.create_task_group() as group:
        for number in range(4):
            group.start_soon(write, (first, second)[number % 2], number)
    assert [f"{number}-{index:02}" for number in range(4) for index in range(20)] == bodies(first)


async def test_it_can_be_read_while_another_writes(folder):
    """A reader does not wait for a transaction of another connection, and sees what was committed before it."""
    async with await make_tracker(folder) as tracker:
        other = sqlite3.connect(tracker.path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        other.execute("UPDATE issues SET title = 'other'")
        assert "title of T-1" == (await tracker.get("T-1")).title
        other.execute("COMMIT")
        other.close()
        assert "other" == (await tracker.get("T-1")).title
