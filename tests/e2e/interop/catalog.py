"""What the clients of others are served."""

from typing import Annotated

import harbor_async as ha


@ha.tool(name="math.add", side_effect="pure")
async def add(a: int, b: int) -> dict[str, int]:
    """Add two numbers."""
    return {"sum": a + b}


@ha.tool(side_effect="read")
async def greet(name: Annotated[str, "Whom."], *, loud: bool = False) -> str:
    """Greet somebody."""
    return f"HELLO {name}" if loud else f"hello {name}"


@ha.tool
async def boom() -> None:
    """Fail."""
    raise ha.ToolError("no such city", category="not_found")


catalog = ha.Catalog([add, greet, boom])
