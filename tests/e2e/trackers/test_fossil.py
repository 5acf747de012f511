"""Tickets of real Fossil repositories."""

import shutil
import sqlite3
import sys
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path

import anyio
import pytest
from anyio.to_thread import run_sync

from harbor_async import Catalog, Runtime, ToolCall
from harbor_async.testing import WriterConformance
from harbor_async.tracker import TrackerError, tracker_write
from harbor_async.tracker.writers.command import ProcessTransport
from harbor_async.tracker.writers.fossil import Fossil
from tests.e2e.trackers import repository
from tests.e2e.trackers.repository import USER

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="process groups"),
    pytest.mark.timeout(60),  # a test runs up to a hundred programs
]
MISSING = "0" * 40


@pytest.fixture
def ticket():
    """Return the path of a repository, and the id of its one ticket."""
    path, id = repository.fresh()
    yield path, id
    Path(path).unlink()


def make(path, **options):
    transport = ProcessTransport(environment={"HOME": repository.home()})
    return Fossil(path, **{"user": USER, "transport": transport, **options})


class TestConformance(WriterConformance):
    state = "Fixed"
    missing = MISSING

    @asynccontextmanager
    async def make(self):
        path, self.issue = await run_sync(repository.fresh)
        async with make(path) as tracker:
            yield tracker


async def failure(ask):
    """Return the category and the delivery of the failure of ``ask``."""
    with pytest.raises(TrackerError) as caught:
        await ask
    error = caught.value
    return error.category.value, error.delivery.value, error.message


async def test_each_operation(ticket):
    """A comment, a move, a link and a close are in the repository, under the user's name, and are read again."""
    path, id = ticket
    async with make(path) as tracker:
        body = "-- two\n  lines: 'a' \"b\" \\n \\s $HOME é\t{x}; "
        await tracker.comment(id, body, key="1")
        await tracker.transition(id[:10], "in review".replace("in ", ""), key="2")
        await tracker.link_pr(id, "https://example.org/pull/1", key="3")
        assert ("It leaks", "Review", False, ("https://example.org/pull/1",)) == facts(await tracker.get(id))
        await tracker.close(id, "it is dry", key="4")
        issue = await tracker.get(id)
        assert (id, "Closed", True) == (issue.id, issue.state, issue.is_closed)
        assert [True, False] == [await tracker.find_comment(id, key=key) for key in ("1", "2")]
    texts = await run_sync(repository.comments, path)
    assert [body, "Pull request: https://example.org/pull/1", "it is dry"] == [
        text.partition("\n\n<!-- harbor-async:")[0] for text in texts
    ]
    assert ["admin", *[USER] * 4] == await run_sync(repository.ask, path, "tkt_user")


def facts(issue):
    return issue.title, issue.state, issue.is_closed, issue.links


async def test_a_comment_of_any_length(ticket):
    """A comment may be longer than any argument of a program can be."""
    path, id = ticket
    async with make(path) as tracker:
        await tracker.comment(id, "x" * 1_000_000, key="1")
        assert await tracker.find_comment(id, key="1")


async def test_a_mark_counts_under_the_own_name_only(ticket):
    """Who quotes a comment quotes its mark, and has not written it."""
    path, id = ticket
    async with make(path, user="admin") as other:
        await other.comment(id, "a comment", key="1")
    async with make(path) as tracker:
        assert not await tracker.find_comment(id, key="1")


