"""The writers that ``tracker write --writer`` knows, and a dry run of each."""

import os
import shlex
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import attrs

from .._categories import Delivery, ErrorCategory
from ..errors import InvalidToolError
from ..tracker import TrackerError
from ..tracker.writers._command import Command, CommandTransport, Exit, ProcessTransport
from ..tracker.writers.beads import Beads
from ..tracker.writers.fossil import Fossil
from ..tracker.writers.gitea import Gitea
from ..tracker.writers.github import GitHub
from ..tracker.writers.gitlab import GitLab
from ..tracker.writers.http import HTTPTransport, Request, Response, Secret, Transport
from ..tracker.writers.jira import Jira
from ..tracker.writers.linear import Linear
from ..tracker.writers.redmine import Redmine
from ..tracker.writers.roundup import Roundup
from ._usage import UsageError, reason

Options = Mapping[str, str]
"""What was given on the command line: ``repo``, ``url``, ``user``, ``author``."""


@attrs.frozen
class Kind:
    """A kind of writer.

    Attributes:
        make: Makes one of options, with ``transport`` and, unless ``token`` is empty, a secret besides.
        needs: The options that it cannot do without.
        takes: Those that it takes besides.
        token: The environment variable that holds its token; empty: it has none, and runs a program.
    """

    make: Callable[..., Any]
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    token: str = ""


def _roundup(url: str, user: str, *, token: Secret, transport: Transport) -> Roundup:
    return Roundup(url, user=user, password=token, transport=transport)


def _jira(url: str, user: str | None = None, *, token: Secret, transport: Transport) -> Jira:
    return Jira(url, token=token, email=user, transport=transport)


def _fossil(repo: str, user: str, *, transport: CommandTransport) -> Fossil:
    return Fossil(repo, user=user, transport=transport)


def _beads(user: str = "harbor-async", *, transport: CommandTransport) -> Beads:
    return Beads(actor=user, transport=transport)


def _gitlab(repo: str, **options: Any) -> GitLab:
    return GitLab(repo, **options)


KINDS: Final[Mapping[str, Kind]] = {
    "github": Kind(GitHub, ("repo",), ("url", "author"), "GITHUB_TOKEN"),
    "gitlab": Kind(_gitlab, ("repo",), ("url", "author"), "GITLAB_TOKEN"),
    "gitea": Kind(Gitea, ("url", "repo"), ("author",), "GITEA_TOKEN"),
    "forgejo": Kind(Gitea, ("url", "repo"), ("author",), "FORGEJO_TOKEN"),
    "jira": Kind(_jira, ("url",), ("user",), "JIRA_API_TOKEN"),
    "linear": Kind(Linear, (), ("url",), "LINEAR_API_KEY"),
    "redmine": Kind(Redmine, ("url",), (), "REDMINE_API_KEY"),
    "roundup": Kind(_roundup, ("url", "user"), (), "ROUNDUP_PASSWORD"),
    "fossil": Kind(_fossil, ("repo", "user")),
    "beads": Kind(_beads, (), ("user",)),
}


@attrs.define
class DryRun:
    """Lets pass what only reads, and keeps the first that would write instead of sending it.

    Attributes:
        http: Where requests go.
        process: Where commands go.
        planned: What would have been sent, without its token; empty if nothing.
    """

    http: Transport | None = None
    process: CommandTransport | None = None
    planned: str = ""

    async def send(self, request: Request, /) -> Response:
        """Send a request that only reads.

        Raises:
            TrackerError: It would write, and is kept.
        """
        if request.is_read and self.http is not None:
            return await self.http.send(request)
        raise self._keep(request.show())

    async def run(self, command: Command, /) -> Exit:
        """Run a command that only reads.

        Raises:
            TrackerError: It would write, and is kept.
        """
        if command.is_read and self.process is not None:
            return await self.process.run(command)
        text = shlex.join(command.argv)
        raise self._keep(f"{text}\n\n{command.stdin.decode(errors='replace')}" if command.stdin else text)

    def _keep(self, text: str) -> TrackerError:
        self.planned = self.planned or text
        return TrackerError("a dry run", category=ErrorCategory.UNSUPPORTED, delivery=Delivery.NOT_SENT)


def check_options(name: str, options: Options) -> Kind:
    """Return the kind of writer of this name.

    Raises:
        UsageError: There is none, or it needs other options.
    """
    kind = KINDS.get(name)
    if kind is None:
        msg = f"--writer: expected one of {', '.join(KINDS)}"
        raise UsageError(msg)
    missing = [f"--{option}" for option in kind.needs if option not in options]
    unknown = [f"--{option}" for option in options if option not in {*kind.needs, *kind.takes}]
    if missing or unknown:
        problem = f"needs {', '.join(missing)}" if missing else f"does not take {', '.join(unknown)}"
        msg = f"the writer {name} {problem}"
        raise UsageError(msg)
    return kind


def read_token(name: str, kind: Kind, file: Path | None) -> Secret:
    """Return the token from a file or, without one, from the environment; never from the arguments, which others see.

    Raises:
        UsageError: There is none.
    """
    try:
        text = os.environ.get(kind.token, "") if file is None else file.read_text(encoding="utf-8")
        return Secret(text)
    except OSError as exc:
        msg = f"cannot read the token: {reason(exc)}: {file}"
    except ValueError:  # what a file holds that is no token, or no text
        where = f"the environment variable {kind.token}" if file is None else f"the file {file}"
        msg = f"the writer {name} needs a token in {where}"
    raise UsageError(msg)


@asynccontextmanager
async def open_writer(
    name: str, options: Options, *, token_file: Path | None, dry_run: DryRun | None
) -> AsyncGenerator[Any]:
    """Open a writer.

    Raises:
        UsageError: It cannot be made of these options, or lacks its token.
        MissingExtraError: httpx2 is missing.
    """
    kind = check_options(name, options)
    secrets: dict[str, Secret] = {}
    if kind.token:
        secrets["token"] = read_token(name, kind, token_file)
    elif token_file is not None:
        msg = f"the writer {name} has no token"
        raise UsageError(msg)
    if kind.token:
        async with HTTPTransport() as http:
            if dry_run is not None:
                dry_run.http = http
            async with _make(kind, options, secrets, dry_run or http) as writer:
                yield writer
    else:
        process = ProcessTransport()
        if dry_run is not None:
            dry_run.process = process
        async with _make(kind, options, secrets, dry_run or process) as writer:
            yield writer


def _make(kind: Kind, options: Options, secrets: Mapping[str, Secret], transport: Any) -> Any:
    given = dict(options)
    places = [given.pop(option) for option in kind.needs]
    try:
        return kind.make(*places, **given, **secrets, transport=transport)
    except InvalidToolError as exc:
        raise UsageError(str(exc)) from exc
