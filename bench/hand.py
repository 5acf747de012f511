"""The floor: ``json.loads`` + ``await fn(**args)`` + ``json.dumps``, as one would write it without any package."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any, Final

from .work import ARGUMENTS, check, forecast_by_hand

BY_HAND: Final = "by hand"
Call = Callable[[], Coroutine[Any, Any, str]]
"""One call, to its text."""


async def sequence_by_hand(calls: int) -> None:
    """Do one call after the other."""
    text = ""
    for _ in range(calls):
        text = json.dumps(await forecast_by_hand(**json.loads(ARGUMENTS)))
    check(text)


async def in_task_group(call: Call, calls: int) -> None:
    """Do so many calls at once, on asyncio."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(call()) for _ in range(calls)]
    texts = [task.result() for task in tasks]
    check(texts[0], texts[-1])
