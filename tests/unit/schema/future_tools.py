"""Tools whose annotations are text: the same as ``plain_tools``, under PEP 563."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Literal, NamedTuple, NotRequired, TypedDict

import attrs
import msgspec

from harbor_async import ToolContext
from harbor_async.schema import Name


@attrs.define
class Query:
    """A search.

    Attributes:
        text: What to look for.
    """

    text: Annotated[str, msgspec.Meta(min_length=1)]
    limit: int = 10
    next: Query | None = None


@dataclasses.dataclass
class Where:
    """A place."""

    city: str
    near: list[Where] = dataclasses.field(default_factory=list)


class Extra(TypedDict):
    """Optional words."""

    lang: NotRequired[Annotated[str, Name("language")]]
    mode: Literal["a", "b"]


class Pair(NamedTuple):
    """Two numbers."""

    low: int
    high: int = 9


async def find(  # noqa: D417 - not every parameter is described
    query: Query, where: Where | None, extra: Extra, pair: Pair, ctx: ToolContext, *, tags: frozenset[str] = frozenset()
) -> list[Query]:
    """Find things.

    Args:
        query: What.
        where: Where.
    """
    return [query]
