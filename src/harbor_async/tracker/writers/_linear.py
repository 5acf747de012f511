"""Linear's two pure halves: requests built, answers read.

Source: the schema and the error types of Linear's own client (@linear/sdk 98), and its documentation of rate limits.
"""

import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final, Generic, TypeVar, cast
from uuid import UUID

import attrs
import msgspec

from ..._categories import Delivery, ErrorCategory
from ..._json import is_mapping
from .._writer import TrackerError
from ._http import Request, Response, Rule, Secret, by_status, no_state, refusal, texts, wait_of

T = TypeVar("T")

_ENDS: Final = {"completed", "canceled", "duplicate"}
"""Types of states in which an issue is closed."""

_ISSUE: Final = """
query ($id: String!) {
  issue(id: $id) {
    id identifier title
    state { id name type }
    team { states(first: 100) { nodes { id name type position } } }
    attachments(first: 100) { nodes { url } }
  }
}
"""
_FIND: Final = """
query ($id: String!, $comment: ID!) {
  issue(id: $id) { comments(first: 1, filter: { id: { eq: $comment } }) { nodes { id } } }
}
"""
_COMMENT: Final = """
mutation ($input: CommentCreateInput!) { commentCreate(input: $input) { success } }
"""
_MOVE: Final = """
mutation ($id: String!, $state: String!) {
  issueUpdate(id: $id, input: { stateId: $state }) { success issue { state { id name type } } }
}
"""
_LINK: Final = """
mutation ($input: AttachmentCreateInput!) { attachmentCreate(input: $input) { success } }
"""

_BROKEN: Final[Rule] = (ErrorCategory.API_STATUS, Delivery.UNKNOWN, "Linear failed")
_MISSING: Final[Rule] = (
    ErrorCategory.NOT_FOUND,
    Delivery.REFUSED,
    "the issue is missing, or the token has no permission to see it",
)
_RULES: Final[dict[str, Rule]] = {
    "ratelimited": (ErrorCategory.RATE_LIMITED, Delivery.REFUSED, "too many requests"),
    "authentication error": (ErrorCategory.AUTH_FAILED, Delivery.REFUSED, "the token is not valid"),
    "forbidden": (ErrorCategory.AUTH_FAILED, Delivery.REFUSED, "the token has no permission for this"),
    "feature not accessible": (ErrorCategory.UNSUPPORTED, Delivery.REFUSED, "the workspace has no such feature"),
    "usage limit exceeded": (ErrorCategory.UNSUPPORTED, Delivery.REFUSED, "the plan of the workspace is used up"),
    "lock timeout": (ErrorCategory.API_REQUEST, Delivery.REFUSED, "another request changes the issue just now"),
    "network error": (ErrorCategory.API_REQUEST, Delivery.UNKNOWN, "Linear could not be asked"),
    "invalid input": (ErrorCategory.VALIDATION, Delivery.REFUSED, "the request is not valid"),
    "input error": (ErrorCategory.VALIDATION, Delivery.REFUSED, "the request is not valid"),
    "user error": (ErrorCategory.VALIDATION, Delivery.REFUSED, "the request is not valid"),
    "graphql error": (ErrorCategory.VALIDATION, Delivery.REFUSED, "the request is not valid"),
    "graphql validation failed": (ErrorCategory.VALIDATION, Delivery.REFUSED, "the request is not valid"),
}
"""By the type or the code of an error, in small letters and with spaces: a type is written so, a code with ``_``."""


def comment_id(id: str, key: str) -> str:
    """Return the UUID of the comment on issue ``id`` that is written with ``key``; of version 4, as Linear demands."""
    digest = sha256(f"{id.casefold()}\n{key}".encode(errors="surrogatepass")).digest()
    return str(UUID(bytes=digest[:16], version=4))


class State(msgspec.Struct):
    """A state of a team."""

    id: str
    name: str
    type: str
    position: float = 0.0

    @property
    def is_end(self) -> bool:
        return self.type in _ENDS


class _Nodes(msgspec.Struct, Generic[T]):
    nodes: list[T]


class _Team(msgspec.Struct):
    states: _Nodes[State]


class _Attachment(msgspec.Struct):
    url: str


class LinearIssue(msgspec.Struct):
    """An issue, and what its team allows."""

    id: str
    identifier: str
    title: str
    state: State
    team: _Team
    attachments: _Nodes[_Attachment]

    def states(self) -> list[tuple[str, State]]:
        states = sorted(self.team.states.nodes, key=lambda state: state.position)
        return [(state.name, state) for state in states]

    def links(self) -> tuple[str, ...]:
        return tuple(attachment.url for attachment in self.attachments.nodes)

    def end(self, reason: str) -> tuple[State, bool]:
        """Return the state in which to close the issue, and whether ``reason`` has named it."""
        ends = [state for _, state in self.states() if state.is_end]
        named = [state for state in ends if state.name.casefold() == reason.casefold()]
        usual = [state for state in ends if state.type == "completed"] or ends
        if not usual:
            problem = "the team has no state that closes an issue"
            raise no_state(problem, (name for name, _ in self.states()))
        return (named or usual)[0], bool(named)


