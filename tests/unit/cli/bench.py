"""Measures in this process, in virtual time: what the command's process for a backend does, and what the command keeps.

It looks inside, for a process of its own cannot be run in virtual time.
"""

import anyio

import harbor_async as ha
from harbor_async.cli._bench_load import Loop, Order
from harbor_async.cli._bench_loop import Bench
from harbor_async.cli._bench_record import Record


def make_order(load, tool="tool", catalog="shop.py", **options):
    given = {"loop": Loop.ASYNCIO, "arguments": b"", "timeout": None, "limits": {}} | options
    return Order(load=load, tool=tool, catalog=catalog, **given)


async def measure(tool, load, *, arguments="", limits=None, timeout=None, stop_at=None):
    """Measure a function under a load, stop at a time if one is given, and return the record."""
    descriptor = tool if isinstance(tool, ha.ToolDescriptor) else ha.describe(tool, policy=ha.ToolPolicy(timeout=None))
    record = Record("asyncio", make_order(load))

    async def send(sample):
        record.add(sample)

    async def stop():
        await anyio.sleep(stop_at)
        bench.stop(0, "")

    async with (
        ha.Runtime(ha.Catalog([descriptor]), limits=limits) as runtime,
        anyio.create_task_group() as group,
    ):
        call = ha.ToolCall("", descriptor.name, arguments)
        bench = Bench(runtime, call, load, timeout, send, anyio.current_time)
        if stop_at is not None:
            group.start_soon(stop)
        record.end(await bench.run())
        group.cancel_scope.cancel()
    return record
