"""What anyio cannot say, and the native paths that a measurement has paid for.

The only module of the core that imports asyncio or trio. A ``Backend`` is bound to one running event loop;
a ``Runtime`` keeps one while it is entered.
"""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, cast

import anyio
from anyio.lowlevel import checkpoint


class Child(Protocol):
    """What a crew has to know of a child: the scope that it waits in just now, if any."""

    scope: anyio.CancelScope | None


class Backend:
    """The running event loop, as the shell sees it.

    Attributes:
        scope: The class of cancel scopes. anyio's own for the loop, or trio's: calling it skips the look-up in
            ``anyio.CancelScope``, a quarter of the cost of a scope.
        time: The loop's clock, in seconds.
        canceled: What a cancellation is raised as.
        effective_deadline: ``anyio.current_effective_deadline`` without the look-up of the backend, half its cost.
        arms_late: Whether a scope can show a deadline for which no timer is set yet; see ``show_deadline``.
    """

    scope: type[anyio.CancelScope]
    time: Callable[[], float]
    canceled: type[BaseException]
    effective_deadline: Callable[[], float]
    arms_late: bool

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

    async def leave(self, pending: int, error: BaseException | None) -> None:  # noqa: ARG002 - as above
        """Let out the cancellation that ``is_canceled`` found; never returns.

        Args:
            pending: As for ``is_canceled``.
            error: What came out of the canceled code, if anything.
        """
        while True:  # after a blocked loop asyncio can need more than one checkpoint to deliver
            await checkpoint()

    def show_deadline(self, scope: anyio.CancelScope, deadline: float) -> None:
        """Let an entered ``scope`` tell ``deadline`` to those who ask; ``scope.deadline = …`` then sets the timer."""
        raise NotImplementedError  # only where arms_late says so

    def crew(self) -> "Crew":
        """Make a crew for the running task."""
        return Crew(self)


class _AsyncioBackend(Backend):
    """asyncio, on any loop: besides scopes there is ``task.cancel()``."""

    canceled = asyncio.CancelledError

    def __init__(self) -> None:
        probe = anyio.CancelScope()
        self.scope = type(probe)
        self.time = asyncio.get_running_loop().time
        native = getattr(sys.modules[self.scope.__module__], "backend_class", None)
        self.effective_deadline = getattr(native, "current_effective_deadline", anyio.current_effective_deadline)
        # Entering a scope with a timer takes 5.3 µs, without one 2.7 µs. _deadline is anyio's own attribute, so an
        # anyio that has it no more gets its timer at once.
        self.arms_late = hasattr(probe, "_deadline")

    def cancelling(self) -> int:
        task = asyncio.current_task()
        return 0 if task is None else task.cancelling()

    def is_canceled(self, pending: int) -> bool:
        task = asyncio.current_task()
        return (task is not None and task.cancelling() > pending) or self.effective_deadline() <= self.time()

    async def leave(self, pending: int, error: BaseException | None) -> None:
        # The scope first: anyio delivers through task.cancel(), so both counts rise, and a scope ends only a
        # cancellation that carries anyio's own mark, which a new checkpoint gives.
        if self.effective_deadline() <= self.time():
            await super().leave(pending, error)
        raise error if isinstance(error, asyncio.CancelledError) else asyncio.CancelledError

    def show_deadline(self, scope: anyio.CancelScope, deadline: float) -> None:
        scope._deadline = deadline  # type: ignore[attr-defined]  # noqa: SLF001 - see __init__

    def crew(self) -> "Crew":
        return _TaskCrew(self)


class _TrioBackend(Backend):
    """trio: every cancellation comes from a scope."""

    def __init__(self) -> None:
        import trio  # noqa: PLC0415 - it is running, so it is loaded; asyncio users must not load it

        self.scope = cast("type[anyio.CancelScope]", trio.CancelScope)  # the same but for what anyio wraps round it
        self.time = trio.current_time
        self.canceled = trio.Cancelled
        self.effective_deadline = trio.current_effective_deadline
        self.arms_late = False  # the timer is a tenth of what a scope costs on trio


def current() -> Backend:
    """Return the backend of the running event loop.

    Raises:
        anyio.NoEventLoopError: No event loop is running in this thread.
    """
    return _AsyncioBackend() if anyio.get_cancelled_exc_class() is asyncio.CancelledError else _TrioBackend()


class Crew:
    """The child tasks of one batch. Leaving it waits for every child, whatever happens.

    A child never raises. It ends without a result when ``is_canceled`` is set, and hands an interrupt
    (``KeyboardInterrupt``, ``SystemExit``) to ``interrupt_with``, which leaves the crew bare once all have ended.

    Attributes:
        is_canceled: Whether the crew was told to stop.
        deadline: When the scopes round the crew end, for children that are outside of those scopes.
    """

    def __init__(self, backend: Backend) -> None:
        """Make a crew for the running task."""
        self._backend = backend
        self._pending = backend.cancelling()
        self._group = anyio.create_task_group()
        self._interrupt: BaseException | None = None
        self.is_canceled: bool = False
        self.deadline: float = float("inf")

    async def __aenter__(self) -> "Crew":
        """Open the crew."""
        await self._group.__aenter__()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        """Wait for all children; cancel them first when the body raised.

        Raises:
            KeyboardInterrupt, SystemExit: What a child or this task was interrupted with.
        """
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
        if self._interrupt is not None:
            raise self._interrupt
        if error is None and self._backend.is_canceled(self._pending):
            await self._backend.leave(self._pending, cut)

    def spawn(self, run: Callable[[Any], Coroutine[Any, Any, None]], child: Child) -> None:
        """Start ``run(child)`` as a task."""
        self._group.start_soon(run, child)

    def cancel(self) -> None:
        """Tell every child to stop, and those that start later."""
        self.is_canceled = True
        self._group.cancel_scope.cancel()

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

    anyio's group costs 2.3 times asyncio's own spawn, and a good part of the whole at 10,000 calls.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._pending = backend.cancelling()
        self._interrupt = None
        self.is_canceled = False
        self.deadline = backend.effective_deadline()
        self._loop = asyncio.get_running_loop()
        self._children: dict[Child, asyncio.Task[None]] = {}
        self._idle: asyncio.Future[None] | None = None

    async def __aenter__(self) -> "Crew":
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
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
        await self._end(error, cut)

    def spawn(self, run: Callable[[Any], Coroutine[Any, Any, None]], child: Child) -> None:
        task = self._loop.create_task(self._run(run, child))
        if not task.done():  # an eager task may have ended already
            self._children[child] = task

    async def _run(self, run: Callable[[Any], Coroutine[Any, Any, None]], child: Child) -> None:
        try:
            await run(child)
        finally:
            self._children.pop(child, None)
            if not self._children and self._idle is not None and not self._idle.done():
                self._idle.set_result(None)

    def cancel(self) -> None:
        self.is_canceled = True
        for child in self._children:
            if child.scope is not None:
                child.scope.cancel()


def find_interrupt(error: BaseException) -> BaseException | None:
    """Return the ``KeyboardInterrupt`` or ``SystemExit`` that ``error`` is or holds, or None."""
    if isinstance(error, (KeyboardInterrupt, SystemExit)):
        return error
    if isinstance(error, BaseExceptionGroup):
        return next(filter(None, map(find_interrupt, error.exceptions)), None)
    return None
