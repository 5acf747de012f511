"""How a batch grows: from one call to 100,000 at once, and 100,000 of which 200 may run.

The function sleeps 10 ms, so that up to some hundred calls the wall clock hears the sleep alone; there the ratio of
processor time is the one to read.
"""

import asyncio
import gc
import json
import tracemalloc
from collections.abc import Iterator
from functools import partial

import trio
from anyio.lowlevel import checkpoint

from harbor_async import Catalog, Limits, Runtime, ToolCall, describe

from .calls import in_nursery
from .hand import BY_HAND, in_task_group
from .pair import QUICK, Effort, Pair, Row, Side, measure
from .work import ARGUMENTS, check, make_sleeping

COUNTS = (1, 10, 100, 1_000, 100_000)
"""Calls at once; 10,000 are a benchmark of their own."""
SHARES = {1: 4.0, 10: 4.0, 100: 2.0, 1_000: 1.0, 100_000: 0.12}
"""The share of the rounds that each count is worth."""
GOALS = {100_000: 1.4}
ALL = 100_000
PLACES = 200
SEMAPHORE = "by hand with a semaphore"


def make_calls(count: int) -> Iterator[ToolCall]:
    return (ToolCall(str(index), "slow_forecast", ARGUMENTS) for index in range(count))


async def many(runtime: Runtime, calls: int) -> None:
    """Answer so many calls with one ``invoke_many``."""
    texts = [result.content for result in await runtime.invoke_many(list(make_calls(calls)))]
    check(texts[0], texts[-1])


async def stream(runtime: Runtime, calls: int) -> None:
    """Answer so many calls that a generator makes, and keep none of the results."""
    done, text = 0, ""
    async with runtime.stream(make_calls(calls)) as results:
        async for result in results:
            done, text = done + 1, result.content
    assert done == calls, done
    check(text)


async def scale(effort: Effort, backend: str) -> list[Row]:
    """Time batches of growing size, without limits."""
    slow_forecast, by_hand = make_sleeping(trio.sleep if backend == "trio" else asyncio.sleep)

    async def call_by_hand() -> str:
        return json.dumps(await by_hand(**json.loads(ARGUMENTS)))

    floor = partial(in_nursery if backend == "trio" else in_task_group, call_by_hand)
    rows = []
    async with Runtime(Catalog([describe(slow_forecast)])) as runtime:
        for count in COUNTS:
            name, target = f"{count:,} parallel, {backend}", GOALS.get(count) if backend == "asyncio" else None
            pair = Pair(name, BY_HAND, floor, partial(many, runtime), calls=count, target=target)
            rows.append(await measure(pair, effort.of(SHARES[count])))
    return rows


def make_limited() -> tuple[Runtime, Side]:
    """Return a runtime in which 200 calls may run, and the same by hand: every call a task, 200 past a semaphore."""
    slow_forecast, by_hand = make_sleeping(asyncio.sleep)

    async def limited(calls: int) -> None:
        semaphore = asyncio.Semaphore(PLACES)

        async def call_by_hand() -> str:
            async with semaphore:
                return json.dumps(await by_hand(**json.loads(ARGUMENTS)))

        await in_task_group(call_by_hand, calls)

    return Runtime(Catalog([describe(slow_forecast)]), limits=Limits(max_running=PLACES)), limited


async def limit(effort: Effort, backend: str) -> list[Row]:
    """Time 100,000 calls of which 200 may run, as a batch and as a stream over a generator."""
    runtime, floor = make_limited()
    async with runtime:
        return [
            await measure(Pair(name, SEMAPHORE, floor, partial(side, runtime), calls=ALL, target=1.0), effort.of(0.12))
            for name, side in ((f"{ALL:,}, {PLACES} at once", many), (f"{ALL:,}, {PLACES}, stream", stream))
        ]


async def waiting(effort: Effort, backend: str) -> list[Row]:
    """Tell the peak of memory while calls wait for one of 200 places, and how it grows with their number.

    100,000 calls are counted, or a tenth of them in the short form: the figures for one call differ little.
    """
    calls = ALL if effort.rounds > QUICK.rounds else ALL // 10
    runtime, floor = make_limited()
    async with runtime:
        hand, batch = await peak(floor, calls), await peak(partial(many, runtime), calls)
        few, all_ = [await peak(partial(stream, runtime), count) for count in (calls // 10, calls)]
    return [
        Row.exact("peak a call, 200 at once", SEMAPHORE, hand / calls, batch / calls, target=1.0),
        Row.exact("peak of all, 200, stream", "a tenth of the calls", few, all_, target=1.1),
    ]


async def peak(side: Side, calls: int) -> int:
    """Return the most bytes that ``side`` held at a time, above what it found; a small run goes first, for caches."""
    await side(PLACES * 2)
    await checkpoint()
    gc.collect()
    tracemalloc.start(1)
    try:
        before = tracemalloc.get_traced_memory()[0]
        await side(calls)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
