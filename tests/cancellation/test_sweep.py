"""Calls cut at every step and turn of the event loop: nothing runs on, no place is lost, no answer is missing.

After each cut the scenario itself takes every place of the runtime at once: a place that was lost shows as a wait.
"""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from harbor_async import Backoff, Catalog, Limits, Runtime, ToolCall, ToolPolicy, ToolResult, describe
from harbor_async.testing import Cut, cancel_sweep

POLICY = ToolPolicy(2.0, 3, Backoff(initial=0.25, jitter=0))
PLACES = 2


class Log:
    """What ran, so that nothing may begin or go on after its end."""

    def __init__(self) -> None:
        self.running = 0
        self.tries = 0

    async def quick(self, n: int) -> int:
        return await self._around(n, checkpoint)

    async def slow(self, n: int) -> int:
        return await self._around(n, lambda: anyio.sleep(1))

    async def fails_twice(self, n: int) -> int:
        self.tries += 1
        if self.tries % 3:
            await checkpoint()
            raise ConnectionError("reset")
        return await self._around(n, checkpoint)

    async def hangs(self, n: int) -> int:
        return await self._around(n, lambda: anyio.sleep(99))

    async def swallows(self, n: int) -> int:
        try:
            return await self._around(n, lambda: anyio.sleep(99))
        except anyio.get_cancelled_exc_class():
            return n

    async def converts(self, n: int) -> int:
        try:
            return await self._around(n, lambda: anyio.sleep(99))
        except anyio.get_cancelled_exc_class() as exc:
            raise ConnectionError("lost") from exc

    async def tidies(self, n: int) -> int:
        try:
            return await self._around(n, lambda: anyio.sleep(1))
        finally:
            with anyio.CancelScope(shield=True):
                await self._around(n, lambda: anyio.sleep(0.5))

    async def groups(self, n: int) -> int:
        async with anyio.create_task_group() as group:
            for _ in range(2):
                group.start_soon(self.slow, n)
        return n

    async def _around(self, n: int, wait: Callable[[], Awaitable[None]]) -> int:
        self.running += 1
        try:
            await wait()
        finally:
            self.running -= 1
        return n


KINDS = ["quick", "slow", "fails_twice", "hangs", "swallows", "converts", "tidies", "groups"]
SUCCEED = {"quick", "slow", "fails_twice", "tidies", "groups"}
Body = Callable[[Runtime], Awaitable["list[ToolResult]"]]


def calls_of(kinds: list[str]) -> list[ToolCall]:
    return [ToolCall(str(number), kind, {"n": number}) for number, kind in enumerate(kinds)]


def invoke(kind: str) -> Body:
    async def body(runtime: Runtime) -> list[ToolResult]:
        return [await runtime.invoke(kind, {"n": 0}, id="0", timeout=5)]

    return body


async def many(runtime: Runtime) -> list[ToolResult]:
    return await runtime.invoke_many(calls_of(KINDS), timeout=20)


async def many_out_of_time(runtime: Runtime) -> list[ToolResult]:
    return await runtime.invoke_many(calls_of(["slow"] * 6), timeout=2.5)


async def stream(runtime: Runtime) -> list[ToolResult]:
    async with runtime.stream(calls_of(KINDS)) as results:
        return [result async for result in results]


async def slow_reader(runtime: Runtime) -> list[ToolResult]:
    seen = []
    async with runtime.stream(calls_of(["quick"] * 5)) as results:
        async for result in results:
            await anyio.sleep(0.5)
            seen.append(result)
    return seen


async def slow_source(runtime: Runtime) -> list[ToolResult]:
    async def source() -> AsyncIterator[ToolCall]:
        for call in calls_of(["quick", "slow", "hangs", "quick"]):
            await anyio.sleep(0.5)
            yield call

    async with runtime.stream(source()) as results:
        return [result async for result in results]


async def reader_that_leaves(runtime: Runtime) -> list[ToolResult]:
    async with runtime.stream(calls_of(["hangs", "quick", "hangs", "hangs"])) as results:
        async for result in results:
            return [result]
    raise AssertionError("no result came")


async def program(runtime: Runtime) -> list[ToolResult]:
    await runtime.call(runtime.catalog.resolve("fails_twice"), 0)
    return []


SCENARIOS: dict[str, tuple[Body, int]] = {
    **{f"invoke {kind}": (invoke(kind), 1) for kind in KINDS},
    "invoke_many": (many, len(KINDS)),
    "invoke_many out of time": (many_out_of_time, 6),
    "stream": (stream, len(KINDS)),
    "stream, slow reader": (slow_reader, 5),
    "stream, slow source": (slow_source, 4),
    "stream, reader leaves": (reader_that_leaves, 1),
    "call": (program, 0),
}

SWEEPS = [
    (name, at, limit)
    for name in SCENARIOS
    for at in ("step", "turn")
    for limit in (PLACES, None)
    if (at, limit) == ("step", PLACES) or not name.startswith("invoke ")
]
WAYS: list[dict[str, Any]] = [{"backend": "asyncio"}, {"backend": "asyncio", "native": True}, {"backend": "trio"}]
if sys.version_info >= (3, 12):
    WAYS += [{"backend": "asyncio", "eager": True}, {"backend": "asyncio", "eager": True, "native": True}]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(str(value) for value in way.values()))
@pytest.mark.parametrize(("name", "at", "limit"), SWEEPS)
def test_a_cut_leaves_nothing_behind(name, way, at, limit, cuts):
    """However late it comes, a cancellation leaves as itself, or comes too late and every answer is there."""
    body, answers = SCENARIOS[name]
    log = Log()
    catalog = Catalog([describe(getattr(log, kind), policy=POLICY) for kind in KINDS])

    async def scenario() -> list[ToolResult]:
        log.tries = 0
        async with Runtime(catalog, limits=Limits(max_running=limit)) as runtime:
            try:
                return await body(runtime)
            finally:
                assert 0 == log.running
                with anyio.CancelScope(shield=True):
                    await every_place_is_free(runtime)
                assert 0 == log.running

    def check(cut: Cut[list[ToolResult]]) -> None:
        assert cut.canceled == (cut.value is None)
        assert cut.happened or not cut.canceled
        if cut.value is not None:
            assert answers == len(cut.value)
            for result in cut.value:
                assert result.call_id != "" or result.outcome == "succeeded"

    made = cancel_sweep(scenario, at=at, check=check, **way)
    cuts(made)
    assert made > 1


async def every_place_is_free(runtime: Runtime) -> None:
    """Take all places at once, for a second each."""
    before = anyio.current_time()
    results = await runtime.invoke_many(calls_of(["slow"] * PLACES))
    assert ["succeeded"] * PLACES == [result.outcome for result in results]
    assert before + 1 == anyio.current_time()
