"""Issues of beads, through its ``bd`` command: ``Beads``."""

import re
from collections.abc import Sequence
from typing import Any, Final, TypeVar, cast

import attrs
import msgspec

from ..._categories import Delivery, ErrorCategory
from ..._json import is_mapping
from ...errors import InvalidToolError
from .._writer import Issue, TrackerError
from ._command import Command, CommandTracker, CommandTransport, Exit, check_text, said, unreadable
from ._http import check_url, hide, link_text, links_in, mark

T = TypeVar("T")

_ID: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_FROZEN: Final = 14
"""The exit status of a write while the issues are being migrated. Source: beads, its cmd/bd/errors.go."""
_BLOCKED: Final = re.compile(r"cannot close|blocked by|open child|open issues|is pinned|already claimed")
_MISSING: Final = re.compile(r"not found|no issues? found")
_WRONG: Final = re.compile(
    r"invalid|abbreviations are not|ambiguous|is required|must be|reserved word|too (?:long|short)|unknown flag"
)
_NOWHERE: Final = re.compile(
    r"no (?:active )?beads (?:workspace|database)|binary not found|unknown command|not an? .*repository"
)
_DENIED: Final = re.compile(r"read-only mode|permission denied|access denied")
_LOCKED: Final = re.compile(r"database is locked|locked by another|failed to acquire .*lock|could not lock")
_MEANINGS: Final = (
    (_NOWHERE, ErrorCategory.UNSUPPORTED, Delivery.REFUSED),
    (_LOCKED, ErrorCategory.API_REQUEST, Delivery.NOT_SENT),
    (_DENIED, ErrorCategory.AUTH_FAILED, Delivery.REFUSED),
    (_BLOCKED, ErrorCategory.CONFLICT, Delivery.REFUSED),
    (_MISSING, ErrorCategory.NOT_FOUND, Delivery.REFUSED),
    (_WRONG, ErrorCategory.VALIDATION, Delivery.REFUSED),
)
"""What bd says, for nearly each of its failures ends with 1. Source: beads, its cmd/bd."""


class _Issue(msgspec.Struct):
    id: str
    title: str
    status: str


class _Comment(msgspec.Struct):
    author: str
    text: str


@attrs.frozen
class BeadsCommands:
    """Builds bd's command lines, and reads how they end. It starts nothing.

    Attributes:
        actor: The name that writes.
        closed: The states that are an end.
        program: The command.
    """

    actor: str
    closed: tuple[str, ...]
    program: str = "bd"

    def show(self, id: str) -> Command:
        """Read an issue.

        Raises:
            TrackerError: ``id`` is no id of an issue (``validation``). bd would take an empty one for the last issue
                that it touched, and one that begins with ``-`` for an option.
        """
        if not _ID.fullmatch(id):
            msg = "expected the id of an issue, as 'bd-a1b2'"
            raise TrackerError(msg, category=ErrorCategory.VALIDATION, delivery=Delivery.NOT_SENT)
        return attrs.evolve(self._build("show", values=(id,)), is_read=True)

    def comments(self, id: str) -> Command:
        """Read the comments of an issue."""
        return attrs.evolve(self._build("comments", values=(id,)), is_read=True)

    def comment(self, id: str, text: str) -> Command:
        """Add a comment."""
        return self._build("comments", "add", values=(id, text))

    def move(self, id: str, state: str) -> Command:
        """Move an issue to a state."""
        return self._build("update", f"--status={state}", values=(id,))

    def close(self, id: str, reason: str) -> Command:
        """Close an issue."""
        reasons = [f"--reason={reason}"] if reason.strip() else []
        return self._build("close", *reasons, values=(id,))

    def _build(self, *words: str, values: tuple[str, ...]) -> Command:
        # Nothing after "--" is taken for an option.
        return Command((self.program, *words, "--json", f"--actor={self.actor}", "--", *values))


def read(result: Exit, kind: type[T]) -> list[T]:
    """Return what bd has written, one ``kind`` or several; newer versions wrap it into an object with a version.

    Raises:
        TrackerError: It is something else.
    """
    try:
        document: Any = msgspec.json.decode(result.stdout)
        if is_mapping(document) and "data" in document:
            document = document["data"]
        several = [document] if document is not None else []
        if isinstance(document, list):
            several = cast("list[object]", document)
        return [msgspec.convert(item, kind) for item in several]
    except (ValueError, RecursionError) as exc:
        raise unreadable() from exc


def classify(result: Exit) -> TrackerError | None:
    """Say what the end of a bd command means; None for a success."""
    if result.code == 0 and result.stdout.lstrip()[:1] in {b"[", b"{"}:
        return None
    if result.code < 0:
        return TrackerError(f"bd was ended by signal {-result.code}", category=ErrorCategory.API_REQUEST)
    text = _reason(result)
    if result.code == _FROZEN:
        return TrackerError(f"bd: {text}", category=ErrorCategory.API_REQUEST, delivery=Delivery.REFUSED)
    for words, category, delivery in _MEANINGS:
        if words.search(text.lower()):
            return TrackerError(f"bd: {text}", category=category, delivery=delivery)
    return TrackerError(f"bd failed: {text}", category=ErrorCategory.API_STATUS)


def _reason(result: Exit) -> str:
    """Return what bd says of its failure: JSON or plain text, on the one stream or the other."""
    found: list[str] = []
    for stream in (result.stdout, result.stderr):
        try:
            document: Any = msgspec.json.decode(stream)
        except (ValueError, RecursionError):
            continue
        if is_mapping(document):
            inner = document.get("data", document)
            found += [str(inner[name]) for name in ("error", "hint") if is_mapping(inner) and name in inner]
    return "; ".join(found) or said(result)


