"""``tool.cancel_ignored``: told while a tool goes on though it was told to stop. Virtual time."""

import anyio
import pytest

from harbor_async import Join, ToolCall
from harbor_async.testing import wait_all_tasks_blocked
from tests.unit.events.support import Recorder, check, listen, make

pytestmark = pytest.mark.virtual
SHORT = 0.001


class Stubborn:
    """A tool that swallows its cancellation so often, and then ends."""

    def __init__(self, times: int, sink: Recorder) -> None:
        self.times = times
        self.sink = sink
        self.seen: list[str] = []
        """What the sink had been told by the time the tool was canceled for the last time."""

    async def work(self) -> str:
        cuts = 0
        while cuts < self.times:
            try:
                await anyio.sleep(9)
            except anyio.get_cancelled_exc_class():
                cuts += 1
        self.seen = self.sink.told()
        return "at last"


@pytest.mark.parametrize(
    "how", ["deadline", "timeout", "handle", "batch", "scope", "scope of a batch", "scope deadline", "stream", "enough"]
)
async def test_it_is_told_once_while_the_tool_goes_on(how):
    """Whoever tells the tool to stop, one event says that it does not, before it ends and between its other events."""
    sink = Recorder()
    tool = Stubborn(500, sink)

    async def good() -> None:
        await anyio.sleep(1)

    async with listen(make(tool.work, 1 if how == "timeout" else None, 1), make(good, None), sinks=[sink]) as rt:
        calls = [ToolCall("c", "work")]
        if how in {"deadline", "timeout"}:
            await rt.invoke("work", id="c", timeout=1 if how == "deadline" else None)
        elif how in {"handle", "batch"}:
            async with rt.batch() as batch:
                handle = batch.start(calls[0])
                await anyio.sleep(1)
                (handle if how == "handle" else batch).cancel()
        elif how == "stream":
            async with rt.stream(calls):
                await anyio.sleep(1)
        elif how == "enough":
            await rt.invoke_many([*calls, ToolCall("g", "good")], join=Join.FIRST_SUCCESS)
        else:
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as group:
                    if how == "scope deadline":
                        scope.deadline = 1
                    else:
                        group.start_soon(cancel_later, scope)
                    await (rt.invoke_many(calls) if how == "scope of a batch" else rt.invoke("work", id="c"))
        await wait_all_tasks_blocked()
    events = sink.calls()["c"]
    kinds = [event.type.removeprefix("tool.") for event in events]
    assert ["invoked", "attempt", "cancel_ignored"] == kinds[:3]
    assert 4 == len(kinds)
    assert 1 == events[2].attempts
    assert "cancel_ignored 1" in tool.seen
    assert 1 == events[2].time


async def cancel_later(scope: anyio.CancelScope) -> None:
    await anyio.sleep(1)
    scope.cancel()


async def test_each_attempt_is_told_of():
    """A tool that ignores the end of each of two attempts is told of twice."""
    sink = Recorder()
    tool = Stubborn(50, sink)
    async with listen(make(tool.work, 1, 2), sinks=[sink]) as rt:
        await rt.invoke("work", id="c")
    one = ["attempt", "cancel_ignored"]
    told = ["invoked 0", *(f"{what} 1" for what in (*one, "retry")), *(f"{what} 2" for what in one)]
    assert [*told, "policy_exhausted 2"] == sink.told()
    check(sink.events)


async def shields() -> None:
    try:
        await anyio.sleep(9)
    finally:
        with anyio.CancelScope(shield=True):
            for _ in range(20):
                await anyio.sleep(SHORT)


async def shields_each() -> None:
    try:
        await anyio.sleep(9)
    finally:
        for _ in range(20):
            with anyio.CancelScope(shield=True):
                await anyio.sleep(SHORT)


async def shields_timeouts() -> None:
    try:
        await anyio.sleep(9)
    finally:
        with anyio.CancelScope(shield=True):
            for _ in range(20):
                with anyio.move_on_after(SHORT):
                    await anyio.sleep(9)


async def swallows_once() -> None:
    try:
        await anyio.sleep(9)
    except anyio.get_cancelled_exc_class():
        return


async def tries_once_more() -> None:
    try:
        await anyio.sleep(9)
    finally:
        await anyio.sleep(1)


async def has_timeouts() -> None:
    for _ in range(20):
        with anyio.move_on_after(SHORT):
            await anyio.sleep(9)


async def cancels_itself() -> None:
    for _ in range(20):
        with anyio.CancelScope() as scope:
            scope.cancel()
            await anyio.sleep(9)


async def has_a_group() -> None:
    for _ in range(20):
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep, 9)
            await anyio.sleep(SHORT)
            group.cancel_scope.cancel()


GOOD = [
    *(shields, shields_each, shields_timeouts, swallows_once, tries_once_more),
    *(has_timeouts, cancels_itself, has_a_group),
]


@pytest.mark.parametrize("how", ["invoke", "handle", "scope"])
@pytest.mark.parametrize("function", GOOD, ids=lambda function: function.__name__)
async def test_a_tool_that_ends_is_not_told_of(function, how):
    """Neither a cleanup, shielded or not, nor a cancellation of the tool's own is taken for a tool that goes on."""
    sink = Recorder()
    async with listen(make(function, None, 1), sinks=[sink]) as rt:
        if how == "invoke":
            await rt.invoke(function.__name__, id="c", timeout=1)
        elif how == "scope":
            with anyio.move_on_after(1):
                await rt.invoke_many([ToolCall("c", function.__name__)])
        else:
            async with rt.batch() as batch:
                handle = batch.start(ToolCall("c", function.__name__))
                await anyio.sleep(1)
                handle.cancel()
    (events,) = sink.calls().values()
    assert ["tool.invoked", "tool.attempt"] == [event.type for event in events[:-1]]


async def test_a_nested_tool_is_told_of_by_itself():
    """Where an inner call goes on though its caller was told to stop, the event is the inner call's."""
    sink = Recorder()
    tool = Stubborn(100, sink)

    async def outer() -> None:
        await rt.invoke("work", id="inner")

    async with listen(make(tool.work, None, 1), make(outer, None, 1), sinks=[sink]) as rt:
        await rt.invoke("outer", id="outer", timeout=1)
    calls = sink.calls()
    told = {
        name: [event.type.removeprefix("tool.") for event in events if event.type == "tool.cancel_ignored"]
        for name, events in calls.items()
    }
    assert ["cancel_ignored"] == told["inner"]
    assert ["invoked", "attempt"] == [event.type.removeprefix("tool.") for event in calls["inner"][:2]]
