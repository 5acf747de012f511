"""The command ``bench``: its options."""

import math
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from .._policy import check_seconds
from ..errors import InvalidToolError, MissingExtraError
from ._bench_load import SYNTHETIC, Arrivals, Load, Loop, Order
from ._options import TimeoutOption, check_timeout
from ._usage import UsageError

_PACKAGES = {"hdrh", "psutil", "pygal"}
_LOAD, _LIMITS, _RESULTS = "The load", "Limits", "Results"


def bench(
    catalog: Annotated[
        str,
        typer.Argument(metavar="[CATALOG]", help=f"As for the other commands. {SYNTHETIC}: the built-in tools."),
    ] = SYNTHETIC,
    tool: Annotated[
        str | None,
        typer.Argument(
            metavar="[TOOL]", help="The tool's name. Built in are sleep, cpu, fail and tail.", show_default="sleep"
        ),
    ] = None,
    arguments: Annotated[
        str, typer.Argument(metavar="[JSON]", help="The arguments of every call, a JSON object. -: standard input.")
    ] = "{}",
    *,
    backend: Annotated[
        list[Loop] | None,
        typer.Option(help="The event loop to measure on. Given again: one after the other.", show_default="asyncio"),
    ] = None,
    in_flight: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Closed loop: so many calls are always under way.",
            show_default="100",
            rich_help_panel=_LOAD,
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            help="Open loop: so many calls a second, whatever becomes of them. Their time runs from when they are due.",
            rich_help_panel=_LOAD,
        ),
    ] = None,
    arrivals: Annotated[
        Arrivals | None,
        typer.Option(help="Open loop: what lies between two calls.", show_default="constant", rich_help_panel=_LOAD),
    ] = None,
    warm_up: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="How long to make calls before any counts.", rich_help_panel=_LOAD),
    ] = 1.0,
    duration: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="How long to make calls that count.", show_default="10", rich_help_panel=_LOAD
        ),
    ] = None,
    count: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="How many calls to make, in place of a time.", rich_help_panel=_LOAD),
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Of Poisson arrivals and the built-in tools.", rich_help_panel=_LOAD)
    ] = 0,
    max_running: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Most calls that run at once.", show_default="none", rich_help_panel=_LIMITS
        ),
    ] = None,
    max_queued: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Most calls that wait for a place; further ones are rejected.",
            show_default="none",
            rich_help_panel=_LIMITS,
        ),
    ] = None,
    max_threads: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Most worker threads for tools that are no coroutines.",
            show_default="40",
            rich_help_panel=_LIMITS,
        ),
    ] = None,
    timeout: TimeoutOption = None,
    json: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the results as JSON.", rich_help_panel=_RESULTS),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write them as a page with plots.", rich_help_panel=_RESULTS),
    ] = None,
    hdr_log: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the latencies of each second in the HdrHistogram log format.",
            rich_help_panel=_RESULTS,
        ),
    ] = None,
) -> int:
    """Measure how a tool bears many calls at once.

    The tool is run for real, effects and all, as often as it can be in the time.

    Exit code: 0 if all calls succeeded, 1 if some failed, 2 for wrong usage, 130 after Ctrl-C.
    """
    check_timeout(timeout)
    load = _make_load(
        in_flight=in_flight,
        rate=rate,
        arrivals=arrivals,
        warm_up=warm_up,
        duration=duration,
        count=count,
        seed=seed,
    )
    if tool is None:
        if catalog != SYNTHETIC:
            msg = f"which tool of {catalog}? 'harbor-async tools' lists what there is"
            raise UsageError(msg)
        tool = "sleep"
    for text in (catalog, tool):
        try:
            text.encode()
        except UnicodeEncodeError as exc:
            msg = f"expected a name in UTF-8; got {text!r}"
            raise UsageError(msg) from exc
    limits = {"max_running": max_running, "max_queued": max_queued, "max_threads": max_threads}
    given = {name: value for name, value in limits.items() if value is not None}
    data = sys.stdin.buffer.read() if arguments == "-" else os.fsencode(arguments)
    loops = backend or [Loop.ASYNCIO]
    if Loop.UVLOOP in loops and find_spec("uvloop") is None:
        feature, extra = "--backend uvloop", "uvloop"
        raise MissingExtraError(feature, extra)
    try:
        from ._bench_main import Outputs, run_bench  # noqa: PLC0415 - loads what only this command needs
    except ModuleNotFoundError as exc:
        if (exc.name or "").partition(".")[0] not in _PACKAGES:
            raise
        feature, extra = "harbor-async bench", "bench"
        raise MissingExtraError(feature, extra) from exc
    orders = [
        Order(loop=loop, load=load, catalog=catalog, tool=tool, arguments=data, timeout=timeout, limits=given)
        for loop in loops
    ]
    return run_bench(orders, Outputs(json, html, hdr_log))


def _make_load(
    *,
    in_flight: int | None,
    rate: float | None,
    arrivals: Arrivals | None,
    warm_up: float,
    duration: float | None,
    count: int | None,
    seed: int,
) -> Load:
    """Return the load that the options mean.

    Raises:
        UsageError: They contradict each other, or one makes no sense.
    """
    try:
        check_seconds("--warm-up", warm_up, optional=False)
        check_seconds("--duration", duration)
    except InvalidToolError as exc:
        raise UsageError(str(exc)) from exc
    for problem, is_there in {
        f"--rate: expected a finite number of calls a second, more than 0; got {rate}": rate is not None
        and not 0 < rate < math.inf,
        "--duration: expected more than 0 seconds": duration == 0,
        "--in-flight is for a closed loop, --rate for an open one: give one of them": None not in (in_flight, rate),
        "--duration and --count both say when it ends: give one of them": None not in (duration, count),
        "--arrivals needs --rate: in a closed loop a call follows the end of another": rate is None
        and arrivals is not None,
    }.items():
        if is_there:
            raise UsageError(problem)
    return Load(
        in_flight=in_flight or 100,
        rate=rate,
        arrivals=arrivals or Arrivals.CONSTANT,
        seed=seed,
        warm_up=warm_up,
        duration=10.0 if duration is None and count is None else duration,
        count=count,
    )
