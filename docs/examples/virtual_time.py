"""A minute of timeouts, tested at once."""

import time

import anyio

import harbor_async as ha
from harbor_async.testing import run_virtual


@ha.tool(side_effect=ha.SideEffect.READ, policy=ha.ToolPolicy(timeout=30.0, attempts=2, wait=ha.Backoff(jitter=0)))
async def slow() -> str:
    """Take an hour."""
    await anyio.sleep(3600)
    return "done"


async def times_out_twice() -> None:
    async with ha.Runtime(ha.Catalog([slow])) as rt:
        start = anyio.current_time()
        result = await rt.invoke("slow", {})
        print(result.error and result.error.category, result.attempts, f"{anyio.current_time() - start:.1f}")


def main() -> None:
    started = time.monotonic()
    run_virtual(times_out_twice, backend="asyncio")
    run_virtual(times_out_twice, backend="trio")
    print("in real seconds:", round(time.monotonic() - started))


if __name__ == "__main__":
    main()
