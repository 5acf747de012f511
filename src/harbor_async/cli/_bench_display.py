"""What a person sees of ``bench``: how it goes, and the table at the end."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ._bench_figures import describe_load, figure_rows, remarks
from ._bench_record import Record
from ._report import print_table

_BAR_WIDTH = 40


@contextmanager
def watch_bench(records: Sequence[Record], console: Console) -> Generator[Callable[[], None]]:
    """Show how it goes while the block runs, and yield the function that redraws it.

    Args:
        records: Those that were begun; the last one is under way. It may grow meanwhile.
        console: Where; nothing is shown on one that is no terminal.
    """
    if not console.is_terminal:
        yield lambda: None
        return
    with Live(console=console, auto_refresh=False, transient=True, redirect_stdout=False) as live:
        yield lambda: live.update(_draw(records), refresh=True)


def show_results(records: Sequence[Record], console: Console) -> None:
    """Print the table of results, and what must be known beside it."""
    console.print(describe_load(records[0].order), style="bold")
    print_table(_table(records))
    for record in records:
        for remark in remarks(record):
            console.print(remark, style="bold red")


def _draw(records: Sequence[Record]) -> RenderableType:
    if not records:
        return Text("")
    now = records[-1]
    load = now.order.load
    done = now.elapsed if load.count is None else now.tally.calls
    phase = "starting" if now.phase is None else now.phase.value
    bar = ProgressBar(load.duration or load.count, done, width=_BAR_WIDTH)
    line = Table.grid(padding=(0, 1))
    line.add_row(Text(f"{now.label}, {phase}", style="bold"), bar, Text(f"{now.in_flight:,.0f} in flight"))
    return Group(Text(describe_load(now.order)), line, _table(records))


def _table(records: Sequence[Record]) -> Table:
    table = Table("", box=None, pad_edge=False, header_style="bold")
    for record in records:
        table.add_column(record.label, justify="right")
    for name, texts in figure_rows(records):
        table.add_row(name, *texts)
    return table
