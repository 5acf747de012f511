"""Tools for the tests of the command line."""

import sys
from pathlib import Path

import anyio

import harbor_async as ha

print("what a catalog prints is no result")  # noqa: T201 - it must not come out with the results


@ha.tool
async def add(a: int, b: int = 1) -> int:
    """Add."""
    print("what a tool prints is no result")  # noqa: T201 - as above
    return a + b


@ha.tool
async def size(text: str) -> int:
    """Say how long a text is."""
    return len(text)


@ha.tool(side_effect="write", policy=ha.ToolPolicy(timeout=None))
async def wait() -> None:
    """Say that it has begun, and wait for ever."""
    print("begun", file=sys.stderr, flush=True)  # noqa: T201 - the test waits for it
    await anyio.sleep_forever()


@ha.tool(policy=ha.ToolPolicy(timeout=None))
async def stay() -> None:
    """Wait, and heed no cancellation."""
    with anyio.CancelScope(shield=True):
        await wait()


@ha.tool
async def leave() -> None:
    """End the program."""
    sys.exit(7)


@ha.tool
async def peak() -> int:
    """Return the most KiB of memory that this process has had."""
    status = Path("/proc/self/status").read_text()  # noqa: ASYNC240 - no disk is behind it
    return int(status.partition("VmHWM:")[2].split()[0])


catalog = ha.Catalog([add, size, wait, stay, leave, peak])
not_a_catalog = [add]