async def test_states_are_those_of_the_repository(ticket):
    """The states that the administrator has chosen are those that there are, in any letter case."""
    path, id = ticket
    script = "set type_choices {\n  Bug\n}\nset status_choices {\n  Open {On Hold}\n  Done\n}\n"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO config(name, value, mtime) VALUES('ticket-common', ?, 0)", (script,))
    async with make(path, closed=["Done"]) as tracker:
        category, delivery, message = await failure(tracker.transition(id, "Closed", key="1"))
        assert ("validation", "not_sent", True) == (category, delivery, message.endswith("one of Open, On Hold, Done"))
        await tracker.transition(id, "on hold", key="2")
        assert "On Hold" == (await tracker.get(id)).state
        await tracker.close(id, "", key="3")
        assert ("Done", True) == facts(await tracker.get(id))[1:3]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (lambda tracker, _: tracker.comment(MISSING, "x", key="1"), ("not_found", "refused")),
        (lambda tracker, _: tracker.get(MISSING), ("not_found", "refused")),
        (lambda tracker, _: tracker.close("", "", key="1"), ("validation", "not_sent")),
        (lambda tracker, _: tracker.close("--quote", "", key="1"), ("validation", "not_sent")),
        (lambda tracker, id: tracker.get(id[:9]), ("validation", "not_sent")),
        (lambda tracker, id: tracker.comment(id, "a\0b", key="1"), ("validation", "not_sent")),
        (lambda tracker, id: tracker.comment(id, "\ud800", key="1"), ("validation", "not_sent")),
        (lambda tracker, id: tracker.transition(id, "Solved", key="1"), ("validation", "not_sent")),
        (lambda tracker, id: tracker.link_pr(id, "pull 1", key="1"), ("validation", "not_sent")),
    ],
    ids=["missing", "get-missing", "empty", "option", "short", "nul", "surrogate", "state", "url"],
)
async def test_what_is_asked_wrongly_is_refused(ticket, asked, expected):
    """What is not there, or makes no sense, is told as that, and the ticket stays as it was."""
    path, id = ticket
    async with make(path) as tracker:
        assert expected == (await failure(asked(tracker, id)))[:2]
        assert "Open" == (await tracker.get(id)).state
    assert [] == await run_sync(repository.comments, path)


async def test_a_user_that_the_repository_does_not_know(ticket):
    """Whom the repository does not know may not write, and is told so."""
    path, id = ticket
    async with make(path, user="nobody else") as tracker:
        assert ("auth_failed", "refused") == (await failure(tracker.comment(id, "x", key="1")))[:2]


async def test_a_repository_that_may_not_be_written(ticket):
    """A file that this user may not write is no matter of trying again."""
    path, id = ticket
    program = repository.forbid(path)
    async with make(path, program=program, transport=ProcessTransport(environment={"HOME": "/tmp"})) as tracker:
        assert ("auth_failed", "refused") == (await failure(tracker.comment(id, "x", key="1")))[:2]


async def test_what_is_no_repository(ticket, tmp_path):
    """No file, and a file of something else, are no tracker."""
    _, id = ticket
    await anyio.Path(tmp_path / "text.fossil").write_text("text")
    for name in ("missing.fossil", "text.fossil"):
        async with make(tmp_path / name) as tracker:
            assert ("unsupported", "refused") == (await failure(tracker.comment(id, "x", key="1")))[:2]


async def test_fossil_is_not_installed(ticket):
    """Without the command nothing is sent, and the answer names what is missing."""
    path, id = ticket
    async with make(path, program="fossil-that-is-not-there") as tracker:
        expected = ("unsupported", "not_sent", "fossil-that-is-not-there is not installed")
        assert expected == await failure(tracker.comment(id, "x", key="1"))


async def test_a_writer_that_is_not_open(ticket):
    """A writer takes calls while it is entered, and no others; it is entered once."""
    path, id = ticket
    tracker = make(path)
    assert ("unsupported", "not_sent") == (await failure(tracker.get(id)))[:2]
    async with tracker:
        with pytest.raises(Exception, match="is open already"):
            await tracker.__aenter__()
    assert ("unsupported", "not_sent") == (await failure(tracker.get(id)))[:2]


async def test_a_locked_repository_is_waited_for(ticket):
    """A write waits for the lock that another program holds, and is done when that is gone."""
    path, id = ticket
    with closing(sqlite3.connect(path, check_same_thread=False)) as holder:
        await run_sync(holder.execute, "BEGIN EXCLUSIVE")
        async with make(path) as tracker, anyio.create_task_group() as group:
            group.start_soon(partial(tracker.comment, id, "x", key="1"))
            await anyio.sleep(0.1)
            await run_sync(holder.rollback)
    assert 1 == len(await run_sync(repository.comments, path))


async def test_a_repository_that_stays_locked(ticket):
    """Fossil waits for the lock, too, for seconds; shortly before the deadline that ends, and nothing was written."""
    path, id = ticket
    with closing(sqlite3.connect(path, check_same_thread=False)) as holder:
        await run_sync(holder.execute, "BEGIN EXCLUSIVE")
        async with make(path) as tracker:
            with anyio.fail_after(1):
                assert ("timeout", "not_sent") == (await failure(tracker.comment(id, "x", key="1")))[:2]
        await run_sync(holder.rollback)
    assert [] == await run_sync(repository.comments, path)


