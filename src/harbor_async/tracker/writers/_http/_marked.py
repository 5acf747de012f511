"""Trackers whose issues are open or closed, and whose comments are Markdown: GitHub, GitLab, Gitea.

What they lack is done with comments: a mark in a comment that readers do not see is its idempotency key, and a marked
comment that names a pull request is its link. A mark counts only where the author of the comment is this writer's own
account, for whoever quotes a comment quotes its mark.
"""

import re
from collections.abc import Mapping
from functools import partial
from typing import ClassVar, Final, Protocol
from urllib.parse import parse_qs, urlsplit

import attrs

from ...._categories import Delivery, ErrorCategory
from ....errors import InvalidToolError
from ..._writer import Issue, TrackerError
from ._mark import check_url, hide, link_text, links_in, mark
from ._request import Request, Response, Transport
from ._state import find_state, unmoved
from ._tracker import HTTPTracker

PAGE: Final = 100
"""Comments in a page: the most that these trackers give."""
_MOST_PAGES: Final = 20
"""Pages that are looked through, the newest first. A comment that was just written is on the newest."""
_LINKS: Final = re.compile(r'<(?P<url>[^>]*)>\s*;\s*rel="(?P<rel>[^"]*)"')
_DOTS: Final = {".", ".."}


@attrs.frozen
class Comment:
    """A comment as a reader sees it.

    Attributes:
        id: Its number, higher than those of the comments before it.
        author: The name of the account that wrote it.
        body: Its Markdown.
    """

    id: int
    author: str
    body: str


@attrs.frozen
class Page:
    """Comments, and the number of the page to read next; None after the last."""

    comments: tuple[Comment, ...]
    next: int | None = None


class MarkedAPI(Protocol):
    """A tracker's two pure halves: requests built, answers read."""

    states: ClassVar[Mapping[str, bool]]
    """The states that an issue can be moved to, and whether each is closed."""

    def classify(self, response: Response, /) -> TrackerError | None:
        """Say what went wrong; None for a success."""
        ...

    def me(self) -> Request:
        """Ask whose token it is."""
        ...

    def read_me(self, response: Response, /) -> str:
        """Return the name of that account."""
        ...

    def issue(self, id: str, /) -> Request:
        """Ask for an issue; ``TrackerError`` for what is no id."""
        ...

    def read_issue(self, response: Response, /) -> Issue:
        """Return the issue, without its links; also from the answer to ``move``."""
        ...

    def comments(self, id: str, page: int, /) -> Request:
        """Ask for a page of comments; 1 is the first that is asked for."""
        ...

    def read_comments(self, response: Response, /, page: int) -> Page:
        """Return them."""
        ...

    def comment(self, id: str, body: str, /) -> Request:
        """Add a comment."""
        ...

    def read_comment(self, response: Response, /) -> None:
        """Refuse an answer that is no comment."""
        ...

    def carries(self, reason: str, /) -> bool:
        """Say whether ``move`` itself can give this reason."""
        ...

    def move(self, id: str, reason: str, /, *, closes: bool) -> Request:
        """Close or reopen an issue."""
        ...


