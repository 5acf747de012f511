"""The commands for a tracker in a file."""

import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any, TypeVar

import anyio
import typer
from rich.table import Table

from .._categories import Outcome
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
    file: FileArgument,
    arguments: Annotated[
        str, typer.Argument(metavar="JSON", help="The arguments of tracker_write, a JSON object. -: standard input.")
    ],
    backend: BackendOption = BackendName.ASYNCIO,
    timeout: TimeoutOption = None,
) -> int:
    """Do one write, as tracker_write does, and print its envelope. A comment sent again is a second comment."""
    check_timeout(timeout)
    data = sys.stdin.buffer.read() if arguments == "-" else os.fsencode(arguments)
    result, code = _run(_write, file, data, timeout, backend=backend)
    if result is not None:
        typer.echo(result.to_json())
    return code


async def _write(path: Path, data: bytes, timeout: float | None) -> tuple[TrackerResult | None, int]:
    result: TrackerResult | None = None
    code = 0

    def stop(exit_code: int, cause: str) -> None:
        nonlocal code
        code = exit_code
        typer.echo(f"harbor-async: ended by {cause}; the tracker tells whether it was written", err=True)
        group.cancel_scope.cancel()

    async with SQLiteTracker(path) as tracker, anyio.create_task_group() as group:
        group.start_soon(stop_at_signal, stop)
        result = await TrackerWrite(tracker).run_json(data, timeout=timeout)
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
