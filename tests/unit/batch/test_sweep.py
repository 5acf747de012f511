"""A batch that is cut at every turn and at every step of the event loop leaves nothing behind."""

from collections import Counter

import anyio
import pytest

from harbor_async import Join, ToolCall
from harbor_async.testing import cancel_sweep
from tests.support.loops import ASYNCIO
from tests.unit.batch.support import Log, canceled, make, succeeded, summary, work, working

WAYS = [*ASYNCIO, *({**way, "native": True} for way in ASYNCIO)]
WAYS += [{"backend": "trio", "seed": seed} for seed in range(2)]
each_way = pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(f"{k}={v}" for k, v in way.items()) or "plain")


async def scenario():
    """Run plain, nested, retrying and shielded tools in two places, by handles, by joins and atomically."""
    log, failures, answers = Log(), [], []
    handles = []

    async def nests(seconds: float) -> str:
        async with rt.batch(join=Join.FIRST_SUCCESS) as batch:
            start(batch, work("inner", seconds))
            start(batch, work("longer", seconds + 0.25))
        return "nested"

    async def retries() -> str:
        failures.append(1)
        await anyio.sleep(0.25)
        if len(failures) % 3:
            raise ConnectionError
        return "at last"

    async def shields() -> str:
        with anyio.CancelScope(shield=True):
            await anyio.sleep(0.5)
        return "sent"

    def start(batch, call):
        handle = batch.start(call)
        handles.append((batch, handle))
        return handle

    async def answer(handle):
        answers.append((handle, await handle.result()))

    tools = [make(nests), make(retries, attempts=3), make(shields, side_effect="write")]
    async with working(log, *tools, max_running=2) as rt:
        try:
            async with anyio.create_task_group() as group, rt.batch(timeout=9) as batch:
                first = start(batch, work("a", 0.5, tidies=0.125))
                for name in ("retries", "shields", "shields"):
                    start(batch, ToolCall("", name))
                queued = start(batch, work("b"))
                group.start_soon(answer, first)
                group.start_soon(answer, queued)
                await first.result()
                queued.cancel()
            await rt.invoke_many([work("c", 0.25), work("d", 0.5), work("e", 0.5)], join=Join.FIRST_SUCCESS)
            await rt.invoke_many([work("f"), ToolCall("", "unknown")], atomic=True)
        finally:
            with anyio.CancelScope(shield=True):
                check(log, handles, answers)
                await all_places_are_free(rt)
    async with working(log, *tools) as rt:  # nested calls without limits: in two places they would wait for ever
        try:
            async with rt.batch() as batch:
                start(batch, ToolCall("", "nests", {"seconds": 0.25}))
                late = start(batch, ToolCall("", "nests", {"seconds": 9}))
                await anyio.sleep(0.5)
                late.cancel()
        finally:
            check(log, handles, answers)
    return [summary(await handle.result()) for _, handle in handles]


def check(log, handles, answers):
    """Nothing runs, and every call that was started has its one answer, the same for all who asked."""
    assert sorted(log.begun) == sorted(log.ended + log.cut)
    assert all(handle.done for _, handle in handles)
    assert all(result is not None for batch, _ in handles for result in batch.results)
    assert all(result in batch.results for handle, result in answers for batch, other in handles if other is handle)


async def all_places_are_free(rt):
    """Two calls of 1 s end after 1 s: both places are free, and nobody stands in the queue before them."""
    before = anyio.current_time()
    results = await rt.invoke_many([work("x"), work("y")])
    assert [succeeded("x"), succeeded("y")] == list(map(summary, results))
    assert 1 == anyio.current_time() - before


@each_way
@pytest.mark.parametrize("at", ["turn", "step"])
def test_a_cut_leaves_nothing_behind(way, at, capsys):
    """At each cut: no task, no place, no waiting handle and no call without an answer; and the cancellation leaves."""
    cuts = []
    cancel_sweep(scenario, at=at, check=cuts.append, **way)
    real = [cut for cut in cuts if cut.canceled]
    with capsys.disabled():
        print(f" {len(real)} cuts", end="")  # noqa: T201 - the number is part of the answer
    assert not cuts[-1].happened
    ends = [  # an eager task starts the inner calls sooner
        succeeded("a"),
        succeeded("at last", 3),
        succeeded("sent"),
        succeeded("sent"),
        canceled(0),
        *(succeeded("nested"), canceled(1)),
        *(succeeded("inner"), canceled(1), canceled(1), canceled(1)),
    ]
    assert Counter(ends) == Counter(cuts[-1].value)
    assert len(real) > 20
