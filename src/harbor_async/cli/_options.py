"""Options that several commands take."""

from enum import StrEnum
from typing import Annotated

import typer

from .._policy import check_seconds
from ..errors import InvalidToolError
from ._usage import UsageError


class BackendName(StrEnum):
    """The event loops to run on."""

    ASYNCIO = "asyncio"
    TRIO = "trio"


BackendOption = Annotated[BackendName, typer.Option("--backend", help="The event loop to run on.")]
TimeoutOption = Annotated[
    float | None,
    typer.Option(
        "--timeout", metavar="SECONDS", help="The deadline of each call, its retries included.", show_default="none"
    ),
]


def check_timeout(timeout: float | None) -> None:
    """Refuse a deadline that is none.

    Raises:
        UsageError: It is negative or not finite.
    """
    try:
        check_seconds("--timeout", timeout)
    except InvalidToolError as exc:
        raise UsageError(str(exc)) from exc
