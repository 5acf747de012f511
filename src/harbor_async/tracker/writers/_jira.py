"""Jira's two pure halves: requests built, answers read.

Source: Atlassian's OpenAPI description of the Jira Cloud platform, its change notice on simultaneous transitions (409),
and its documentation of rate limits.
"""

import re
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final

import attrs
import msgspec

from ..._categories import Delivery, ErrorCategory
from ..._json import is_mapping
from .._writer import TrackerError
from ._http import Request, Response, Rule, Secret, by_status, find_state, mark, no_state, texts

_PROPERTY: Final = "harbor-async"
"""The property of a comment that holds its idempotency key; no reader sees it."""
PAGE: Final = 100
_RULES: Final[dict[int, Rule]] = {
    HTTPStatus.CONFLICT: (
        ErrorCategory.API_REQUEST,
        Delivery.REFUSED,
        "another transition of the issue runs just now",
    ),
}


class _Category(msgspec.Struct):
    key: str = ""


class _Status(msgspec.Struct, rename="camel"):
    name: str
    status_category: _Category = msgspec.field(default_factory=_Category)


class _Resolution(msgspec.Struct):
    name: str


class _Field(msgspec.Struct, rename="camel"):
    required: bool = False
    has_default_value: bool = False
    allowed_values: list[_Resolution] = []


class _TransitionFields(msgspec.Struct):
    resolution: _Field | None = None


class Transition(msgspec.Struct):
    """A move that the issue can make now."""

    id: str
    name: str
    to: _Status
    fields: _TransitionFields = msgspec.field(default_factory=_TransitionFields)

    @property
    def is_end(self) -> bool:
        return self.to.status_category.key == "done"

    def resolutions(self) -> list[str]:
        return [value.name for value in self.fields.resolution.allowed_values] if self.fields.resolution else []

    def document(self, reason: str) -> dict[str, Any]:
        """Return what makes it, with the resolution that ``reason`` names, or one where it has to have one."""
        document: dict[str, Any] = {"transition": {"id": self.id}}
        names = self.resolutions()
        named = [name for name in names if name.casefold() == reason.casefold()]
        field = self.fields.resolution
        if not named and field is not None and field.required and not field.has_default_value:
            named = [name for name in names if name == "Done"] or names
        if named:
            document["fields"] = {"resolution": {"name": named[0]}}
        return document


class _IssueFields(msgspec.Struct):
    status: _Status
    summary: str = ""


class _Issue(msgspec.Struct):
    key: str
    fields: _IssueFields
    transitions: list[Transition] = []


@attrs.frozen
class State:
    """An issue, and the transitions from where it is."""

    key: str
    title: str
    state: str
    is_closed: bool
    moves: tuple[Transition, ...]

    def choose(self, wanted: str) -> Transition:
        return find_state(wanted, self._by_target().items(), ((move.name, move) for move in self.moves))

    def choose_end(self, reason: str) -> Transition:
        ends = [move for move in self.moves if move.is_end]
        if not ends:
            problem = "no transition closes the issue from where it is"
            raise no_state(problem, self._by_target())
        words = reason.casefold()
        named = [move for move in ends if words in {move.to.name.casefold(), move.name.casefold()}]
        return (named or ends)[0]

    def _by_target(self) -> dict[str, Transition]:
        first: dict[str, Transition] = {}
        for move in self.moves:
            first.setdefault(move.to.name, move)
        return first


class _Author(msgspec.Struct, rename="camel"):
    account_id: str


class _Comment(msgspec.Struct):
    id: str
    author: _Author | None = None

    def is_by(self, account: str) -> bool:
        return self.author is not None and self.author.account_id == account


class _Comments(msgspec.Struct):
    comments: list[_Comment]
    total: int


class _Property(msgspec.Struct):
    key: str
    value: Any = None


class _WithProperties(msgspec.Struct):
    properties: list[_Property] = []


class _Listed(msgspec.Struct):
    values: list[_WithProperties]


class _Target(msgspec.Struct):
    url: str = ""


