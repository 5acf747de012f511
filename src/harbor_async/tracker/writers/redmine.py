"""Redmine, by its REST API. Source: its wiki, "Rest api", and runs of Redmine 5.0."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, Final
from weakref import WeakValueDictionary

import anyio
import attrs
import msgspec

from ..._categories import Delivery, ErrorCategory
from ..._json import is_mapping
from .._writer import Issue, TrackerError
from ._http import (
    HTTPTracker,
    Request,
    Response,
    Secret,
    Transport,
    by_status,
    check_base,
    check_url,
    find_state,
    hide,
    link_text,
    links_in,
    mark,
    no_state,
    refusal,
    texts,
    unmoved,
)
from ._http._marked import check_number

_TRIES: Final = 4
"""How often a comment is sent that was refused because somebody else changed the issue at the same time."""


class _User(msgspec.Struct):
    id: int


class _Status(msgspec.Struct):
    id: int
    name: str
    is_closed: bool | None = None


class _Journal(msgspec.Struct):
    user: _User
    notes: str | None = None


class _Issue(msgspec.Struct):
    id: int
    status: _Status
    subject: str = ""
    journals: list[_Journal] = []
    allowed_statuses: list[_Status] | None = None


class _OneIssue(msgspec.Struct):
    issue: _Issue


class _OneUser(msgspec.Struct):
    user: _User


class _Statuses(msgspec.Struct):
    issue_statuses: list[_Status]


@attrs.frozen
class API:
    """Builds requests to a Redmine server, and reads its answers. It sends nothing."""

    base: str
    key: Secret

    def me(self) -> Request:
        """Ask whose key it is."""
        return self._json("GET", "users/current")

    def issue(self, id: str) -> Request:
        """Ask for an issue, its comments, and the states that this user may move it to."""
        return self._json("GET", f"issues/{check_number(id)}", "?include=journals,allowed_statuses")

    def statuses(self) -> Request:
        """Ask for all states."""
        return self._json("GET", "issue_statuses")

    def comment(self, id: str, text: str) -> Request:
        """Add a comment."""
        return self._json("PUT", f"issues/{check_number(id)}", body={"issue": {"notes": text}})

    def move(self, id: str, status: int, text: str) -> Request:
        """Move an issue, with a comment if there is one."""
        notes = {"notes": text} if text else {}
        return self._json("PUT", f"issues/{check_number(id)}", body={"issue": {"status_id": status, **notes}})

    def classify(self, response: Response) -> TrackerError | None:
        """Say what an answer means; None for a success, which may have changed nothing."""
        if response.is_success:
            return None
        document: Any = response.document()
        errors = document.get("errors") if is_mapping(document) else None
        if response.status == HTTPStatus.UNPROCESSABLE_ENTITY and errors == []:
            says = "the issue was changed meanwhile"
            return refusal(response, (ErrorCategory.CONFLICT, Delivery.REFUSED, says))
        return by_status(response, texts(errors))

    def read_me(self, response: Response) -> int:
        """Return the number of the user."""
        return response.read(_OneUser).user.id

    def read_issue(self, response: Response) -> _Issue:
        """Return the issue."""
        return response.read(_OneIssue).issue

    def read_statuses(self, response: Response) -> list[_Status]:
        """Return the states."""
        return response.read(_Statuses).issue_statuses

    def read_nothing(self, _: Response) -> None:
        """Read nothing: the answer to a change is empty."""

    def _json(self, method: str, path: str, query: str = "", body: object = None) -> Request:
        url = f"{self.base}/{path}.json{query}"
        return Request.json(method, url, {"X-Redmine-API-Key": self.key}, body)


class Redmine(HTTPTracker):
    """Writes to the issues of a Redmine server. An issue is named by its number.

    ::

        async with Redmine("https://redmine.example.org", token=key) as tracker:
            await tracker.transition("42", "Resolved", key="7f3a")

    Redmine says yes to a change that the user may not make, and leaves it out. So each write is looked at before it is
    a success. A comment carries a mark that Redmine does not show, neither in Textile nor in Markdown. A pull request
    is linked by a comment that names it.
    """

    def __init__(self, url: str, *, token: Secret | str, transport: Transport | None = None) -> None:
        """Prepare; nothing is sent yet.

        Args:
            url: The address of the server.
            token: The API key of the user who writes. The REST API must be enabled in the settings of the server.
            transport: Another way to send requests; None: httpx2, with a pool of its own.

        Raises:
            InvalidToolError: An argument that makes no sense.
            MissingExtraError: httpx2 is missing, and no transport was given.
        """
        self._api = API(check_base(url), Secret.of(token))
        self._own_id: int | None = None
        self._turns: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()
        super().__init__(transport, self._api.classify)

    async def comment(self, id: str, body: str, /, *, key: str) -> None:
        """Add a comment to issue ``id``.

        Raises:
            TrackerError: It was not added, or that is not known. ``auth_failed``: the user may not comment.
        """
        async with self._turn(id):
            await self._comment(id, hide(body, mark(key)), mark(key))

    async def transition(self, id: str, to_state: str, /, *, key: str) -> None:  # noqa: ARG002 - it is safe to repeat
        """Move issue ``id`` to ``to_state``, in any letter case. One that is there stays as it is.

        Raises:
            TrackerError: It was not moved, or that is not known. ``validation``: there is no such state, or the user
                may not move the issue there; the message lists where he may.
        """
        async with self._turn(id):
            issue = await self._issue(id)
            if issue.status.name.casefold() != to_state.casefold():
                states = await self._states(issue)
                await self._move(issue, find_state(to_state, [(state.name, state) for state in states]), "")

    async def close(self, id: str, reason: str, /, *, key: str) -> None:
        """Move issue ``id`` to the first closed state that it can reach, with the reason as a comment.

        A closed one stays as it is.

        Raises:
            TrackerError: It was not closed, or that is not known. ``validation``: the user may move it to no closed
                state.
        """
        async with self._turn(id):
            issue = await self._issue(id)
            if await self._is_closed(issue):
                return
            states = await self._states(issue)
            closed = next((state for state in states if state.is_closed), None)
            if closed is None:
                problem = "the issue cannot be closed from where it is"
                raise no_state(problem, [state.name for state in states])
            await self._move(issue, closed, hide(reason, mark(key)) if reason.strip() else "")

    async def link_pr(self, id: str, pr_url: str, /, *, key: str) -> None:  # noqa: ARG002 - it is safe to repeat
        """Link a pull request to issue ``id``, by a comment that names it. One that is linked stays as it is.

        Raises:
            TrackerError: It was not linked, or that is not known.
        """
        check_url(pr_url)
        async with self._turn(id):
            if pr_url not in await self._links(await self._issue(id)):
                await self._comment(id, link_text(pr_url), pr_url)

    async def find_comment(self, id: str, /, *, key: str) -> bool:
        """Say whether issue ``id`` has the comment that this user wrote with ``key``.

        Raises:
            TrackerError: That could not be found out.
        """
        return any(mark(key) in notes for notes in await self._own(await self._issue(id)))

    async def get(self, id: str, /) -> Issue:
        """Return issue ``id``, with the links that this user has made.

        Raises:
            TrackerError: It is missing (``not_found``), or could not be read.
        """
        issue = await self._issue(id)
        is_closed = await self._is_closed(issue)
        return Issue(id, issue.subject, issue.status.name, is_closed, await self._links(issue))

    async def _comment(self, id: str, text: str, wanted: str) -> None:
        """Add a comment, and see that it is there."""
        for attempt in range(1, _TRIES + 1):
            try:
                await self._ask(self._api.comment(id, text), self._api.read_nothing)
                break
            except TrackerError as exc:
                if exc.category is not ErrorCategory.CONFLICT or attempt == _TRIES:
                    raise
        if not any(wanted in notes for notes in await self._own(await self._issue(id, proves=True))):
            msg = "Redmine said yes and added no comment: the user has no permission for that"
            raise TrackerError(msg, category=ErrorCategory.AUTH_FAILED, delivery=Delivery.REFUSED)

    async def _move(self, issue: _Issue, status: _Status, text: str) -> None:
        """Move an issue, and see that it is there."""
        if issue.status.id == status.id:
            return
        id = str(issue.id)
        await self._ask(self._api.move(id, status.id, text), self._api.read_nothing)
        now = await self._issue(id, proves=True)
        if now.status.id != status.id:
            raise unmoved(now.status.name)

    @asynccontextmanager
    async def _turn(self, id: str) -> AsyncGenerator[None]:
        """Wait until no other write of this writer changes the issue, for it would be in the way."""
        lock = self._turns.get(id)
        if lock is None:
            lock = self._turns[id] = anyio.Lock()
        async with lock:
            yield

    async def _issue(self, id: str, *, proves: bool = False) -> _Issue:
        return await self._ask(self._api.issue(id), self._api.read_issue, proves=proves)

    async def _states(self, issue: _Issue) -> Sequence[_Status]:
        """Return the states that the issue can be moved to; all where the server does not tell (before 4.2)."""
        if issue.allowed_statuses is not None:
            return issue.allowed_statuses
        return await self._ask(self._api.statuses(), self._api.read_statuses)

    async def _is_closed(self, issue: _Issue) -> bool:
        known = [issue.status, *(issue.allowed_statuses or ())]
        if all(state.is_closed is None for state in known if state.id == issue.status.id):  # before 5.0
            known = await self._ask(self._api.statuses(), self._api.read_statuses)
        return any(state.is_closed for state in known if state.id == issue.status.id)

    async def _links(self, issue: _Issue) -> tuple[str, ...]:
        return tuple(dict.fromkeys(link for notes in await self._own(issue) for link in links_in(notes)))

    async def _own(self, issue: _Issue) -> list[str]:
        """Return the comments of this user, the oldest first."""
        noted = [journal for journal in issue.journals if journal.notes]
        if noted and self._own_id is None:
            self._own_id = await self._ask(self._api.me(), self._api.read_me)
        return [journal.notes or "" for journal in noted if journal.user.id == self._own_id]
