"""What anyio cannot say, and the native paths that a measurement has paid for.

The only module of the core that imports asyncio or trio. A ``Backend`` is bound to one running event loop;
a ``Runtime`` keeps one while it is entered.
"""

import asyncio
import math
import sys
from asyncio import current_task
from collections.abc import Callable, Iterable
from contextlib import suppress
from threading import get_ident
from time import monotonic
from typing import Any, cast
from weakref import ref

import anyio
from anyio.lowlevel import checkpoint


class Backend:
    """The running event loop, as the shell sees it.

    Attributes:
        scope: The class of cancel scopes. anyio's own for the loop, or trio's: calling it skips the look-up in
            ``anyio.CancelScope``, a quarter of the cost of a scope.
        time: The loop's clock, in seconds.
        canceled: What a cancellation is raised as.
        foreign: What a library may raise as one: on trio asyncio's, too, for code that knows that alone.
        effective_deadline: ``anyio.current_effective_deadline`` without the look-up of the backend, half its cost.
        loop: asyncio's event loop; None on trio.
        thread: The identifier of the loop's thread.
        steps_first: Whether ``enter_scope`` can put a scope below those that a function has entered since ``enter``.
            It needs attributes that anyio and trio keep to themselves; without them every scope is entered at once.
    """

    scope: type[anyio.CancelScope]
    time: Callable[[], float]
    canceled: type[BaseException]
    foreign: tuple[type[BaseException], ...]
    effective_deadline: Callable[[], float]
    loop: Any = None
    thread: int
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
        """Return how many native cancellations of the running task have been delivered and are pending."""
        return 0

    def is_canceled(self, pending: int) -> bool:  # noqa: ARG002 - for backends that have native cancellation
        """Say whether somebody outside the scopes of this call has canceled the running task.

        Asked outside those scopes. A deadline that has passed counts: a blocked loop may not have delivered it yet.

        Args:
            pending: ``cancelling()`` when the call was entered; more of them now mean a native cancellation.
        """
        return self.effective_deadline() <= self.time()

    def is_free(self, place: Any, outer: float) -> bool:  # noqa: ARG002 - for a backend that can tell by the place
        """Say whether nobody has canceled ``place``, which is not None, since ``enter`` gave these."""
        return self.effective_deadline() > self.time()

    def is_cut(self, scope: anyio.CancelScope) -> bool:
        """Say whether the running code is told that ``scope``, in which it is, or what is round that is canceled.

        It is not where it shields itself from that.
        """
        return scope.cancel_called

    def is_within(self, place: Any, scopes: Iterable[Any]) -> bool:
        """Say whether one of ``scopes`` is round the running code or ``place``, or is None.

        Yes, where that cannot be told.

        Args:
            place: What ``enter`` gave elsewhere, or None.
            scopes: Scopes of running calls.
        """
        return not self.steps_first or not (self._around(place) | {None}).isdisjoint(scopes)

    def _around(self, place: Any) -> set[Any]:
        """Return the scopes that are round the running code or ``place``."""
        raise NotImplementedError

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


class _AsyncioBackend(Backend):
    """asyncio, on any loop: besides scopes there is ``task.cancel()``."""

    canceled = asyncio.CancelledError
    foreign = (asyncio.CancelledError,)

    def __init__(self) -> None:
        probe = anyio.CancelScope()
        native = sys.modules[type(probe).__module__]
        self.scope = type(probe)
        self.loop = asyncio.get_running_loop()
        self.thread = get_ident()
        # asyncio's own loops only pass it on, which took a third of the time.
        is_plain = getattr(self.loop.time, "__func__", None) is asyncio.BaseEventLoop.time
        self.time = monotonic if is_plain else self.loop.time
        self.effective_deadline = getattr(
            getattr(native, "backend_class", None), "current_effective_deadline", anyio.current_effective_deadline
        )
        self._states = getattr(native, "_task_states", None)
        # A WeakKeyDictionary looks its keys up in Python; its own table takes half the time.
        self._state_of = None if self._states is None else self._states.data.get
        self.steps_first = self._states is not None and all(
            hasattr(probe, name) for name in ("_parent_scope", "_child_scopes", "_tasks", "_reparent", "_deadline")
        )

    def enter(self) -> tuple[Any, int, float]:
        task: Any = current_task(self.loop)
        if task is None:
            return None, 0, math.inf
        if task._must_cancel:  # noqa: SLF001 - a cancellation that waits for an await
            return None, task.cancelling() - 1, -math.inf
        if self._state_of is None:
            return None, task.cancelling(), self.effective_deadline()
        state = self._state_of(ref(task))
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
        task = current_task(self.loop)
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

    def is_cut(self, scope: Any) -> bool:
        inner = self.enter()[0] if self.steps_first else scope
        while inner is not None and inner is not scope and not inner.shield:
            inner = inner._parent_scope  # noqa: SLF001 - as above
        return inner is scope and bool(getattr(scope, "_effectively_cancelled", scope.cancel_called))

    def _around(self, place: Any) -> set[Any]:
        around: set[Any] = set()
        for inner in (self.enter()[0], place):
            scope = inner
            while scope is not None:
                around.add(scope)
                scope = scope._parent_scope  # noqa: SLF001 - as above
        return around

    def cancelling(self) -> int:
        task = current_task(self.loop)
        # One that waits for an await strikes within the call, and must leave it.
        return 0 if task is None else task.cancelling() - task._must_cancel  # type: ignore[attr-defined]  # noqa: SLF001 - as above

    def is_canceled(self, pending: int) -> bool:
        task = current_task(self.loop)
        return (task is not None and task.cancelling() > pending) or self.effective_deadline() <= self.time()

    async def leave(self, pending: int, error: BaseException | None) -> None:
        # The scope first: anyio delivers through task.cancel(), so both counts rise, and a scope ends only a
        # cancellation that carries anyio's own mark, which a new checkpoint gives.
        # One that has not been delivered yet must be, or it strikes again: a native one, or that of a group of tasks
        # which has swallowed the scope's and cancels its own task in place of it.
        if getattr(current_task(self.loop), "_must_cancel", False):
            with suppress(asyncio.CancelledError):
                await checkpoint()
        for _ in range(_MOST_CHECKPOINTS):
            if self.effective_deadline() > self.time():
                break
            await checkpoint()
        else:  # a scope that has been left, as a call from a thread has round it that nobody waits for
            raise asyncio.CancelledError
        if self.is_canceled(pending):
            raise error if isinstance(error, asyncio.CancelledError) else asyncio.CancelledError

    def run_sync_soon(self, function: Callable[[], object]) -> None:
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(function)


