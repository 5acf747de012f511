"""One tool for a model to comment on, move, close and link the issues of a tracker."""

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
    "CloseWriter",
    "CommentFinder",
    "CommentWriter",
    "Issue",
    "IssueReader",
    "LinkPRWriter",
    "TrackerError",
    "TransitionWriter",
]
