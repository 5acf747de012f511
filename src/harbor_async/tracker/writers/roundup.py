"""Roundup, by its REST API. Source: its documentation of version 2.6, rest.txt."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final
from weakref import WeakValueDictionary

import anyio

from ..._categories import ErrorCategory
from ...errors import InvalidToolError
from .._writer import Issue, TrackerError
from ._http import HTTPTracker, Request, Response, Secret, Transport, check_base, check_url, find_state, no_state
from ._roundup import API, Found, Message, State, comment_id, link_id, link_of, link_prefix

_READS: Final = 3
"""How often an issue is read anew when somebody else changes it at the same time."""


class Roundup(HTTPTracker):
    """Writes to the issues of a Roundup tracker. An issue is named by its number.

    ::

        async with Roundup("https://issues.example.org/tracker", user="agent", password=password) as tracker:
            await tracker.comment("42", "Done.", key="7f3a")

    A comment is a message that is stored first and then added to the issue, which happens once however often it is
    sent: the message has an id of its ``key``. An issue that somebody else changes at the same time is read anew, three
    times, and is then a ``conflict``. A pull request is linked by a message that names it.

    Never send a call again that was answered with ``auth_failed``: after four wrong passwords the tracker locks the
    user out for minutes.
    """

    def __init__(
        self,
        url: str,
        *,
        user: str,
        password: Secret | str,
        closed: Sequence[str] = ("resolved",),
        transport: Transport | None = None,
    ) -> None:
        """Prepare; nothing is sent yet.

        Args:
            url: The address of the tracker, as ``tracker.web`` in its configuration.
            user: The login.
            password: Its password.
            closed: The states that are an end. A close moves to the first one.
            transport: Another way to send requests; None: httpx2, with a pool of its own.

        Raises:
            InvalidToolError: An argument that makes no sense.
            MissingExtraError: httpx2 is missing, and no transport was given.
        """
        if not isinstance(user, str) or not user or ":" in user or not user.isprintable():
            msg = "user: expected a login"
            raise InvalidToolError(msg)
        if isinstance(closed, str) or not closed or not all(isinstance(name, str) and name for name in closed):
            msg = "closed: expected the names of one state at least"
            raise InvalidToolError(msg)
        self._api = API.of(check_base(url), user, Secret.of(password))
        self._user = user
        self._closed = tuple(closed)
        self._own_id: str | None = None
        self._turns: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()
        super().__init__(transport, self._api.classify)

    async def comment(self, id: str, body: str, /, *, key: str) -> None:
        """Add a comment to issue ``id``, once for each ``key``.

        Raises:
            TrackerError: It was not added, or that is not known.
        """
        await self._add(id, body, comment_id(id, key))

    async def transition(self, id: str, to_state: str, /, *, key: str) -> None:  # noqa: ARG002 - it is safe to repeat
        """Move issue ``id`` to ``to_state``, in any letter case. One that is there stays as it is.

        Raises:
            TrackerError: It was not moved, or that is not known. ``validation``: there is no such state, or a rule of
                the tracker forbids the move.
        """
        async with self._turn(id):
            issue = await self._issue(id)
            states = await self._ask(self._api.states(), self._api.read_states)
            state = find_state(to_state, [(state.name, state) for state in states])
            await self._move(issue, state, states)

    async def close(self, id: str, reason: str, /, *, key: str) -> None:
        """Move issue ``id`` to the first closed state, after the reason as a comment. A closed one stays as it is.

        Raises:
            TrackerError: It was not closed, or that is not known.
        """
        if _state(await self._issue(id)) in self._closed:
            return
        if reason.strip():
            await self._add(id, reason, comment_id(id, key))
        await self.transition(id, self._closed[0], key=key)

    async def link_pr(self, id: str, pr_url: str, /, *, key: str) -> None:  # noqa: ARG002 - it is safe to repeat
        """Link a pull request to issue ``id``, by a message that names it. One that is linked stays as it is.

        Raises:
            TrackerError: It was not linked, or that is not known.
        """
        check_url(pr_url)
        await self._add(id, f"Pull request: {pr_url}", link_id(id, pr_url))

    async def find_comment(self, id: str, /, *, key: str) -> bool:
        """Say whether issue ``id`` has the comment that this user wrote with ``key``.

        Raises:
            TrackerError: That could not be found out.
        """
        there = {message.id for message in (await self._issue(id)).attributes.messages}
        wanted = comment_id(id, key)
        return any(message.id in there and message.messageid == wanted for message in await self._own(wanted))

    async def get(self, id: str, /) -> Issue:
        """Return issue ``id``, with the links that this user has made.

        Raises:
            TrackerError: It is missing (``not_found``), or could not be read.
        """
        issue = await self._issue(id)
        there = {message.id for message in issue.attributes.messages}
        own = await self._own(link_prefix(id)) if there else []
        links = [link_of(id, message.messageid or "") for message in own if message.id in there]
        state = _state(issue)
        return Issue(
            id,
            issue.attributes.title or "",
            state,
            state in self._closed,
            tuple(dict.fromkeys(link for link in links if link is not None)),
        )

    async def _add(self, id: str, text: str, messageid: str) -> None:
        """Add a message to an issue: one that was stored before, and the same one that is there already."""
        async with self._turn(id):
            issue = await self._issue(id)  # before anything is stored that would belong to nothing
            stored = [message.id for message in await self._own(messageid) if message.messageid == messageid]
            if not {message.id for message in issue.attributes.messages}.isdisjoint(stored):
                return
            if not stored:
                request = self._api.write_message(text, await self._me(), messageid)
                stored = [await self._ask(request, self._api.read_made)]
            await self._change(issue, lambda found: self._api.add_message(found, stored[0]))

    async def _move(self, issue: Found, state: State, states: Sequence[State]) -> None:
        if _state(issue) == state.name:
            return
        try:
            await self._change(issue, lambda found: self._api.move(found, state.id))
        except TrackerError as exc:
            if exc.category is not ErrorCategory.VALIDATION:
                raise
            others = [other.name for other in states if other.name not in {state.name, _state(issue)}]
            raise no_state(exc.message, others) from None

    async def _change(self, issue: Found, build: Callable[[Found], Request]) -> None:
        """Send a change of an issue; once more with the issue read anew where somebody else was faster.

        Raises:
            TrackerError: ``conflict``: somebody else was faster each time, or has moved it meanwhile.
        """
        found = issue
        for attempt in range(_READS + 1):
            try:
                await self._ask(build(found), _nothing)
            except TrackerError as exc:
                if exc.category is not ErrorCategory.CONFLICT or attempt == _READS:
                    raise
                failure = exc
            else:
                return
            found = await self._issue(issue.id)
            if _state(found) != _state(issue):
                raise failure

    @asynccontextmanager
    async def _turn(self, id: str) -> AsyncGenerator[None]:
        """Wait until no other write of this writer changes the issue, for it would be in the way."""
        lock = self._turns.get(id)
        if lock is None:
            lock = self._turns[id] = anyio.Lock()
        async with lock:
            yield

    async def _issue(self, id: str) -> Found:
        return await self._ask(self._api.issue(id), self._api.read_issue)

    async def _own(self, part: str) -> list[Message]:
        """Return the messages of this user whose ids contain ``part``."""
        found = await self._ask(self._api.messages(part), self._api.read_messages)
        me = await self._me() if found else ""
        return [message for message in found if message.author is not None and message.author.id == me]

    async def _me(self) -> str:
        if self._own_id is None:
            self._own_id = await self._ask(self._api.user(self._user), partial(self._api.read_user, name=self._user))
        return self._own_id


def _state(issue: Found) -> str:
    return issue.attributes.status.name if issue.attributes.status is not None else ""


def _nothing(_: Response) -> None:
    """Read nothing: the status has said all."""
