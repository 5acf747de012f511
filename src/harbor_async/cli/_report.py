"""What a person sees: the list of tools, progress, and the table at the end."""

import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from .._categories import Outcome
from .._pipe import Reader
from .._tool import Tool
from ._run import Ending
from ._tally import Quantiles, Tally

_STYLES = {Outcome.SUCCEEDED: "green", Outcome.FAILED: "red", Outcome.TIMED_OUT: "yellow", Outcome.REJECTED: "magenta"}
_WIDE = 1000
"""Columns where nobody looks: a line that is piped on is not wrapped."""


def make_console(*, stderr: bool = False) -> Console:
    """Return a console that shows text as it is."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _WIDE
    return Console(file=stream, markup=False, highlight=False, emoji=False, width=width)


def show_tools(tools: Iterable[Tool]) -> None:
    """List tools: name, what each does to the world, and the first line of its description."""
    table = Table("tool", "side effect", "description", box=None, pad_edge=False, header_style="bold")
    for tool in tools:
        effect = tool.side_effect.value if tool.declares_effect or tool.side_effect != "stateful" else "-"
        table.add_row(tool.name, effect, tool.description.strip().partition("\n")[0])
    print_table(table)


def print_table(table: Table) -> None:
    """Print a table on standard output."""
    console = make_console()
    with console.capture() as capture:
        console.print(table)
    for line in capture.get().splitlines():  # a table pads its last column, too
        print(line.rstrip())  # noqa: T201 - its output


def show_summary(ending: Ending, console: Console) -> None:
    """Show how a run ended: outcomes and categories, calls a second, and how long the calls took."""
    tally = ending.tally
    table = Table("outcome", "category", box=None, pad_edge=False, header_style="bold")
    table.add_column("calls", justify="right")
    for outcome, category, count in tally.rows():
        table.add_row(outcome.value, category, f"{count:,}", style=_STYLES[outcome])
    table.add_row("total", "", f"{tally.calls:,}", style="bold")
    console.print(table)
    speed = tally.calls / ending.elapsed if ending.elapsed else 0.0
    console.print(f"{ending.elapsed:.2f} s, {speed:,.0f} calls a second")
    if tally.times.count:
        console.print(f"{_times(tally.times)} (of the {tally.times.count:,} calls that ran)")
    if ending.cause:
        rest = "every line had been read" if ending.is_read else "the rest of the calls was not read"
        console.print(f"ended early by {ending.cause}; {rest}", style="bold red")


def _times(times: Quantiles) -> str:
    return ", ".join(f"p{share} {show_seconds(times.quantile(share / 100))}" for share in (50, 95, 99))


def show_seconds(seconds: float) -> str:
    """Return a time with three digits and the unit that suits it."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return "under 1 µs"


@contextmanager
def watch_progress(reader: Reader, tally: Tally) -> Generator[Callable[[], None]]:
    """Show a progress bar on standard error while the block runs, and yield the function that redraws it."""
    console = make_console(stderr=True)
    columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, auto_refresh=False, transient=True, redirect_stdout=False) as progress:
        task = progress.add_task("", total=reader.size)

        def redraw() -> None:
            text = f"{tally.calls:,} calls, {tally.failures:,} failed"
            progress.update(task, completed=reader.position, description=text, refresh=True)

        yield redraw


@contextmanager
def watch_nothing(reader: Reader, tally: Tally) -> Generator[Callable[[], None]]:  # noqa: ARG001 - as the other
    """Show no progress."""
    yield lambda: None
