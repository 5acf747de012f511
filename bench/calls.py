"""A call's whole way through the runtime, against ``json.loads`` + ``await fn(**args)`` + ``json.dumps``."""

import asyncio
import json

import trio

from harbor_async import Catalog, Runtime, ToolCall, describe

from .pair import Effort, Pair, Row, Side, measure
from .work import ARGUMENTS, check, forecast, forecast_by_hand, make_sleeping

BY_HAND = "by hand"
MANY = 10_000


async def sequence(effort: Effort, backend: str) -> list[Row]:
    """Time one call after the other, from text to text; the function returns at once."""
    async with Runtime(Catalog([describe(forecast)])) as runtime:

        async def floor(calls: int) -> None:
            text = ""
            for _ in range(calls):
                text = json.dumps(await forecast_by_hand(**json.loads(ARGUMENTS)))
            check(text)

        async def ours(calls: int) -> None:
            text = ""
            for _ in range(calls):
                text = (await runtime.invoke("forecast", ARGUMENTS)).content
            check(text)

        target = {"asyncio": 1.5, "trio": 2.2}[backend]
        return [await measure(Pair(f"sequence, {backend}", BY_HAND, floor, ours, target=target), effort)]


async def parallel(effort: Effort, backend: str) -> list[Row]:
    """Time 10,000 calls at once that sleep 10 ms; by hand they run in the backend's own group of tasks."""
    slow_forecast, by_hand = make_sleeping(asyncio.sleep if backend == "asyncio" else trio.sleep)

    async def call_by_hand() -> str:
        return json.dumps(await by_hand(**json.loads(ARGUMENTS)))

    async def in_task_group(calls: int) -> None:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call_by_hand()) for _ in range(calls)]
        texts = [task.result() for task in tasks]
        check(texts[0], texts[-1])

    async def in_nursery(calls: int) -> None:
        texts = [""] * calls

        async def keep(index: int) -> None:
            texts[index] = await call_by_hand()

        async with trio.open_nursery() as nursery:
            for index in range(calls):
                nursery.start_soon(keep, index)
        check(texts[0], texts[-1])

    async with Runtime(Catalog([describe(slow_forecast)])) as runtime:

        async def ours(calls: int) -> None:
            batch = [ToolCall(str(index), "slow_forecast", ARGUMENTS) for index in range(calls)]
            texts = [result.content for result in await runtime.invoke_many(batch)]
            check(texts[0], texts[-1])

        floor: Side = in_task_group if backend == "asyncio" else in_nursery
        target = 1.8 if backend == "asyncio" else None
        pair = Pair(f"{MANY:,} parallel, {backend}", BY_HAND, floor, ours, calls=MANY, target=target)
        return [await measure(pair, effort.of(0.4))]
