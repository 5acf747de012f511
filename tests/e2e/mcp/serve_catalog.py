"""A catalog for ``harbor-async serve``."""

import os
import subprocess
import sys

import anyio

from harbor_async import Catalog, ToolPolicy, tool


@tool
def talk() -> str:
    """Print, and let a child print."""
    print("by print", flush=True)  # noqa: T201 - where it goes is under test
    subprocess.run([sys.executable, "-c", "print('by a child')"], check=True)
    return "said"


@tool(policy=ToolPolicy(timeout=None, attempts=1))
async def linger(seconds: float) -> str:
    """Take time."""
    os.write(2, b"begun\n")
    try:
        await anyio.sleep(seconds)
    except anyio.get_cancelled_exc_class():
        os.write(2, b"canceled\n")
        raise
    return "lingered"


catalog = Catalog([talk, linger])
