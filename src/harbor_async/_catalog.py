"""Names to tools, copied on write."""

import re
from collections.abc import Callable, Iterable, Iterator
from threading import Lock
from typing import Any, TypeAlias, Unpack

import attrs

from ._categories import LoadingMode
from ._declaration import ToolOptions, describe
from ._descriptor import ToolDescriptor
from ._search import SearchIndex
from ._tool import Tool
from .errors import DuplicateToolError, InvalidToolError, ToolNotFoundError, words

Tools: TypeAlias = list[Tool]
"""Spelled here, since the class below has a method named ``list``."""


def _pattern(value: "str | re.Pattern[str] | None") -> "re.Pattern[str] | None":
    if value is None or isinstance(value, re.Pattern):
        return value
    try:
        return re.compile(value)
    except (re.error, TypeError) as exc:
        msg = f"CatalogFilter.name_regex: expected a regular expression; {exc}"
        raise InvalidToolError(msg) from exc


def _modes(modes: Iterable[LoadingMode | str]) -> frozenset[LoadingMode]:
    items = words("CatalogFilter.loading", modes)
    unknown = sorted(set(items) - set(LoadingMode))
    if unknown:
        msg = f"CatalogFilter.loading: expected {', '.join(LoadingMode)}; got {', '.join(map(repr, unknown))}"
        raise InvalidToolError(msg)
    return frozenset(map(LoadingMode, items)) or frozenset({LoadingMode.ALWAYS})


def _scopes(scopes: Iterable[str]) -> frozenset[str]:
    return frozenset(words("CatalogFilter.scopes", scopes))


def _tags(tags: Iterable[str]) -> frozenset[str]:
    return frozenset(words("CatalogFilter.tags", tags))


@attrs.frozen(kw_only=True)
class CatalogFilter:
    """Which tools to list.

    Attributes:
        scopes: What the caller was granted; a tool is listed when all of its own scopes are in here.
        loading: The loading modes to list; empty means ``always``.
        name_regex: A regular expression that is found somewhere in the name; None: any name.
        tags: Tags that a tool must all have.

    Raises:
        InvalidToolError: A value makes no sense.
    """

    scopes: frozenset[str] = attrs.field(default=frozenset(), converter=_scopes)
    loading: frozenset[LoadingMode] = attrs.field(default=frozenset(), converter=_modes)
    name_regex: "re.Pattern[str] | None" = attrs.field(default=None, converter=_pattern)
    tags: frozenset[str] = attrs.field(default=frozenset(), converter=_tags)

    def matches(self, tool: Tool) -> bool:
        """Say whether ``tool`` is to be listed."""
        return (
            tool.loading in self.loading
            and tool.scopes <= self.scopes
            and self.tags.issubset(tool.tags)
            and (self.name_regex is None or self.name_regex.search(tool.name) is not None)
        )


