"""The table, row by row: each time a tool is cut off or ends late, and what its caller gets."""

import anyio

import harbor_async as ha
from harbor_async.testing import HANG, Fault, block, inject, run_virtual

POLICY = ha.ToolPolicy(timeout=1.0, attempts=1)


@ha.tool(policy=POLICY)
async def work() -> str:
    """Work, in no time."""
    return "done"


@ha.tool(name="work", policy=POLICY, side_effect=ha.SideEffect.WRITE)
async def write() -> str:
    """Write, in no time."""
    return "written"


@ha.tool(name="work", policy=POLICY)
async def compute() -> str:
    """Keep the event loop for two seconds."""
    block(2.0)
    return "computed"


async def cancel_from_within() -> str:
    """Let a cancellation out that nobody outside has asked for, as some libraries do."""
    with anyio.CancelScope() as scope:
        scope.cancel()
        try:
            await anyio.sleep(1)
        except anyio.get_cancelled_exc_class() as exc:
            canceled = exc
            raise
    raise canceled


ROWS = {
    "its attempt's timeout": inject(work, [HANG]),
    "a TimeoutError of its own": inject(work, [TimeoutError("the index is slow")]),
    "a cancellation of its own": ha.describe(cancel_from_within, name="work", policy=POLICY),
    "late, the cancel swallowed": inject(work, [Fault(delay=2.0, swallow=True)]),
    "late, and it has an effect": inject(write, [Fault(delay=2.0, swallow=True)]),
    "cut off, and it has an effect": inject(write, [HANG]),
    "the cancel made an error": inject(work, [Fault(delay=2.0, swallow=True, error=KeyError("x"))]),
    "the event loop blocked": compute,
}


def line(row: str, result: ha.ToolResult) -> str:
    error = result.error
    words = [result.outcome, result.late and "late"]
    if error is not None:
        words += [error.category, result.stop_reason, error.ambiguous and "ambiguous"]
        words += [error.cause and f"caused by {type(error.cause).__name__}"]
    return f"{row:30}" + ", ".join(filter(None, words))


async def ask() -> list[str]:
    lines = []
    for row, tool in ROWS.items():
        async with ha.Runtime(ha.Catalog([tool])) as rt:
            lines.append(line(row, await rt.invoke("work")))
    async with ha.Runtime(ha.Catalog([inject(work, [HANG])])) as rt:
        lines.append(line("its deadline", await rt.invoke("work", timeout=0.5)))
        async with rt.batch() as batch:
            handle = batch.start(ha.ToolCall("1", "work"))
            await anyio.sleep(0.5)
            handle.cancel()
        lines.append(line("its handle", await handle.result()))
        with anyio.move_on_after(0.5) as caller:
            await rt.invoke("work")
        lines.append(f"{'its caller':30}" + ("no result" if caller.cancelled_caught else "a result"))
    return lines


def main() -> None:
    on_asyncio, on_trio = run_virtual(ask, backend="asyncio"), run_virtual(ask, backend="trio")
    print(*on_asyncio, f"the same on trio: {on_asyncio == on_trio}", sep="\n")


if __name__ == "__main__":
    main()
