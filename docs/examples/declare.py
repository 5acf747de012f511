"""What a tool can declare."""

import json
from typing import Annotated, Literal

import anyio
import attrs
from msgspec import Meta

import harbor_async as ha
from harbor_async.schema import Name


@attrs.frozen
class Transition:
    id: str
    to_state: Annotated[Literal["open", "closed"], Name("toState")]
    comments: list[str] = attrs.field(factory=list, metadata={"description": "Notes to leave behind, in order."})


@ha.tool(
    name="issue.transition",
    side_effect=ha.SideEffect.WRITE,
    idempotent=True,
    scopes={"issues:write"},
    tags={"issues"},
    examples=[ha.ToolExample({"id": "T-1", "toState": "closed"}, description="Close an issue.")],
)
async def transition(change: Transition, /) -> str:
    """Move an issue to another state."""
    return f"{change.id} is {change.to_state}"


@ha.tool
async def pick(context: ha.ToolContext, count: Annotated[int, Meta(ge=1, le=7)], *, dry_run: bool = False) -> str:
    """Pick some numbers.

    Args:
        count: How many.
        dry_run: Whether only to say what would be done.
    """
    return f"attempt {context.attempt}: {count} numbers, {dry_run=}"


async def main() -> None:
    print(json.dumps(transition.tool.args_schema, indent=2))
    print(json.dumps(pick.tool.args_schema["properties"]))
    async with ha.Runtime(ha.Catalog([transition, pick])) as rt:
        print((await rt.invoke("pick", {"count": 3})).content)


if __name__ == "__main__":
    anyio.run(main)
