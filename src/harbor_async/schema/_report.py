"""The problems of one document, as they are found."""

from collections.abc import Callable
from typing import Final, TypeVar

from .._json import Path, pointer
from ..errors import Problem, ProblemCode

T = TypeVar("T")

_MOST: Final = 100


class _EnoughError(Exception):
    """Ends a walk that has found too many problems."""


class Report:
    """Collects problems, at most a hundred: four megabytes could hold a million, and nobody would read them.

    Attributes:
        problems: What was found, in the order of the document.
    """

    def __init__(self) -> None:
        """Begin without problems."""
        self.problems: list[Problem] = []

    def add(self, path: Path, code: ProblemCode, message: str) -> None:
        """Note one problem.

        Raises:
            _EnoughError: There are too many; caught by ``collecting``.
        """
        if len(self.problems) >= _MOST:
            raise _EnoughError
        self.problems.append(Problem(pointer(path), code, message))

    def collect(self, walk: Callable[..., T], *args: object) -> T | None:
        """Run a walk, and end it when there are too many problems: then it gives nothing."""
        try:
            return walk(*args)
        except _EnoughError:
            self.problems.append(Problem("", "value", f"and more; only the first {_MOST} problems are told"))
            return None
