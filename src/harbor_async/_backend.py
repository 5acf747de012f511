"""What anyio cannot say, and the native paths that a measurement has paid for.

The only module of the core that imports asyncio or trio. A ``Backend`` is bound to one running event loop;
a ``Runtime`` keeps one while it is entered.
"""

import asyncio
import math
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from heapq import heapify, heappop, heappush
from itertools import count
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias, TypeVar, cast

import anyio
from anyio.lowlevel import checkpoint


class Child(Protocol):
    """What a crew has to know of a child: the scope that it waits in just now, if any."""

    scope: anyio.CancelScope | None


C = TypeVar("C", bound=Child)
Done: TypeAlias = Callable[[Any, Any], None]


class Backend:
    """The running event loop, as the shell sees it.

    Attributes:
        scope: The class of cancel scopes. anyio's own for the loop, or trio's: calling it skips the look-up in
            ``anyio.CancelScope``, a quarter of the cost of a scope.
        time: The loop's clock, in seconds.
        canceled: What a cancellation is raised as.
        effective_deadline: ``anyio.current_effective_deadline`` without the look-up of the backend, half its cost.
        steps_first: Whether ``enter_scope`` can put a scope below those that a function has entered since ``enter``.
            It needs attributes that anyio and trio keep to themselves; without them every scope is entered at once.
    """

    scope: type[anyio.CancelScope]
    time: Callable[[], float]
    canceled: type[BaseException]
    effective_deadline: Callable[[], float]
    steps_first: bool

    def enter(self) -> tuple[Any, int, float]:
        """Look at what surrounds the running task.

        Returns:
            The scope that is innermost now, for ``enter_scope``; how many native cancellations are pending; and the
            effective deadline.
        """
        raise NotImplementedError

    def enter_scope(self, place: Any, deadline: float) -> anyio.CancelScope:
        """Enter a scope in the ``place`` that ``enter`` gave: below all scopes that were entered since.

        Its ``__exit__`` must follow when those have been left.
        """
        raise NotImplementedError

    def cancelling(self) -> int:
        """Return how many native cancellations of the running task are pending."""
        return 0

    def is_canceled(self, pending: int) -> bool:  # noqa: ARG002 - for backends that have native cancellation
        """Say whether somebody outside the scopes of this call has canceled the running task.

        Asked outside those scopes. A deadline that has passed counts: a blocked loop may not have delivered it yet.

        Args:
            pending: ``cancelling()`` when the call was entered; more of them now mean a native cancellation.
        """
        return self.effective_deadline() <= self.time()

    def is_free(self, place: Any, outer: float) -> bool:  # noqa: ARG002 - for a backend that can tell by the place
        """Say whether nobody has canceled what surrounds the running task since ``enter`` gave these."""
        return place is None or self.effective_deadline() > self.time()

    async def leave(self, pending: int, error: BaseException | None) -> None:  # noqa: ARG002 - as above
        """Let out the cancellation that ``is_canceled`` found.

        It returns only when there is none any more: a passed deadline that was put off before it was delivered.

        Args:
            pending: As for ``is_canceled``.
            error: What came out of the canceled code, if anything.
        """
        while self.effective_deadline() <= self.time():  # a blocked loop can need more than one checkpoint to deliver
            await checkpoint()

    def run_sync_soon(self, function: Callable[[], object]) -> None:
        """Have the loop call ``function`` soon; from any thread, and for nothing once the loop has ended."""
        raise NotImplementedError

    def crew(self, done: "Done") -> "Crew":
        """Make a crew for the running task; see ``Crew`` for ``done``."""
        return Crew(self, done)


