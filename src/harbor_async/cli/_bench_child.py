"""The process that measures on one backend: it takes an order from its standard input, and answers on its output.

The end of its input ends the measuring, so that it never outlives the command; signals are the command's to heed.
"""

import os
import sys
from contextlib import suppress
from random import Random
from typing import Any

import anyio
import msgspec
from stamina.instrumentation import set_on_retry_hooks

from .._catalog import Catalog
from .._limits import Limits
from .._pipe import Reader, Writer
from .._results import ToolCall
from .._runtime import Runtime
from ..errors import InvalidArgumentsError
from ._bench_load import SYNTHETIC, Loop, Message, Order, Refused
from ._bench_loop import Bench
from ._bench_tools import synthetic_catalog
from ._load import find_tool, load_catalog
from ._usage import UsageError

_OPTIONS: dict[Loop, dict[str, Any]] = {
    Loop.ASYNCIO: {"backend": "asyncio"},
    Loop.TRIO: {"backend": "trio"},
    Loop.UVLOOP: {"backend": "asyncio", "backend_options": {"use_uvloop": True}},
}


def main() -> None:
    """Measure what standard input says."""
    # The tool gets neither: what it prints is no answer to the command, and what it reads no order of it.
    orders, answers = os.dup(0), os.dup(1)
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - a descriptor is wanted
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    set_on_retry_hooks(())  # as in the other commands
    order = msgspec.json.decode(_read_line(orders), type=Order)
    try:
        catalog, limits = _prepare(order)
    except UsageError as exc:
        os.write(answers, _encode(Refused(str(exc))))
        return
    anyio.run(_measure, order, catalog, limits, orders, answers, **_OPTIONS[order.loop])


def _read_line(fd: int) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        chunk = os.read(fd, 65536)
        if not chunk:
            sys.exit(1)  # the command has gone
        line += chunk
    return line


def _prepare(order: Order) -> tuple[Catalog, Limits]:
    is_own = order.catalog == SYNTHETIC
    # Another chance than that of the arrivals, or a call's time would depend on the wait for it.
    catalog = synthetic_catalog(Random(f"tools {order.load.seed}")) if is_own else load_catalog(order.catalog)  # noqa: S311 - no secret
    limits = Limits(**order.limits)
    try:
        find_tool(catalog, order.tool).decode(order.arguments, limits)
    except InvalidArgumentsError as exc:
        msg = f"tool {order.tool!r}: {exc}"
        raise UsageError(msg) from exc
    return catalog, limits


async def _measure(order: Order, catalog: Catalog, limits: Limits, orders: int, answers: int) -> None:
    writer = Writer(answers)

    async def send(message: Message) -> None:
        writer.add(_encode(message))
        try:
            await writer.flush()
        except OSError:  # the command has gone
            bench.stop(1, "")

    async def heed_the_end() -> None:
        with suppress(OSError):
            while await reader.read():
                pass
        bench.stop(0, "")

    reader = Reader(orders)
    async with Runtime(catalog, limits=limits) as runtime, anyio.create_task_group() as group:
        call = ToolCall("", order.tool, order.arguments)
        bench = Bench(runtime, call, order.load, order.timeout, send)
        group.start_soon(heed_the_end)
        await send(await bench.run())
        group.cancel_scope.cancel()


def _encode(message: Message) -> bytes:
    return msgspec.json.encode(message) + b"\n"


if __name__ == "__main__":
    main()
