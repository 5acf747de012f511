"""Whose call it is: scopes and approval."""

import anyio

import harbor_async as ha


async def ask_a_person(call: ha.ToolCall, tool: ha.Tool, identity: ha.Identity | None) -> bool:
    """Stand in for a dialogue: what a person would be asked, and a refusal."""
    print(f"may {identity.user if identity else 'the program'} call {tool.name}?")
    return False


@ha.tool(scopes={"orders:read"})
async def find_order(number: int) -> str:
    """Find an order."""
    return f"order {number}"


@ha.tool(scopes={"orders:write"}, side_effect=ha.SideEffect.WRITE, approve=ask_a_person)
async def cancel_order(number: int) -> str:
    """Cancel an order."""
    return f"canceled {number}"


ann = ha.Identity("acme", "ann", "session-1", scopes={"orders:read", "orders:write"})
bob = ha.Identity("acme", "bob", "session-2", scopes={"orders:read"})


async def main() -> None:
    async with ha.Runtime(ha.Catalog([find_order, cancel_order])) as rt:
        for who, name in ((bob, "find_order"), (bob, "cancel_order"), (ann, "cancel_order")):
            result = await rt.invoke(name, {"number": 7}, identity=who)
            print(who.user, name, result.outcome, result.error.message if result.error else result.value)


if __name__ == "__main__":
    anyio.run(main)
