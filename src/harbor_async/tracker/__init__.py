"""One tool for a model to comment on, move, close and link the issues of a tracker."""

from .._categories import ErrorCategory
from ._args import NAME, Op, TrackerArgs, args_schema
from ._result import ResultError, TrackerResult
from ._write import TrackerWrite, tracker_write
from ._writer import (
    CloseWriter,
    CommentFinder,
    CommentWriter,
    Issue,
    IssueReader,
    LinkPRWriter,
    TrackerError,
    TransitionWriter,
)

__all__ = [
    "NAME",
    "CloseWriter",
    "CommentFinder",
    "CommentWriter",
    "ErrorCategory",
    "Issue",
    "IssueReader",
    "LinkPRWriter",
    "Op",
    "ResultError",
    "TrackerArgs",
    "TrackerError",
    "TrackerResult",
    "TrackerWrite",
    "TransitionWriter",
    "args_schema",
    "tracker_write",
]