_MOST_CHECKPOINTS = 100
"""Turns of the loop within which anyio delivers a cancellation, if it does; two are the most that were seen."""


class _TrioBackend(Backend):
    """trio: every cancellation comes from a scope."""

    def __init__(self) -> None:
        import trio  # noqa: PLC0415 - it is running, so it is loaded; asyncio users must not load it

        self.scope = cast("type[anyio.CancelScope]", trio.CancelScope)  # the same but for what anyio wraps round it
        self.thread = get_ident()
        self.time = trio.lowlevel.current_clock().current_time
        self.canceled = trio.Cancelled
        self.foreign = (trio.Cancelled, asyncio.CancelledError)
        self.effective_deadline = trio.current_effective_deadline
        self._task: Callable[[], Any] = trio.lowlevel.current_task
        self._token = trio.lowlevel.current_trio_token()
        self._ended = trio.RunFinishedError
        task = self._task()
        status = getattr(task, "_cancel_status", None)
        self.steps_first = all(
            hasattr(status, name) for name in ("parent", "effectively_cancelled", "effective_deadline", "_scope")
        ) and hasattr(task, "_activate_cancel_status")

    def run_sync_soon(self, function: Callable[[], object]) -> None:
        with suppress(self._ended):
            self._token.run_sync_soon(function)

    def enter(self) -> tuple[Any, int, float]:
        if not self.steps_first:
            return None, 0, self.effective_deadline()
        status = self._task()._cancel_status  # noqa: SLF001 - trio has no public word for it
        return status, 0, status.effective_deadline()

    def is_cut(self, scope: Any) -> bool:
        if not self.steps_first:
            return super().is_cut(scope)
        inner, outer = self.enter()[0], scope._cancel_status  # noqa: SLF001 - as below
        while inner is not None and inner is not outer and not inner._scope.shield:  # noqa: SLF001 - as below
            inner = inner.parent
        return inner is outer and bool(outer.effectively_cancelled)

    def is_within(self, place: Any, scopes: Iterable[Any]) -> bool:
        # A trio scope is known to the tasks in it by its status, which it loses when it is left.
        statuses = (None if scope is None else scope._cancel_status for scope in scopes)  # noqa: SLF001 - as below
        return super().is_within(place, statuses)

    def _around(self, place: Any) -> set[Any]:  # noqa: ARG002 - the tasks of a crew are round its children here
        around: set[Any] = set()
        status = self.enter()[0]
        while status is not None:
            around.add(status)
            status = status.parent
        return around

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


def find_interrupt(error: BaseException) -> BaseException | None:
    """Return the ``KeyboardInterrupt`` or ``SystemExit`` that ``error`` is or holds, or None."""
    if isinstance(error, (KeyboardInterrupt, SystemExit)):
        return error
    return next(filter(None, map(find_interrupt, parts(error))), None)


def parts(error: BaseException | None) -> tuple[BaseException, ...]:
    """Return the exceptions that a group holds directly; nothing for any other exception."""
    return cast("BaseExceptionGroup[BaseException]", error).exceptions if isinstance(error, BaseExceptionGroup) else ()
