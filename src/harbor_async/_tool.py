"""A tool as a model sees it."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from copy import deepcopy
from types import MappingProxyType
from typing import Any, TypeAlias

import attrs
import msgspec

from ._categories import LoadingMode, SideEffect, Transport
from ._context import Identity
from ._policy import ToolPolicy
from ._results import ToolCall
from .errors import InvalidToolError, words


def _frozen_mapping(args: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(args, Mapping):
        msg = f"ToolExample.args: expected a mapping, as {{'city': 'Oslo'}}; got {type(args).__name__}"
        raise InvalidToolError(msg)
    return MappingProxyType(deepcopy(dict(args)))


def _tags(tags: Iterable[str]) -> tuple[str, ...]:
    return words("ToolExample.tags", tags)


@attrs.frozen
class ToolExample:
    """One call that shows a model how a tool is meant.

    Attributes:
        args: An argument object; it is decoded when the tool is registered.
        description: What the example shows.
        tags: Words to find it by.
    """

    args: Mapping[str, Any] = attrs.field(default=MappingProxyType({}), converter=_frozen_mapping)
    description: str = ""
    tags: tuple[str, ...] = attrs.field(default=(), converter=_tags)


@attrs.frozen(kw_only=True)
class Tool:
    """What a model sees of a tool, and what a catalog lists.

    Attributes:
        name: Any text that is not empty; models accept letters, digits, ``_``, ``-`` and mostly ``.``.
        description: What it does; the function's docstring, or the name, if nothing was said.
        side_effect: What it does to the world. Undeclared is ``stateful``, see ``declares_effect``.
        declares_effect: Whether ``side_effect`` was declared and is an effect. Only then are retries held back.
        is_idempotent: Whether its effect may be repeated.
        tags: Words to find it by.
        scopes: What a caller's identity must have been granted.
        examples: Calls that show how it is meant.
        loading: Whether it is listed at once or only found by a search.
        cost_hint: Free text on what a call costs.
        latency_hint: Seconds that a call usually takes; None: not known.
        safety_notes: Free text on what to beware of.
        source: Where it comes from.
        handles_mime: MIME types, or patterns as ``image/*``, that it can take.
        transport: Where it runs.
        policy: What the shell does round a call.
    """

    name: str
    description: str
    _args_schema: bytes = attrs.field(alias="args_schema", repr=False)
    _out_schema: bytes | None = attrs.field(alias="out_schema", repr=False)
    side_effect: SideEffect = SideEffect.STATEFUL
    declares_effect: bool = False
    is_idempotent: bool = False
    tags: tuple[str, ...] = ()
    scopes: frozenset[str] = frozenset()
    examples: tuple[ToolExample, ...] = ()
    loading: LoadingMode = LoadingMode.ALWAYS
    cost_hint: str = ""
    latency_hint: float | None = None
    safety_notes: str = ""
    source: str = ""
    handles_mime: tuple[str, ...] = ()
    transport: Transport = Transport.INPROCESS
    policy: ToolPolicy = ToolPolicy()

    @property
    def args_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments, a fresh copy each time: a closed object of 2020-12.

        That of ``describe_foreign`` is an object's as its author wrote it.
        """
        schema: dict[str, Any] = msgspec.json.decode(self._args_schema)
        return schema

    @property
    def out_schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the result, None for a function without a return annotation. A fresh copy each time."""
        return None if self._out_schema is None else msgspec.json.decode(self._out_schema)

    def matches_mime(self, mime: str) -> bool:
        """Say whether ``mime`` is one of ``handles_mime``, or fits one that ends in ``/*``; letter case counts."""
        kind, _, rest = mime.partition("/")
        patterns = {mime, f"{kind}/*"} if kind and rest else {mime}
        return bool(mime) and not patterns.isdisjoint(self.handles_mime)


Approve: TypeAlias = Callable[[ToolCall, Tool, Identity | None], Awaitable[bool | bytes | str | Mapping[str, Any]]]
"""Asked before the arguments of a call are decoded: True lets it pass, False refuses it, arguments replace its own."""
