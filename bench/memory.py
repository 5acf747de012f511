"""What a call in flight holds: 10,000 calls stand inside the function, and the bytes are counted.

They are counted by ``tracemalloc``, which sees every block of Python's allocators and nothing else, so that the figure
is the same at each run and on a busy machine. The resident size of the process is what an operator sees, but it moves
in pages and arenas, is not given back whole, and says as much about what ran before.
"""

import asyncio
import json
from functools import partial

import trio

from harbor_async import Catalog, Runtime, ToolPolicy, describe

from .calls import MANY, in_nursery
from .gate import Gate
from .hand import BY_HAND, in_task_group
from .pair import Effort, Row
from .scale import many
from .work import ARGUMENTS, make_sleeping


async def in_flight(effort: Effort, backend: str) -> list[Row]:
    """Tell the bytes of one call of 10,000 that are in flight."""
    gate = Gate(trio.Event if backend == "trio" else asyncio.Event)
    slow_forecast, by_hand = make_sleeping(gate.sleep)

    async def call_by_hand() -> str:
        return json.dumps(await by_hand(**json.loads(ARGUMENTS)))

    patient = ToolPolicy(timeout=3600.0)  # armed as ever; the first of all must not end before the last has come
    async with Runtime(Catalog([describe(slow_forecast, policy=patient)])) as runtime:
        floor = await gate.measure(partial(in_nursery if backend == "trio" else in_task_group, call_by_hand), MANY)
        ours = await gate.measure(partial(many, runtime), MANY)
    target = 1.6 if backend == "asyncio" else None
    return [Row.exact(f"memory in flight, {backend}", BY_HAND, floor, ours, target=target)]
