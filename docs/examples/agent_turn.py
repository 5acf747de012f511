"""Turns of a model: it asks for tools, reads the answers, mends what was wrong, and says what it has found."""

from collections.abc import AsyncIterator

import anyio

import harbor_async as ha


@ha.tool(side_effect=ha.SideEffect.READ)
async def find_order(number: int) -> dict[str, str]:
    """Find an order.

    Args:
        number: The number on the invoice.
    """
    return {"order": f"O-{number}", "state": "shipped"}


@ha.tool(side_effect=ha.SideEffect.READ, policy=ha.ToolPolicy(timeout=2.0, attempts=2, wait=ha.Backoff(initial=0.1)))
async def track_parcel(order: str) -> str:
    """Say where the parcel of an order is."""
    raise TimeoutError("the carrier does not answer")


async def model(messages: list[dict[str, str]]) -> AsyncIterator[list[ha.ToolCall]]:
    """Stand for a model: its first call is wrong, which it reads and mends."""
    yield [ha.ToolCall("1", "find_order", '{"number": "seven"}')]
    if "expected integer" not in messages[-1]["content"]:
        return
    yield [
        ha.ToolCall("2", "find_order", '{"number": 7}'),
        ha.ToolCall("3", "track_parcel", '{"order": "O-7"}'),
    ]
    messages.append({"role": "assistant", "content": "Order O-7 was shipped; where it is I cannot say just now."})


async def main() -> None:
    catalog = ha.Catalog([find_order, track_parcel])
    messages = [{"role": "user", "content": "Where is order 7?"}]
    for tool in catalog.list():  # what the model is told of each tool
        print("tool:", tool.name, tool.args_schema["properties"])
    async with ha.Runtime(catalog) as rt:
        async for calls in model(messages):
            results = await rt.invoke_many(calls, timeout=5.0)
            messages += [{"role": "tool", "id": result.call_id, "content": result.content} for result in results]
    for message in messages:
        print(f"{message['role']}: {message['content']}")


if __name__ == "__main__":
    anyio.run(main)
