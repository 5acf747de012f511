"""The tools of a listing as descriptors."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

import attrs
from mcp import types as wire

from ..._catalog import Catalog, CatalogFilter
from ..._categories import SideEffect, Transport
from ..._context import ToolContext
from ..._declaration import ToolOptions
from ..._descriptor import ToolDescriptor
from ..._foreign import describe_foreign
from ..._tool import Tool
from ...errors import DuplicateToolError, InvalidToolError, RegistrationError, SchemaBuildError, ToolNotFoundError

_LOG: Final = logging.getLogger("harbor_async.providers.mcp")

Call: TypeAlias = Callable[[str, dict[str, Any], ToolContext], Awaitable[Any]]
"""Calls a tool by its name on the server."""

Filter: TypeAlias = CatalogFilter | Callable[[Tool], bool]

_OWN: Final = frozenset({"name", "description"})


@attrs.frozen
class Naming:
    """How the tools of one server are shown.

    Attributes:
        server: The server's name.
        prefix: Stands before each tool's name.
        filter: Which tools are taken; None: all.
        trusted: Whether annotations are believed.
        options: What is said of each tool, in place of what its annotations say.
    """

    server: str
    prefix: str
    filter: Filter | None
    trusted: bool
    options: ToolOptions

    def __attrs_post_init__(self) -> None:
        """Check the values that a caller has given."""
        if own := _OWN & self.options.keys():
            msg = f"options of a server's tools: {', '.join(sorted(own))} comes from the server; use prefix= for names"
            raise InvalidToolError(msg)
        unknown = self.options.keys() - ToolOptions.__annotations__.keys()
        if unknown:
            msg = f"options of a server's tools: unknown option {', '.join(sorted(unknown))}"
            raise InvalidToolError(msg)
        if not isinstance(self.prefix, str) or not (self.filter is None or _is_filter(self.filter)):
            msg = "expected text for prefix=, and a CatalogFilter or a function of a Tool for filter="
            raise InvalidToolError(msg)

    def takes(self, tool: Tool) -> bool:
        """Say whether a tool is wanted."""
        if self.filter is None:
            return True
        return self.filter.matches(tool) if isinstance(self.filter, CatalogFilter) else self.filter(tool)


def _is_filter(value: object) -> bool:
    return isinstance(value, CatalogFilter) or callable(value)


def effect_of(annotations: wire.ToolAnnotations | None, *, trusted: bool) -> ToolOptions:
    """Return side effect and idempotence as annotations say them.

    They are hints, and "clients should never make tool use decisions based on annotations received from untrusted
    servers" (the specification of 2025-11-25, server/tools). A tool whose hints are not believed has an effect on the
    world that must not be repeated: it is retried only where nothing was sent, or where the server has refused.

    Args:
        annotations: What the server says; a hint that is missing has the protocol's default.
        trusted: Whether it is believed.
    """
    hints = (annotations if trusted else None) or wire.ToolAnnotations()
    is_open = hints.open_world_hint is not False
    if hints.read_only_hint:
        return {"side_effect": SideEffect.READ if is_open else SideEffect.PURE}
    return {
        "side_effect": SideEffect.EXTERNAL if is_open else SideEffect.STATEFUL,
        "idempotent": bool(hints.idempotent_hint),
    }


def make(tool: wire.Tool, naming: Naming, call: Call) -> ToolDescriptor[..., Any]:
    """Return the descriptor of a remote tool.

    Raises:
        RegistrationError: Its schema of the arguments is none, or an option makes no sense.
    """

    async def run(args: dict[str, Any], context: ToolContext, /) -> Any:
        return await call(tool.name, args, context)

    options: ToolOptions = {
        "transport": Transport.MCP,
        "source": naming.server,
        **effect_of(tool.annotations, trusted=naming.trusted),
        **naming.options,
        "name": naming.prefix + tool.name,
        "description": tool.description or tool.title or tool.name,
    }
    try:
        return describe_foreign(run, args_schema=tool.input_schema, out_schema=tool.output_schema, **options)
    except SchemaBuildError as exc:
        if tool.output_schema is None or "out_schema" not in str(exc):
            raise
        _LOG.warning("MCP server %r: results of %r are not checked: %s", naming.server, tool.name, exc)
        return describe_foreign(run, args_schema=tool.input_schema, **options)


class Shelf:
    """What one server has in the catalog. Not for several tasks at once."""

    def __init__(self, catalog: Catalog, naming: Naming, call: Call) -> None:
        """Begin with nothing."""
        self._catalog = catalog
        self._naming = naming
        self._call = call
        self._made: dict[str, tuple[wire.Tool, ToolDescriptor[..., Any] | None]] = {}
        self.names: tuple[str, ...] = ()

    def put(self, listing: list[wire.Tool]) -> None:
        """Show just the tools of ``listing``, in one step; one that has not changed keeps its descriptor.

        A tool with a schema that is none, or a name that is taken, is left out, with a warning in the log.
        """
        made: dict[str, tuple[wire.Tool, ToolDescriptor[..., Any] | None]] = {}
        for tool in listing:
            known = self._made.get(tool.name)
            made.setdefault(tool.name, known if known is not None and known[0] == tool else (tool, self._make(tool)))
        self._made = made
        found = [descriptor for _, descriptor in made.values() if descriptor is not None]
        self._show({descriptor.name: descriptor for descriptor in found if self._naming.takes(descriptor.tool)})

    def clear(self) -> None:
        """Take out everything."""
        self._made = {}
        self._show({})

    def _make(self, tool: wire.Tool) -> ToolDescriptor[..., Any] | None:
        try:
            return make(tool, self._naming, self._call)
        except RegistrationError as exc:
            self._leave_out(tool.name, exc)
            return None

    def _leave_out(self, name: str, why: Exception) -> None:
        _LOG.warning("MCP server %r: the tool %r is left out: %s", self._naming.server, name, why)

    def _show(self, wanted: "dict[str, ToolDescriptor[..., Any]]") -> None:
        old = {descriptor.name: descriptor for descriptor in self._catalog if descriptor.name in self.names}
        while True:
            stale = [name for name, descriptor in old.items() if wanted.get(name) is not descriptor]
            new = [descriptor for name, descriptor in wanted.items() if old.get(name) is not descriptor]
            try:
                if stale or new:
                    self._catalog.change(remove=stale, add=new)
            except DuplicateToolError as exc:
                self._leave_out(exc.name, exc)
                wanted = {name: descriptor for name, descriptor in wanted.items() if name != exc.name}
            except ToolNotFoundError as exc:  # somebody else has taken it out meanwhile
                old = {name: descriptor for name, descriptor in old.items() if name != exc.name}
            else:
                self.names = tuple(wanted)
                return
