"""Virtual time inside the event loops: what anyio has no words for.

The only module of ``harbor_async.testing`` that imports asyncio or trio; trio only where it runs.
"""

import asyncio
import importlib
import math
import selectors
import sys
import threading
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import Context
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeVar, TypeVarTuple, cast

import anyio

from ._deadlock import DeadlockError

if TYPE_CHECKING:
    import trio

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Events: TypeAlias = "list[tuple[selectors.SelectorKey, int]]"
Hook: TypeAlias = "Callable[[], bool]"
"""Called before a turn or a step of the loop; it says whether it has just given the loop something to do."""


def _no_hook() -> bool:
    return False


def _threads_may_wake_us() -> bool:
    return threading.active_count() > 1


# --- asyncio ----------------------------------------------------------------------------------------------------


class _Selector(selectors.DefaultSelector):
    """Hands the loop what has happened, and asks ``on_idle`` when the loop is about to sleep."""

    on_idle: Callable[[], Events]
    on_turn: Hook = staticmethod(_no_hook)

    def select(self, timeout: float | None = None) -> Events:
        changed = self.on_turn()  # then the loop has work, and the timeout that it worked out before is wrong
        events = self.poll(0)
        if events or changed or (timeout is not None and timeout <= 0):
            return events
        return self.on_idle()

    def poll(self, seconds: float | None) -> Events:
        """Wait in real time; None waits for ever."""
        return super().select(seconds)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock starts at 0 and moves only when every task waits, to the next timer."""

    # Of asyncio.BaseEventLoop, the same from 3.11 to 3.14. What select() is told, the time to the next timer cut to
    # a day, cannot tell an endless sleep from a long one.
    _scheduled: list[asyncio.TimerHandle]
    _clock_resolution: float

    def __init__(self, *, grace: float = 0.0, patience: float = 5.0, eager: bool = False) -> None:
        """Make a loop; for the arguments see ``virtual_backend``."""
        self._virtual_selector = _Selector()
        self._virtual_selector.on_idle = self._on_idle
        self._grace = grace
        self._patience = patience
        self._idle_waiters: list[asyncio.Future[None]] = []
        super().__init__(self._virtual_selector)
        self._set_time(0.0)
        if sys.version_info >= (3, 12) and eager:
            self.set_task_factory(asyncio.eager_task_factory)

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self._now

    def _set_time(self, now: float) -> None:
        self._now = now
        # A timer runs when it is earlier than time() + resolution. One ulp makes that "not later than time()" at any
        # magnitude; the real clock's 1 ns runs timers early, and past 97 days is lost in rounding: a hang.
        self._clock_resolution = math.ulp(now)

    def advance(self, seconds: float) -> None:
        """Move the clock while the running task keeps the loop."""
        self._set_time(self._now + seconds)

    async def wait_idle(self) -> None:
        """Wait until nothing else can run at this time."""
        future = self.create_future()
        self._idle_waiters.append(future)
        await future

    def _on_idle(self) -> Events:
        waiters = [future for future in self._idle_waiters if not future.done()]
        self._idle_waiters.clear()
        for future in waiters:
            future.set_result(None)
        if waiters:
            return []
        poll = self._virtual_selector.poll
        when = self._scheduled[0].when() if self._scheduled else math.inf
        if when < math.inf:
            events = poll(self._grace) if self._grace else []
            if not events:
                self._set_time(max(self._now, when))
            return events
        if len(self._virtual_selector.get_map()) > 1:  # more than the loop's own pipe
            return poll(None)
        events = poll(self._patience if _threads_may_wake_us() else 0)
        if not events:
            raise DeadlockError((task.get_name(), task.get_coro()) for task in asyncio.all_tasks(self))
        return events

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ARG002 - asyncio's signature
        """Wait for the executor's threads in real time: a virtual timeout would pass at once."""
        await super().shutdown_default_executor()