class MarkedTracker(HTTPTracker):
    """Writes comments, closes, reopens, and links by comments."""

    def __init__(self, api: MarkedAPI, transport: Transport | None, author: str | None) -> None:
        """Speak ``api``; ``author`` is the account's name, None: ask for it once."""
        super().__init__(transport, api.classify)
        self._api = api
        self._author = author

    async def comment(self, id: str, body: str, /, *, key: str) -> None:
        """Add a comment to issue ``id``, with a mark of ``key`` in it that readers do not see.

        Raises:
            TrackerError: It was not added, or that is not known.
        """
        await self._ask(self._api.comment(id, hide(body, mark(key))), self._api.read_comment)

    async def transition(self, id: str, to_state: str, /, *, key: str) -> None:  # noqa: ARG002 - it is safe to repeat
        """Open or close issue ``id``. One that is so stays as it is.

        Raises:
            TrackerError: It was not moved, or that is not known. ``validation``: there is no such state.
        """
        closes = find_state(to_state, self._api.states.items())
        issue = await self._ask(self._api.issue(id), self._api.read_issue)
        if issue.is_closed is not closes:
            await self._move(id, "", closes=closes)

    async def close(self, id: str, reason: str, /, *, key: str) -> None:
        """Close issue ``id``. A closed one stays as it is.

        A reason that the tracker has no field for is added as a comment first, once for each ``key``.

        Raises:
            TrackerError: It was not closed, or that is not known.
        """
        issue = await self._ask(self._api.issue(id), self._api.read_issue)
        if issue.is_closed:
            return
        reason = reason.strip()
        if reason and not self._api.carries(reason) and not await self.find_comment(id, key=key):
            await self.comment(id, reason, key=key)
        await self._move(id, reason, closes=True)

    async def link_pr(self, id: str, pr_url: str, /, *, key: str) -> None:  # noqa: ARG002 - it is safe to repeat
        """Link a pull request to issue ``id``, by a comment that names it. One that is linked stays as it is.

        Raises:
            TrackerError: It was not linked, or that is not known.
        """
        check_url(pr_url)
        if not any(pr_url in links_in(body) for body in await self._own(id, link_text(pr_url))):
            await self._ask(self._api.comment(id, link_text(pr_url)), self._api.read_comment)

    async def find_comment(self, id: str, /, *, key: str) -> bool:
        """Say whether issue ``id`` has the comment that this account wrote with ``key``: among the newest 2,000.

        Raises:
            TrackerError: That could not be found out.
        """
        return any(mark(key) in body for body in await self._own(id, mark(key)))

    async def get(self, id: str, /) -> Issue:
        """Return issue ``id``, with the links that this account has made in its newest 2,000 comments.

        Raises:
            TrackerError: It is missing (``not_found``), or could not be read.
        """
        issue = await self._ask(self._api.issue(id), self._api.read_issue)
        links = [link for body in await self._own(id) for link in links_in(body)]
        return attrs.evolve(issue, links=tuple(dict.fromkeys(links)))

    async def _move(self, id: str, reason: str, *, closes: bool) -> None:
        issue = await self._ask(self._api.move(id, reason, closes=closes), self._api.read_issue)
        if issue.is_closed is not closes:
            raise unmoved(issue.state)

    async def _own(self, id: str, wanted: str | None = None) -> list[str]:
        """Return the comments that this account has written, the oldest first.

        Args:
            id: The issue.
            wanted: A text; what comes after the page on which a comment has it need not be read.
        """
        found: list[Comment] = []
        page: int | None = 1
        for _ in range(_MOST_PAGES):
            if page is None:
                break
            read = partial(self._api.read_comments, page=page)
            answer = await self._ask(self._api.comments(id, page), read)
            me = await self._me() if answer.comments else ""
            mine = [comment for comment in answer.comments if comment.author.casefold() == me]
            found += mine
            page = answer.next
            if wanted is not None and any(wanted in comment.body for comment in mine):
                break
        return [comment.body for comment in sorted(found, key=lambda comment: comment.id)]

    async def _me(self) -> str:
        if self._author is None:
            self._author = await self._ask(self._api.me(), self._api.read_me)
        return self._author.casefold()


def last_page(headers: Mapping[str, str]) -> int:
    """Return the number of the last page, from a ``Link`` header; 1 where there is none. Source: RFC 8288 §3.

    Only the number is taken: a request with a token goes to no address that an answer names.
    """
    for link in _LINKS.finditer(headers.get("link", "")):
        numbers = parse_qs(urlsplit(link["url"]).query).get("page", [])
        if link["rel"] == "last" and numbers and re.fullmatch(r"[1-9][0-9]{0,8}", numbers[-1]):
            return int(numbers[-1])
    return 1


def page_before(page: int, headers: Mapping[str, str]) -> int | None:
    """Return the page to read after ``page`` where the oldest comments come first: 1, the last, the one before it.

    The first tells how many there are; None after the second.
    """
    following = last_page(headers) if page == 1 else page - 1
    return following if following > 1 else None


def check_number(id: str) -> str:
    """Return the id of an issue that is a number.

    Raises:
        TrackerError: It is none (``validation``).
    """
    if not re.fullmatch(r"[1-9][0-9]{0,17}", id):
        msg = "expected the number of an issue, as '42'"
        raise TrackerError(msg, category=ErrorCategory.VALIDATION, delivery=Delivery.NOT_SENT)
    return id


def check_repo(repo: str) -> str:
    """Return the name of a repository.

    Raises:
        InvalidToolError: It is none.
    """
    if not isinstance(repo, str) or not re.fullmatch(r"[\w.-]+/[\w.-]+", repo, re.ASCII) or _DOTS & {*repo.split("/")}:
        msg = "expected a repository, as 'owner/name'"
        raise InvalidToolError(msg)
    return repo
