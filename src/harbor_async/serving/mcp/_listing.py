"""What a catalog offers to MCP clients, at one moment."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_right
from typing import Any

import attrs

from ..._catalog import Catalog, CatalogFilter
from ..._context import Identity
from ..._tool import Tool
from ...export import mcp as dialect
from ._content import SCHEMA


@attrs.frozen(eq=False)
class Entry:
    """One tool that is offered.

    Attributes:
        tool: The tool.
        wire: As ``tools/list`` of 2026-07-28 has it.
        wrapped: As that of an older version has it.
        is_content: Whether its result is content, and has no structured form.
    """

    tool: Tool
    wire: dict[str, Any]
    wrapped: dict[str, Any]
    is_content: bool


def _entry(tool: Tool) -> Entry:
    is_content = tool.out_schema == SCHEMA
    wire, wrapped = dialect.tool(tool), dialect.tool(tool, wrap=True)
    if is_content:
        del wire["outputSchema"], wrapped["outputSchema"]
    return Entry(tool, wire, wrapped, is_content)


class Listing:
    """The tools that are offered, by the names that clients know."""

    def __init__(self, catalog: Catalog, filter: CatalogFilter | None) -> None:
        """Read ``catalog`` once; ``filter`` says which of its tools are offered, None: all."""
        entries = (_entry(tool) for tool in catalog.list(filter))
        self._entries = {entry.wire["name"]: entry for entry in entries}
        self._names = sorted(self._entries)

    def find(self, name: str) -> Entry | None:
        """Return the tool that clients call ``name``."""
        return self._entries.get(name)

    def page(
        self, cursor: str | None, size: int, identity: Identity | None, *, wrap: bool
    ) -> tuple[list[dict[str, Any]], str | None]:
        """Return the tools after those that ``cursor`` stands for, and the cursor of the next page if there is one.

        A cursor holds the last name that was listed, so that paging goes on when the catalog has changed meanwhile.

        Args:
            cursor: What an earlier page gave; None: from the beginning.
            size: Most tools of a page.
            identity: Who asks: tools with other scopes than the granted ones are left out. None: nobody is.
            wrap: Whether the client's protocol is older than 2026-07-28.

        Raises:
            ValueError: ``cursor`` is none of ours.
        """
        start = 0 if cursor is None else bisect_right(self._names, urlsafe_b64decode(cursor.encode()).decode())
        page: list[dict[str, Any]] = []
        for index in range(start, len(self._names)):
            entry = self._entries[self._names[index]]
            if identity is not None and not entry.tool.scopes <= identity.scopes:
                continue
            if len(page) == size:
                return page, urlsafe_b64encode(page[-1]["name"].encode()).decode()
            page.append(entry.wrapped if wrap else entry.wire)
        return page, None
