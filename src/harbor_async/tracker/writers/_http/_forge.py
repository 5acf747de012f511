"""What GitHub's REST API and Gitea's, which took it for its model, have in common."""

from collections.abc import Mapping
from typing import ClassVar

import attrs
import msgspec

from ..._writer import Issue, TrackerError
from ._marked import PAGE, Comment, Page, check_number, page_before
from ._request import Request, Response
from ._secret import Secret


class _User(msgspec.Struct):
    login: str


class _Issue(msgspec.Struct):
    number: int
    title: str
    state: str


class _Comment(msgspec.Struct):
    id: int
    body: str | None = None
    user: _User | None = None


@attrs.frozen
class ForgeAPI:
    """A ``MarkedAPI`` without ``classify``; its methods are told there.

    Attributes:
        root: The address before the path of each request.
        repo: ``owner/name``.
        headers: The headers of each request.
    """

    root: str
    repo: str
    headers: Mapping[str, "str | Secret"]
    states: ClassVar[Mapping[str, bool]] = {"open": False, "closed": True}

    def classify(self, response: Response) -> TrackerError | None:
        raise NotImplementedError

    def me(self) -> Request:
        return self.request("GET", "/user")

    def read_me(self, response: Response) -> str:
        return response.read(_User).login

    def issue(self, id: str) -> Request:
        return self.request("GET", self.path(id))

    def read_issue(self, response: Response) -> Issue:
        found = response.read(_Issue)
        return Issue(str(found.number), found.title, found.state, is_closed=found.state == "closed")

    def comments(self, id: str, page: int) -> Request:
        return self.request("GET", f"{self.path(id)}/comments?per_page={PAGE}&page={page}")

    def read_comments(self, response: Response, page: int) -> Page:
        found = response.read(list[_Comment])
        comments = (Comment(it.id, it.user.login if it.user else "", it.body or "") for it in found)
        return Page(tuple(comments), page_before(page, response.headers))

    def comment(self, id: str, body: str) -> Request:
        return self.request("POST", f"{self.path(id)}/comments", {"body": body})

    def read_comment(self, response: Response) -> None:
        response.read(_Comment)

    def carries(self, reason: str) -> bool:  # noqa: ARG002 - it has no field for it
        return False

    def move(self, id: str, reason: str, *, closes: bool) -> Request:  # noqa: ARG002 - it has no field for it
        return self.request("PATCH", self.path(id), {"state": "closed" if closes else "open"})

    def request(self, method: str, path: str, document: object = None) -> Request:
        """Build a request to ``path``."""
        return Request.json(method, f"{self.root}{path}", self.headers, document)

    def path(self, id: str) -> str:
        """Return the path of an issue."""
        return f"/repos/{self.repo}/issues/{check_number(id)}"
