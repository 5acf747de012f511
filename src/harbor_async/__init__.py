"""A concurrent tool runtime for agent backends, on asyncio and trio."""

from ._batch import Join
from ._catalog import Catalog, CatalogFilter
from ._categories import Delivery, ErrorCategory, ErrorClass, LoadingMode, Outcome, SideEffect, Transport
from ._context import Identity, ToolContext
from ._declaration import describe, tool
from ._descriptor import ToolDescriptor
from ._events import EventSink, EventType, ToolEvent
from ._foreign import describe_foreign
from ._limits import Limits
from ._policy import Backoff, ToolPolicy
from ._results import Failure, Repair, ToolCall, ToolResult
from ._runtime import Runtime
from ._statistics import Statistics
from ._tool import Tool, ToolExample
from .errors import HarborError, Problem, ToolError

__all__ = [
    "Backoff",
    "Catalog",
    "CatalogFilter",
    "Delivery",
    "ErrorCategory",
    "ErrorClass",
    "EventSink",
    "EventType",
    "Failure",
    "HarborError",
    "Identity",
    "Join",
    "Limits",
    "LoadingMode",
    "Outcome",
    "Problem",
    "Repair",
    "Runtime",
    "SideEffect",
    "Statistics",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolDescriptor",
    "ToolError",
    "ToolEvent",
    "ToolExample",
    "ToolPolicy",
    "ToolResult",
    "Transport",
    "describe",
    "describe_foreign",
    "tool",
]
