"""Tickets of a Fossil repository, through the ``fossil`` command: ``Fossil``."""

import os
import re
from collections.abc import Sequence
from typing import Final

import attrs
import msgspec

from ..._categories import Delivery, ErrorCategory
from ...errors import InvalidToolError
from .._writer import Issue, TrackerError
from ._command import Command, CommandTracker, CommandTransport, Exit, check_text, said, unreadable
from ._http import check_url, hide, link_text, links_in, mark

STATES: Final = ("Open", "Verified", "Review", "Deferred", "Fixed", "Tested", "Closed")
"""The states of a repository whose administrator has not changed them. Source: fossil 2.21, its "ticket-common"."""
_MARKDOWN: Final = "text/x-markdown"
_LINK: Final = "harbor-async:link"
"""What stands in each comment of ``link_text``."""
_CHOICES: Final = re.compile(r"^[ \t]*set[ \t]+status_choices[ \t]+\{(?P<names>(?:[^{}]|\{[^{}]*\})*)\}", re.MULTILINE)
_WORDS: Final = re.compile(r"\{(?P<braced>[^{}]*)\}|(?P<plain>[^\s{}]+)")
_ESCAPES: Final = str.maketrans(
    {"\\": r"\\", " ": r"\s", "\t": r"\t", "\n": r"\n", "\r": r"\r", "\f": r"\f", "\v": r"\v", "-": r"\-"}
)

_MEANINGS: Final = (
    ("database is locked", ErrorCategory.API_REQUEST, Delivery.NOT_SENT),
    ("unknown ticket", ErrorCategory.NOT_FOUND, Delivery.REFUSED),
    ("no such user", ErrorCategory.AUTH_FAILED, Delivery.REFUSED),
    ("who you are", ErrorCategory.AUTH_FAILED, Delivery.REFUSED),
    ("cannot determine user", ErrorCategory.AUTH_FAILED, Delivery.REFUSED),
    ("readonly database", ErrorCategory.AUTH_FAILED, Delivery.REFUSED),
    ("permission denied", ErrorCategory.AUTH_FAILED, Delivery.REFUSED),
    ("unknown field name", ErrorCategory.VALIDATION, Delivery.REFUSED),
    ("missing value for", ErrorCategory.VALIDATION, Delivery.REFUSED),
    ("repository does not exist", ErrorCategory.UNSUPPORTED, Delivery.REFUSED),
    ("not a valid repository", ErrorCategory.UNSUPPORTED, Delivery.REFUSED),
    ("not a repository", ErrorCategory.UNSUPPORTED, Delivery.REFUSED),
    ("cannot locate home directory", ErrorCategory.UNSUPPORTED, Delivery.REFUSED),
)
"""What Fossil says, for each of its failures ends with 1. Source: runs of fossil 2.21."""


class _Row(msgspec.Struct):
    """A ticket as the query tells it."""

    id: str
    title: str | None
    state: str | None
    is_commented: bool
    links: list[str]
    common: str | None


@attrs.frozen
class _Ticket:
    """A ticket by its whole id, the states of its repository, and whether it has the comment that was asked for."""

    id: str
    issue: Issue
    states: tuple[str, ...]
    is_commented: bool