class _AsyncioBackend(Backend):
    """asyncio, on any loop: besides scopes there is ``task.cancel()``."""

    canceled = asyncio.CancelledError

    def __init__(self) -> None:
        probe = anyio.CancelScope()
        native = sys.modules[type(probe).__module__]
        self.scope = type(probe)
        self._loop = asyncio.get_running_loop()
        self.time = self._loop.time
        self.effective_deadline = getattr(
            getattr(native, "backend_class", None), "current_effective_deadline", anyio.current_effective_deadline
        )
        self._states = getattr(native, "_task_states", None)
        self.steps_first = self._states is not None and all(
            hasattr(probe, name) for name in ("_parent_scope", "_child_scopes", "_tasks", "_reparent", "_deadline")
        )

    def enter(self) -> tuple[Any, int, float]:
        task = asyncio.current_task(self._loop)
        if task is None:
            return None, 0, math.inf
        if task._must_cancel:  # type: ignore[attr-defined]  # noqa: SLF001 - a cancellation that waits for an await
            return None, task.cancelling(), -math.inf
        if self._states is None:
            return None, task.cancelling(), self.effective_deadline()
        state = self._states.get(task)
        if state is None or state.cancel_scope is None:
            return None, task.cancelling(), math.inf
        return state.cancel_scope, task.cancelling(), self.effective_deadline()

    def enter_scope(self, place: Any, deadline: float) -> anyio.CancelScope:
        scope: Any = self.scope(deadline=deadline)
        scope.__enter__()
        above = scope._parent_scope if self.steps_first else place  # noqa: SLF001 - anyio has no public word for it
        if above is not place:
            self._sink(scope, above, place)
        return cast("anyio.CancelScope", scope)

    def _sink(self, scope: Any, top: Any, place: Any) -> None:
        """Move ``scope``, just entered above ``top``, to directly above ``place``."""
        task = asyncio.current_task(self._loop)
        assert self._states is not None  # noqa: S101 - steps_first
        self._states[task].cancel_scope = top
        top._child_scopes.discard(scope)  # noqa: SLF001 - here and below: as above
        scope._tasks.discard(task)  # noqa: SLF001 - as above
        top._tasks.add(task)  # noqa: SLF001 - as above
        scope._parent_scope = place  # noqa: SLF001 - as above
        if place is not None:
            place._child_scopes.add(scope)  # noqa: SLF001 - as above
        lowest = top
        while lowest._parent_scope is not place:  # noqa: SLF001 - as above
            lowest = lowest._parent_scope  # noqa: SLF001 - as above
        lowest._reparent(scope)  # noqa: SLF001 - as above

    def cancelling(self) -> int:
        task = asyncio.current_task(self._loop)
        return 0 if task is None else task.cancelling()

    def is_canceled(self, pending: int) -> bool:
        return self.cancelling() > pending or self.effective_deadline() <= self.time()

    async def leave(self, pending: int, error: BaseException | None) -> None:
        # The scope first: anyio delivers through task.cancel(), so both counts rise, and a scope ends only a
        # cancellation that carries anyio's own mark, which a new checkpoint gives.
        # A native one that has not been delivered yet must be, or it strikes again.
        if getattr(asyncio.current_task(self._loop), "_must_cancel", False):
            await checkpoint()
        await super().leave(pending, error)
        if self.cancelling() > pending:
            raise error if isinstance(error, asyncio.CancelledError) else asyncio.CancelledError

    def run_sync_soon(self, function: Callable[[], object]) -> None:
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function)

    def crew(self, done: "Done") -> "Crew":
        return _TaskCrew(self, done)


class _TrioBackend(Backend):
    """trio: every cancellation comes from a scope."""

    def __init__(self) -> None:
        import trio  # noqa: PLC0415 - it is running, so it is loaded; asyncio users must not load it

        self.scope = cast("type[anyio.CancelScope]", trio.CancelScope)  # the same but for what anyio wraps round it
        self.time = trio.current_time
        self.canceled = trio.Cancelled
        self.effective_deadline = trio.current_effective_deadline
        self._task: Callable[[], Any] = trio.lowlevel.current_task
        self._token = trio.lowlevel.current_trio_token()
        self._ended = trio.RunFinishedError
        task = self._task()
        status = getattr(task, "_cancel_status", None)
        self.steps_first = all(hasattr(status, name) for name in ("parent", "effectively_cancelled")) and hasattr(
            task, "_activate_cancel_status"
        )

    def run_sync_soon(self, function: Callable[[], object]) -> None:
        with suppress(self._ended):
            self._token.run_sync_soon(function)

    def enter(self) -> tuple[Any, int, float]:
        return getattr(self._task(), "_cancel_status", None), 0, self.effective_deadline()

    def is_free(self, place: Any, outer: float) -> bool:
        if self.steps_first:  # the same as below for a third of the time
            return not place.effectively_cancelled and outer > self.time()
        return super().is_free(place, outer)

    def enter_scope(self, place: Any, deadline: float) -> anyio.CancelScope:
        task = self._task()
        top = task._cancel_status if self.steps_first else place  # noqa: SLF001 - trio has no public word for it
        scope = self.scope(deadline=deadline)
        scope.__enter__()
        if top is not place:
            status = task._cancel_status  # noqa: SLF001 - here and below: as above
            task._activate_cancel_status(top)  # noqa: SLF001 - as above
            lowest = top
            while lowest.parent is not place:
                lowest = lowest.parent
            status.parent = place
            lowest.parent = status
        return scope