class _SweptLoop(VirtualLoop):
    """A virtual loop that calls ``tick`` before each turn or before each callback."""

    def __init__(self, tick: Hook, *, at: str, eager: bool) -> None:
        self._tick = tick if at == "step" else _no_hook
        super().__init__(eager=eager)
        if at == "turn":
            self._virtual_selector.on_turn = tick

    def _step(self, callback: Callable[[*Ts], object], *args: *Ts) -> None:
        self._tick()
        callback(*args)

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        return super().call_soon(self._step, callback, *args, context=context)

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        return super().call_soon_threadsafe(self._step, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return super().call_at(when, self._step, callback, *args, context=context)


# --- trio -------------------------------------------------------------------------------------------------------


class VirtualClock:
    """A trio clock that starts at 0 and moves only when every task waits, to the next deadline.

    It is a ``trio.abc.Clock`` and a ``trio.abc.Instrument`` by shape, so that this module loads without trio.
    ``trio.testing.MockClock`` takes a deadlock for a wait: it spins for ever.

    Attributes:
        deadlock: What the main task was given when nothing could go on any more.
    """

    def __init__(self, *, grace: float = 0.0, patience: float = 5.0) -> None:
        """Make a clock; for the arguments see ``virtual_backend``."""
        self._grace = grace
        self._patience = patience
        self._now = 0.0
        self._has_stepped = True
        self._has_waited = False
        self.deadlock: DeadlockError | None = None

    def start_clock(self) -> None:
        """Begin at 0: trio calls it once a run."""
        import trio  # noqa: PLC0415 - it is running, so it is loaded

        self._now = 0.0
        self.deadlock = None
        trio.lowlevel.add_instrument(cast("trio.abc.Instrument", self))

    def before_task_step(self, task: "trio.lowlevel.Task") -> None:  # noqa: ARG002 - trio's signature
        """Note that something ran, so that what happened meanwhile outside is looked at before time moves."""
        self._has_stepped = True

    def current_time(self) -> float:
        """Return the virtual time in seconds."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move the clock while the running task keeps the loop."""
        self._now += seconds

    async def wait_idle(self) -> None:
        """Wait until nothing else can run at this time."""
        import trio.testing  # noqa: PLC0415 - as above

        await trio.testing.wait_all_tasks_blocked()

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Move the time, or return the real seconds to wait. trio asks when no task can run."""
        if _trio_internals().GLOBAL_RUN_CONTEXT.runner.waiting_for_idle:  # wait_all_tasks_blocked() before a jump
            return math.inf
        if self._has_stepped:
            self._has_stepped = self._has_waited = False
            return self._grace
        if deadline < math.inf:
            self._now = max(self._now, deadline)
            return 0
        if _watches_io():
            return math.inf
        if not self._has_waited and _threads_may_wake_us():
            self._has_waited = True
            return self._patience
        self._end_deadlock()
        return 0

    def _end_deadlock(self) -> None:
        """Raise the error in the main task, where it waits, so that all tasks are unwound."""
        import trio  # noqa: PLC0415 - as above

        root = trio.lowlevel.current_root_task()
        assert root is not None  # noqa: S101 - for the type checkers: a run has one
        nursery = root.child_nurseries[-1]  # the main task's; those before it are trio's own
        if self.deadlock is None:
            self.deadlock = DeadlockError((task.name, task.coro) for task in _tasks(nursery))
        ready = _trio_internals().GLOBAL_RUN_CONTEXT.runner.runq
        main: Any = next(iter(nursery.child_tasks), None)
        if main is not None and main._abort_func is not None:  # noqa: SLF001 - canceling its scope would raise Cancelled, and end pytest's runner
            main._attempt_abort(partial(_raise, self.deadlock))  # noqa: SLF001 - as above
        if not ready:  # it waits for children, which are canceled now, but shielded
            _lift_shields(cast("Any", nursery.cancel_scope)._cancel_status)  # noqa: SLF001 - inner scopes are listed only there
        if not ready:  # a wait that cannot be canceled, as for a thread
            raise self.deadlock


def _raise(error: BaseException) -> NoReturn:
    raise error


def _lift_shields(status: Any) -> None:
    for inner in list(status._children):  # noqa: SLF001 - as above
        inner._scope.shield = False  # noqa: SLF001 - as above
        _lift_shields(inner)


def _trio_internals() -> Any:
    """Return the module that holds what trio tells nobody; each user says what it needs there."""
    return importlib.import_module("trio._core._run")


def _tasks(nursery: "trio.Nursery") -> "Iterator[trio.lowlevel.Task]":
    for task in nursery.child_tasks:
        yield task
        for inner in task.child_nurseries:
            yield from _tasks(inner)


def _watches_io() -> bool:
    import trio  # noqa: PLC0415 - as above

    statistics = trio.lowlevel.current_statistics().io_statistics
    names = ("tasks_waiting", "tasks_waiting_read", "tasks_waiting_write", "tasks_waiting_overlapped")
    return sum(getattr(statistics, name, 0) for name in names) > 1  # one is trio's own


class _TurnInstrument:
    """Calls ``tick`` before each turn of trio's loop."""

    def __init__(self, tick: Hook) -> None:
        self._tick = tick

    def after_io_wait(self, timeout: float) -> None:  # noqa: ARG002 - trio's signature
        self._tick()


class _StepInstrument:
    """Calls ``tick`` before each step of each task."""

    def __init__(self, tick: Hook) -> None:
        self._tick = tick

    def before_task_step(self, task: "trio.lowlevel.Task") -> None:  # noqa: ARG002 - trio's signature
        self._tick()


@contextmanager
def trio_order(seed: int) -> Generator[None]:
    """Make trio run ready tasks in an order that depends on ``seed`` alone.

    Source: what pytest-trio and Hypothesis do for the same end; trio has no public way.
    """
    run = _trio_internals()
    switch, state = run._ALLOW_DETERMINISTIC_SCHEDULING, run._r.getstate()  # noqa: SLF001 - as above
    run._ALLOW_DETERMINISTIC_SCHEDULING = True  # noqa: SLF001 - as above
    run._r.seed(seed)  # noqa: SLF001 - as above
    try:
        yield
    finally:
        run._ALLOW_DETERMINISTIC_SCHEDULING = switch  # noqa: SLF001 - as above
        run._r.setstate(state)  # noqa: SLF001 - as above


# --- both -------------------------------------------------------------------------------------------------------


def current() -> VirtualLoop | VirtualClock | None:
    """Return what moves the time of the running event loop, or None where time is real.

    Raises:
        anyio.NoEventLoopError: No event loop is running in this thread.
    """
    if anyio.get_cancelled_exc_class() is asyncio.CancelledError:
        keeper: object = asyncio.get_running_loop()
    else:
        import trio  # noqa: PLC0415 - it is running, so it is loaded

        keeper = trio.lowlevel.current_clock()
    return keeper if isinstance(keeper, (VirtualLoop, VirtualClock)) else None


def swept_options(backend: str, tick: Hook, *, at: str, debug: bool, eager: bool) -> dict[str, Any]:
    """Return options of ``anyio.run`` for virtual time with ``tick`` called before each turn or step."""
    if backend == "trio":
        instrument = _StepInstrument(tick) if at == "step" else _TurnInstrument(tick)
        return {"clock": VirtualClock(), "instruments": [instrument]}
    return {"debug": debug, "loop_factory": partial(_SweptLoop, tick, at=at, eager=eager)}


async def run_in_task(body: Callable[[Callable[[], object]], Awaitable[T]]) -> tuple[bool, T | None]:
    """Run ``body(cancel)`` in an asyncio task of its own; ``cancel`` cancels that task.

    Returns:
        Whether the task ended canceled, and else its value.
    """

    async def run() -> T:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - for the type checkers: it is the one made below
        return await body(task.cancel)

    task = asyncio.get_running_loop().create_task(run())
    await asyncio.wait([task])
    return (True, None) if task.cancelled() else (False, task.result())
