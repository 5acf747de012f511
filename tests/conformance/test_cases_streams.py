"""Reported faults of streaming: generators, events and their order."""

import asyncio
from collections.abc import AsyncIterator

import anyio
import pytest
from anyio.lowlevel import checkpoint

from harbor_async import Catalog, EventType, Runtime, ToolContext, ToolEvent, describe, tool
from harbor_async.errors import InvalidToolError
from tests.cancellation.ways import steal_cancellation
from tests.conformance.support import LONG, Listener, call, invoke, make, settle
from tests.unit.thread.gate import PATIENCE


@pytest.mark.parametrize("whose", ["asyncio", "loop"])
@pytest.mark.parametrize("way", ["invoke", "invoke_many", "call", "stream"])
async def test_r016_a_hook_that_raises_a_cancellation(whose, way, caplog):
    """A listener that raises a cancellation changes no call, is reported once, and hears what follows."""
    heard = []

    class Hook:
        async def emit(self, event: ToolEvent) -> None:
            heard.append(event.type)
            if len(heard) in {1, 2}:
                raise asyncio.CancelledError("lib") if whose == "asyncio" else await steal_cancellation()

    async def work() -> str:
        await settle()
        return "done"

    tool = make(work)
    listener = Listener()
    with anyio.fail_after(15):
        async with Runtime(Catalog([tool]), sinks=[Hook(), listener]) as runtime:
            if way == "invoke":
                value = (await runtime.invoke("work")).value
            elif way == "invoke_many":
                value = (await runtime.invoke_many([call(tool)]))[0].value
            elif way == "call":
                value = await runtime.call(tool)
            else:
                async with runtime.stream([call(tool)]) as stream:
                    (value,) = [result.value async for result in stream]
    assert "done" == value
    told = [EventType.INVOKED, EventType.ATTEMPT, EventType.COMPLETED]
    assert told == heard == listener.types("work")
    assert 1 == len([record for record in caplog.records if record.name == "harbor_async"])


@pytest.mark.timed
@pytest.mark.parametrize("limit", ["timeout", "timeouts", "deadline"])
async def test_r045_the_events_of_a_timeout(pace, limit):
    """Of a call that times out exactly one event is the last, and comes after all others of that call."""
    listener = Listener()

    async def work(context: ToolContext) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(pace(0.5, 0.01))
            context.report_progress(1, message="tidied up")

    attempts = 2 if limit == "timeouts" else 1
    tool = make(work, timeout=LONG if limit == "deadline" else pace(1.0, 0.02), attempts=attempts)
    deadline = pace(1.0, 0.02) if limit == "deadline" else None
    async with Runtime(Catalog([tool]), sinks=[listener]) as runtime:
        result = await runtime.invoke("work", id="c1", timeout=deadline)
        await settle()
    assert attempts == result.attempts
    run = [EventType.ATTEMPT, EventType.PROGRESS]
    retried = [EventType.RETRY, *run] if attempts == 2 else []
    last = EventType.FAILED if limit == "deadline" else EventType.POLICY_EXHAUSTED
    assert [EventType.INVOKED, *run, *retried, last] == listener.types("work")
    end = listener.events[-1]
    assert (result.outcome, "timeout", attempts) == (end.outcome, end.category, end.attempts)
    assert {"c1"} == {event.call_id for event in listener.events}
    assert [event.time for event in listener.events] == sorted(event.time for event in listener.events)


@pytest.mark.timed(grace=PATIENCE)
async def test_r045_the_events_of_a_timeout_of_a_thread(pace, gate):
    """What a thread that was left at its timeout tells after the end of its call is not heard."""
    listener = Listener()
    timeout = pace(1.0, 0.25)  # in real time more than the thread takes to begin

    def held(context: ToolContext) -> None:
        gate.hold()
        context.report_progress(1, message="too late")

    async with Runtime(Catalog([make(held, timeout=timeout)]), sinks=[listener]) as runtime:
        async with anyio.create_task_group() as group:
            group.start_soon(runtime.invoke, "held")
            await gate.came()
            await pace.pass_time(timeout)
        gate.open()
        await gate.went()
        while runtime.statistics().threads:
            await pace.pass_time(0.001)
        await settle()
    assert [EventType.INVOKED, EventType.ATTEMPT, EventType.FAILED] == listener.types("held")


async def test_r087_an_async_generator():
    """An async generator function is refused when it is declared, with its name and what to do instead."""

    async def pages(count: int) -> AsyncIterator[str]:
        for page in range(count):
            yield str(page)

    async def page_list(count: int) -> list[str]:
        await checkpoint()
        return [str(page) for page in range(count)]

    declare = [describe, make, tool, tool(name="other"), lambda function: Catalog([]).register_func("pages", function)]
    for declared in declare:
        with pytest.raises(InvalidToolError, match=r"'?pages'? is an async generator") as caught:
            declared(pages)
        assert "return a list" in str(caught.value)
        assert "report progress" in str(caught.value)
    assert ["0", "1"] == (await invoke(make(page_list), {"count": 2})).value
