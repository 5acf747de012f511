"""What a tracker can do, told by which of these protocols it satisfies.

All methods are coroutine functions. Each write takes ``key``, the idempotency key of the logical call: the same text in
all attempts of one call, another in any other call. A tracker that keeps it can answer a repeat without repeating the
effect. What has been done already is a success: closing a closed issue, moving one to the state that it is in, linking
what is linked.

A writer returns once the effect is there, and raises ``TrackerError`` where it knows what went wrong; any other
exception is classified by its type.
"""

from typing import Protocol, runtime_checkable

import attrs

from .._categories import Delivery, ErrorCategory
from ..errors import ToolError


@attrs.frozen
class Issue:
    """An issue as a reader sees it.

    Attributes:
        id: Its id in the tracker.
        title: Its title.
        state: The state that it is in, as the tracker writes it.
        is_closed: Whether that state is an end.
        links: URLs of the pull requests that are linked to it, in the order in which they were.
    """

    id: str
    title: str
    state: str
    is_closed: bool = False
    links: tuple[str, ...] = ()


class TrackerError(ToolError):
    """A tracker did not do what it was asked, and the writer knows why.

    Attributes:
        message: The text for the model.
        category: One of the twelve. A rate limit is ``rate_limited`` and never ``auth_failed``, whatever the status.
        delivery: What is known of the effect. ``not_sent`` and ``refused`` let the call be tried again.
        retry_after: Seconds to wait before the next attempt, or None.
    """

    def __init__(
        self,
        message: str,
        *,
        category: ErrorCategory | str = ErrorCategory.UNKNOWN,
        delivery: Delivery | str = Delivery.UNKNOWN,
        retry_after: float | None = None,
    ) -> None:
        """Say what went wrong, and whether it may be tried again.

        Raises:
            ValueError: A word that is not in its enum.
        """
        super().__init__(message, category=category, delivery=delivery, retry_after=retry_after)


@runtime_checkable
class CloseWriter(Protocol):
    """Closes issues."""

    async def close(self, id: str, reason: str, /, *, key: str) -> None:
        """Close issue ``id``; ``reason`` may be empty. A closed one stays as it is.

        Raises:
            TrackerError: It was not closed, or that is not known.
        """
        ...


@runtime_checkable
class TransitionWriter(Protocol):
    """Moves issues from state to state."""

    async def transition(self, id: str, to_state: str, /, *, key: str) -> None:
        """Move issue ``id`` to ``to_state``. One that is there stays as it is.

        Raises:
            TrackerError: It was not moved, or that is not known. An unknown or forbidden state is ``validation`` with a
                message that lists the allowed ones.
        """
        ...


@runtime_checkable
class CommentWriter(Protocol):
    """Comments on issues."""

    async def comment(self, id: str, body: str, /, *, key: str) -> None:
        """Add a comment to issue ``id``.

        Raises:
            TrackerError: It was not added, or that is not known.
        """
        ...


@runtime_checkable
class LinkPRWriter(Protocol):
    """Links pull requests to issues."""

    async def link_pr(self, id: str, pr_url: str, /, *, key: str) -> None:
        """Link a pull request to issue ``id``. One that is linked stays as it is.

        Raises:
            TrackerError: It was not linked, or that is not known.
        """
        ...


@runtime_checkable
class CommentFinder(Protocol):
    """Finds a comment again, so that one whose delivery is not known need not be written twice."""

    async def find_comment(self, id: str, /, *, key: str) -> bool:
        """Say whether issue ``id`` has the comment that was written with ``key``.

        Raises:
            TrackerError: That could not be found out.
        """
        ...


@runtime_checkable
class IssueReader(Protocol):
    """Reads issues, so that a close, a move or a link whose delivery is not known need not be repeated."""

    async def get(self, id: str, /) -> Issue:
        """Return issue ``id``.

        Raises:
            TrackerError: It is missing (``not_found``), or could not be read.
        """
        ...
