"""A call to which nobody listens makes no event."""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import anyio
import pytest

from harbor_async import EventSink, Join, ToolCall, ToolContext, ToolEvent
from tests.unit.events.support import Recorder, listen, make

pytestmark = pytest.mark.virtual


@contextmanager
def made() -> Iterator[Counter[str]]:
    """Count the events that are made in this thread."""
    count: Counter[str] = Counter()
    outer = sys.getprofile()

    def note(frame: FrameType, what: str, _: object) -> None:
        if what == "call" and frame.f_code is ToolEvent.__init__.__code__:
            count["events"] += 1

    sys.setprofile(note)
    try:
        yield count
    finally:
        sys.setprofile(outer)


@pytest.mark.parametrize("sinks", [(), (Recorder(),)], ids=["nobody", "somebody"])
async def test_no_event_is_made_for_nobody(sinks: tuple[EventSink, ...]):
    """Calls of all kinds, however they end, make none; where somebody listens the same calls do."""

    async def works(context: ToolContext) -> str:
        context.report_progress(1)
        await anyio.sleep(0.5)
        return "v"

    async def flaky() -> None:
        raise ConnectionError

    async def nests() -> None:
        await rt.invoke("works")

    tools = make(works), make(flaky), make(nests)
    async with listen(*tools, sinks=sinks, max_running=3) as rt:
        with made() as count:
            await rt.invoke("works")
            await rt.call(tools[0])
            names = ("works", "flaky", "nests", "unknown", "works")
            await rt.invoke_many([ToolCall("", name) for name in names], timeout=1)
            await rt.invoke_many([ToolCall("", "works"), ToolCall("", "works", "{")], join=Join.FIRST_SUCCESS)
            async with rt.stream([ToolCall("", name) for name in names]) as stream:
                await anext(stream)
            with anyio.move_on_after(0.25):
                await rt.invoke("works")
            await rt.drain()
            await rt.invoke("works")
    assert bool(sinks) == bool(count["events"])
