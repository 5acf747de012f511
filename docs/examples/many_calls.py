"""Many calls at once: one answer each, in order, whatever happens to the others."""

import anyio

import harbor_async as ha


@ha.tool
async def divide(a: float, b: float) -> float:
    """Divide a by b."""
    return a / b


@ha.tool(policy=ha.ToolPolicy(timeout=None))
async def wait_forever() -> None:
    """Never answer."""
    await anyio.sleep_forever()


calls = [
    ha.ToolCall("1", "divide", '{"a": 1, "b": 4}'),
    ha.ToolCall("2", "divide", '{"a": 1, "b": 0}'),
    ha.ToolCall("3", "divide", '{"a": 1'),
    ha.ToolCall("4", "wait_forever"),
    ha.ToolCall("5", "no_such_tool", "{}"),
]


async def main() -> None:
    catalog = ha.Catalog([divide, wait_forever])
    async with ha.Runtime(catalog, limits=ha.Limits(max_running=100)) as rt:
        for result in await rt.invoke_many(calls, timeout=0.05):
            print(result.call_id, result.outcome, result.error.category if result.error else result.value)

        async with rt.stream(calls[:3]) as stream:  # as they end; leaving the block cancels the rest
            print(sorted([result.call_id async for result in stream]))


if __name__ == "__main__":
    anyio.run(main)
