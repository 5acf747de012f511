"""trio: every cancellation comes from a scope."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from threading import get_ident
from typing import Any, cast

import anyio
import trio

from ._base import Backend


class TrioBackend(Backend):
    """trio: every cancellation comes from a scope."""

    def __init__(self) -> None:
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