class Catalog:
    """Names to descriptors.

    Copied on write: a reader never waits and never sees half a change, from whatever thread or event loop.
    """

    def __init__(self, descriptors: "Iterable[ToolDescriptor[..., Any]]" = ()) -> None:
        """Hold ``descriptors`` from the start.

        Raises:
            DuplicateToolError: Two have the same name.
            InvalidToolError: One is no ``ToolDescriptor``.
        """
        self._tools: dict[str, ToolDescriptor[..., Any]] = {}
        self._index: tuple[dict[str, ToolDescriptor[..., Any]], SearchIndex] | None = None
        self._writing = Lock()
        self._listeners: dict[object, Callable[[], None]] = {}
        for descriptor in descriptors:
            self.register(descriptor)

    def register(self, descriptor: "ToolDescriptor[..., Any]") -> None:
        """Add a tool.

        Raises:
            DuplicateToolError: The name is taken.
            InvalidToolError: ``descriptor`` is no ``ToolDescriptor``.
        """
        _check_descriptor(descriptor)
        with self._writing:
            if descriptor.name in self._tools:
                raise DuplicateToolError(descriptor.name)
            self._tools = {**self._tools, descriptor.name: descriptor}
        self._tell()

    def register_func(
        self, name: str, function: Callable[..., Any], /, **options: Unpack[ToolOptions]
    ) -> "ToolDescriptor[..., Any]":
        """Describe a function under ``name``, add it, and return its descriptor.

        Raises:
            RegistrationError: As ``describe`` and ``register``; the catalog is then as it was.
        """
        options["name"] = name
        descriptor = describe(function, **options)
        self.register(descriptor)
        return descriptor

    def replace(self, descriptors: "Iterable[ToolDescriptor[..., Any]]") -> None:
        """Put each of ``descriptors`` in the place of the tool that has its name: all of them, or none.

        Of two with one name the last counts.

        Raises:
            ToolNotFoundError: A name is not in the catalog.
            InvalidToolError: One is no ``ToolDescriptor``.
        """
        batch = list(descriptors)
        for descriptor in batch:
            _check_descriptor(descriptor)
        with self._writing:
            for descriptor in batch:
                if descriptor.name not in self._tools:
                    raise ToolNotFoundError(descriptor.name)
            self._tools = {**self._tools, **{descriptor.name: descriptor for descriptor in batch}}
        self._tell()

    def change(self, *, remove: Iterable[str] = (), add: "Iterable[ToolDescriptor[..., Any]]" = ()) -> None:
        """Take tools out and put tools in, in one step: all of it, or nothing.

        A call in flight keeps the tool that it found.

        Args:
            remove: Names of tools.
            add: Tools, which may have names that are removed.

        Raises:
            ToolNotFoundError: A name to remove is not in the catalog.
            DuplicateToolError: A name to add is taken, or comes twice.
            InvalidToolError: One to add is no ``ToolDescriptor``, or ``remove`` no list of text.
        """
        names, batch = words("remove", remove), list(add)
        for descriptor in batch:
            _check_descriptor(descriptor)
        with self._writing:
            tools = dict(self._tools)
            for name in dict.fromkeys(names):
                if tools.pop(name, None) is None:
                    raise ToolNotFoundError(name)
            for descriptor in batch:
                if descriptor.name in tools:
                    raise DuplicateToolError(descriptor.name)
                tools[descriptor.name] = descriptor
            self._tools = tools
        self._tell()

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have ``listener`` called after each change, in the thread that made it.

        It must not raise or wait; several changes in several threads may call it at once.

        Returns:
            What ends that; it may be called twice.
        """
        key = object()
        with self._writing:
            self._listeners = {**self._listeners, key: listener}

        def unsubscribe() -> None:
            with self._writing:
                self._listeners = {each: one for each, one in self._listeners.items() if each is not key}

        return unsubscribe

    def resolve(self, name: str) -> "ToolDescriptor[..., Any]":
        """Return the descriptor of this name; letter case and white space count.

        Raises:
            ToolNotFoundError: There is none.
        """
        try:
            return self._tools[name]
        except (KeyError, TypeError):
            raise ToolNotFoundError(name) from None

    def list(self, filter: CatalogFilter | None = None) -> Tools:
        """Return the tools that ``filter`` lets through, sorted by name; without a filter all of them."""
        tools = self._tools
        return [tools[name].tool for name in sorted(tools) if filter is None or filter.matches(tools[name].tool)]

    def search(self, query: str, tags: Iterable[str] = (), limit: int = 10) -> Tools:
        """Return the tools that fit ``query`` best, best first, deferred ones included.

        The index over names, descriptions and tags is built at the first search after a change.

        Args:
            query: Words, of which a tool must hold at least one, or one that begins so; none means every tool.
            tags: Tags that a tool must all have.
            limit: Most tools to return; at least 1.

        Raises:
            InvalidToolError: ``limit`` is no int of at least 1.
        """
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            msg = f"limit: expected an int of at least 1; got {limit!r}"
            raise InvalidToolError(msg)
        tools, index = self._tools, self._index
        if index is None or index[0] is not tools:
            index = self._index = (tools, SearchIndex(tools[name].tool for name in sorted(tools)))
        return index[1].search(query, frozenset(words("tags", tags)), limit)

    def _tell(self) -> None:
        for listener in self._listeners.values():
            listener()

    def __contains__(self, name: object) -> bool:
        """Say whether a tool of this name is here."""
        return name in self._tools

    def __iter__(self) -> "Iterator[ToolDescriptor[..., Any]]":
        """Go through the descriptors that are here now, in the order in which their names came."""
        return iter(self._tools.values())

    def __len__(self) -> int:
        """Return how many tools are here."""
        return len(self._tools)


def _check_descriptor(descriptor: object) -> None:
    if not isinstance(descriptor, ToolDescriptor):
        kind = type(descriptor).__name__
        msg = f"a catalog holds tool descriptors, as @tool and describe() make them; got {kind}"
        raise InvalidToolError(msg)
