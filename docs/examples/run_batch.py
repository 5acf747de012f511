"""A batch: handles that are canceled one by one, the first success of several, and all or none."""

import anyio

import harbor_async as ha


@ha.tool(side_effect=ha.SideEffect.READ, policy=ha.ToolPolicy(attempts=1))
async def ask(mirror: str) -> str:
    """Ask a mirror: one is down, one is quick, one is slow."""
    if mirror == "down":
        raise ConnectionRefusedError("nobody listens")
    await anyio.sleep({"quick": 0.05, "slow": 60}[mirror])
    return f"answered by {mirror}"


calls = [ha.ToolCall(mirror, "ask", {"mirror": mirror}) for mirror in ("slow", "down", "quick")]


def show(title: str, results: list[ha.ToolResult]) -> None:
    print(title, [result.value or (result.error and result.error.category.value) for result in results])


async def main() -> None:
    async with ha.Runtime(ha.Catalog([ask])) as rt:
        async with rt.batch(timeout=30.0) as batch:
            slow, down, quick = [batch.start(call) for call in calls]
            print("first:", (await quick.result()).value)
            slow.cancel()
        show("handles:", [await handle.result() for handle in (slow, down, quick)])

        show("first success:", await rt.invoke_many(calls, join=ha.Join.FIRST_SUCCESS))
        show("all or none:", await rt.invoke_many([*calls, ha.ToolCall("4", "aks")], atomic=True))


if __name__ == "__main__":
    anyio.run(main)
