"""What the tests of the adapters share: frameworks where they are installed, and tools that end in all ways."""

import importlib
import os
from collections.abc import Iterable
from typing import Any

import anyio
import pytest

import harbor_async as ha
from harbor_async.errors import ToolError

WHO = ha.Identity("acme", "ann", "s1", scopes={"weather:read"})
STRANGER = ha.Identity("acme", "bob", "s2")


def framework(*modules: str) -> None:
    """Skip the tests of a file where a framework is missing; in the session that installs it that is an error."""
    for module in modules:
        if "HARBOR_FRAMEWORKS" in os.environ:
            importlib.import_module(module)
        pytest.importorskip(module, reason="only nox -s frameworks installs this framework")


class Crowd:
    """Counts how many calls run at once, and which ids were seen."""

    def __init__(self) -> None:
        self.running = self.peak = self.canceled = 0
        self.seen: list[tuple[str, str | None]] = []

    def catalog(self) -> ha.Catalog:
        """Return a catalog whose tools report here."""

        @ha.tool(name="weather.lookup", side_effect="read", scopes={"weather:read"})
        async def lookup(city: str, context: ha.ToolContext, *, days: int = 1) -> dict[str, int]:
            """Look up the weather."""
            self.seen.append((context.call_id, context.identity and context.identity.user))
            return {city: days}

        @ha.tool
        async def add(a: int, b: int) -> int:
            """Add two numbers."""
            return a + b

        @ha.tool
        async def hold(seconds: float) -> str:
            """Take a place for some seconds."""
            self.running += 1
            self.peak = max(self.peak, self.running)
            try:
                await anyio.sleep(seconds)
            except anyio.get_cancelled_exc_class():
                self.canceled += 1
                raise
            finally:
                self.running -= 1
            return "held"

        @ha.tool
        async def lose() -> None:
            """Look for what is not there."""
            raise ToolError("no such city", category="not_found")

        return ha.Catalog([lookup, add, hold, lose])


def names(tools: Iterable[Any]) -> list[str]:
    return [tool.name for tool in tools]
