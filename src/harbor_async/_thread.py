"""Synchronous tools, each attempt in a worker thread."""

import math
from collections.abc import Callable
from inspect import isawaitable
from typing import Any

import anyio
from anyio.to_thread import run_sync

from ._call import Call


async def run_in_thread(call: Call, function: Callable[[], Any]) -> Any:
    """Run ``function`` in a worker thread, with the context variables of this task, and return its value.

    What it returns is awaited here when it can be. A thread cannot be stopped: where the call has an end of its own, a
    cancellation leaves the thread to itself, ``call.is_background`` says so, and its value is dropped; where it has
    none, the thread is waited for. The thread gives its place back when it ends, and one that is canceled before it
    has begun never runs.
    """
    ticket, call.thread = call.thread, None
    # Whoever takes it: the thread, which then runs, or the task, and then it never does. Popping is atomic.
    turn = [ticket]
    loop = call.backend.run_sync_soon
    is_ended = False

    def work() -> Any:
        nonlocal is_ended
        try:
            turn.pop()
        except IndexError:
            return None
        try:
            return [function()]  # in a list, since trio refuses a function that returns a coroutine
        finally:
            is_ended = True
            if ticket is not None:
                loop(ticket.leave)

    has_end = call.function.policy.timeout is not None or call.deadline < math.inf
    # The places are the runtime's, so that a thread which is left to itself keeps its own; anyio's would go back.
    limiter = anyio.CapacityLimiter(math.inf) if ticket is not None else None
    try:
        ended = await run_sync(work, abandon_on_cancel=has_end, limiter=limiter)
    finally:
        try:
            turn.pop()
        except IndexError:
            call.is_background = not is_ended
        else:
            if ticket is not None:
                ticket.leave()
    return await _await_one(ended)


async def await_in_thread(function: Callable[[], Any]) -> Any:
    """Return what ``function`` returns in a worker thread, awaited here when it can be."""
    return await _await_one(await run_sync(lambda: [function()]))


async def _await_one(values: list[Any]) -> Any:
    (value,) = values
    return await value if isawaitable(value) else value