@attrs.frozen
class FossilCommands:
    """Builds Fossil's command lines, and reads how they end. It starts nothing.

    Attributes:
        repository: The repository's file.
        user: The login that writes.
        closed: The states that are an end.
        program: The command.
    """

    repository: str
    user: str
    closed: tuple[str, ...]
    program: str = "fossil"

    def change(self, ticket: str, **fields: str) -> Command:
        """Set fields of a ticket.

        What is set goes through the standard input: no argument is too long then, none is taken for an option, and no
        other user of the machine sees it.
        """
        lines = ["ticket", "set", "--quote", "-R", self.repository, "--user", self.user, ticket]
        for name, value in fields.items():
            lines += [name, value.translate(_ESCAPES)]
        return Command((self.program, "--args", "-"), "".join(f"{line}\n" for line in lines).encode())

    def look(self, ticket: str, key: str | None = None) -> Command:
        """Read a ticket, its links, and whether it has the comment of ``key``.

        Raises:
            TrackerError: ``ticket`` is no id of a ticket (``validation``).
        """
        if not re.fullmatch(r"[0-9a-f]{10,64}", ticket):
            msg = "expected the id of a ticket: its hexadecimal hash, or the first 10 digits of it at least"
            raise TrackerError(msg, category=ErrorCategory.VALIDATION, delivery=Delivery.NOT_SENT)
        user = self.user.replace("'", "''")
        wanted = mark(key) if key is not None else "harbor-async:none"
        own = f"FROM ticketchng AS c WHERE c.tkt_id = t.tkt_id AND c.tkt_user = '{user}' AND instr(c.icomment,"
        query = f"""
            .mode list
            SELECT json_group_array(json_object(
              'id', tkt_uuid, 'title', title, 'state', status,
              'is_commented', json(CASE WHEN EXISTS (SELECT 1 {own} '{wanted}')) THEN 'true' ELSE 'false' END),
              'links', (SELECT json_group_array(icomment) FROM (
                SELECT icomment {own} '{_LINK}') ORDER BY c.tkt_mtime, c.rowid)),
              'common', (SELECT value FROM config WHERE name = 'ticket-common')))
            FROM ticket AS t WHERE tkt_uuid GLOB '{ticket}*';
        """  # noqa: S608 - a hash, a quoted name and our own marks
        lines = "".join(f"{line.strip()}\n" for line in query.strip().splitlines())
        return Command((self.program, "sql", "--readonly", "-R", self.repository), lines.encode(), is_read=True)

    def read(self, result: Exit, asked: str) -> _Ticket:
        """Return the ticket that ``look`` has found.

        Raises:
            TrackerError: There is none (``not_found``), there are several (``validation``), or it cannot be read.
        """
        try:
            rows = msgspec.json.decode(result.stdout, type=list[_Row])
        except (ValueError, RecursionError) as exc:
            raise unreadable() from exc
        if not rows:
            msg = "there is no such ticket"
            raise TrackerError(msg, category=ErrorCategory.NOT_FOUND, delivery=Delivery.REFUSED)
        if len(rows) > 1:
            msg = "several tickets begin so: expected more digits of the id"
            raise TrackerError(msg, category=ErrorCategory.VALIDATION, delivery=Delivery.REFUSED)
        row = rows[0]
        links = tuple(dict.fromkeys(link for text in row.links for link in links_in(text)))
        state = row.state or ""
        issue = Issue(asked, row.title or "", state, state in self.closed, links)
        return _Ticket(row.id, issue, states_in(row.common), row.is_commented)


def states_in(script: str | None) -> tuple[str, ...]:
    """Return the states that a repository's "Ticket Common Script" offers; Fossil's own where it says nothing."""
    found = _CHOICES.search(script or "")
    names = [word["braced"] or word["plain"] for word in _WORDS.finditer(found["names"])] if found else []
    return tuple(filter(None, names)) or STATES


def classify(result: Exit) -> TrackerError | None:
    """Say what the end of a Fossil command means; None for a success."""
    text = said(result)
    if result.code == 0 and (result.stdout.strip() or not text):
        return None
    if result.code < 0:
        return TrackerError(f"fossil was ended by signal {-result.code}", category=ErrorCategory.API_REQUEST)
    for words, category, delivery in _MEANINGS:
        if words in text.lower():
            return TrackerError(f"fossil: {text}", category=category, delivery=delivery)
    return TrackerError(f"fossil failed: {text}", category=ErrorCategory.API_STATUS)


