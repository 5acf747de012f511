"""Synchronous tools, each attempt in a worker thread."""

import math
from collections.abc import Callable
from contextlib import suppress
from inspect import isawaitable, iscoroutine
from typing import Any

import anyio
from anyio.to_thread import run_sync

from . import _backend
from ._backend import Backend
from ._call import Call, Host
from ._limiter import Ticket


async def run_in_thread(call: Call, function: Callable[[], Any]) -> Any:
    """Run ``function`` in a worker thread, with the context variables of this task, and return its value.

    What it returns is awaited here when it can be. A thread cannot be stopped: where the call has an end of its own, a
    cancellation leaves the thread to itself, ``call.left`` says so, and its value is dropped; where it has none, the
    thread is waited for. The thread gives its place back when it ends, and one that is canceled before it
    has begun never runs.
    """
    ticket, call.thread = call.thread, None
    work = _Work(function, call.backend, ticket)
    call.is_in_thread = True
    try:
        return await work.run(has_end=call.function.policy.timeout is not None or call.deadline < math.inf)
    finally:
        if work.is_background:
            call.left += (work,)
            work.leave_to(call.host)
        call.is_in_thread = call.is_background


async def await_in_thread(function: Callable[[], Any]) -> Any:
    """Return what ``function`` returns in a worker thread, awaited here when it can be. The thread is waited for."""
    return await _Work(function, _backend.current(), None).run(has_end=False)


class _Work:
    """A function that a worker thread runs once."""

    __slots__ = ("_backend", "_done", "_ended", "_function", "_host", "_is_left", "_is_over", "_ticket", "_turn")

    def __init__(self, function: Callable[[], Any], backend: Backend, ticket: Ticket | None) -> None:
        """Prepare it, with the place that its thread gives back."""
        self._function = function
        self._backend = backend
        self._ticket = ticket
        # Whoever takes it: the thread, which then runs, or the task, and then it never does. Popping is atomic.
        self._turn = [True]
        # What the function came to, for the task that waits. The exception is a value here: thrown into the task, as
        # asyncio does it, a GeneratorExit of the function would close the task's own coroutines.
        self._ended: list[tuple[Any, BaseException | None]] = []
        self._is_over = False
        self._is_left = False
        self._done = anyio.Event()
        self._host: Host | None = None

    @property
    def is_background(self) -> bool:
        """Whether the task has left a thread that still runs."""
        return self._is_left and not self._is_over

    def leave_to(self, host: Host) -> None:
        """Have ``host`` count the thread until it ends."""
        self._host = host
        host.background += 1

    async def run(self, *, has_end: bool) -> Any:
        """Run it and return its value; ``has_end`` says whether a cancellation leaves the thread to itself."""
        # The places are the runtime's, so that a thread which is left to itself keeps its own; anyio's would go back.
        limiter = None if self._ticket is None else anyio.CapacityLimiter(math.inf)
        try:
            await run_sync(self._work, abandon_on_cancel=has_end, limiter=limiter)
        except BaseException:
            await self._leave(has_end=has_end)
            raise
        value, error = self._ended.pop()
        if error is not None:
            try:
                raise error
            finally:
                del error  # or its traceback holds this frame, and the frame the error
        return await value if isawaitable(value) else value

    async def _leave(self, *, has_end: bool) -> None:
        """Keep the thread from beginning; or wait for it, if it has no end; or leave it to itself."""
        if _pop(self._turn) is not None:
            if self._ticket is not None:
                self._ticket.leave()
            return
        while not (has_end or self._is_over):
            # anyio shields its wait for a thread against scopes, and not against ``task.cancel()``.
            with anyio.CancelScope(shield=True), suppress(self._backend.canceled):
                await self._done.wait()
        self._is_left = True
        self._drop()

    def _work(self) -> None:
        """Run the function, in the thread."""
        if _pop(self._turn) is None:
            return
        try:
            self._ended.append((self._function(), None))
        except BaseException as exc:  # noqa: BLE001 - raised in the task
            self._ended.append((None, exc))
        self._is_over = True
        if self._is_left:
            self._drop()
        self._backend.run_sync_soon(self._end)

    def _end(self) -> None:
        """Give the place back, in the loop."""
        if self._ticket is not None:
            self._ticket.leave()
        if self._host is not None:
            self._host.background -= 1
        self._done.set()

    def _drop(self) -> None:
        """Drop what nobody waits for; once the task has left, both it and the thread do so, and one finds something."""
        value, _ = _pop(self._ended) or (None, None)
        if iscoroutine(value):
            value.close()  # or Python warns that it was never awaited


def _pop(items: list[Any]) -> Any:
    """Take the last item, or None; no two threads get the same."""
    try:
        return items.pop()
    except IndexError:
        return None
