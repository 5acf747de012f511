"""The commands for a tracker: one in a file, and for a write any other."""

import os
import sys
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import anyio
import typer
from rich.table import Table

from .._categories import Outcome
from .._policy import ToolPolicy
from ..tracker import Issue, TrackerError, TrackerResult, TrackerWrite
from ..tracker.writers import Change, SQLiteTracker
from ._options import BackendName, BackendOption, TimeoutOption, check_timeout
from ._report import print_table
from ._run import stop_at_signal
from ._usage import UsageError

T = TypeVar("T")

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The tracker's file.")]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The issue's id.")]

app = typer.Typer(help="Keep a tracker of issues in a file, and write to it as a model does.", no_args_is_help=True)


@app.command()
def init(file: FileArgument) -> None:
    """Make a tracker in a new file."""
    _run(SQLiteTracker.create, file)
    typer.echo(f"made {_plain(str(file))}")


@app.command()
def add(
    file: FileArgument, id: IdArgument, title: Annotated[str, typer.Argument(metavar="TITLE", help="Its title.")]
) -> None:
    """Add an issue."""
    _run(SQLiteTracker(file).add, id, title)
    typer.echo(f"added {_plain(id)}")


@app.command(name="list")
def list_issues(file: FileArgument) -> None:
    """List all issues, the oldest first."""
    table = _table("id", "state", "title")
    for issue in _run(SQLiteTracker(file).list):
        table.add_row(_plain(issue.id), _plain(issue.state), _plain(issue.title))
    print_table(table)


@app.command()
def show(file: FileArgument, id: IdArgument) -> None:
    """Show an issue with its links and comments."""
    issue, changes = _run(_read, file, id)
    table = _table()
    state = f"{issue.state} (closed)" if issue.is_closed and issue.state != "closed" else issue.state
    table.add_row("id", _plain(issue.id))
    table.add_row("title", _plain(issue.title))
    table.add_row("state", _plain(state))
    for link in issue.links:
        table.add_row("link", _plain(link))
    for change in changes:
        if change.op == "comment":
            table.add_row("comment", _plain(change.text))
    print_table(table)


@app.command()
def history(file: FileArgument, id: IdArgument) -> None:
    """Show what has happened to an issue, the oldest first."""
    table = _table("at", "what", "from", "to", "text")
    for change in _run(_read, file, id)[1]:
        states = (_plain(state or "") for state in (change.source, change.target))
        table.add_row(change.at.isoformat(" ", "seconds"), _plain(change.op), *states, _plain(change.text))
    print_table(table)


@app.command()
def write(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[FILE] JSON",
            help="The tracker's file, unless there is --writer, and the arguments of tracker_write, a JSON object. "
            "-: standard input.",
        ),
    ],
    *,
    writer: Annotated[str | None, typer.Option("--writer", metavar="NAME", help="Another tracker: github, …")] = None,
    repo: Annotated[str | None, typer.Option("--repo", metavar="OWNER/NAME", help="Its repository.")] = None,
    url: Annotated[str | None, typer.Option("--url", metavar="URL", help="Its address.")] = None,
    user: Annotated[str | None, typer.Option("--user", metavar="NAME", help="Who writes.")] = None,
    author: Annotated[str | None, typer.Option("--author", metavar="NAME", help="The token's account.")] = None,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", metavar="PATH", help="The file that holds the token.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be sent, and do not send it.")] = False,
    backend: BackendOption = BackendName.ASYNCIO,
    timeout: TimeoutOption = None,
) -> int:
    """Do one write, as tracker_write does, and print its envelope. A comment sent again is a second comment.

    The token of a writer is in an environment variable (GITHUB_TOKEN, GITLAB_TOKEN, GITEA_TOKEN, FORGEJO_TOKEN,
    JIRA_API_TOKEN, LINEAR_API_KEY, REDMINE_API_KEY, ROUNDUP_PASSWORD) or a file, and never among the arguments.
    """
    check_timeout(timeout)
    given = {"repo": repo, "url": url, "user": user, "author": author}
    options = {name: value for name, value in given.items() if value is not None}
    if len(words) != (2 if writer is None else 1):
        msg = "expected FILE JSON, or JSON and --writer"
        raise UsageError(msg)
    data = sys.stdin.buffer.read() if words[-1] == "-" else os.fsencode(words[-1])
    if writer is None:
        if options or token_file is not None or dry_run:
            msg = "a tracker in a file takes none of the options of a writer"
            raise UsageError(msg)
        result, code = _run(_write, SQLiteTracker(words[0]), data, timeout, backend=backend)
    else:
        from ._tracker_writers import DryRun, open_writer  # noqa: PLC0415 - no other command needs ten writers

        plan = DryRun() if dry_run else None
        opened = open_writer(writer, options, token_file=token_file, dry_run=plan)
        result, code = _run(_write, opened, data, timeout, plan is not None, backend=backend)
        if plan is not None and plan.planned:
            typer.echo(plan.planned)
            return 0
    if result is not None:
        typer.echo(result.to_json())
    return code


async def _write(
    opened: AbstractAsyncContextManager[object],
    data: bytes,
    timeout: float | None,
    is_dry: bool = False,  # noqa: FBT001, FBT002 - anyio.run passes no keywords
) -> tuple[TrackerResult | None, int]:
    result: TrackerResult | None = None
    code = 0

    def stop(exit_code: int, cause: str) -> None:
        nonlocal code
        code = exit_code
        typer.echo(f"harbor-async: ended by {cause}; the tracker tells whether it was written", err=True)
        group.cancel_scope.cancel()

    policy = ToolPolicy(attempts=1) if is_dry else None
    async with opened as tracker, anyio.create_task_group() as group:
        group.start_soon(stop_at_signal, stop)
        result = await TrackerWrite(tracker, policy=policy).run_json(data, timeout=timeout)
        group.cancel_scope.cancel()
    return result, code or int(result is None or result.outcome != Outcome.SUCCEEDED)


async def _read(path: Path, id: str) -> tuple[Issue, tuple[Change, ...]]:
    async with SQLiteTracker(path) as tracker:
        return await tracker.get(id), await tracker.history(id)


def _run(function: Callable[..., Coroutine[Any, Any, T]], *args: Any, backend: BackendName = BackendName.ASYNCIO) -> T:
    try:
        return anyio.run(function, *args, backend=backend.value)
    except TrackerError as exc:
        raise UsageError(exc.message) from exc


def _table(*titles: str) -> Table:
    return Table(*titles, box=None, pad_edge=False, header_style="bold", show_header=bool(titles))


def _plain(text: str) -> str:
    """Return ``text`` as one line: a model has written it, and a terminal would obey what is in it."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
