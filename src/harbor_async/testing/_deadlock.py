"""The error for a program that can never go on, and the report of where it stands."""

from collections.abc import Iterable
from types import FrameType

from ..errors import HarborError

_LOOPS = frozenset({"anyio", "asyncio", "trio"})


class DeadlockError(HarborError):
    """Every task waits, no timer is set and nothing from outside is expected: the program would hang for ever.

    Attributes:
        waiting: One line a task, sorted: its name and where it waits.
    """

    def __init__(self, tasks: Iterable[tuple[str, object]]) -> None:
        """List the tasks that wait.

        Args:
            tasks: Each task's name and its coroutine.
        """
        self.waiting: tuple[str, ...] = tuple(sorted(f"{name}: {where(coroutine)}" for name, coroutine in tasks))
        super().__init__(
            "deadlock: every task waits and nothing can wake one. If a worker thread, a signal or a process should "
            "have, raise patience=. Waiting:\n" + "\n".join(f"  {line}" for line in self.waiting)
        )


def where(coroutine: object) -> str:
    """Return ``file:line in function`` for the innermost line outside the event loops at which a coroutine waits."""
    place = ""
    while coroutine is not None:
        frame = _first(coroutine, "cr_frame", "gi_frame", "ag_frame")
        if isinstance(frame, FrameType):
            package = str(frame.f_globals.get("__name__")).partition(".")[0]
            if not place or package not in _LOOPS:
                place = f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_qualname}"
        coroutine = _first(coroutine, "cr_await", "gi_yieldfrom", "ag_await")
    return place or "no Python code"


def _first(owner: object, *names: str) -> object:
    return next((getattr(owner, name) for name in names if hasattr(owner, name)), None)
