"""Canceling a program at every point where it can be canceled."""

from collections.abc import Awaitable, Callable
from typing import Generic, Literal, TypeAlias, TypeVar

import anyio
import attrs

from . import _backend
from ._virtual import BackendName, check_backend, run_with

At: TypeAlias = Literal["step", "turn"]
T = TypeVar("T")


@attrs.frozen
class Cut(Generic[T]):
    """What one run of a sweep came to.

    Attributes:
        index: How many steps or turns the scenario had made when it was canceled.
        happened: Whether it was canceled at all; False for the last run, in which it ended before.
        canceled: Whether the cancellation came out of the scenario.
        value: What the scenario returned otherwise.
    """

    index: int
    happened: bool
    canceled: bool
    value: T | None


def cancel_sweep(
    scenario: Callable[[], Awaitable[T]],
    *,
    backend: BackendName = "asyncio",
    at: At = "step",
    native: bool = False,
    debug: bool = False,
    eager: bool = False,
    seed: int = 0,
    check: Callable[[Cut[T]], object] | None = None,
    limit: int = 10_000,
) -> int:
    """Run a scenario again and again in virtual time, canceled a little later each time, until it ends by itself.

    Run 0 is canceled before the scenario starts, run *k* before the *k*-th step or turn that follows. A step is one
    callback on asyncio and one run of one task on trio; a turn is one round of the event loop, with all the steps
    that were ready. After each run no task of the scenario may be left.

    Args:
        scenario: An async function without arguments that does the same each time it is called. It asserts what has
            to hold for what it made, in ``finally``.
        backend: ``"asyncio"`` or ``"trio"``.
        at: ``"step"`` or ``"turn"``.
        native: Cancel with ``task.cancel()``, on asyncio alone, instead of by a cancel scope round the scenario.
        debug: asyncio's debug mode.
        eager: asyncio's eager task factory; needs Python 3.12.
        seed: Fixes the order in which trio runs tasks that are ready at once.
        check: Called with the ``Cut`` after each run, the last one included.
        limit: Cuts after which the scenario is given up as endless.

    Returns:
        How often the scenario was canceled.

    Raises:
        AssertionError: A task was left, or the scenario or ``check`` asserted something. Like everything that leaves
            a run, it carries a note that says which cut it was.
        RuntimeError: The scenario did not end within ``limit`` cuts.
        ValueError: An argument makes no sense.
    """
    check_backend(backend, eager=eager)
    if at not in {"step", "turn"}:
        msg = f"at: expected 'step' or 'turn'; got {at!r}"
        raise ValueError(msg)
    if native and backend != "asyncio":
        msg = "native: tasks can be canceled without a scope on asyncio alone"
        raise ValueError(msg)
    for index in range(limit):
        knife = _Knife(index)
        options = _backend.swept_options(backend, knife.tick, at=at, debug=debug, eager=eager)
        try:
            cut = run_with((backend, options), seed, _run, scenario, knife, native)
            if check is not None:
                check(cut)
        except BaseException as exc:
            exc.add_note(f"cancel_sweep on {backend}: cut {index}, by {'task.cancel()' if native else 'a scope'}")
            raise
        if not cut.happened:
            return index
    msg = f"the scenario still had not ended by itself before {at} {limit}; raise limit= if it is that long"
    raise RuntimeError(msg)


class _Knife:
    """Cancels when ``tick`` has been called a number of times."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.has_cut = False
        self._left = index
        self._cancel: Callable[[], object] | None = None

    def arm(self, cancel: Callable[[], object]) -> None:
        self._cancel = cancel
        if self._left == 0:
            self._cut(cancel)

    def disarm(self) -> None:
        self._cancel = None

    def tick(self) -> bool:
        """Count one step or turn; say whether it was the one."""
        if self._cancel is None:
            return False
        self._left -= 1
        if self._left == 0:
            self._cut(self._cancel)
        return self.has_cut

    def _cut(self, cancel: Callable[[], object]) -> None:
        self.disarm()
        self.has_cut = True
        cancel()


async def _run(scenario: Callable[[], Awaitable[T]], knife: _Knife, native: bool) -> Cut[T]:  # noqa: FBT001 - positional for anyio.run
    async def body(cancel: Callable[[], object]) -> T:
        knife.arm(cancel)
        try:
            return await scenario()
        finally:
            knife.disarm()

    before = {task.id for task in anyio.get_running_tasks()}
    value: T | None = None
    if native:
        canceled, value = await _backend.run_in_task(body)
    else:
        with anyio.CancelScope() as scope:
            value = await body(scope.cancel)
        canceled = scope.cancelled_caught
    left = [task.name for task in anyio.get_running_tasks() if task.id not in before]
    if left:
        msg = f"tasks left behind: {', '.join(map(str, left))}"
        raise AssertionError(msg)
    return Cut(knife.index, knife.has_cut, canceled, value)
