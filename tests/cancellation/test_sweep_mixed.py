"""Batches of nested, synchronous, retrying and shielded tools, cut at every turn of the event loop.

``test_sweep`` cuts each kind of tool by itself.
"""

import sys
from typing import Any

import anyio
import pytest

from harbor_async import ToolResult
from harbor_async.testing import Cut, cancel_sweep
from tests.cancellation.mixed import (
    ANSWERS,
    Body,
    Floor,
    as_they_end,
    at_once,
    by_handles,
    from_threads,
    leaving,
    summary,
    until_one_succeeds,
)

WAYS: list[dict[str, Any]] = [{"backend": "asyncio"}, {"backend": "asyncio", "native": True}, {"backend": "trio"}]
if sys.version_info >= (3, 12):
    WAYS.append({"backend": "asyncio", "eager": True})
each_way = pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(map(str, way.values())))


def sweep(way: dict[str, Any], *bodies: Body) -> int:
    """Cut each body at every turn, with threads that are joined and with threads that are left to themselves.

    Threads are joined where their calls have no end of their own. Where they have one, virtual time does not wait for
    threads, so that any of their calls may be out of time.

    Returns:
        How many cuts there were.
    """
    made = 0
    for body in bodies:
        for timeout in (None, 2.0):
            try:
                made += _sweep(way, body, timeout)
            except BaseException as exc:
                exc.add_note(f"{body.__name__}, timeout={timeout}")
                raise
    return made


def _sweep(way: dict[str, Any], body: Body, timeout: float | None) -> int:
    floor = Floor(timeout)
    is_joined = timeout is None

    async def scenario() -> list[ToolResult]:
        async with floor.open():
            try:
                return await body(floor)
            finally:
                with anyio.CancelScope(shield=True):
                    await floor.check(is_joined=is_joined)

    def check(cut: Cut[list[ToolResult]]) -> None:
        assert cut.canceled == (cut.value is None)
        if cut.value is not None and is_joined and body in ANSWERS:
            assert sorted(map(repr, ANSWERS[body])) == sorted(repr(summary(result)) for result in cut.value)

    return cancel_sweep(scenario, at="turn", check=check, **way)


@pytest.mark.timeout(120)
@each_way
def test_a_cut_leaves_nothing_behind(way, cuts):
    """At over 500 turns: no task, thread, place or unanswered call is left, and the cancellation leaves as itself."""
    made = sweep(way, by_handles, at_once, as_they_end, leaving, until_one_succeeds)
    cuts(made)
    assert made > 500


@pytest.mark.timeout(120)
@each_way
def test_a_cut_of_calls_from_threads_leaves_nothing_behind(way, cuts):
    """The same when the thread of a synchronous tool waits for a call of its own."""
    made = sweep(way, from_threads)
    cuts(made)
    assert made > 50
