"""Sinks that misbehave change no result, are reported once, and hear on."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from harbor_async import Catalog, Runtime, ToolCall, ToolEvent
from harbor_async.errors import InvalidToolError
from harbor_async.testing import block, run_virtual, wait_all_tasks_blocked
from tests.cancellation.ways import steal_cancellation
from tests.support import loops
from tests.unit.events.support import Recorder, listen, make, of_result

virtual = pytest.mark.virtual
TOLD = ["invoked 0", "attempt 1", "completed 1"]


def is_asyncio() -> bool:
    return anyio.get_cancelled_exc_class() is asyncio.CancelledError


class Bad(Recorder):
    """A sink that does something bad with each event after it has kept it."""

    def __init__(self, act: Callable[["Bad"], Any]) -> None:
        super().__init__()
        self.act = act
        self.cuts = 0

    def __repr__(self) -> str:
        return "<bad sink>"

    async def emit(self, event: ToolEvent) -> None:
        await super().emit(event)
        await self.act(self)


class OddError(BaseException):
    """What is no ``Exception``, and no interrupt."""


async def raises(_: Bad) -> None:
    raise ValueError("broken sink")


async def raises_late(_: Bad) -> None:
    await anyio.sleep(0.25)
    raise ConnectionError("broken sink")


async def raises_odd(_: Bad) -> None:
    raise OddError


async def raises_group(_: Bad) -> None:
    raise BaseExceptionGroup("", [OddError(), ValueError()])


async def raises_foreign(_: Bad) -> None:
    raise await steal_cancellation()


async def raises_asyncio(_: Bad) -> None:
    raise asyncio.CancelledError


async def hangs(sink: Bad) -> None:
    try:
        await anyio.sleep_forever()
    finally:
        sink.cuts += 1


async def hangs_stubbornly(sink: Bad) -> None:
    while sink.cuts < 5:
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            sink.cuts += 1


async def turns_its_end_into_an_error(_: Bad) -> None:
    try:
        await anyio.sleep_forever()
    except anyio.get_cancelled_exc_class():
        raise ValueError from None


async def cancels_a_scope(_: Bad) -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        await anyio.sleep(1)


async def cancels_its_task(_: Bad) -> None:
    if is_asyncio():
        task = asyncio.current_task()
        assert task is not None
        task.cancel()


async def cancels_its_task_and_waits(sink: Bad) -> None:
    await cancels_its_task(sink)
    await anyio.lowlevel.checkpoint()


async def leaves_a_scope_open(_: Bad) -> None:
    anyio.CancelScope().__enter__()


async def is_good(_: Bad) -> None: ...


NOT_FAULTS = {cancels_a_scope, is_good}
ACTS = [
    *(raises, raises_late, raises_odd, raises_group, raises_foreign, raises_asyncio, hangs, hangs_stubbornly),
    *(turns_its_end_into_an_error, cancels_a_scope, cancels_its_task, cancels_its_task_and_waits, is_good),
]
each_act = pytest.mark.parametrize("act", ACTS, ids=lambda act: act.__name__)


async def works(seconds: float = 0.5) -> str:
    await anyio.sleep(seconds)
    return "v"


async def fails() -> None:
    raise ValueError("no luck")


@each_act
@virtual
async def test_what_a_sink_does_changes_no_result(act, caplog):
    """Results, and what other sinks hear, are the same; the sink hears every event, and is reported at most once."""
    bad, good = Bad(act), Recorder()
    with caplog.at_level(logging.ERROR, "harbor_async"):
        async with listen(make(works), make(fails), sinks=[bad, good], max_running=2) as rt:
            results = await rt.invoke_many([ToolCall(str(n), ("works", "fails")[n % 2]) for n in range(4)])
            results.append(await rt.invoke("works", id="4"))
            assert "v" == await rt.call(rt.catalog.resolve("works"))
            # In a minute each sink has had its second for each event.
            await anyio.sleep(60)
            heard = bad.told()
            assert heard == good.told()
    assert ["v", None, "v", None, "v"] == [result.value for result in results]
    assert [0.5, 0, 0.5, 0.5, 0.5] == [result.elapsed for result in results]
    calls = good.calls()
    for result in results:
        last = calls[result.call_id][-1]
        assert of_result(result) == (last.outcome, last.category, last.error_class, last.stop_reason)
    records = [record for record in caplog.records if record.name == "harbor_async"]
    is_fault = act not in NOT_FAULTS and not (
        act in {cancels_its_task, cancels_its_task_and_waits} and not is_asyncio()
    )
    assert is_fault == (len(records) == 1)
    if is_fault:
        assert "event sink <bad sink>" in records[0].getMessage()
        assert "further faults of it are not reported" in records[0].getMessage()


@pytest.mark.parametrize("act", [raises, raises_foreign, hangs, cancels_its_task], ids=lambda act: act.__name__)
async def test_the_same_in_real_time(act):
    """On every real loop a call with a bad sink succeeds without waiting for it, and the runtime closes in time."""
    bad, good = Bad(act), Recorder()
    began = time.monotonic()
    async with listen(make(works), sinks=[bad, good]) as rt:
        assert "v" == (await rt.invoke("works", {"seconds": 0})).value
    assert time.monotonic() - began < 5
    assert TOLD == good.told()
    assert TOLD[:1] == bad.told()[:1]


@virtual
async def test_a_sink_has_a_second_for_each_event():
    """One that hangs is cut after a second, and told what came meanwhile, in order."""
    times: list[tuple[str, float]] = []

    class Sink:
        async def emit(self, event: ToolEvent) -> None:
            times.append((event.type, anyio.current_time()))
            await anyio.sleep_forever()

    async with listen(make(works), sinks=[Sink()]) as rt:
        await rt.invoke("works")
        assert 0.5 == anyio.current_time()
        await anyio.sleep(9)
    assert [("tool.invoked", 0), ("tool.attempt", 1), ("tool.completed", 2)] == times


@virtual
async def test_a_slow_sink_loses_nothing():
    """One that takes 0.9 s for each event hears all of them, long after their calls have ended."""
    heard: list[str] = []

    class Sink:
        async def emit(self, event: ToolEvent) -> None:
            await anyio.sleep(0.9)
            heard.append(event.type)

    async with listen(make(fails), sinks=[Sink()]) as rt:
        for _ in range(10):
            await rt.invoke("fails")
        assert 0 == anyio.current_time()
        await anyio.sleep(100)
        assert 0 == rt.statistics().dropped_events
    assert ["tool.invoked", "tool.attempt", "tool.failed"] * 10 == heard


@virtual
@pytest.mark.parametrize("act", [is_good, hangs, hangs_stubbornly, raises], ids=lambda act: act.__name__)
async def test_the_end_of_the_runtime_waits_a_second(act):
    """Leaving the block waits until all is told, a second at the most, and leaves no task; also when it raised."""
    for error in (None, KeyError):
        sink = Bad(act)
        began = anyio.current_time()
        try:
            async with listen(make(fails), sinks=[sink]) as rt:
                await rt.invoke("fails")
                assert [] == sink.told()
                if error is not None:
                    raise error
        except KeyError:
            assert error is not None
        if act in {is_good, raises}:
            assert began == anyio.current_time()
            assert ["invoked 0", "attempt 1", "failed 1"] == sink.told()
        else:
            assert began + 1 == anyio.current_time()


@virtual
async def test_a_canceled_runtime_still_tells():
    """Where the scope round the runtime is canceled, what has happened is told before the cancellation leaves."""
    sink = Recorder()

    class Slow:
        async def emit(self, event: ToolEvent) -> None:
            await anyio.sleep(0.25)
            await sink.emit(event)

    with anyio.move_on_after(0.3) as scope:
        async with listen(make(works), sinks=[Slow()]) as rt:
            await rt.invoke("works", id="c")
    assert scope.cancelled_caught
    assert ["invoked 0", "attempt 1", "canceled 1"] == sink.told()
    assert 0.75 == anyio.current_time()


@virtual
async def test_more_than_can_wait_are_dropped_and_counted(caplog):
    """A sink that takes nothing keeps 10,000 events; of further ones it loses the new, alone, which is logged once."""
    good = Recorder()
    bad = Bad(hangs)
    async with listen(make(fails), sinks=[bad, good]) as rt:
        await wait_all_tasks_blocked()
        for number in range(4_000):
            await rt.invoke("fails", id=str(number))
            if number % 1_000 == 0:
                await wait_all_tasks_blocked()
        # 12,000 in all: one is in its hands.
        assert 12_000 - 1 - 10_000 == rt.statistics().dropped_events
        await wait_all_tasks_blocked()
        assert 12_000 == len(good.events)
    (record,) = [record for record in caplog.records if record.name == "harbor_async"]
    assert "is too slow: events are dropped" in record.getMessage()


@virtual
async def test_a_sink_that_blocks_is_no_reason_to_lose_an_event():
    """One that keeps the loop past its second is heard out, for nothing could cut it."""

    async def keeps(_: Bad) -> None:
        block(1.5)

    sink = Bad(keeps)
    async with listen(make(fails), sinks=[sink]) as rt:
        await rt.invoke("fails")
        await anyio.sleep(60)
    assert ["invoked 0", "attempt 1", "failed 1"] == sink.told()


@virtual
async def test_many_sinks_are_independent():
    """Of fifty sinks, of which each second one hangs, the others hear all at once."""
    sinks = [Bad((is_good, hangs)[n % 2]) for n in range(50)]
    async with listen(make(works), sinks=sinks) as rt:
        await rt.invoke("works")
        await wait_all_tasks_blocked()
        assert 0.5 == anyio.current_time()
        assert [TOLD, TOLD[:1]] * 25 == [sink.told() for sink in sinks]
        await anyio.sleep(9)
    assert [TOLD] * 50 == [sink.told() for sink in sinks]


@virtual
async def test_a_sink_may_use_the_runtime():
    """A sink that calls a tool for some events makes calls like any other, which are told to it as well."""
    sink = Recorder()

    class Caller:
        async def emit(self, event: ToolEvent) -> None:
            await sink.emit(event)
            if event.type == "tool.completed" and event.call_id == "c":
                await rt.invoke("works", id="from the sink")

    async with listen(make(works), sinks=[Caller()], max_running=1, max_queued=0) as rt:
        await rt.invoke("works", id="c")
        await anyio.sleep(2)
    assert TOLD == sink.told("c") == sink.told("from the sink")
    sink.calls()


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_in_a_sink_is_none_of_its_faults(kind):
    """What interrupts a sink interrupts the program, as it would anywhere."""

    async def interrupted(_: Bad) -> None:
        raise kind

    async def main() -> None:
        async with listen(make(works), sinks=[Bad(interrupted)]) as rt:
            await rt.invoke("works")

    for options in loops.ALL:
        with pytest.raises(kind):
            run_virtual(main, **options)


@virtual
async def test_a_sink_that_is_no_coroutine_function_is_reported(caplog):
    """One whose ``emit`` is a plain function has its events, and is logged."""
    heard: list[str] = []

    class Plain:
        def emit(self, event: ToolEvent) -> None:
            heard.append(event.type)

    async with listen(make(fails), sinks=[Plain()]) as rt:
        await rt.invoke("fails")
    assert ["tool.invoked", "tool.attempt", "tool.failed"] == heard
    assert 1 == len([record for record in caplog.records if record.name == "harbor_async"])


@pytest.mark.parametrize("sink", [None, 5, object(), print, "sink"])
def test_what_is_no_sink_is_refused(sink):
    """It is refused where the runtime is made, and named by its type."""
    with pytest.raises(
        InvalidToolError, match=rf"expected sinks with an async emit\(event\); got {type(sink).__name__}"
    ):
        Runtime(Catalog(), sinks=[Recorder(), sink])


@virtual
async def test_a_runtime_that_is_opened_again_tells_again():
    """Sinks hear of each time that the runtime is open, and are not asked in between."""
    sink = Recorder()
    rt = listen(make(works), sinks=iter([sink]))
    for _ in range(3):
        async with rt:
            await rt.invoke("works")
        assert TOLD == sink.told()
        sink.events.clear()


@virtual
async def test_a_program_that_raises_a_group_does_so_with_sinks():
    """An exception of the block leaves it as it is, whether somebody listens or not."""
    for sinks in ((), (Recorder(),), (Bad(hangs),)):
        with pytest.raises(ExceptionGroup) as caught:
            async with listen(make(works), sinks=sinks):
                raise ExceptionGroup("mine", [ValueError()])
        assert "mine" == caught.value.message
