"""Linear, by its GraphQL API."""

from ..._categories import ErrorCategory
from .._writer import Issue, TrackerError
from ._http import HTTPTracker, Secret, Transport, check_base, check_url, find_state, unmoved
from ._linear import API, LinearIssue, State, comment_id


class Linear(HTTPTracker):
    """Writes to the issues of a Linear workspace. An issue is named by its identifier, as ``ENG-42``, or its UUID.

    ::

        async with Linear(token=token) as tracker:
            await tracker.transition("ENG-42", "In Review", key="7f3a")

    A state is one of those of the issue's team. The reason for a close chooses the state if it names one, and else is a
    comment. A pull request is linked as an attachment. A comment gets a UUID that is made of its idempotency key, so
    that Linear itself refuses a second one.
    """

    def __init__(
        self,
        *,
        token: Secret | str,
        is_oauth: bool = False,
        url: str = "https://api.linear.app/graphql",
        transport: Transport | None = None,
    ) -> None:
        """Prepare; nothing is sent yet.

        Args:
            token: A personal API key.
            is_oauth: Whether ``token`` is an access token of OAuth instead.
            url: The address of the API.
            transport: Another way to send requests; None: httpx2, with a pool of its own.

        Raises:
            InvalidToolError: An argument that makes no sense.
            MissingExtraError: httpx2 is missing, and no transport was given.
        """
        secret = Secret.of(token)
        self._api = API(check_base(url), secret.prefixed("Bearer ") if is_oauth else secret)
        super().__init__(transport, self._api.classify)

    async def comment(self, id: str, body: str, /, *, key: str) -> None:
        """Add a comment to issue ``id``. With the same ``key`` it is added once, however often it is sent.

        Raises:
            TrackerError: It was not added, or that is not known.
        """
        issue = await self._ask(self._api.issue(id), self._api.read_issue)
        await self._comment(id, issue, body, key)

    async def transition(self, id: str, to_state: str, /, *, key: str) -> None:  # noqa: ARG002 - it is safe to repeat
        """Move issue ``id`` to ``to_state``, in any letter case. One that is there stays as it is.

        Raises:
            TrackerError: It was not moved, or that is not known. ``validation``: the issue's team has no state of this
                name, or more than one; the message lists those that it has.
        """
        issue = await self._ask(self._api.issue(id), self._api.read_issue)
        await self._move(issue, find_state(to_state, issue.states()))

    async def close(self, id: str, reason: str, /, *, key: str) -> None:
        """Move issue ``id`` to a state that is an end: the one that ``reason`` names, or the first of the completed.

        Raises:
            TrackerError: As for ``transition``.
        """
        issue = await self._ask(self._api.issue(id), self._api.read_issue)
        if issue.state.is_end:
            return
        reason = reason.strip()
        state, is_told = issue.end(reason)
        if reason and not is_told:
            await self._comment(id, issue, reason, key)
        await self._move(issue, state)

    async def link_pr(self, id: str, pr_url: str, /, *, key: str) -> None:  # noqa: ARG002 - it is safe to repeat
        """Link a pull request to issue ``id``. One that is linked stays as it is.

        Raises:
            TrackerError: It was not linked, or that is not known.
        """
        check_url(pr_url)
        issue = await self._ask(self._api.issue(id), self._api.read_issue)
        if pr_url not in issue.links():
            await self._ask(self._api.link(issue.id, pr_url), self._api.read_link)

    async def find_comment(self, id: str, /, *, key: str) -> bool:
        """Say whether issue ``id`` has the comment that was written with ``key``.

        Raises:
            TrackerError: That could not be found out.
        """
        return await self._ask(self._api.find(id, comment_id(id, key)), self._api.read_found)

    async def get(self, id: str, /) -> Issue:
        """Return issue ``id``, with its first 100 attachments as links.

        Raises:
            TrackerError: It is missing (``not_found``), or could not be read.
        """
        issue = await self._ask(self._api.issue(id), self._api.read_issue)
        return Issue(issue.identifier, issue.title, issue.state.name, issue.state.is_end, issue.links())

    async def _comment(self, id: str, issue: LinearIssue, body: str, key: str) -> None:
        failure: TrackerError | None = None
        try:
            await self._ask(self._api.comment(issue.id, comment_id(id, key), body), self._api.read_comment)
        except TrackerError as exc:
            failure = exc
        # A second comment of the same UUID is refused: what is there already is a success.
        if failure is None or (failure.category is ErrorCategory.VALIDATION and await self.find_comment(id, key=key)):
            return
        raise failure

    async def _move(self, issue: LinearIssue, state: State) -> None:
        if state.id == issue.state.id:
            return
        moved = await self._ask(self._api.move(issue.id, state.id), self._api.read_move)
        if moved.id != state.id:
            raise unmoved(moved.name)
