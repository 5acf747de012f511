"""Reported faults of the error envelope: one answer a call, whatever a tool raises."""

import json

import anyio
import pytest
from anyio.lowlevel import checkpoint

from harbor_async import Catalog, EventType, Limits, Runtime, ToolCall, ToolContext
from tests.cancellation.ways import steal_cancellation
from tests.conformance.support import SUCCEEDED, Listener, call, canceled, invoke, invoke_many, make, settle, summary


async def ok() -> str:
    await checkpoint()
    return "ok"


@pytest.mark.parametrize("kind", [StopIteration, StopAsyncIteration])
@pytest.mark.parametrize("is_sync", [True, False])
async def test_n23_stopiteration(kind, is_sync):
    """``StopIteration`` and ``StopAsyncIteration`` of a tool are failures like any other."""

    async def stops() -> None:
        raise kind("stop")

    def stops_sync() -> None:
        raise kind("stop")

    result, other = await invoke_many(make(stops_sync if is_sync else stops), make(ok))
    assert ("failed", "unknown", 1) == summary(result)[:3]
    assert result.error.message
    assert (SUCCEEDED, "ok") == (summary(other), other.value)


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("error", "begins", "ends"),
    [
        (MuteError("x"), "MuteError", "MuteError"),
        (OSError("x" * 10_000_000), "xxx", "(9998000 more characters)"),
        (ValueError(), "ValueError", "ValueError"),
        (ValueError(" \n"), "ValueError", "ValueError"),
        (ValueError("\ud800"), "\\ud800", "\\ud800"),
        (ExceptionGroup("g", [MuteError("x")]), "MuteError", "MuteError"),
    ],
    ids=["str raises", "huge", "no args", "blank", "surrogate", "group"],
)
async def test_n32_huge_error(error, begins, ends):
    """A message that cannot be had is the type's name, and one that is huge is cut."""

    async def work() -> None:
        raise error

    result = await invoke(make(work))
    assert ("failed", "unknown", 1) == summary(result)[:3]
    message = result.error.message
    assert message.startswith(begins)
    assert message.endswith(ends)
    assert len(message) <= 2100
    assert len(result.content.encode()) <= 8500
    assert message == json.loads(result.content)["error"]["message"] == result.to_wire()["error"]["message"]


async def test_n32_huge_error_secret():
    """A secret among the arguments is in no message about them; the words of a tool are passed as they are, and cut."""
    secret = "hunter2-" * 5

    async def work(password: int) -> None:
        raise NotImplementedError

    async def tells() -> None:
        raise ValueError("x" * 2000 + secret)

    result = await invoke(make(work), {"password": secret})
    assert ("failed", "validation", 0, "invalid") == summary(result)
    assert "hunter2" not in result.content + repr(result)
    cut = await invoke(make(tells))
    assert "hunter2" not in cut.content + cut.error.message + repr(cut)


async def test_r003_a_canceled_batch():
    """Of a batch that is canceled what is done stays, what runs and what waits is canceled, in the calls' order."""
    gates = {"A": anyio.Event(), "B": anyio.Event(), "C": anyio.Event()}
    begun = []

    async def work(name: str) -> str:
        begun.append(name)
        await gates[name].wait()
        return f"{name} is done"

    tool = make(work)
    async with Runtime(Catalog([tool]), limits=Limits(max_running=1)) as runtime, runtime.batch() as batch:
        handles = [batch.start(ToolCall(name, "work", {"name": name})) for name in "ABC"]
        gates["A"].set()
        await handles[0].result()
        await settle()
        assert ["A", "B"] == begun
        batch.cancel()
        await settle()
        assert [True] * 3 == [handle.done for handle in handles]
    assert ["A", "B", "C"] == [result.call_id for result in batch.results]
    assert [SUCCEEDED, canceled(1), canceled(0)] == [*map(summary, batch.results)]
    assert "A is done" == batch.results[0].value
    assert ["A", "B"] == begun


