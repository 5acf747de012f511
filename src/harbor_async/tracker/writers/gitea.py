"""Gitea and Forgejo, by their REST API.

Source: the OpenAPI descriptions of Gitea and Forgejo, API version 1.
"""

from http import HTTPStatus
from typing import Final

from ..._categories import Delivery, ErrorCategory
from ..._json import is_mapping
from .._writer import TrackerError
from ._http import Request, Response, Rule, Secret, Transport, by_status, check_base, texts
from ._http._forge import ForgeAPI
from ._http._marked import MarkedTracker, check_repo

_RULES: Final[dict[int, Rule]] = {
    HTTPStatus.PRECONDITION_FAILED: (
        ErrorCategory.CONFLICT,
        Delivery.REFUSED,
        "the issue depends on others that are open",
    ),
    HTTPStatus.LOCKED: (ErrorCategory.CONFLICT, Delivery.REFUSED, "the repository is archived"),
}


class Gitea(MarkedTracker):
    """Writes to the issues of a repository on a Gitea or Forgejo server. An issue is named by its number.

    ::

        async with Gitea("https://codeberg.org", "owner/name", token=token) as tracker:
            await tracker.comment("42", "Done.", key="7f3a")

    The states are ``open`` and ``closed``. The reason for a close is a comment. A pull request is linked by a comment
    that names it, of which the server makes a reference.
    """

    def __init__(
        self,
        url: str,
        repo: str,
        *,
        token: Secret | str,
        author: str | None = None,
        transport: Transport | None = None,
    ) -> None:
        """Prepare; nothing is sent yet.

        Args:
            url: The address of the server.
            repo: ``owner/name``.
            token: A token that may write issues and, without ``author``, read its user.
            author: The name of the token's account; None: the server is asked.
            transport: Another way to send requests; None: httpx2, with a pool of its own.

        Raises:
            InvalidToolError: An argument that makes no sense.
            MissingExtraError: httpx2 is missing, and no transport was given.
        """
        headers = {"Authorization": Secret.of(token).prefixed("token ")}
        super().__init__(_API(f"{check_base(url)}/api/v1", check_repo(repo), headers), transport, author)


class _API(ForgeAPI):
    def comments(self, id: str, page: int) -> Request:  # noqa: ARG002 - it gives all comments at once
        return self.request("GET", f"{self.path(id)}/comments")

    def classify(self, response: Response) -> TrackerError | None:
        if response.is_success:
            return None
        document = response.document()
        return by_status(response, texts(document.get("message")) if is_mapping(document) else (), _RULES)
