"""What the user can mend: it ends the program with one line and exit code 2."""

import traceback


class UsageError(Exception):
    """The command cannot be run as it was given, or its files cannot be read or written."""


def one_line(error: BaseException) -> str:
    """Return an exception as one line: its class, and the first line of what it says."""
    text = "".join(traceback.format_exception_only(error)).strip()
    return text.splitlines()[0] if not isinstance(error, SyntaxError) else f"{type(error).__name__}: {error}"


def reason(error: OSError) -> str:
    """Return what the system says of ``error``, without its number and file."""
    return error.strerror or str(error)
