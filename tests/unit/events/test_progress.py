"""``tool.progress``: what a tool says of its progress, from wherever it says it, while its attempt runs."""

from typing import Any

import anyio
import pytest
from anyio import from_thread, to_thread

from harbor_async import Catalog, Runtime, ToolCall, ToolContext
from harbor_async.testing import wait_all_tasks_blocked
from tests.unit.events.support import WAYS, Recorder, listen, make
from tests.unit.limits.support import until
from tests.unit.thread.gate import PATIENCE, Gate, pass_time

each_way = pytest.mark.parametrize("ask", WAYS, ids=lambda way: way.__name__)


@pytest.fixture
def gate():
    """Return a closed gate, which is open when the test has ended, so that no thread is left in it."""
    gate = Gate()
    yield gate
    gate.open()


def said(sink: Recorder) -> list[tuple[Any, ...]]:
    """Return what was said of progress, after a look at the rest."""
    sink.calls()
    return [
        (event.attempts, event.done, event.total, event.message)
        for event in sink.events
        if event.type == "tool.progress"
    ]


@each_way
@pytest.mark.virtual
async def test_it_is_told_between_attempt_and_end(ask):
    """Each word comes at its time, in order, with the attempt that it is of."""
    sink = Recorder()

    async def work(context: ToolContext) -> str:
        context.report_progress(0, 2)
        await anyio.sleep(0.25)
        context.report_progress(1.5, 2, "halfway")
        if context.attempt == 1:
            raise ConnectionError
        context.report_progress(2, message="done")
        return "v"

    async with listen(make(work), sinks=[sink]) as rt:
        await ask(rt, "work")
    first, second = [(n, 0, 2, "") for n in (1, 2)], [(n, 1.5, 2, "halfway") for n in (1, 2)]
    assert [first[0], second[0], first[1], second[1], (2, 2, None, "done")] == said(sink)
    run = ["attempt", "progress", "progress"]
    told = ["invoked 0", *(f"{what} 1" for what in (*run, "retry")), *(f"{what} 2" for what in (*run, "progress"))]
    assert [*told, "completed 2"] == sink.told()
    assert [0, 0.25, 0.75, 1, 1] == [event.time for event in sink.events if event.type == "tool.progress"]


@each_way
async def test_it_may_come_from_child_tasks_and_threads(ask):
    """Child tasks of the tool, its thread and threads of its own all tell, and the end comes after them."""
    sink = Recorder()

    async def child(context: ToolContext) -> None:
        context.report_progress(1)

    def helper(context: ToolContext) -> None:
        context.report_progress(2)

    async def work(context: ToolContext) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(child, context)
        await to_thread.run_sync(helper, context)

    def thread(context: ToolContext) -> None:
        for done in range(100):
            context.report_progress(done)
        from_thread.run(child, context)

    async with listen(make(work, 9), make(thread, 9), sinks=[sink]) as rt:
        await ask(rt, "work")
        await wait_all_tasks_blocked()
        assert [1, 2] == [done for _, done, *_ in said(sink)]
        sink.events.clear()
        await ask(rt, "thread")
        await wait_all_tasks_blocked()
        assert [*range(100), 1] == [done for _, done, *_ in said(sink)]


@each_way
@pytest.mark.virtual
async def test_what_comes_after_the_end_is_lost(ask):
    """A context that was kept tells nothing once its call has ended, however that was, and raises nothing."""
    sink = Recorder()
    kept: list[ToolContext] = []

    async def work(seconds: float, context: ToolContext) -> None:
        kept.append(context)
        await anyio.sleep(seconds)

    async with listen(make(work, attempts=1), sinks=[sink]) as rt:
        await ask(rt, "work", {"seconds": 0})
        await ask(rt, "work", {"seconds": 5})
        with anyio.move_on_after(0.5):
            await ask(rt, "work", {"seconds": 0.75})
        await wait_all_tasks_blocked()
        before = len(sink.events)
        for context in kept:
            context.report_progress(1)
        await to_thread_run(kept[0].report_progress, 2)
        await wait_all_tasks_blocked()
        assert (3, before) == (len(kept), len(sink.events))
    for context in kept:  # the runtime is closed
        context.report_progress(3)
    assert before == len(sink.events)


async def to_thread_run(function: Any, *args: Any) -> None:
    await to_thread.run_sync(function, *args)