def current() -> Backend:
    """Return the backend of the running event loop.

    Raises:
        anyio.NoEventLoopError: No event loop is running in this thread.
    """
    return _AsyncioBackend() if anyio.get_cancelled_exc_class() is asyncio.CancelledError else _TrioBackend()


class Fault:
    """What a child raised all the same, or what kept it from being run.

    Attributes:
        error: The exception.
    """

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        """Keep it."""
        self.error = error


class Crew:
    """The child tasks of one batch. Leaving it waits for every child, whatever happens.

    A child never raises. It ends without a result when ``is_canceled`` is set, and hands an interrupt
    (``KeyboardInterrupt``, ``SystemExit``) to ``interrupt_with``, which leaves the crew bare once all have ended.

    Attributes:
        is_canceled: Whether the crew was told to stop.
    """

    def __init__(self, backend: Backend, done: Done) -> None:
        """Make a crew for the running task.

        Args:
            backend: The running event loop.
            done: Called once for each child, with it and with what its run gave, or a ``Fault``.
        """
        self._backend = backend
        self._done = done
        self._pending = backend.cancelling()
        self._group = anyio.create_task_group()
        self._size = 0
        self._is_leaving = False
        self._interrupt: BaseException | None = None
        self.is_canceled: bool = False

    @property
    def deadline(self) -> float:
        """When the scopes round the crew end, for children that are outside of those scopes."""
        return math.inf

    @property
    def is_closed(self) -> bool:
        """Whether the crew is being left and its last child has ended: then there can be no more."""
        return self._is_leaving and not self._size

    async def __aenter__(self) -> Self:
        """Open the crew."""
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for all children; cancel them first when the body raised.

        Raises:
            KeyboardInterrupt, SystemExit: What a child or this task was interrupted with.
        """
        self._is_leaving = True
        if error is not None:
            self.cancel()
        try:
            await self._group.__aexit__(kind, error, trace)
        except BaseExceptionGroup as group:
            # trio delivers Ctrl-C to this task while it waits here, and the nursery wraps it.
            self._interrupt = self._interrupt or find_interrupt(group)
            if self._interrupt is None and error is None:
                raise
        await self._end(error, None)

    async def _end(self, error: BaseException | None, cut: BaseException | None) -> None:
        del self._done  # what it belongs to holds this crew: a cycle that would keep all results for the collector
        if self._interrupt is not None:
            raise self._interrupt
        if error is None and self._backend.is_canceled(self._pending):
            await self._backend.leave(self._pending, cut)

    def spawn(self, run: Callable[[C], Coroutine[Any, Any, Any]], child: C) -> None:
        """Start ``run(child)`` as a task."""
        self._size += 1
        self._group.start_soon(self._run, run, child)

    async def _run(self, run: Callable[[C], Coroutine[Any, Any, Any]], child: C) -> None:
        try:
            ended = await run(child)
        except Exception as exc:  # noqa: BLE001 - a fault of ours must not take the other children with it
            ended = Fault(exc)
        self._size -= 1
        self._done(child, ended)

    def cancel(self) -> None:
        """Tell every child to stop, and those that start later."""
        self.is_canceled = True
        self._group.cancel_scope.cancel()

    def enter_scope(self, child: Child, deadline: float) -> anyio.CancelScope:
        """Enter a scope for ``child`` in its task."""
        scope = child.scope = self._backend.scope(deadline=deadline)
        return scope.__enter__()

    def has_canceled(self, pending: int) -> bool:
        """Say whether the running child was canceled from outside, as ``Backend.is_canceled`` does."""
        return self.is_canceled or self._backend.is_canceled(pending)

    def check(self) -> None:
        """Raise the interrupt that a child handed over, if any."""
        if self._interrupt is not None:
            raise self._interrupt

    def interrupt_with(self, error: BaseException) -> None:
        """Stop all, and raise ``error`` when they have ended."""
        self._interrupt = self._interrupt or error
        self.cancel()


class _TaskCrew(Crew):
    """A crew of plain asyncio tasks, each canceled through its own scope so that shields hold.

    anyio's group costs 2.3 times asyncio's own spawn, and a good part of the whole at 10,000 calls. One timer serves
    all deadlines: a timer for each is a third of what a scope costs, and the loop's heap compares them in Python.
    """

    def __init__(self, backend: "_AsyncioBackend", done: Done) -> None:
        self._backend: _AsyncioBackend = backend
        self._done = done
        self._pending = backend.cancelling()
        self._place: Any = backend.enter()[0] if backend.steps_first else None
        self._body = backend.scope()
        self._interrupt = None
        self._is_leaving = False
        self.is_canceled = False
        self._loop = asyncio.get_running_loop()
        self._children: dict[asyncio.Task[Any], Child] = {}
        self._idle: asyncio.Future[None] | None = None
        self._due: list[tuple[float, int, Child]] = []
        self._order = count()
        self._timer: asyncio.Handle | None = None
        self._timer_due = math.inf  # uvloop's handle of a timer that is due at once does not tell

    @property
    def deadline(self) -> float:
        # Asked anew each time, for the caller may move a deadline of its own.
        deadline, scope = math.inf, self._place
        while scope is not None:
            if scope.cancel_called:
                return -math.inf
            deadline = min(deadline, scope.deadline)
            scope = None if scope.shield else scope._parent_scope  # noqa: SLF001 - anyio has no public word for it
        return deadline

    @property
    def is_closed(self) -> bool:
        return self._is_leaving and not self._children

    async def __aenter__(self) -> Self:
        self._body.__enter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_leaving = True
        self._body.__exit__(None, None, None)
        if error is not None:
            self.cancel()
        cut: BaseException | None = None
        with self._backend.scope() as wait:
            while self._children:
                self._idle = self._loop.create_future()
                try:
                    await self._idle
                except asyncio.CancelledError as exc:
                    wait.shield = True  # or anyio delivers again at every turn until the last child has ended
                    self.cancel()
                    cut = exc
        if self._timer is not None:
            self._timer.cancel()
        await self._end(error, cut)

    def spawn(self, run: Callable[[C], Coroutine[Any, Any, Any]], child: C) -> None:
        task: asyncio.Task[Any] = self._loop.create_task(run(child))
        self._children[task] = child
        task.add_done_callback(self._end_child)

    def _end_child(self, task: "asyncio.Task[Any]") -> None:
        # A callback, and no last line of the task: a task that is canceled before its first step runs no line at all.
        child = self._children.pop(task)
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        try:
            self._done(child, task.result() if error is None else Fault(error))
        finally:
            if not self._children and self._idle is not None and not self._idle.done():
                self._idle.set_result(None)

    def cancel(self) -> None:
        self.is_canceled = True
        for child in self._children.values():
            if child.scope is not None:
                child.scope.cancel()

    def enter_scope(self, child: Child, deadline: float) -> anyio.CancelScope:
        if deadline == math.inf or not self._backend.steps_first:
            return super().enter_scope(child, deadline)
        scope: Any = self._backend.scope()
        child.scope = scope
        scope.__enter__()
        scope._deadline = deadline  # noqa: SLF001 - told to those who ask, without the timer that the setter sets
        if len(self._due) > 2 * len(self._children) + _MANY:
            self._due = [due for due in self._due if due[2].scope is not None]
            heapify(self._due)
        heappush(self._due, (deadline, next(self._order), child))
        if deadline < self._timer_due:
            self._set_timer()
        return cast("anyio.CancelScope", scope)

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due = self._due[0][0] if self._due else math.inf
        self._timer = self._loop.call_at(self._timer_due, self._cut) if self._due else None

    def _cut(self) -> None:
        """Cancel the scopes whose time has come."""
        now = self._loop.time()
        while self._due and self._due[0][0] <= now:
            scope = heappop(self._due)[2].scope
            if scope is not None and scope.deadline <= now:
                scope.cancel()
        self._set_timer()

    def has_canceled(self, pending: int) -> bool:  # noqa: ARG002 - who cancels this task natively is no caller of ours
        return self.is_canceled or (self._place is not None and self.deadline <= self._loop.time())

    def interrupt_with(self, error: BaseException) -> None:
        super().interrupt_with(error)
        self._body.cancel()


_MANY = 64
"""Deadlines of calls that have ended which a crew keeps before it looks for them."""


def find_interrupt(error: BaseException) -> BaseException | None:
    """Return the ``KeyboardInterrupt`` or ``SystemExit`` that ``error`` is or holds, or None."""
    if isinstance(error, (KeyboardInterrupt, SystemExit)):
        return error
    return next(filter(None, map(find_interrupt, parts(error))), None)


def parts(error: BaseException | None) -> tuple[BaseException, ...]:
    """Return the exceptions that a group holds directly; nothing for any other exception."""
    return cast("BaseExceptionGroup[BaseException]", error).exceptions if isinstance(error, BaseExceptionGroup) else ()