class Fossil(CommandTracker):
    """The tickets of one repository.

    ::

        async with Fossil("project.fossil", user="agent") as tracker:
            await tracker.comment("da154add4a", "Done.", key="7f3a")

    A ticket's id is its hash, or ten digits of it at least. Comments are Markdown, with a mark in each that readers do
    not see. Fossil itself takes any word for a state; here it must be one that the repository offers.
    """

    def __init__(
        self,
        repository: str | os.PathLike[str],
        *,
        user: str,
        closed: Sequence[str] = ("Closed",),
        program: str = "fossil",
        transport: CommandTransport | None = None,
    ) -> None:
        """Prepare; nothing is started yet.

        Args:
            repository: The repository's file.
            user: The login that writes; it must be a user of the repository.
            closed: The states that are an end. A close moves to the first one.
            program: The command, or the path of it.
            transport: What runs it; None: a ``ProcessTransport``.

        Raises:
            InvalidToolError: ``user`` is no login, or there is no closed state.
        """
        path = os.fspath(repository)
        if not all(isinstance(text, str) and text and text.isprintable() for text in (user, path, program, *closed)):
            msg = "expected a repository, a user, a program and states, each a text of one line"
            raise InvalidToolError(msg)
        if isinstance(closed, str) or not closed:
            msg = "closed: expected the names of one state at least"
            raise InvalidToolError(msg)
        super().__init__(transport, classify)
        self._commands = FossilCommands(path, user, tuple(closed), program)

    async def comment(self, id: str, body: str, /, *, key: str) -> None:
        """Add a comment to ticket ``id``, once for each ``key``.

        Raises:
            TrackerError: It was not added, or that is not known.
        """
        check_text(id, body, key)
        async with self._turn():
            ticket = await self._look(id, key)
            if not ticket.is_commented:
                await self._comment(ticket, hide(body, mark(key)))

    async def transition(self, id: str, to_state: str, /, *, key: str) -> None:  # noqa: ARG002 - it is safe to repeat
        """Move ticket ``id`` to ``to_state``, in any letter case. One that is there stays as it is.

        Raises:
            TrackerError: It was not moved, or that is not known. ``validation``: the repository has no such state.
        """
        check_text(id, to_state)
        async with self._turn():
            ticket = await self._look(id)
            names = {name.casefold(): name for name in (*self._commands.closed, *ticket.states)}
            state = names.get(to_state.strip().casefold())
            if state is None:
                msg = f"there is no such state; expected one of {', '.join(ticket.states)}"
                raise TrackerError(msg, category=ErrorCategory.VALIDATION, delivery=Delivery.NOT_SENT)
            if state != ticket.issue.state:
                await self._change(ticket, status=state)

    async def close(self, id: str, reason: str, /, *, key: str) -> None:
        """Move ticket ``id`` to the first closed state, with the reason as a comment. A closed one stays as it is.

        Raises:
            TrackerError: It was not closed, or that is not known.
        """
        check_text(id, reason, key)
        async with self._turn():
            ticket = await self._look(id)
            if ticket.issue.is_closed:
                return
            fields = {"status": self._commands.closed[0]}
            if reason.strip():
                fields |= {"icomment": hide(reason, mark(key)), "mimetype": _MARKDOWN}
            await self._change(ticket, **fields)

    async def link_pr(self, id: str, pr_url: str, /, *, key: str) -> None:  # noqa: ARG002 - it is safe to repeat
        """Link a pull request to ticket ``id``, by a comment that names it. One that is linked stays as it is.

        Raises:
            TrackerError: It was not linked, or that is not known.
        """
        check_text(id, pr_url)
        check_url(pr_url)
        async with self._turn():
            ticket = await self._look(id)
            if pr_url not in ticket.issue.links:
                await self._comment(ticket, link_text(pr_url))

    async def find_comment(self, id: str, /, *, key: str) -> bool:
        """Say whether ticket ``id`` has the comment that this user wrote with ``key``.

        Raises:
            TrackerError: That could not be found out.
        """
        check_text(id, key)
        async with self._turn():
            return (await self._look(id, key)).is_commented

    async def get(self, id: str, /) -> Issue:
        """Return ticket ``id``, with the links that this user has made.

        Raises:
            TrackerError: It is missing (``not_found``), or could not be read.
        """
        check_text(id)
        async with self._turn():
            return (await self._look(id)).issue

    async def _look(self, id: str, key: str | None = None) -> _Ticket:
        commands = self._commands
        return await self._run(commands.look(id.lower(), key), lambda result: commands.read(result, id))

    async def _comment(self, ticket: _Ticket, text: str) -> None:
        await self._change(ticket, icomment=text, mimetype=_MARKDOWN)

    async def _change(self, ticket: _Ticket, **fields: str) -> None:
        await self._run(self._commands.change(ticket.id, **fields), lambda _: None)
