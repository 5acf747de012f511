"""``tracker write --writer``: what it asks for, what it shows, and that it writes; as a process of its own."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from harbor_async.cli import main
from harbor_async.cli._tracker_writers import KINDS, Kind, check_options
from harbor_async.cli._usage import UsageError
from tests.unit.writers.fakes import TOKEN, FakeGitea
from tests.unit.writers.served import serve

COMMENT = '{"op": "comment", "id": "1", "body": "done"}'
OPTIONS = {
    "repo": "octocat/hello",
    "url": "https://example.org",
    "user": "me@example.org",
}


def options_of(name: str) -> list[str]:
    return [word for option in KINDS[name].needs for word in (f"--{option}", OPTIONS[option])]


@pytest.mark.parametrize("name", ["github", "gitlab", "gitea", "forgejo", "jira", "redmine"])
def test_a_dry_run_shows_the_request(name: str, monkeypatch: Any, capsys: Any) -> None:
    """It prints what would be sent, with ``***`` for the token, and sends nothing: there is no such server."""
    monkeypatch.setenv(KINDS[name].token, TOKEN)
    id = {"jira": "T-1"}.get(name, "1")
    code = main(
        ["tracker", "write", "--writer", name, *options_of(name), "--dry-run", COMMENT.replace('"1"', f'"{id}"')]
    )
    shown = capsys.readouterr()
    assert (0, "") == (code, shown.err)
    assert shown.out.startswith(("POST https://", "PUT https://"))
    assert "***" in shown.out
    assert TOKEN not in shown.out
    assert "done" in shown.out


def test_a_dry_run_of_what_is_wrong(monkeypatch: Any, capsys: Any) -> None:
    """What would not be sent anyway is answered as ever."""
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    code = main(
        [
            "tracker",
            "write",
            "--writer",
            "github",
            "--repo",
            "a/b",
            "--dry-run",
            '{"op": "comment", "id": "x", "body": "y"}',
        ]
    )
    assert (1, "validation") == (code, json.loads(capsys.readouterr().out)["error"]["category"])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--writer", "github", "--repo", "a/b"], "needs a token in the environment variable GITHUB_TOKEN"),
        (["--writer", "github", "--repo", "a/b", "--token-file", "nowhere"], "cannot read the token"),
        (["--writer", "github"], "needs --repo"),
        (["--writer", "github", "--repo", "a/b", "--user", "me"], "does not take --user"),
        (["--writer", "sourceforge"], "expected one of github, gitlab"),
        (["--writer", "beads", "--token-file", "x"], "has no token"),
        (["--dry-run"], "expected FILE JSON, or JSON and --writer"),
        (["file.db", "--dry-run"], "takes none of the options of a writer"),
    ],
    ids=lambda it: "-".join(it) if isinstance(it, list) else "",
)
def test_wrong_usage(words: list[str], says: str, monkeypatch: Any, capsys: Any) -> None:
    """It is told in one line on standard error, with exit code 2."""
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    assert 2 == main(["tracker", "write", *words, COMMENT])
    assert says in capsys.readouterr().err


def test_a_writer_that_makes_no_sense(monkeypatch: Any, capsys: Any) -> None:
    """What the writer itself refuses is wrong usage, too."""
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    assert 2 == main(["tracker", "write", "--writer", "github", "--repo", "no repo", COMMENT])
    assert "expected a repository" in capsys.readouterr().err


def test_each_writer_is_known() -> None:
    """Each writer of the package has a name, and each option that it needs is one of the command line's."""
    folder = Path(__import__("harbor_async.tracker.writers", fromlist=["x"]).__file__).parent
    modules = {file.stem for file in folder.glob("[a-z]*.py")} - {"command", "http"}
    assert modules | {"forgejo"} == set(KINDS)
    for name in KINDS:
        found = check_options(name, dict.fromkeys(KINDS[name].needs, "x"))
        assert isinstance(found, Kind)
    with pytest.raises(UsageError):
        check_options("jira", {})


async def test_it_writes(tmp_path: Path) -> None:
    """A process that gets the token from a file adds one comment, and prints the envelope."""
    fake = FakeGitea()
    environment = {name: value for name, value in os.environ.items() if not name.casefold().endswith("_proxy")}
    file = anyio.Path(tmp_path / "token")
    await file.write_text(f"{TOKEN}\n")
    options = ["--writer", "forgejo", "--repo", "octocat/hello", "--token-file", str(file)]
    async with serve(fake) as server:
        command = [sys.executable, "-m", "harbor_async.cli", "tracker", "write", *options, "--url", server.url, COMMENT]
        with anyio.fail_after(18):
            done = await anyio.run_process(command, env=environment, check=False)
    assert (0, b"") == (done.returncode, done.stderr)
    assert {"outcome": "succeeded", "op": "comment", "id": "1"} == json.loads(done.stdout)
    assert ["done"] == fake.texts()
