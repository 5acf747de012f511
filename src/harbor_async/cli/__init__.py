"""The command line ``harbor-async``. It needs the extra ``cli``."""

import sys
from collections.abc import Sequence

from ..errors import MissingExtraError


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: The arguments without the program's name; None: those of this process.

    Returns:
        The exit code: 0 all calls succeeded, 1 some failed, 2 wrong usage, 130 or 143 ended by SIGINT or SIGTERM.
    """
    try:
        from ._app import run_app  # noqa: PLC0415 - without the extra there is something to say
    except ModuleNotFoundError as exc:
        if (exc.name or "").partition(".")[0] not in {"rich", "typer"}:
            raise
        print(f"harbor-async: {MissingExtraError('the command line', 'cli')}", file=sys.stderr)  # noqa: T201 - its output
        return 2
    return run_app(argv)
