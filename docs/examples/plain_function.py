"""A plain function as a tool: it runs in a worker thread, and one that is late is left to itself."""

import time

import anyio

import harbor_async as ha


@ha.tool(side_effect=ha.SideEffect.READ, policy=ha.ToolPolicy(timeout=0.2, attempts=3))
def count_lines(path: str, seconds: float) -> int:
    """Count the lines of a file, on a disk that takes its time."""
    time.sleep(seconds)
    return len(path)


async def main() -> None:
    async with ha.Runtime(ha.Catalog([count_lines]), limits=ha.Limits(max_threads=10)) as rt:
        for seconds in (0.0, 0.5):
            result = await rt.invoke("count_lines", {"path": "report.txt", "seconds": seconds})
            background = result.error is not None and result.error.background
            print(f"{result.outcome}, attempts={result.attempts}, {result.stop_reason=}, {background=}")


if __name__ == "__main__":
    anyio.run(main)
