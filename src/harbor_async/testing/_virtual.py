"""Running async code in virtual time."""

import sys
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from functools import partial
from typing import Any, Literal, TypeAlias, TypeVar, TypeVarTuple

import anyio

from . import _backend

BackendName: TypeAlias = Literal["asyncio", "trio"]
T = TypeVar("T")
Ts = TypeVarTuple("Ts")


def check_backend(backend: str, *, eager: bool) -> None:
    """Refuse a backend that is none, or that this Python does not have.

    Raises:
        ValueError: With what was expected.
    """
    if backend not in {"asyncio", "trio"}:
        msg = f"backend: expected 'asyncio' or 'trio'; got {backend!r}"
        raise ValueError(msg)
    if eager and sys.version_info < (3, 12):
        msg = "eager: asyncio has eager tasks from Python 3.12"
        raise ValueError(msg)


def virtual_backend(
    backend: BackendName = "asyncio",
    *,
    debug: bool = False,
    eager: bool = False,
    grace: float = 0.0,
    patience: float = 5.0,
) -> tuple[str, dict[str, Any]]:
    """Return a backend in virtual time, as anyio's pytest plugin takes it from an ``anyio_backend`` fixture.

    ::

        @pytest.fixture(params=["asyncio", "trio"])
        def anyio_backend(request):
            return virtual_backend(request.param)

    Time starts at 0 and stands still while any task can run. When all tasks wait, it jumps to the next timer or
    deadline, exactly. What has already happened outside (a thread's result, bytes on a socket) is taken up before a
    jump, what is still under way is not waited for, unless ``grace`` says so.

    Args:
        backend: ``"asyncio"`` or ``"trio"``.
        debug: asyncio's debug mode.
        eager: asyncio's eager task factory; needs Python 3.12.
        grace: Real seconds for which all tasks must have waited before time jumps. Give more than 0 to code that
            uses worker threads, sockets or processes: more than any of them takes to answer.
        patience: Real seconds to wait for other threads when no timer is set and no file descriptor watched, before
            a ``DeadlockError``; without other threads it is raised at once. A signal that is to wake a task is not
            reckoned with.

    Returns:
        The name and the options of ``anyio.run``. Make one for each run.

    Raises:
        ValueError: An argument is none of the above.
    """
    check_backend(backend, eager=eager)
    for name, seconds in (("grace", grace), ("patience", patience)):
        if not seconds >= 0:
            msg = f"{name}: expected real seconds, 0 or more; got {seconds!r}"
            raise ValueError(msg)
    if backend == "trio":
        return backend, {"clock": _backend.VirtualClock(grace=grace, patience=patience)}
    loop = partial(_backend.VirtualLoop, grace=grace, patience=patience, eager=eager)
    return backend, {"debug": debug, "loop_factory": loop}


def run_virtual(
    func: Callable[[*Ts], Awaitable[T]],
    *args: *Ts,
    backend: BackendName = "asyncio",
    debug: bool = False,
    eager: bool = False,
    grace: float = 0.0,
    patience: float = 5.0,
    seed: int | None = None,
) -> T:
    """Run an async function in virtual time and return its result. Sleeps and deadlines pass at once.

    ::

        def test_a_slow_tool_times_out():
            result = run_virtual(main, backend="trio")

    Args:
        func: The async function.
        *args: Its arguments.
        backend: As for ``virtual_backend``, like all that follow but the last.
        debug: asyncio's debug mode.
        eager: asyncio's eager task factory.
        grace: Real seconds without work before time jumps; for code with threads or real I/O.
        patience: Real seconds before a program that nothing can wake is given up.
        seed: Fixes the order in which trio runs tasks that are ready at once; None leaves it to chance.
            asyncio has one order.

    Returns:
        What ``func`` returns.

    Raises:
        DeadlockError: Every task waits and nothing can wake one.
        ValueError: An argument makes no sense.
    """
    chosen = virtual_backend(backend, debug=debug, eager=eager, grace=grace, patience=patience)
    return run_with(chosen, seed, func, *args)


def run_with(
    backend: tuple[str, dict[str, Any]], seed: int | None, func: Callable[[*Ts], Awaitable[T]], *args: *Ts
) -> T:
    """Do what ``run_virtual`` does, on a virtual backend that is already made."""
    name, options = backend
    clock = options.get("clock")
    with nullcontext() if clock is None or seed is None else _backend.trio_order(seed):
        try:
            return anyio.run(func, *args, backend=name, backend_options=options)
        finally:
            # On trio it was raised in the main task, which may have wrapped it in a group, or swallowed it.
            if isinstance(clock, _backend.VirtualClock) and clock.deadlock is not None:
                raise clock.deadlock


def block(seconds: float) -> None:
    """Let virtual time pass while the running task keeps the event loop, as a blocking call would.

    Timers that pass meanwhile run at the next turn of the loop, late. Not a checkpoint.

    Args:
        seconds: How long; 0 or more.

    Raises:
        RuntimeError: Time is real here.
        ValueError: ``seconds`` is negative or not finite.
    """
    if not 0 <= seconds < float("inf"):
        msg = f"seconds: expected a finite number, 0 or more; got {seconds!r}"
        raise ValueError(msg)
    keeper = _backend.current()
    if keeper is None:
        msg = "block() needs virtual time: run_virtual() or virtual_backend()"
        raise RuntimeError(msg)
    keeper.advance(seconds)


async def wait_all_tasks_blocked() -> None:
    """Wait until every other task waits for something, while virtual time stands still.

    ``anyio.wait_all_tasks_blocked`` sleeps 0.1 s on asyncio, and so may let timers pass. In real time they are the
    same.
    """
    keeper = _backend.current()
    if keeper is None:
        await anyio.wait_all_tasks_blocked()
    else:
        await keeper.wait_idle()
