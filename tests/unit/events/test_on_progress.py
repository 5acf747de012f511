"""``invoke(on_progress=)``: whoever asks for a call is told of that call's progress, with sinks or without."""

import threading

import pytest

from harbor_async import Catalog, Runtime, ToolContext
from tests.unit.events.support import Recorder, listen, make


async def climb(context: ToolContext) -> str:
    """Report in two words."""
    context.report_progress(1, 2)
    context.report_progress(2, 2, "done")
    return "v"


def descend(context: ToolContext) -> str:
    """Report from a thread."""
    context.report_progress(0.5, message=str(threading.current_thread() is threading.main_thread()))
    return "v"


@pytest.mark.parametrize(
    ("work", "told"),
    [(climb, [(1, 2, ""), (2, 2, "done")]), (descend, [(0.5, None, "False")])],
    ids=["async", "sync"],
)
async def test_the_caller_is_told_before_the_answer(work, told):
    """Each report reaches the caller, in order and in the loop's thread, before ``invoke`` returns."""
    heard = []
    threads = set()

    def hear(*report):
        heard.append(report)
        threads.add(threading.current_thread())

    async with Runtime(Catalog([make(work)])) as rt:
        result = await rt.invoke(work.__name__, on_progress=hear)
    assert ("v", told, {threading.main_thread()}) == (result.value, heard, threads)


async def test_each_call_tells_its_own_caller():
    """A call without it, and sinks besides, hear nothing less and nothing more."""
    sink, heard = Recorder(), []
    async with listen(make(climb), sinks=[sink]) as rt:
        await rt.invoke("climb", on_progress=lambda *report: heard.append(report))
        await rt.invoke("climb")
    assert ([1, 2, 1, 2], 2) == ([e.done for e in sink.events if e.type == "tool.progress"], len(heard))


async def test_its_fault_is_not_the_tools(caplog):
    """What it raises is logged, and the call succeeds."""

    def hear(*report):
        raise RuntimeError("no")

    async with Runtime(Catalog([make(climb)])) as rt:
        result = await rt.invoke("climb", on_progress=hear)
    said = [record.getMessage() for record in caplog.records]
    assert ("v", ["on_progress of a call of tool 'climb' failed"] * 2) == (result.value, said)
