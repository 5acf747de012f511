"""What runs at once: places, the limit of a tool, an exclusive group, tenants; what is in hand, and the end."""

import anyio

import harbor_async as ha


@ha.tool(exclusive="browser")
async def click(button: str) -> str:
    """Click in the one browser there is: one call at a time, in the order of the calls."""
    print("click begins", button)
    await anyio.sleep(0.02)
    print("click ends", button)
    return button


@ha.tool(exclusive=lambda account, amount: account)
async def book(account: str, amount: int) -> int:
    """Book an amount: one call at a time for each account."""
    await anyio.sleep(0.01)
    return amount


@ha.tool(max_running=2, weight=4)
async def render(page: int) -> str:
    """Render a page: two at once, each in four places."""
    await anyio.sleep(0.01)
    return f"page {page}"


@ha.tool(exclusive="browser")
async def log_in(user: str, context: ha.ToolContext) -> str:
    """Use another tool of the same group from within: it needs no turn of its own."""
    return await context.call(click, f"log in {user}")


async def main() -> None:
    limits = ha.Limits(max_running=10, max_queued=100, max_running_per_tenant=5)
    async with ha.Runtime(ha.Catalog([click, book, render, log_in]), limits=limits) as rt:
        clicks = [ha.ToolCall(button, "click", {"button": button}) for button in ("ok", "cancel")]
        bookings = [ha.ToolCall(account, "book", {"account": account, "amount": 1}) for account in "aab"]
        pages = [ha.ToolCall(str(page), "render", {"page": page}) for page in range(5)]
        results = await rt.invoke_many([*clicks, *bookings, *pages], timeout=30)
        print(len(results), "answers")

        print((await rt.invoke("log_in", {"user": "ann"})).value)

        async with rt.batch() as batch:
            for page in pages:
                batch.start(page)
            now = rt.statistics()
            print(now.running, "running", now.queued, "queued", dict(now.queued_by_tool))
            print(await rt.drain(timeout=10), "left")
        print((await rt.invoke("click", {"button": "ok"})).content)


if __name__ == "__main__":
    anyio.run(main)
