"""The calls of a batch whose turn has not come: they share one task, and get one each when it comes."""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, cast

import anyio

from ._call import Call, Function
from ._crew import Crew
from ._policy import ToolPolicy
from ._settle import guard
from ._trouble import Trouble, canceled, timed_out


class _Keeper:
    """What the shared task is said to run, where a call has a function."""

    name = "the calls that wait for their turn"
    policy = ToolPolicy(timeout=None, attempts=1)


class Waiters:
    """Calls that wait for their turns, all with the same deadline.

    With a task, a scope and an event each, 20,000 calls of which 200 ran at once took twice as long.
    """

    def __init__(self, crew: Crew, run: Callable[[Call], Coroutine[Any, Any, Any]]) -> None:
        """Begin with none.

        Args:
            crew: Where they run when their turn has come.
            run: Runs one.
        """
        self._crew = crew
        self._run = run
        self._calls: dict[Call, None] = {}
        self._emptied: anyio.Event | None = None
        self._held: list[Call] | None = None

    def add(self, call: Call) -> None:
        """Have ``call``, which has a ticket, wait."""
        assert call.ticket is not None  # noqa: S101 - as said
        call.ticket.on_grant = partial(self._start, call)
        self._calls[call] = None
        if self._emptied is None:
            emptied = self._emptied = anyio.Event()
            keeper = Call(call.host, cast("Function", _Keeper()), "", None, call.deadline, self._crew)
            self._crew.spawn(lambda keeper: guard(keeper, lambda _: emptied.wait()), keeper)

    def drop(self, call: Call) -> bool:
        """Take ``call`` out; say whether it waited."""
        if call not in self._calls:
            return False
        del self._calls[call]
        _forget(call)
        if not self._calls and self._emptied is not None:
            self._emptied.set()
            self._emptied = None
        return True

    def take_end(self, call: Call, ended: Any, end: Callable[[Call, Any], None]) -> bool:
        """Say whether ``call`` was the shared task; then ``end`` those for which it stood, if it was cut."""
        if not isinstance(call.function, _Keeper):
            return False
        if ended is not None:  # else the last has its turn
            calls, self._calls, self._emptied = self._calls, {}, None
            for waiting in calls:
                _forget(waiting)
                end(waiting, _cut(waiting, ended))
        return True

    def hold(self) -> bool:
        """Let nobody start until ``release``; say whether they could before."""
        if self._held is not None:
            return False
        self._held = []
        return True

    def release(self) -> None:
        """Start those whose turn has come meanwhile."""
        held, self._held = self._held, None
        for call in held or ():
            self._spawn(call)

    def _start(self, call: Call) -> None:
        if call not in self._calls:
            return  # it is being ended, and gives its turn back
        if self._held is None:
            self._spawn(call)
        else:
            self._held.append(call)
        self.drop(call)  # not before: the crew may end when it has no task

    def _spawn(self, call: Call) -> None:
        # A task that starts at once may have others start from within.
        call.context.copy().run(self._crew.spawn, self._run, call)


def _forget(call: Call) -> None:
    if call.ticket is not None:
        call.ticket.on_grant = None  # it holds the call, and the call the ticket: a cycle


def _cut(call: Call, ended: Any) -> Any:
    if not isinstance(ended, Trouble):
        return ended
    return (
        timed_out(call, None, in_attempt=False)
        if ended.stop_reason == "deadline"
        else canceled(call, None, in_attempt=False)
    )
