"""asyncio: besides scopes there is ``task.cancel()``."""

import asyncio
import math
import sys
from asyncio import current_task
from collections.abc import Callable
from contextlib import suppress
from threading import get_ident
from time import monotonic
from typing import Any, cast
from weakref import ref

import anyio
from anyio.lowlevel import checkpoint

from ._base import Backend


class AsyncioBackend(Backend):
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