@pytest.mark.virtual(grace=PATIENCE)
async def test_a_thread_that_was_left_behind_tells_nothing(gate: Gate):
    """What it says during the next attempt, and after the end, is none of theirs."""
    sink = Recorder()
    late = Gate()

    def work(context: ToolContext) -> str:
        if context.attempt == 2:
            context.report_progress(2)
            late.hold()
            context.report_progress(3)
            return "v"
        gate.hold()
        context.report_progress(1)
        return "late"

    async with (
        listen(make(work, attempts=2, idempotent=True), sinks=[sink]) as rt,
        anyio.create_task_group() as group,
    ):
        group.start_soon(lambda: rt.invoke("work", id="c"))
        await gate.came()
        await pass_time(1)
        await pass_time(0.5)
        await late.came()
        gate.open()
        await until(lambda: rt.statistics().background == 0)  # the late word is out
        late.open()
    assert [(2, 2, None, ""), (2, 3, None, "")] == said(sink)
    assert "completed 2" == sink.told()[-1]


@pytest.mark.virtual
async def test_nested_calls_tell_of_themselves():
    """A nested tool tells under its own id and name, its caller under its own."""
    sink = Recorder()

    async def inner(context: ToolContext) -> None:
        context.report_progress(1)

    async def outer(context: ToolContext) -> None:
        context.report_progress(0, 1)
        await rt.invoke_many([ToolCall("i", "inner")])
        context.report_progress(1, 1)

    async with listen(make(inner), make(outer), sinks=[sink]) as rt:
        await rt.invoke("outer", id="o")
    sink.calls()
    told = [
        (event.call_id, event.tool, event.done, event.total) for event in sink.events if event.type == "tool.progress"
    ]
    assert [("o", "outer", 0, 1), ("i", "inner", 1, None), ("o", "outer", 1, 1)] == told


@pytest.mark.virtual
async def test_a_long_message_is_cut():
    """At most 2,000 characters are kept, and what cannot be written is escaped."""
    sink = Recorder()

    async def work(context: ToolContext) -> None:
        context.report_progress(1, message="x" * 3_000)
        context.report_progress(1, message="\ud800")

    async with listen(make(work), sinks=[sink]) as rt:
        await rt.invoke("work")
    assert ["x" * 2_000 + "… (1000 more characters)", "\\ud800"] == [message for *_, message in said(sink)]


WRONG = [
    ((float("nan"),), ValueError),
    ((1, float("inf")), ValueError),
    ((-float("inf"), 1), ValueError),
    ((10**400,), ValueError),
    ((None,), TypeError),
    (("1",), TypeError),
    ((1, "2"), TypeError),
    ((1j,), TypeError),
    ((1, 2, None), TypeError),
    ((1, 2, b"m"), TypeError),
]


@pytest.mark.parametrize("listening", [True, False])
@pytest.mark.virtual
async def test_nonsense_raises_where_it_is_said(listening):
    """A number that is none or not finite, and a message that is no text, are errors of the tool; all else is told."""
    sink = Recorder()
    raised: list[type[BaseException]] = []

    async def work(context: ToolContext) -> None:
        for args, kind in WRONG:
            with pytest.raises(kind, match=r"finite|real number|message of text"):
                context.report_progress(*args)
            raised.append(kind)
        context.report_progress(-1, 0)
        context.report_progress(3, 2)
        context.report_progress(10**300, 0.1)

    async with Runtime(Catalog([make(work)]), sinks=[sink] if listening else []) as rt:
        assert "succeeded" == (await rt.invoke("work")).outcome
    assert len(WRONG) == len(raised)
    told = [(-1, 0), (3, 2), (10**300, 0.1)] if listening else []
    assert told == [(done, total) for _, done, total, _ in said(sink)]


@pytest.mark.virtual
async def test_without_a_runtime_nobody_listens():
    """A tool that is invoked by itself, and a context that was made by hand, tell nobody and raise nothing."""

    async def work(context: ToolContext) -> str:
        context.report_progress(1, 2, "m")
        return "v"

    assert "v" == (await make(work).invoke()).value
    ToolContext("c", "work", 1, float("inf")).report_progress(1)
    with pytest.raises(ValueError, match="finite"):
        ToolContext("c", "work", 1, float("inf")).report_progress(float("nan"))
