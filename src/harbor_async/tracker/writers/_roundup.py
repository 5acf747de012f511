"""The two pure halves of the Roundup writer: requests built, answers read."""

import base64
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final, Self
from urllib.parse import quote, urlencode, urlsplit

import attrs
import msgspec

from ..._categories import Delivery, ErrorCategory
from ..._json import is_mapping
from .._writer import TrackerError
from ._http import Request, Response, Rule, Secret, by_status, mark, texts
from ._http._marked import check_number

_RULES: Final[Mapping[int, Rule]] = {
    HTTPStatus.METHOD_NOT_ALLOWED: (ErrorCategory.VALIDATION, Delivery.REFUSED, "a rule of the tracker forbids it"),
}
"""What a detector of the tracker refuses is 405. Source: Roundup 2.6, rest.py."""
_LINKED: Final = "harbor-async-link"
_HOST: Final = "@harbor-async.invalid>"
"""The end of our message ids; no host has such a name. Source: RFC 2606 §2."""


class Ref(msgspec.Struct):
    """A thing by its id."""

    id: str


class State(msgspec.Struct):
    """A state."""

    id: str
    name: str


class Attributes(msgspec.Struct):
    """What an issue has."""

    status: State | None
    messages: list[Ref]
    title: str | None = None


class Found(msgspec.Struct):
    """An issue as it was read, with the tag by which the tracker knows whether it still is so."""

    id: str
    attributes: Attributes
    etag: str = msgspec.field(name="@etag")


class Message(msgspec.Struct):
    """A message, without its text."""

    id: str
    author: Ref | None = None
    messageid: str | None = None


class User(msgspec.Struct):
    """A user."""

    id: str
    username: str


class One(msgspec.Struct):
    """One issue."""

    data: Found


class Made(msgspec.Struct):
    """What was stored."""

    data: Ref


class States(msgspec.Struct):
    """States."""

    collection: list[State]


class StateList(msgspec.Struct):
    """States."""

    data: States


class Messages(msgspec.Struct):
    """Messages."""

    collection: list[Message]


class MessageList(msgspec.Struct):
    """Messages."""

    data: Messages


class Users(msgspec.Struct):
    """Users."""

    collection: list[User]


class UserList(msgspec.Struct):
    """Users."""

    data: Users


@attrs.frozen
class API:
    """Builds requests to a Roundup tracker, and reads its answers. It sends nothing.

    A comment's key, and the address that a link names, stand in the message's own ``messageid``: readers do not see it,
    and it can be searched for.
    """

    base: str
    headers: Mapping[str, Secret | str]

    @classmethod
    def of(cls, url: str, user: str, password: Secret) -> Self:
        """Speak to the tracker at ``url``, with the origin that it wants to see on each write."""
        parts = urlsplit(url)
        headers: dict[str, Secret | str] = {
            "Authorization": password.basic(user),
            "Origin": f"{parts.scheme}://{parts.netloc}",
            "X-Requested-With": "harbor-async",
        }
        return cls(f"{url}/rest/data", headers)

    def issue(self, id: str) -> Request:
        """Ask for an issue."""
        return self._ask(f"issue/{check_number(id)}", {"@verbose": "2"})

    def states(self) -> Request:
        """Ask for the states, in the tracker's own order."""
        return self._ask("status", {"@fields": "name", "@sort": "order"})

    def user(self, name: str) -> Request:
        """Ask for the users whose names contain ``name``."""
        return self._ask("user", {"username": name, "@fields": "username"})

    def messages(self, part: str) -> Request:
        """Ask for the messages whose ids contain ``part``."""
        return self._ask("msg", {"messageid": part, "@fields": "messageid,author"})

    def write_message(self, text: str, author: str, messageid: str) -> Request:
        """Store a message, which belongs to no issue yet."""
        body = {"content": text, "author": author, "date": ".", "messageid": messageid}
        return Request.json("POST", f"{self.base}/msg", self.headers, body)

    def add_message(self, issue: Found, message: str) -> Request:
        """Add a message to an issue that is still as it was read. What is there already is not added again."""
        body = {"@op": "add", "messages": [message]}
        return Request.json("PATCH", f"{self.base}/issue/{issue.id}", self._unchanged(issue), body)

    def move(self, issue: Found, state: str) -> Request:
        """Move an issue that is still as it was read."""
        return Request.json("PUT", f"{self.base}/issue/{issue.id}/status", self._unchanged(issue), {"data": state})

    def classify(self, response: Response) -> TrackerError | None:
        """Say what an answer means; None for a success."""
        if response.is_success:
            return None
        document: Any = response.document()
        error = document.get("error") if is_mapping(document) else None
        return by_status(response, texts(error.get("msg")) if is_mapping(error) else (), _RULES)

    def read_issue(self, response: Response) -> Found:
        """Return the issue."""
        return response.read(One).data

    def read_states(self, response: Response) -> list[State]:
        """Return the states."""
        return response.read(StateList).data.collection

    def read_messages(self, response: Response) -> list[Message]:
        """Return the messages."""
        return response.read(MessageList).data.collection

    def read_made(self, response: Response) -> str:
        """Return the id of the message that was stored."""
        return response.read(Made).data.id

    def read_user(self, response: Response, name: str) -> str:
        """Return the id of the user who is named so.

        Raises:
            TrackerError: The tracker shows none (``auth_failed``).
        """
        for user in response.read(UserList).data.collection:
            if user.username == name:
                return user.id
        msg = "the tracker does not show the user that writes"
        raise TrackerError(msg, category=ErrorCategory.AUTH_FAILED, delivery=Delivery.NOT_SENT)

    def _ask(self, path: str, query: Mapping[str, str]) -> Request:
        return Request.json("GET", f"{self.base}/{path}?{urlencode(query, quote_via=quote, safe='@')}", self.headers)

    def _unchanged(self, issue: Found) -> Mapping[str, Secret | str]:
        return {**self.headers, "If-Match": issue.etag}


def comment_id(issue: str, key: str) -> str:
    """Return the message id of the comment that is written with ``key``."""
    return f"<{mark(key).replace(':', '.')}.{issue}{_HOST}"


def link_prefix(issue: str) -> str:
    """Return how the message ids of an issue's links begin."""
    return f"<{_LINKED}.{issue}."


def link_id(issue: str, url: str) -> str:
    """Return the message id of a link: it holds the address."""
    return f"{link_prefix(issue)}{base64.urlsafe_b64encode(url.encode()).decode().rstrip('=')}{_HOST}"


def link_of(issue: str, messageid: str) -> str | None:
    """Return the address that a message id of ``link_id`` holds; None for any other."""
    found = re.fullmatch(f"{re.escape(link_prefix(issue))}([A-Za-z0-9_-]+){re.escape(_HOST)}", messageid)
    if found is None:
        return None
    text = found[1]
    try:
        return base64.urlsafe_b64decode(f"{text}{'=' * (-len(text) % 4)}").decode()
    except ValueError:
        return None
