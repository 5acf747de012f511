"""A sink that writes what happens to calls, and a tool that tells of its progress."""

import anyio

import harbor_async as ha


class Printer:
    """An event sink."""

    async def emit(self, event: ha.ToolEvent) -> None:
        """Write one event."""
        details = [f"{name}={value}" for name in FIELDS if (value := getattr(event, name))]
        print(event.call_id, event.type, *details)


FIELDS = ("attempts", "outcome", "category", "error_class", "stop_reason", "wait", "done", "total", "message")


@ha.tool(policy=ha.ToolPolicy(attempts=2, wait=ha.Backoff(initial=0.01, jitter=0)))
async def copy_files(count: int, context: ha.ToolContext) -> int:
    """Copy files, and lose the connection once."""
    for number in range(1, count + 1):
        context.report_progress(number, count, "copying")
        await anyio.sleep(0.001)
        if context.attempt == 1:
            raise ConnectionResetError
    return count


async def main() -> None:
    async with ha.Runtime(ha.Catalog([copy_files]), sinks=[Printer()]) as rt:
        await rt.invoke("copy_files", {"count": 2}, id="call-1")
        await rt.invoke("copy_files", {"count": "two"}, id="call-2")


if __name__ == "__main__":
    anyio.run(main)
