"""Reported faults of memory: what a call leaves behind."""

import gc
import weakref
from typing import Any

import attrs
import pytest
from anyio.lowlevel import checkpoint

from harbor_async import Catalog, Runtime
from tests.conformance.support import call, make


@attrs.frozen
class Arguments:
    number: int


class Value(dict):
    """A result that can be referred to weakly."""


class TracedError(Exception):
    """An error that can be referred to weakly."""


class Local:
    """Something in a frame of a tool that fails."""


@pytest.mark.timeout(60)  # in its debug mode asyncio writes down the stack of each task
async def test_r020_ten_thousand_calls():
    """After 10,000 calls no argument, result or error is left; a kept failure has its cause, but no frame of it."""
    alive: dict[str, list[weakref.ref[Any]]] = {"argument": [], "value": [], "error": [], "local": []}

    def track(kind: str, value: Any) -> Any:
        alive[kind].append(weakref.ref(value))
        return value

    def living() -> dict[str, int]:
        gc.collect()
        return {kind: sum(ref() is not None for ref in refs) for kind, refs in alive.items()}

    async def work(arguments: Arguments, /) -> Any:
        track("argument", arguments)
        local = track("local", Local())
        if arguments.number % 100 == 0:
            await checkpoint()
        if arguments.number % 10 == 0:
            raise track("error", TracedError(arguments.number, type(local).__name__))
        return track("value", Value())

    tool = make(work)
    calls = [call(tool, number=number) for number in range(2500)]
    objects = []
    async with Runtime(Catalog([tool])) as runtime:
        for _ in range(4):
            results = await runtime.invoke_many(calls)
            assert 250 == sum(result.error is not None for result in results)
            assert {"argument": 0, "value": 2250, "error": 250, "local": 0} == living()
            causes = [result.error.cause for result in results if result.error is not None]
            assert [TracedError] * 250 == [type(cause) for cause in causes]
            assert [None] * 250 == [cause.__traceback__ for cause in causes]
            del results, causes
            assert {"argument": 0, "value": 0, "error": 0, "local": 0} == living()
            assert 2500 == len(alive["local"])
            for refs in alive.values():
                refs.clear()
            objects.append(len(gc.get_objects()))
    assert objects[-1] - objects[1] < 100, objects