async def test_many_writers_of_one_repository(ticket):
    """32 comments of four writers at once: Fossil alone refuses most of them, and here each is there, once."""
    path, id = ticket
    async with anyio.create_task_group() as group:

        async def write(number):
            async with make(path) as tracker, anyio.create_task_group() as inner:
                for index in range(8):
                    inner.start_soon(partial(tracker.comment, id, f"{number}-{index}", key=f"{number}-{index}"))

        for number in range(4):
            group.start_soon(write, number)
    texts = await run_sync(repository.comments, path)
    assert sorted(f"{a}-{b}" for a in range(4) for b in range(8)) == sorted(text.split("\n")[0] for text in texts)


async def test_a_killed_write_is_looked_for(ticket, tmp_path):
    """A program that was killed, before or after it wrote, leaves a doubt; the tool looks, and writes once."""
    path, id = ticket
    real = shutil.which("fossil")
    for when in ("before", "after"):
        program = tmp_path / f"fossil-{when}"
        lines = {"before": "kill -9 $$", "after": f'{real} "$@"; kill -9 $$'}[when]
        once = tmp_path / f"{when}-done"
        await anyio.Path(program).write_text(
            f'#!/bin/sh\nif [ "$1" = --args ] && [ ! -e {once} ]; then touch {once}; {lines}; fi\nexec {real} "$@"\n'
        )
        program.chmod(0o755)
        async with make(path, program=str(program)) as tracker:
            tool = tracker_write(tracker)
            async with Runtime(Catalog([tool])) as runtime:
                arguments = {"op": "comment", "id": id, "body": when}
                result = await runtime.invoke(tool.tool.name, arguments)
        assert ("succeeded", 2) == (result.outcome, result.attempts)
    texts = await run_sync(repository.comments, path)
    assert ["before", "after"] == [text.split("\n")[0] for text in texts]


async def test_a_deadline_kills_the_program(ticket, tmp_path):
    """What takes too long is killed with what it has started, and its effect is not known."""
    path, id = ticket
    program, pids = tmp_path / "fossil", tmp_path / "pids"
    hang = f"sleep 60 & echo $! $$ >{pids}; wait"
    await anyio.Path(program).write_text(
        f'#!/bin/sh\nif [ "$1" = --args ]; then {hang}; fi\nexec {shutil.which("fossil")} "$@"\n'
    )
    program.chmod(0o755)
    transport = ProcessTransport(timeout=1.0, environment={"HOME": repository.home()})
    async with make(path, program=str(program), transport=transport) as tracker:
        assert ("timeout", "unknown") == (await failure(tracker.comment(id, "x", key="1")))[:2]
        await gone(pids)
        pids.unlink()
        async with anyio.create_task_group() as group:
            group.start_soon(partial(tracker.comment, id, "x", key="1"))
            await until(lambda: pids.exists() and pids.read_text().endswith("\n"))
            group.cancel_scope.cancel()
        await gone(pids)


async def gone(pids):
    """Wait until no process of the file is there any more."""
    for pid in map(int, pids.read_text().split()):
        await until(lambda pid=pid: not is_running(pid))


async def until(condition):
    while not condition():  # noqa: ASYNC110 - another process makes it true
        await anyio.sleep(0.01)


def is_running(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


async def test_the_tool_answers(ticket):
    """Through the runtime all four operations succeed, and the ticket is closed at the end."""
    path, id = ticket
    async with make(path) as tracker, Runtime(Catalog([tracker_write(tracker)])) as runtime:
        calls = [
            {"op": "comment", "id": id, "body": "Done."},
            {"op": "transition", "id": id, "toState": "Fixed"},
            {"op": "link_pr", "id": id, "prURL": "https://example.org/pull/1"},
            {"op": "close", "id": id, "reason": "done"},
        ]
        results = await runtime.invoke_many([ToolCall(str(n), "tracker_write", call) for n, call in enumerate(calls)])
        assert ["succeeded"] * 4 == [result.outcome for result in results]
        assert (await tracker.get(id)).is_closed
