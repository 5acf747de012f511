"""GitLab issues, by its REST API, version 4.

Source: GitLab's documentation of its REST API: issues, notes, rate limits, status codes.
"""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import ClassVar, Final
from urllib.parse import quote

import attrs
import msgspec

from ..._categories import Delivery, ErrorCategory
from ..._json import is_mapping
from ...errors import InvalidToolError
from .._writer import Issue, TrackerError
from ._http import Request, Response, Rule, Secret, Transport, by_status, check_base, refusal, texts
from ._http._marked import PAGE, Comment, MarkedTracker, Page, check_number

_LOCKED: Final[Rule] = (ErrorCategory.API_REQUEST, Delivery.REFUSED, "another request changes the issue just now")
_COMMAND: Final = re.compile(r"^([ \t]*)/(?=[a-z])", re.MULTILINE)


class GitLab(MarkedTracker):
    """Writes to the issues of a project on GitLab. An issue is named by its number in the project.

    ::

        async with GitLab("group/project", token=token) as tracker:
            await tracker.comment("42", "Done.", key="7f3a")

    The states are ``opened`` and ``closed``. The reason for a close is a comment. A pull request (here a merge request)
    is linked by a comment that names it, of which GitLab makes a reference. A line of a comment that begins with ``/``
    would be a command to GitLab, as ``/close`` is: it is escaped, and shown as it was written.
    """

    def __init__(
        self,
        project: str,
        *,
        token: Secret | str,
        author: str | None = None,
        url: str = "https://gitlab.com",
        transport: Transport | None = None,
    ) -> None:
        """Prepare; nothing is sent yet.

        Args:
            project: Its path, as ``group/project``, or its number.
            token: An access token or one of OAuth, with the scope ``api``.
            author: The name of the token's account; None: GitLab is asked.
            url: The address of the server.
            transport: Another way to send requests; None: httpx2, with a pool of its own.

        Raises:
            InvalidToolError: An argument that makes no sense.
            MissingExtraError: httpx2 is missing, and no transport was given.
        """
        if not isinstance(project, str) or not re.fullmatch(r"[\w./-]+", project) or ".." in project:
            msg = "expected a project, as 'group/project' or its number"
            raise InvalidToolError(msg)
        root = f"{check_base(url)}/api/v4"
        headers = {"Authorization": Secret.of(token).prefixed("Bearer ")}
        super().__init__(_API(root, quote(project, safe=""), headers), transport, author)


class _User(msgspec.Struct):
    username: str


class _Issue(msgspec.Struct):
    iid: int
    title: str
    state: str


class _Note(msgspec.Struct):
    id: int
    body: str = ""
    author: _User | None = None
    system: bool = False


@attrs.frozen
class _API:
    root: str
    project: str
    headers: Mapping[str, str | Secret]
    states: ClassVar[Mapping[str, bool]] = {"opened": False, "closed": True}

    def me(self) -> Request:
        return self._request("GET", "/user")

    def read_me(self, response: Response) -> str:
        return response.read(_User).username

    def issue(self, id: str) -> Request:
        return self._request("GET", self._path(id))

    def read_issue(self, response: Response) -> Issue:
        found = response.read(_Issue)
        return Issue(str(found.iid), found.title, found.state, is_closed=found.state == "closed")

    def comments(self, id: str, page: int) -> Request:
        query = f"sort=desc&order_by=created_at&per_page={PAGE}&page={page}"
        return self._request("GET", f"{self._path(id)}/notes?{query}")

    def read_comments(self, response: Response, page: int) -> Page:
        notes = response.read(list[_Note])
        comments = (Comment(it.id, it.author.username if it.author else "", it.body) for it in notes if not it.system)
        return Page(tuple(comments), page + 1 if len(notes) == PAGE else None)

    def comment(self, id: str, body: str) -> Request:
        return self._request("POST", f"{self._path(id)}/notes", {"body": _COMMAND.sub(r"\1\/", body)})

    def read_comment(self, response: Response) -> None:
        response.read(_Note)

    def carries(self, reason: str) -> bool:  # noqa: ARG002 - GitLab has no field for it
        return False

    def move(self, id: str, reason: str, *, closes: bool) -> Request:  # noqa: ARG002 - as above
        return self._request("PUT", self._path(id), {"state_event": "close" if closes else "reopen"})

    def classify(self, response: Response) -> TrackerError | None:
        if response.is_success:
            return None
        document = response.document()
        said = (
            (document.get(name) for name in ("message", "error", "error_description")) if is_mapping(document) else ()
        )
        details = [text for part in said for text in texts(part)]
        if response.status == HTTPStatus.CONFLICT and any("resource lock" in text.casefold() for text in details):
            return refusal(response, _LOCKED, details)
        return by_status(response, details)

    def _request(self, method: str, path: str, document: object = None) -> Request:
        return Request.json(method, f"{self.root}{path}", self.headers, document)

    def _path(self, id: str) -> str:
        return f"/projects/{self.project}/issues/{check_number(id)}"
