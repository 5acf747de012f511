"""The writer for beads, on a stand-in for ``bd``: the real one cannot be installed from a package."""

import json
import sys
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest

from harbor_async import Catalog, Runtime, ToolCall
from harbor_async.errors import InvalidToolError
from harbor_async.testing import WriterConformance
from harbor_async.tracker import TrackerError, tracker_write
from harbor_async.tracker.writers.beads import Beads, BeadsCommands, classify
from harbor_async.tracker.writers.command import Exit, ProcessTransport

BD = Path(__file__).with_name("bd.py")
pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="a script is the program"),
    pytest.mark.timeout(60),  # a test runs up to a hundred programs
]


def prepare(folder, **state):
    """Make a workspace with two issues, and the program."""
    issues = [
        {"id": id, "title": "It leaks", "status": "open", "comments": [], "blocked_by": []}
        for id in ("bd-a1b2", "bd-c3")
    ]
    (folder / "issues.json").write_text(json.dumps({"issues": issues, "last_touched": "bd-c3", **state}))
    program = folder / "bd"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -IS {BD} "$@"\n')
    program.chmod(0o755)


def make(folder, **options):
    transport = ProcessTransport(folder=folder, timeout=options.pop("timeout", 30.0))
    return Beads(**{"program": str(folder / "bd"), "transport": transport, **options})


def stored(folder):
    return {issue["id"]: issue for issue in json.loads((folder / "issues.json").read_text())["issues"]}


def note(folder, **state):
    """Change what the program finds, at once: one may be reading it."""
    file, new = folder / "issues.json", folder / "new.json"
    new.write_text(json.dumps({**json.loads(file.read_text()), **state}))
    new.replace(file)


@pytest.fixture(params=[False, True], ids=["plain", "enveloped"])
def workspace(tmp_path, request):
    prepare(tmp_path, envelope=request.param)
    return tmp_path


class TestConformance(WriterConformance):
    issue = "bd-a1b2"
    state = "in_progress"
    missing = "bd-none"

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path):
        self.folder = tmp_path

    @asynccontextmanager
    async def make(self):
        prepare(self.folder)
        async with make(self.folder) as tracker:
            yield tracker


async def failure(ask):
    """Return the category and the delivery of the failure of ``ask``, and its message."""
    with pytest.raises(TrackerError) as caught:
        await ask
    error = caught.value
    return error.category.value, error.delivery.value, error.message


async def test_each_operation(workspace):
    """A comment, a move, a link and a close are in the workspace, under the actor's name; nothing else is touched."""
    body = "--status=closed 'a' \"b\" $HOME\nsecond"
    async with make(workspace, actor="agent") as tracker:
        await tracker.comment("bd-a1b2", body, key="1")
        await tracker.transition("bd-a1b2", "in_progress", key="2")
        await tracker.link_pr("bd-a1b2", "https://example.org/pull/1", key="3")
        await tracker.close("bd-a1b2", "it is dry", key="4")
        issue = await tracker.get("bd-a1b2")
        assert [True, False] == [await tracker.find_comment("bd-a1b2", key=key) for key in "12"]
    assert ("It leaks", "closed", True, ("https://example.org/pull/1",)) == (
        issue.title,
        issue.state,
        issue.is_closed,
        issue.links,
    )
    found = stored(workspace)
    assert [body, "Pull request: https://example.org/pull/1"] == [
        comment["text"].partition("\n\n<!-- harbor-async:")[0] for comment in found["bd-a1b2"]["comments"]
    ]
    assert ({"agent"}, "it is dry", "open") == (
        {comment["author"] for comment in found["bd-a1b2"]["comments"]},
        found["bd-a1b2"]["reason"],
        found["bd-c3"]["status"],
    )


@pytest.mark.parametrize("id", ["", " ", "-", "--force", "-r", "bd a", "bd-a1b2\n", "bd-a\0"])
async def test_what_is_no_id_closes_nothing(workspace, id):
    """Bd closes the issue that it touched last when it gets no id; here it is not even started."""
    async with make(workspace) as tracker:
        assert ("validation", "not_sent") == (await failure(tracker.close(id, "", key="1")))[:2]
    assert {"open"} == {issue["status"] for issue in stored(workspace).values()}


async def test_the_beginning_of_an_id_is_none(workspace):
    """Bd takes ``bd-a`` for ``bd-a1b2``; here an id is whole."""
    async with make(workspace) as tracker:
        for ask in (tracker.close("bd-a", "", key="1"), tracker.comment("bd-a", "x", key="1"), tracker.get("bd-a")):
            assert ("validation", "not_sent") == (await failure(ask))[:2]
    assert "open" == stored(workspace)["bd-a1b2"]["status"]


async def test_a_state_that_is_missing(workspace):
    """The program's own list of the states reaches the model."""
    async with make(workspace) as tracker:
        category, delivery, message = await failure(tracker.transition("bd-a1b2", "done", key="1"))
    assert ("validation", "refused", True) == (category, delivery, "in_progress, blocked" in message)