class _IssueData(msgspec.Struct):
    issue: LinearIssue


class _Comment(msgspec.Struct):
    id: str


class _Comments(msgspec.Struct):
    comments: _Nodes[_Comment]


class _CommentsData(msgspec.Struct):
    issue: _Comments


class _Success(msgspec.Struct):
    success: bool


class _CommentData(msgspec.Struct, rename="camel"):
    comment_create: _Success


class _LinkData(msgspec.Struct, rename="camel"):
    attachment_create: _Success


class _Moved(msgspec.Struct):
    state: State


class _Update(msgspec.Struct):
    success: bool
    issue: _Moved


class _MoveData(msgspec.Struct, rename="camel"):
    issue_update: _Update


class _Answer(msgspec.Struct, Generic[T]):
    data: T


@attrs.frozen
class API:
    """Each request of the writer, and what its answer says."""

    url: str
    token: Secret

    def issue(self, id: str) -> Request:
        return self._request(_ISSUE, is_read=True, id=_check_id(id))

    def read_issue(self, response: Response) -> LinearIssue:
        return response.read(_Answer[_IssueData]).data.issue

    def find(self, id: str, comment: str) -> Request:
        return self._request(_FIND, is_read=True, id=_check_id(id), comment=comment)

    def read_found(self, response: Response) -> bool:
        return bool(response.read(_Answer[_CommentsData]).data.issue.comments.nodes)

    def comment(self, issue: str, id: str, body: str) -> Request:
        return self._request(_COMMENT, input={"id": id, "issueId": issue, "body": body})

    def read_comment(self, response: Response) -> None:
        _check_success(response.read(_Answer[_CommentData]).data.comment_create.success)

    def move(self, issue: str, state: str) -> Request:
        return self._request(_MOVE, id=issue, state=state)

    def read_move(self, response: Response) -> State:
        update = response.read(_Answer[_MoveData]).data.issue_update
        _check_success(update.success)
        return update.issue.state

    def link(self, issue: str, url: str) -> Request:
        return self._request(_LINK, input={"issueId": issue, "url": url, "title": url})

    def read_link(self, response: Response) -> None:
        _check_success(response.read(_Answer[_LinkData]).data.attachment_create.success)

    def classify(self, response: Response) -> TrackerError | None:
        errors = list(_errors(response.document()))
        if not errors:
            return None if response.is_success else by_status(response)
        details = [text for error in errors for text in texts(_presentable(error))]
        rule = _rule(errors[0])
        error = refusal(response, rule, details)
        if rule[0] is ErrorCategory.RATE_LIMITED and "retry-after" not in response.headers:
            used_up = (
                f"x-ratelimit-{kind}-reset"
                for kind in ("requests", "complexity")
                if response.headers.get(f"x-ratelimit-{kind}-remaining") == "0"
            )
            error.retry_after = wait_of(response.headers, *used_up)
        return error

    def _request(self, query: str, *, is_read: bool = False, **variables: object) -> Request:
        document = {"query": query, "variables": variables}
        return Request.json("POST", self.url, {"Authorization": self.token}, document, is_read=is_read)


def _errors(document: object) -> Iterator[Any]:
    """Yield the errors of an answer, which can come with any status, 200 among them."""
    errors: object = document.get("errors") if is_mapping(document) else None
    if isinstance(errors, list):
        yield from filter(is_mapping, cast("list[object]", errors))


def _presentable(error: Any) -> Any:
    extensions = error.get("extensions")
    told = extensions.get("userPresentableMessage") if is_mapping(extensions) else None
    return [error.get("message"), told]


def _rule(error: Any) -> Rule:
    message = error.get("message")
    if isinstance(message, str) and message.startswith("Entity not found"):
        return _MISSING
    extensions = error.get("extensions")
    if is_mapping(extensions):
        for name in ("type", "code"):
            word = extensions.get(name)
            rule = _RULES.get(word.casefold().replace("_", " ")) if isinstance(word, str) else None
            if rule is not None:
                return rule
    return _BROKEN


def _check_success(success: bool) -> None:  # noqa: FBT001 - what the answer says
    if not success:
        msg = "Linear answered that it did not do it"
        raise TrackerError(msg, category=ErrorCategory.API_STATUS, delivery=Delivery.REFUSED)


def _check_id(id: str) -> str:
    if not re.fullmatch(
        r"[A-Za-z][A-Za-z0-9]*-[1-9][0-9]{0,17}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", id
    ):
        msg = "expected the identifier of an issue, as 'ENG-42', or its UUID"
        raise TrackerError(msg, category=ErrorCategory.VALIDATION, delivery=Delivery.NOT_SENT)
    return id
