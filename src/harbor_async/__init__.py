"""A concurrent tool runtime for agent backends, on asyncio and trio."""

from ._batch import Join
from ._catalog import Catalog, CatalogFilter
from ._categories import Delivery, ErrorCategory, ErrorClass, LoadingMode, Outcome, SideEffect, Transport
from ._context import Identity, ToolContext
from ._limits import Limits
from ._policy import Backoff, ToolPolicy
from ._results import Failure, ToolCall, ToolResult
from ._runtime import Runtime
from ._tool import Tool, ToolDescriptor, ToolExample, describe, tool
from .errors import HarborError, Problem, ToolError

__all__ = [
    "Backoff",
    "Catalog",
    "CatalogFilter",
    "Delivery",
    "ErrorCategory",
    "ErrorClass",
    "Failure",
    "HarborError",
    "Identity",
    "Join",
    "Limits",
    "LoadingMode",
    "Outcome",
    "Problem",
    "Runtime",
    "SideEffect",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolDescriptor",
    "ToolError",
    "ToolExample",
    "ToolPolicy",
    "ToolResult",
    "Transport",
    "describe",
    "tool",
]
