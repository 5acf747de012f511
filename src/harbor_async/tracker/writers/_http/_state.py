"""Finding the state that a model means among those that there are."""

from collections.abc import Iterable
from typing import TypeVar

from ...._categories import Delivery, ErrorCategory
from ..._writer import TrackerError

T = TypeVar("T")


def find_state(wanted: str, *choices: Iterable[tuple[str, T]]) -> T:
    """Return what stands under the name ``wanted``, in any letter case.

    Args:
        wanted: The name, as a model sends it.
        *choices: Names, each with what it stands for. One that has the name is taken before those that follow it.

    Raises:
        TrackerError: None has it, or one has it twice but for letter case (``validation``). The message lists the names
            of the first that has any.
    """
    listed: list[str] = []
    for pairs in choices:
        named = list(pairs)
        listed = listed or [name for name, _ in named]
        exact = [value for name, value in named if name == wanted]
        found = exact or [value for name, value in named if name.casefold() == wanted.casefold()]
        if len(found) == 1:
            return found[0]
        if found:
            problem = "more than one state has this name"
            raise no_state(problem, listed)
    problem = "the issue cannot be moved to a state of this name"
    raise no_state(problem, listed)


def no_state(problem: str, names: Iterable[str]) -> TrackerError:
    """Return the error of a move that cannot be made: ``problem``, and where the issue can go."""
    listing = ", ".join(names)
    message = (
        f"{problem}; it can be moved to: {listing}" if listing else f"{problem}; it cannot be moved from where it is"
    )
    return TrackerError(message, category=ErrorCategory.VALIDATION, delivery=Delivery.NOT_SENT)


def unmoved(state: str) -> TrackerError:
    """Return the error of a move that was answered with yes, and not made."""
    message = f"the tracker said yes, and the issue is still in the state {state!r}"
    return TrackerError(message, category=ErrorCategory.CONFLICT, delivery=Delivery.REFUSED)