async def test_an_issue_that_others_block(workspace):
    """A close that a guard of bd refuses is a ``conflict``, in bd's own words, which are plain text."""
    state = list(stored(workspace).values())
    state[0]["blocked_by"] = ["bd-c3"]
    note(workspace, issues=state)
    async with make(workspace) as tracker:
        category, delivery, message = await failure(tracker.close("bd-a1b2", "", key="1"))
    assert ("conflict", "refused", True) == (category, delivery, "blocked by" in message)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("killed", ("api_request", "unknown")),
        ("killed-after", ("api_request", "unknown")),
        ("frozen", ("api_request", "refused")),
        ("read-only", ("auth_failed", "refused")),
        ("no-workspace", ("unsupported", "refused")),
        ("no-binary", ("unsupported", "refused")),
        ("broken", ("api_status", "unknown")),
        ("no-json", ("api_status", "unknown")),
        ("odd-json", ("api_status", "unknown")),
    ],
)
async def test_how_bd_fails(tmp_path, mode, expected):
    """Each failure of bd, which ends with 1 for nearly all of them, has its category, and says what is known."""
    prepare(tmp_path, mode=mode)
    async with make(tmp_path) as tracker:
        assert expected == (await failure(tracker.comment("bd-a1b2", "x", key="1")))[:2]


async def test_a_workspace_that_is_locked(tmp_path):
    """While another process holds the lock bd is run again, and in the end the comment is there, once."""
    prepare(tmp_path, mode="locked")
    async with make(tmp_path) as tracker, anyio.create_task_group() as group:
        group.start_soon(partial(tracker.comment, "bd-a1b2", "x", key="1"))
        await anyio.sleep(0.5)
        assert [] == stored(tmp_path)["bd-a1b2"]["comments"]
        note(tmp_path, mode="")
    assert 1 == len(stored(tmp_path)["bd-a1b2"]["comments"])


async def test_bd_hangs(tmp_path):
    """What takes too long is killed, and its effect is not known."""
    prepare(tmp_path, mode="hang")
    async with make(tmp_path, timeout=1.0) as tracker:
        assert ("timeout", "unknown") == (await failure(tracker.comment("bd-a1b2", "x", key="1")))[:2]


async def test_bd_is_not_installed(tmp_path):
    """Without the command, or without its folder, nothing is sent, and the answer says what is missing."""
    async with Beads(program="bd-that-is-not-there") as tracker:
        expected = ("unsupported", "not_sent", "bd-that-is-not-there is not installed")
        assert expected == await failure(tracker.get("bd-1"))
    prepare(tmp_path)
    async with Beads(program=str(tmp_path / "bd"), transport=ProcessTransport(folder=tmp_path / "none")) as tracker:
        category, delivery, message = await failure(tracker.get("bd-1"))
        assert ("unsupported", "not_sent", True) == (category, delivery, "folder" in message)
    (tmp_path / "bd").chmod(0o644)
    async with make(tmp_path) as tracker:
        assert ("unsupported", "not_sent", "bd may not be run") == await failure(tracker.get("bd-1"))


async def test_a_comment_that_is_too_long(workspace):
    """A text that no argument can hold is refused before bd runs."""
    async with make(workspace) as tracker:
        assert ("validation", "not_sent") == (await failure(tracker.comment("bd-a1b2", "x" * 200_000, key="1")))[:2]


async def test_the_environment_stays_here(tmp_path, monkeypatch):
    """A program gets what it needs of the environment, and no token."""
    monkeypatch.setenv("SOME_TOKEN", "secret")
    prepare(tmp_path)
    (tmp_path / "bd").write_text("#!/bin/sh\nenv >seen\nexit 1\n")
    async with make(tmp_path) as tracker:
        await failure(tracker.get("bd-a1b2"))
    names = {line.partition("=")[0] for line in (tmp_path / "seen").read_text().splitlines()}
    assert ("PATH" in names, "SOME_TOKEN" in names) == (True, False)


async def test_the_tool_looks_before_it_repeats(tmp_path):
    """A comment whose program was killed after it wrote is found, and not written again."""
    prepare(tmp_path, mode="killed-after")
    async with make(tmp_path) as tracker, Runtime(Catalog([tracker_write(tracker)])) as runtime:
        result, *_ = await runtime.invoke_many(
            [ToolCall("1", "tracker_write", {"op": "comment", "id": "bd-a1b2", "body": "x"})]
        )
    assert ("succeeded", 2, 1) == (result.outcome, result.attempts, len(stored(tmp_path)["bd-a1b2"]["comments"]))


def test_the_command_lines():
    """Options come before ``--``, so that nothing a model sends is one."""
    commands = BeadsCommands("agent", ("closed",))
    assert ("bd", "show", "--json", "--actor=agent", "--", "bd-1") == commands.show("bd-1").argv
    assert ("bd", "comments", "add", "--json", "--actor=agent", "--", "bd-1", "-x") == commands.comment(
        "bd-1", "-x"
    ).argv
    assert ("bd", "update", "--status=-x", "--json", "--actor=agent", "--", "bd-1") == commands.move("bd-1", "-x").argv
    assert ("bd", "close", "--reason=-x", "--json", "--actor=agent", "--", "bd-1") == commands.close("bd-1", "-x").argv
    assert ("bd", "close", "--json", "--actor=agent", "--", "bd-1") == commands.close("bd-1", " ").argv


def test_json_on_the_other_stream():
    """Newer versions write the JSON of some failures to standard error, with a hint."""
    stderr = json.dumps(
        {"schema_version": 1, "data": {"error": "issue bd-1 not found", "hint": "try bd list"}}
    ).encode()
    error = classify(Exit(1, b"", stderr))
    assert ("not_found", "bd: issue bd-1 not found; try bd list") == (error.category.value, error.message)


@pytest.mark.parametrize("options", [{"actor": ""}, {"actor": "a\nb"}, {"closed": []}, {"closed": "closed"}])
def test_options_that_make_no_sense(options):
    """They are refused when the writer is made."""
    with pytest.raises(InvalidToolError, match="expected"):
        Beads(**options)
