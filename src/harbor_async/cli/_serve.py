"""The command ``serve``."""

import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Annotated, Any, Final

import anyio
import typer

from .._catalog import Catalog
from .._limits import Limits
from .._runtime import Runtime
from ..errors import InvalidToolError
from ._load import load_catalog, load_function
from ._options import BackendName, BackendOption, TimeoutOption, check_timeout
from ._run import stop_at_signal
from ._usage import UsageError, reason

if TYPE_CHECKING:
    from ..serving.mcp import MCPServer

_LAST_PORT: Final = 65_535


def serve(
    catalog: Annotated[
        str, typer.Argument(metavar="CATALOG", help="module:attribute, or the path of a Python file with :attribute.")
    ],
    *,
    http: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Serve over HTTP, at /mcp.", show_default="standard input and output"),
    ] = None,
    backend: BackendOption = BackendName.ASYNCIO,
    name: Annotated[str, typer.Option(help="What clients are told that they talk to.")] = "harbor-async",
    auth: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FUNCTION",
            help="Takes a bearer token and returns an Identity, or None to refuse it.",
            show_default="everybody may ask",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A Host to answer to.", show_default="this machine's own")
    ] = None,
    allow_origin: Annotated[
        list[str] | None, typer.Option(metavar="URL", help="An Origin to answer to.", show_default="the hosts")
    ] = None,
    max_running: Annotated[int, typer.Option(metavar="N", min=1, help="Most calls at once.")] = 1000,
    max_queued: Annotated[
        int, typer.Option(metavar="N", min=0, help="Most calls that wait; more are rejected.")
    ] = 10_000,
    timeout: TimeoutOption = None,
    drain: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="How long calls may take to end when the server is to end.")
    ] = 10.0,
) -> int:
    """Serve the catalog's tools over the Model Context Protocol.

    SIGTERM and Ctrl-C drain it: no further call is taken, and those that run have time to end. A second one ends it at
    once. Exit code: 0, or 130 or 143 if calls had to be canceled.
    """
    from ..serving.mcp import MCPServer  # noqa: PLC0415 - an extra, and slow to import

    check_timeout(timeout)
    if http is None and (auth or allow_host or allow_origin):
        msg = "--auth, --allow-host and --allow-origin are for --http"
        raise UsageError(msg)
    loaded = load_catalog(catalog)
    options: dict[str, Any] | None = None
    if http is not None:
        host, port = _split(http)
        options = {
            "host": host,
            "port": port,
            "authenticate": None if auth is None else load_function("--auth", auth),
            "allowed_hosts": allow_host,
            "allowed_origins": allow_origin,
        }

    async def main() -> int:
        async with Runtime(loaded, limits=Limits(max_running=max_running, max_queued=max_queued)) as runtime:
            return await _serve(MCPServer(runtime, name=name, timeout=timeout), loaded, options, drain)

    try:
        with redirect_stdout(sys.stderr):  # standard output is for messages
            return anyio.run(main, backend=backend.value)
    except BaseExceptionGroup as exc:  # of task groups, round what one of their tasks raised
        raise _innermost(exc) from exc


def _innermost(error: BaseException) -> BaseException:
    inner: tuple[BaseException, ...] = getattr(error, "exceptions", ())
    return _innermost(inner[0]) if len(inner) == 1 else error


async def _serve(server: "MCPServer", catalog: Catalog, http: dict[str, Any] | None, drain: float) -> int:
    stop = anyio.Event()
    code = cut = 0

    def end(exit_code: int, _: str) -> None:
        nonlocal code
        code = exit_code
        stop.set()

    async with anyio.create_task_group() as group:
        group.start_soon(stop_at_signal, end)
        if http is None:
            cut = await server.serve_stdio(stop=stop, drain=drain)
        else:
            cut = await _serve_http(server, catalog, stop, http | {"drain": drain})
        group.cancel_scope.cancel()
    return code if cut else 0


async def _serve_http(server: "MCPServer", catalog: Catalog, stop: anyio.Event, options: dict[str, Any]) -> int:
    cut = 0

    async def run(*, task_status: anyio.abc.TaskStatus[int]) -> None:
        nonlocal cut
        try:
            cut = await server.serve_http(**options, stop=stop, task_status=task_status)
        except OSError as exc:
            msg = f"cannot listen at {options['host']}:{options['port']}: {reason(exc)}"
            raise UsageError(msg) from exc
        except InvalidToolError as exc:
            msg = f"{options['host']} can be reached from elsewhere: say by --allow-host under which names"
            raise UsageError(msg) from exc

    async with anyio.create_task_group() as group:
        port = await group.start(run)
        text = f"harbor-async: {len(catalog)} tools at http://{options['host']}:{port}/mcp"
        print(text, file=sys.stderr, flush=True)  # noqa: T201 - its output
    return cut


def _split(address: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isdecimal() and int(port) <= _LAST_PORT):
        msg = f"--http: expected HOST:PORT, as 127.0.0.1:8000; got {address!r}"
        raise UsageError(msg)
    return host, int(port)
