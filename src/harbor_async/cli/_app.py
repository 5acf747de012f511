"""The commands."""

import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import anyio
import msgspec
import typer
from stamina.instrumentation import set_on_retry_hooks

from .._catalog import Catalog
from .._results import ToolCall, ToolResult
from .._runtime import Runtime
from ..errors import MissingExtraError
from . import _tracker
from ._bench import bench
from ._load import find_tool, load_catalog
from ._options import BackendName, BackendOption, TimeoutOption, check_timeout
from ._report import make_console, show_summary, show_tools, watch_nothing, watch_progress
from ._run import SIGINT_CODE, Job, encode_record, invoke, run_job, stop_at_signal
from ._serve import serve
from ._usage import UsageError, reason

# Click's base of what is wrong with a command line, in whichever package this typer keeps it.
_CommandLineError: type[Exception] = typer.BadParameter.__bases__[0]


CatalogArgument = Annotated[
    str,
    typer.Argument(metavar="CATALOG", help="module:attribute, or the path of a Python file with :attribute."),
]
ToolArgument = Annotated[str, typer.Argument(metavar="TOOL", help="The tool's name.")]

app = typer.Typer(
    name="harbor-async",
    help="Run and serve the tools of a catalog, and keep a tracker. CATALOG is code: it is imported and runs.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(_tracker.app, name="tracker")
app.command()(bench)
app.command()(serve)


def run_app(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    # It would log each retry on standard error; results tell their attempts. A catalog may set hooks of its own.
    set_on_retry_hooks(())
    try:
        ended: Any = app(args=None if argv is None else list(argv), prog_name="harbor-async", standalone_mode=False)
        code = ended if isinstance(ended, int) else 0
        sys.stdout.flush()
    except (UsageError, MissingExtraError) as exc:
        code = _complain(str(exc))
    except _CommandLineError as exc:
        message: str = getattr(exc, "format_message", exc.__str__)()
        code = _complain(message) if message else 2  # no command: typer has shown the help
    except (KeyboardInterrupt, typer.Abort):
        code = SIGINT_CODE
    except BrokenPipeError:  # who read our output has gone; Python must not stumble over it again at its exit
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    return code


def _complain(message: str) -> int:
    print("harbor-async:", " ".join(message.split()), file=sys.stderr)  # noqa: T201 - one line, whatever its width
    return 2


def _show_version(is_wanted: bool) -> None:  # noqa: FBT001 - typer calls it so
    if is_wanted:
        typer.echo(version("harbor-async"))
        raise typer.Exit


@app.callback()
def options(
    *,
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Take the options that stand before a command."""


@app.command()
def tools(catalog: CatalogArgument) -> None:
    """List the catalog's tools."""
    show_tools(load_catalog(catalog).list())


@app.command()
def schema(catalog: CatalogArgument, tool: ToolArgument) -> None:
    """Print a tool's name, description and JSON Schemas."""
    found = find_tool(load_catalog(catalog), tool).tool
    shown = {
        "name": found.name,
        "description": found.description,
        "args_schema": found.args_schema,
        "out_schema": found.out_schema,
    }
    typer.echo(msgspec.json.format(msgspec.json.encode(shown), indent=2).decode())


@app.command()
def call(
    catalog: CatalogArgument,
    tool: ToolArgument,
    arguments: Annotated[str, typer.Argument(metavar="JSON", help="The arguments, a JSON object. -: standard input.")],
    backend: BackendOption = BackendName.ASYNCIO,
    timeout: TimeoutOption = None,
) -> int:
    """Run one call and print its result."""
    check_timeout(timeout)
    loaded = load_catalog(catalog)
    name = find_tool(loaded, tool).name
    data = sys.stdin.buffer.read() if arguments == "-" else os.fsencode(arguments)
    with redirect_stdout(sys.stderr):  # what a tool prints is no result
        result, code = anyio.run(_call, loaded, ToolCall("", name, data), timeout, backend=backend.value)
    if result is not None:
        sys.stdout.write(encode_record(result).decode())
    return code


async def _call(catalog: Catalog, call: ToolCall, timeout: float | None) -> tuple[ToolResult | None, int]:
    result: ToolResult | None = None
    code = 0

    def stop(exit_code: int, cause: str) -> None:
        nonlocal code
        code = code or exit_code
        print(f"harbor-async: ended by {cause}", file=sys.stderr)  # noqa: T201 - its output
        group.cancel_scope.cancel()

    async with Runtime(catalog) as runtime, anyio.create_task_group() as group:
        group.start_soon(stop_at_signal, stop)
        result = await invoke(runtime, call, timeout, stop)
        group.cancel_scope.cancel()
    return result, code or int(result is None or result.error is not None)


@app.command()
def run(
    catalog: CatalogArgument,
    calls: Annotated[
        str, typer.Argument(metavar="CALLS.jsonl", help="The file of calls, one a line. -: standard input.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="RESULTS.jsonl", help="The file of results, which is overwritten."),
    ] = None,
    backend: BackendOption = BackendName.ASYNCIO,
    max_running: Annotated[int, typer.Option("--max-running", metavar="N", min=1, help="Most calls at once.")] = 100,
    timeout: TimeoutOption = None,
) -> int:
    """Run a file of calls in parallel, and write one result a line as they end.

    Exit code: 0 if all succeeded, 1 if some failed, 2 for wrong usage, 130 after Ctrl-C.
    """
    check_timeout(timeout)
    loaded = load_catalog(catalog)
    with _open_calls(calls) as source, _open_results(output, source) as sink:
        is_shown = sys.stderr.isatty() and not os.isatty(sink)
        watch = watch_progress if is_shown else watch_nothing
        job = Job(loaded, source, sink, max_running, timeout)
        with redirect_stdout(sys.stderr):  # as above
            ending = anyio.run(run_job, job, watch, backend=backend.value)
    show_summary(ending, make_console(stderr=output is None))
    return ending.exit_code


@contextmanager
def _open_calls(path: str) -> Generator[int]:
    try:
        file = sys.stdin.buffer if path == "-" else open(path, "rb", buffering=0)  # noqa: PTH123, SIM115 - closed below
    except (AttributeError, OSError) as exc:  # sys.stdin is None when the descriptor is closed
        text = reason(exc) if isinstance(exc, OSError) else "standard input is closed"
        msg = f"cannot read the calls: {text}: {path}"
        raise UsageError(msg) from exc
    with file if path != "-" else nullcontext():
        yield file.fileno()


@contextmanager
def _open_results(path: Path | None, source: int) -> Generator[int]:
    """Open the file of results; ``source`` is the descriptor of the calls, which it must not be."""
    try:
        if path is not None and path.exists() and os.path.samestat(path.stat(), os.fstat(source)):
            msg = f"the results would overwrite the calls: {path}"
            raise UsageError(msg)
        file = sys.stdout.buffer if path is None else path.open("wb", buffering=0)
    except (AttributeError, OSError) as exc:
        text = f"{reason(exc)}: {path}" if isinstance(exc, OSError) else "standard output is closed"
        msg = f"cannot write the results: {text}"
        raise UsageError(msg) from exc
    with file if path is not None else nullcontext():
        yield file.fileno()
