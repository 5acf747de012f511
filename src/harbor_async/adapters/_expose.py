"""What the adapters have in common: how a tool is named, who asks, and what is kept of a result beside its text."""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from .._catalog import CatalogFilter
from .._context import Identity
from .._results import ToolResult
from .._runtime import Runtime
from .._tool import Tool
from ..export import openai

C = TypeVar("C")

Who: TypeAlias = Identity | Callable[[C], Identity | None] | None
"""On whose behalf calls are made: an identity, or a function that finds it in a framework's context of a call.

None, also from the function, is the runtime's own.
"""


def named(runtime: Runtime, filter: CatalogFilter | None) -> list[tuple[str, Tool]]:
    """Return the tools of a runtime's catalog, each with a name that every provider takes.

    A framework hands names to providers as they are, so it gets those of the strictest one: OpenAI's.
    """
    return [(openai.to_wire(tool.name), tool) for tool in runtime.catalog.list(filter)]


def find_name(runtime: Runtime, name: str) -> str:
    """Return the name in the catalog of the tool that ``named`` calls ``name``."""
    return openai.from_wire(name, runtime.catalog)


def who(identity: Who[C], context: C) -> Identity | None:
    """Return on whose behalf the call of ``context`` is made."""
    return identity(context) if callable(identity) else identity


def details(result: ToolResult) -> dict[str, Any]:
    """Return a result as JSON values: frameworks store them with their messages, and know no class of ours."""
    details = {**result.to_wire(), "attempts": result.attempts, "elapsed": result.elapsed}
    if result.error is not None:
        details |= {"stop_reason": result.stop_reason, "is_retryable": result.is_retryable}
    return details
