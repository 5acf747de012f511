"""Jira Cloud, by its REST API, version 3."""

from functools import partial
from typing import Final

from ...errors import InvalidToolError
from .._writer import Issue
from ._http import HTTPTracker, Secret, Transport, check_base, check_url, mark, unmoved
from ._jira import API, PAGE, State, Transition

_MOST_PAGES: Final = 20
"""Pages of comments that are looked through, the newest first."""


class Jira(HTTPTracker):
    """Writes to the issues of a Jira Cloud site. An issue is named by its key, as ``PROJ-42``, or its number.

    ::

        async with Jira("https://example.atlassian.net", email=email, token=token) as tracker:
            await tracker.transition("PROJ-42", "In Review", key="7f3a")

    A state is named by a status that a transition of the issue leads to or, if there is none of that name, by the
    transition. The reason for a close is the resolution if it names one that the transition takes, else a comment. A
    pull request is linked as a remote link; a comment keeps its idempotency key in a property.
    """

    def __init__(
        self, url: str, *, token: Secret | str, email: str | None = None, transport: Transport | None = None
    ) -> None:
        """Prepare; nothing is sent yet.

        Args:
            url: The address of the site; for OAuth ``https://api.atlassian.com/ex/jira/CLOUD-ID``.
            token: An API token of the account ``email``; without that an access token of OAuth.
            email: The account's address.
            transport: Another way to send requests; None: httpx2, with a pool of its own.

        Raises:
            InvalidToolError: An argument that makes no sense.
            MissingExtraError: httpx2 is missing, and no transport was given.
        """
        if email is not None and (not isinstance(email, str) or ":" in email or not email.isprintable()):
            msg = "email: expected the address of an account"
            raise InvalidToolError(msg)
        secret = Secret.of(token)
        header = secret.prefixed("Bearer ") if email is None else secret.basic(email)
        self._api = API(f"{check_base(url)}/rest/api/3", {"Authorization": header})
        self._account: str | None = None
        super().__init__(transport, self._api.classify)

    async def comment(self, id: str, body: str, /, *, key: str) -> None:
        """Add a comment to issue ``id``.

        Raises:
            TrackerError: It was not added, or that is not known.
        """
        await self._ask(self._api.comment(id, body, mark(key)), self._api.read_comment)

    async def transition(self, id: str, to_state: str, /, *, key: str) -> None:  # noqa: ARG002 - it is safe to repeat
        """Move issue ``id`` to ``to_state``, in any letter case. One that is there stays as it is.

        Raises:
            TrackerError: It was not moved, or that is not known. ``validation``: no transition of the issue leads
                there; the message lists those that do.
        """
        issue = await self._ask(self._api.issue(id), self._api.read_issue)
        if issue.state.casefold() != to_state.casefold():
            await self._move(id, issue, issue.choose(to_state), "")

    async def close(self, id: str, reason: str, /, *, key: str) -> None:
        """Move issue ``id`` to a status of the category Done. One that is in such a status stays as it is.

        Raises:
            TrackerError: As for ``transition``.
        """
        issue = await self._ask(self._api.issue(id), self._api.read_issue)
        if issue.is_closed:
            return
        reason = reason.strip()
        move = issue.choose_end(reason)
        is_told = reason.casefold() in {name.casefold() for name in (move.to.name, move.name, *move.resolutions())}
        if reason and not is_told and not await self.find_comment(id, key=key):
            await self.comment(id, reason, key=key)
        await self._move(id, issue, move, reason)

    async def link_pr(self, id: str, pr_url: str, /, *, key: str) -> None:  # noqa: ARG002 - it is safe to repeat
        """Link a pull request to issue ``id``. One that is linked stays as it is.

        Raises:
            TrackerError: It was not linked, or that is not known.
        """
        check_url(pr_url)
        await self._ask(self._api.link(id, pr_url), self._api.read_link)

    async def find_comment(self, id: str, /, *, key: str) -> bool:
        """Say whether issue ``id`` has the comment that this account wrote with ``key``: among the newest 2,000.

        Raises:
            TrackerError: That could not be found out.
        """
        for page in range(_MOST_PAGES):
            found = await self._ask(self._api.comments(id, page * PAGE), self._api.read_comments)
            if not found.comments:
                break
            if self._account is None:
                self._account = await self._ask(self._api.me(), self._api.read_me)
            mine = [comment.id for comment in found.comments if comment.is_by(self._account)]
            if mine:
                is_there = partial(self._api.has_mark, mark=mark(key))
                if await self._ask(self._api.properties(mine), is_there):
                    return True
            if (page + 1) * PAGE >= found.total:
                break
        return False

    async def get(self, id: str, /) -> Issue:
        """Return issue ``id``, with all its remote links.

        Raises:
            TrackerError: It is missing (``not_found``), or could not be read.
        """
        issue = await self._ask(self._api.issue(id), self._api.read_issue)
        links = await self._ask(self._api.links(id), self._api.read_links)
        return Issue(issue.key, issue.title, issue.state, issue.is_closed, links)

    async def _move(self, id: str, before: State, move: Transition, reason: str) -> None:
        await self._ask(self._api.move(id, move, reason), lambda _: None)
        # The answer is empty, and a rule of the project may have moved the issue on since.
        after = await self._ask(self._api.issue(id), self._api.read_issue, proves=True)
        if after.state == before.state != move.to.name:
            raise unmoved(after.state)