class Beads(CommandTracker):
    """The issues of one beads workspace.

    ::

        async with Beads(transport=ProcessTransport(folder="project")) as tracker:
            await tracker.comment("bd-a1b2", "Done.", key="7f3a")

    An id must be whole: bd itself takes the beginning of one, too. Comments carry a mark that readers do not see.
    """

    def __init__(
        self,
        *,
        actor: str = "harbor-async",
        closed: Sequence[str] = ("closed",),
        program: str = "bd",
        transport: CommandTransport | None = None,
    ) -> None:
        """Prepare; nothing is started yet.

        Args:
            actor: The name that writes. Only what stands under this name is found again.
            closed: The states that are an end.
            program: The command, or the path of it.
            transport: What runs it, and where; None: a ``ProcessTransport`` in the folder of this program.

        Raises:
            InvalidToolError: A name is empty.
        """
        if isinstance(closed, str) or not closed:
            msg = "closed: expected the names of one state at least"
            raise InvalidToolError(msg)
        if not all(isinstance(text, str) and text.strip() and text.isprintable() for text in (actor, program, *closed)):
            msg = "expected an actor, a program and states, each a text of one line"
            raise InvalidToolError(msg)
        super().__init__(transport, classify)
        self._commands = BeadsCommands(actor, tuple(closed), program)

    async def comment(self, id: str, body: str, /, *, key: str) -> None:
        """Add a comment to issue ``id``.

        Raises:
            TrackerError: It was not added, or that is not known.
        """
        check_text(id, body, key)
        async with self._turn():
            await self._show(id)
            await self._comment(id, hide(body, mark(key)))

    async def transition(self, id: str, to_state: str, /, *, key: str) -> None:  # noqa: ARG002 - it is safe to repeat
        """Move issue ``id`` to ``to_state``. One that is there stays as it is.

        Raises:
            TrackerError: It was not moved, or that is not known. ``validation``: there is no such state.
        """
        check_text(id, to_state)
        state = to_state.strip()
        async with self._turn():
            if (await self._show(id)).state != state:
                await self._move(self._commands.move(id, state), id, (state,))

    async def close(self, id: str, reason: str, /, *, key: str) -> None:  # noqa: ARG002 - it is safe to repeat
        """Close issue ``id``. A closed one stays as it is.

        Raises:
            TrackerError: It was not closed, or that is not known. ``conflict``: other issues block it.
        """
        check_text(id, reason)
        async with self._turn():
            if not (await self._show(id)).is_closed:
                await self._move(self._commands.close(id, reason), id, self._commands.closed)

    async def link_pr(self, id: str, pr_url: str, /, *, key: str) -> None:  # noqa: ARG002 - it is safe to repeat
        """Link a pull request to issue ``id``, by a comment that names it. One that is linked stays as it is.

        Raises:
            TrackerError: It was not linked, or that is not known.
        """
        check_text(id, pr_url)
        check_url(pr_url)
        async with self._turn():
            await self._show(id)
            if not any(pr_url in links_in(text) for text in await self._own(id)):
                await self._comment(id, link_text(pr_url))

    async def find_comment(self, id: str, /, *, key: str) -> bool:
        """Say whether issue ``id`` has the comment that this actor wrote with ``key``.

        Raises:
            TrackerError: That could not be found out.
        """
        check_text(id, key)
        async with self._turn():
            await self._show(id)
            return any(mark(key) in text for text in await self._own(id))

    async def get(self, id: str, /) -> Issue:
        """Return issue ``id``, with the links that this actor has made.

        Raises:
            TrackerError: It is missing (``not_found``), or could not be read.
        """
        check_text(id)
        async with self._turn():
            issue = await self._show(id)
            links = [link for text in await self._own(id) for link in links_in(text)]
            return attrs.evolve(issue, links=tuple(dict.fromkeys(links)))

    async def _show(self, id: str) -> Issue:
        issues = await self._run(self._commands.show(id), lambda result: read(result, _Issue))
        if not issues:
            msg = "there is no such issue"
            raise TrackerError(msg, category=ErrorCategory.NOT_FOUND, delivery=Delivery.REFUSED)
        issue = issues[0]
        if len(issues) != 1 or issue.id != id:
            msg = "expected the whole id of an issue; bd takes this for the beginning of another"
            raise TrackerError(msg, category=ErrorCategory.VALIDATION, delivery=Delivery.NOT_SENT)
        return Issue(id, issue.title, issue.status, issue.status in self._commands.closed)

    async def _own(self, id: str) -> list[str]:
        comments = await self._run(self._commands.comments(id), lambda result: read(result, _Comment))
        return [comment.text for comment in comments if comment.author == self._commands.actor]

    async def _comment(self, id: str, text: str) -> None:
        await self._run(self._commands.comment(id, text), lambda result: read(result, _Comment))

    async def _move(self, command: Command, id: str, states: Sequence[str]) -> None:
        """Run what moves an issue, and see that it is there: some hooks and rules of bd end well and move nothing."""
        moved = await self._run(command, lambda result: read(result, _Issue))
        if not any(issue.id == id and issue.status in states for issue in moved):
            issue = await self._show(id)
            if issue.state not in states:
                msg = f"bd ended well, and the issue is still {issue.state!r}"
                raise TrackerError(msg, category=ErrorCategory.CONFLICT, delivery=Delivery.REFUSED)
