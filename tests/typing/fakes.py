"""What a type checker sees of the fakes: a tool with faults keeps its signature, and suites take their subject.

Read by mypy and pyright, never run; as in tools.py.
"""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from random import Random
from typing import Any, assert_type

import harbor_async as ha
from harbor_async.testing import (
    HANG,
    CatalogConformance,
    Fault,
    RecordingSink,
    SinkConformance,
    WriterConformance,
    chance,
    inject,
    scripted_tool,
)


@ha.tool
async def lookup(city: str, *, days: int = 1) -> list[float]:
    return [20.5] * days


async def faults_keep_the_signature(rt: ha.Runtime) -> None:
    shaky = inject(lookup, [ConnectionResetError, Fault(delay=1.0, after=True), HANG, None])
    assert_type(await rt.call(shaky, "Oslo", days=2), list[float])
    assert_type(await inject(lookup, chance(Random(7).random, (0.1, HANG)))("Oslo"), list[float])
    await rt.call(shaky, 1)  # type: ignore[arg-type]
    inject(lookup, ["found"])  # type: ignore[list-item]
    inject(lookup.function, [HANG])  # type: ignore[arg-type]
    Fault(error="timeout")  # type: ignore[arg-type]


async def a_scripted_tool_takes_anything(rt: ha.Runtime) -> None:
    tool = scripted_tool("search", [ConnectionResetError, "found"], side_effect="read")
    assert_type(tool, ha.ToolDescriptor[..., Any])
    assert_type(await rt.call(tool, 1, x=2), Any)


async def a_recording_sink_is_a_sink(catalog: ha.Catalog) -> None:
    sink = RecordingSink()
    async with ha.Runtime(catalog, sinks=[sink]):
        assert_type(await sink.wait_for(ha.EventType.RETRY, count=2, tool="search"), ha.ToolEvent)
    assert_type(sink.select("tool.completed"), list[ha.ToolEvent])


class MyCatalog(ha.Catalog):
    pass


class TestMyCatalog(CatalogConformance):
    def make(self) -> MyCatalog:
        return MyCatalog()


class TestMySink(SinkConformance):
    def make(self) -> RecordingSink:
        return RecordingSink()


class TestMyOpenedSink(SinkConformance):
    @asynccontextmanager
    async def make(self) -> AsyncGenerator[RecordingSink]:
        yield RecordingSink()


class Writer:
    async def close(self, id: str, reason: str, *, key: str) -> None:
        pass


class TestMyTracker(WriterConformance):
    state = "In Review"

    @asynccontextmanager
    async def make(self) -> AsyncGenerator[Writer]:
        yield Writer()
