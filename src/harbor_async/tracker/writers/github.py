"""GitHub Issues, by its REST API.

Source: GitHub's OpenAPI description, and its documentation of rate limits.
"""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Final, cast

from ..._categories import Delivery, ErrorCategory
from ..._json import is_mapping
from .._writer import TrackerError
from ._http import Request, Response, Rule, Secret, Transport, by_status, check_base, refusal, texts
from ._http._forge import ForgeAPI
from ._http._marked import MarkedTracker, check_repo

_REASONS: Final = {
    "completed": "completed",
    "not planned": "not_planned",
    "not_planned": "not_planned",
    "duplicate": "duplicate",
}
_RULES: Final[dict[int, Rule]] = {
    HTTPStatus.GONE: (
        ErrorCategory.NOT_FOUND,
        Delivery.REFUSED,
        "the issue was deleted, or the repository has no issues",
    ),
}
_LIMITED: Final[Rule] = (ErrorCategory.RATE_LIMITED, Delivery.REFUSED, "too many requests")
_PAUSE: Final = 60.0
"""Seconds to wait where a limit does not say how long. Source: GitHub's documentation of rate limits."""


class GitHub(MarkedTracker):
    """Writes to the issues of a repository on GitHub. An issue is named by its number.

    ::

        async with GitHub("octocat/hello-world", token=token) as tracker:
            await tracker.comment("42", "Done.", key="7f3a")

    The states are ``open`` and ``closed``. A reason for a close that is ``completed``, ``not planned`` or ``duplicate``
    goes into the issue's own field; any other is a comment. A pull request is linked by a comment that names it, of
    which GitHub makes a reference in both: there is no call for it.
    """

    def __init__(
        self,
        repo: str,
        *,
        token: Secret | str,
        author: str | None = None,
        url: str = "https://api.github.com",
        transport: Transport | None = None,
    ) -> None:
        """Prepare; nothing is sent yet.

        Args:
            repo: ``owner/name``.
            token: A token that may read and write issues.
            author: The name of the token's account, as ``my-app[bot]``; None: GitHub is asked, which does not tell it
                to the token of an app.
            url: The address of the API; of a server of one's own it is ``https://HOST/api/v3``.
            transport: Another way to send requests; None: httpx2, with a pool of its own.

        Raises:
            InvalidToolError: An argument that makes no sense.
            MissingExtraError: httpx2 is missing, and no transport was given.
        """
        headers: dict[str, str | Secret] = {
            "Accept": "application/vnd.github+json",
            "Authorization": Secret.of(token).prefixed("Bearer "),
            "X-GitHub-Api-Version": "2022-11-28",
        }
        super().__init__(_API(check_base(url), check_repo(repo), headers), transport, author)


class _API(ForgeAPI):
    def carries(self, reason: str) -> bool:
        return reason.casefold() in _REASONS

    def move(self, id: str, reason: str, *, closes: bool) -> Request:
        if not closes:
            return super().move(id, reason, closes=False)
        why = _REASONS.get(reason.casefold(), "completed")
        return self.request("PATCH", self.path(id), {"state": "closed", "state_reason": why})

    def classify(self, response: Response) -> TrackerError | None:
        if response.is_success:
            return None
        details = list(_details(response.document()))
        if not _is_limit(response, details):
            return by_status(response, details, _RULES)
        error = refusal(response, _LIMITED, details)
        # Where requests remain it is a secondary limit, and the reset that is told is that of the primary one.
        names_time = "retry-after" in response.headers or response.headers.get("x-ratelimit-remaining") == "0"
        error.retry_after = _PAUSE if error.retry_after is None or not names_time else error.retry_after
        return error


def _is_limit(response: Response, details: list[str]) -> bool:
    """Say whether too much was asked: a 403 can be that, too, and is then none of missing permission."""
    if response.status == HTTPStatus.TOO_MANY_REQUESTS:
        return True
    if response.status != HTTPStatus.FORBIDDEN:
        return False
    headers = response.headers
    is_told = "retry-after" in headers or headers.get("x-ratelimit-remaining") == "0"
    return is_told or any("rate limit" in text.casefold() for text in details)


def _details(document: object) -> Iterator[str]:
    """Yield what GitHub says of a failure: a message, and what is wrong with each field."""
    if is_mapping(document):
        yield from texts(document.get("message"))
        errors: object = document.get("errors")
        for error in cast("list[object]", errors) if isinstance(errors, list) else [errors]:
            if is_mapping(error):
                yield from texts(error.get("message") or f"{error.get('field')} {error.get('code')}")
            else:
                yield from texts(error)