class _Link(msgspec.Struct):
    object: _Target


class _MadeLink(msgspec.Struct):
    id: int | str


@attrs.frozen
class API:
    """Each request of the writer, and what its answer says."""

    root: str
    headers: Mapping[str, str | Secret]

    def me(self) -> Request:
        return self._request("GET", "/myself")

    def read_me(self, response: Response) -> str:
        return response.read(_Author).account_id

    def issue(self, id: str) -> Request:
        return self._request("GET", f"{self._path(id)}?fields=summary,status&expand=transitions.fields")

    def read_issue(self, response: Response) -> State:
        found = response.read(_Issue)
        status = found.fields.status
        is_closed = status.status_category.key == "done"
        return State(found.key, found.fields.summary, status.name, is_closed, tuple(found.transitions))

    def links(self, id: str) -> Request:
        return self._request("GET", f"{self._path(id)}/remotelink")

    def read_links(self, response: Response) -> tuple[str, ...]:
        return tuple(link.object.url for link in response.read(list[_Link]))

    def comments(self, id: str, start: int) -> Request:
        return self._request("GET", f"{self._path(id)}/comment?orderBy=-created&maxResults={PAGE}&startAt={start}")

    def read_comments(self, response: Response) -> _Comments:
        return response.read(_Comments)

    def properties(self, ids: list[str]) -> Request:
        document = {"ids": [int(id) for id in ids]}
        return self._request("POST", "/comment/list?expand=properties", document, is_read=True)

    def has_mark(self, response: Response, mark: str) -> bool:
        comments = response.read(_Listed).values
        return any(it.key == _PROPERTY and mark in texts(it.value) for one in comments for it in one.properties)

    def comment(self, id: str, body: str, mark: str) -> Request:
        document = {"body": _document(body), "properties": [{"key": _PROPERTY, "value": mark}]}
        return self._request("POST", f"{self._path(id)}/comment", document)

    def read_comment(self, response: Response) -> None:
        response.read(_Comment)

    def link(self, id: str, url: str) -> Request:
        # Jira updates the link of this globalId if there is one; it may have 255 characters, an address more.
        document = {"globalId": mark(url), "object": {"url": url, "title": url}}
        return self._request("POST", f"{self._path(id)}/remotelink", document)

    def read_link(self, response: Response) -> None:
        response.read(_MadeLink)

    def move(self, id: str, move: Transition, reason: str) -> Request:
        return self._request("POST", f"{self._path(id)}/transitions", move.document(reason))

    def classify(self, response: Response) -> TrackerError | None:
        return None if response.is_success else by_status(response, _details(response.document()), _RULES)

    def _request(self, method: str, path: str, document: object = None, *, is_read: bool | None = None) -> Request:
        return Request.json(method, f"{self.root}{path}", self.headers, document, is_read=is_read)

    def _path(self, id: str) -> str:
        if not re.fullmatch(r"([A-Za-z][A-Za-z0-9_]*-)?[1-9][0-9]{0,17}", id):
            msg = "expected the key of an issue, as 'PROJ-42', or its number"
            raise TrackerError(msg, category=ErrorCategory.VALIDATION, delivery=Delivery.NOT_SENT)
        return f"/issue/{id}"


def _details(document: object) -> Iterator[str]:
    if is_mapping(document):
        for name in ("errorMessages", "errors", "message"):
            yield from texts(document.get(name))


def _document(text: str) -> dict[str, Any]:
    """Return a text in the Atlassian Document Format: a paragraph for what stands between blank lines."""
    paragraphs = [part for part in re.split(r"\n\s*\n", text.replace("\r\n", "\n").strip("\n")) if part.strip()]
    return {"type": "doc", "version": 1, "content": [_paragraph(part) for part in paragraphs]}


def _paragraph(text: str) -> dict[str, Any]:
    content: list[dict[str, str]] = []
    for line in text.split("\n"):
        if content:
            content.append({"type": "hardBreak"})
        if line:
            content.append({"type": "text", "text": line})
    return {"type": "paragraph", "content": content}