@pytest.mark.parametrize("how", ["raises", "is canceled", "times out"])
async def test_r004_what_a_call_has_done_stays(how):
    """Value, events, counters and effects of a call that has finished are not lost when another one fails."""
    state = []
    finished = anyio.Event()
    listener = Listener()

    async def a(context: ToolContext) -> dict[str, int]:
        state.append("changed")
        context.report_progress(1, 2, "halfway")
        if context.attempt == 1:
            raise ConnectionError("reset")
        finished.set()
        return {"made": 7}

    async def b() -> None:
        await finished.wait()
        await settle()
        if how == "raises":
            raise ValueError("no luck")
        await anyio.sleep_forever()

    tools = make(a, attempts=2), make(b, timeout=0.05 if how == "times out" else None)
    async with Runtime(Catalog(tools), sinks=[listener]) as runtime, runtime.batch() as batch:
        first, second = [batch.start(call(tool)) for tool in tools]
        await first.result()
        if how == "is canceled":
            batch.cancel()
        await second.result()
    done, failed = batch.results
    assert ("succeeded", None, 2, None) == summary(done)
    assert ({"made": 7}, {"made": 7}) == (done.value, done.to_wire()["value"])
    assert ["changed"] * 2 == state
    run = [EventType.ATTEMPT, EventType.PROGRESS]
    assert [EventType.INVOKED, *run, EventType.RETRY, *run, EventType.COMPLETED] == listener.types("a")
    last = [event for event in listener.events if event.tool == "a"][-1]
    assert (2, "succeeded") == (last.attempts, last.outcome)
    assert "failed" == failed.outcome
    assert {"raises": "unknown", "is canceled": "canceled", "times out": "timeout"}[how] == failed.error.category


async def test_r014_three_kinds_of_end():
    """A call that succeeds, one that raises and one that is canceled from within are three envelopes."""

    async def raises() -> None:
        raise ValueError("no luck")

    async def cut() -> None:
        raise await steal_cancellation()

    results = await invoke_many(make(ok), make(raises), make(cut))
    assert [SUCCEEDED, ("failed", "unknown", 1, "permanent"), canceled()] == [*map(summary, results)]
    assert ("ok", "no luck") == (results[0].value, results[1].error.message)


@pytest.mark.parametrize("way", ["invoke_many", "batch", "stream"])
async def test_r043_a_name_that_nobody_has(way):
    """An unknown name among others is that call's failure, and its attempts are none."""
    calls = [ToolCall("1", "ok"), ToolCall("2", "no_such_tool"), ToolCall("3", "ok")]
    async with Runtime(Catalog([make(ok)])) as runtime:
        if way == "invoke_many":
            results = await runtime.invoke_many(calls)
        elif way == "batch":
            async with runtime.batch() as batch:
                for item in calls:
                    batch.start(item)
            results = batch.results
        else:
            async with runtime.stream(calls) as stream:
                results = sorted([result async for result in stream], key=lambda result: result.call_id)
    assert [SUCCEEDED, ("failed", "not_found", 0, "invalid"), SUCCEEDED] == [*map(summary, results)]
    assert ["1", "2", "3"] == [result.call_id for result in results]
    assert "no_such_tool" in results[1].error.message


async def test_r053_a_tool_that_raises():
    """What a tool raises is a failed envelope with the message."""

    async def work() -> None:
        raise RuntimeError("the disk is full")

    tool = make(work)
    result = await invoke(tool)
    assert ("failed", "unknown", 1, "attempts") == summary(result)
    assert "the disk is full" == result.error.message
    assert {"outcome": "failed", "error": {"category": "unknown", "message": "the disk is full"}} == result.to_wire()
    assert result.to_wire() == json.loads(result.content)
    async with Runtime(Catalog([tool])) as runtime, runtime.batch() as batch:
        assert "the disk is full" == (await batch.start(call(tool)).result()).error.message
