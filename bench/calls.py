"""A call's whole way through the runtime, against ``json.loads`` + ``await fn(**args)`` + ``json.dumps``."""

import asyncio
import json
from functools import partial

import trio

from harbor_async import Catalog, Runtime, ToolCall, describe

from .hand import BY_HAND, Call, in_task_group, sequence_by_hand
from .pair import Effort, Pair, Row, measure
from .work import ARGUMENTS, check, forecast, make_sleeping

MANY = 10_000


async def in_nursery(call: Call, calls: int) -> None:
    """Do so many calls by hand at once, on trio."""
    texts = [""] * calls

    async def keep(index: int) -> None:
        texts[index] = await call()

    async with trio.open_nursery() as nursery:
        for index in range(calls):
            nursery.start_soon(keep, index)
    check(texts[0], texts[-1])


async def sequence(effort: Effort, backend: str) -> list[Row]:
    """Time one call after the other, from text to text; the function returns at once."""
    async with Runtime(Catalog([describe(forecast)])) as runtime:

        async def ours(calls: int) -> None:
            text = ""
            for _ in range(calls):
                text = (await runtime.invoke("forecast", ARGUMENTS)).content
            check(text)

        target = {"asyncio": 1.0, "trio": 1.5}.get(backend)
        pair = Pair(f"sequence, {backend}", BY_HAND, sequence_by_hand, ours, target=target)
        return [await measure(pair, effort)]


async def parallel(effort: Effort, backend: str) -> list[Row]:
    """Time 10,000 calls at once that sleep 10 ms; by hand they run in the backend's own group of tasks."""
    slow_forecast, by_hand = make_sleeping(trio.sleep if backend == "trio" else asyncio.sleep)

    async def call_by_hand() -> str:
        return json.dumps(await by_hand(**json.loads(ARGUMENTS)))

    async with Runtime(Catalog([describe(slow_forecast)])) as runtime:

        async def ours(calls: int) -> None:
            batch = [ToolCall(str(index), "slow_forecast", ARGUMENTS) for index in range(calls)]
            texts = [result.content for result in await runtime.invoke_many(batch)]
            check(texts[0], texts[-1])

        floor = partial(in_nursery if backend == "trio" else in_task_group, call_by_hand)
        target = 1.4 if backend == "asyncio" else None
        pair = Pair(f"{MANY:,} parallel, {backend}", BY_HAND, floor, ours, calls=MANY, target=target)
        return [await measure(pair, effort.of(0.4))]
