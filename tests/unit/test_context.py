"""``ToolContext``: what a tool may know of its call, and what it can do through it. Virtual time."""

import logging
import math
import re
from typing import Any

import anyio
import pytest
from anyio import from_thread

import harbor_async as ha
from harbor_async.errors import InvalidToolError, ScopeDeniedError
from tests.unit.events.support import WAYS, Recorder, listen, make

pytestmark = pytest.mark.virtual
each_way = pytest.mark.parametrize("ask", WAYS, ids=lambda way: way.__name__)
ANN = ha.Identity("acme", "ann", "s-1", scopes={"inner"})
BOB = ha.Identity("acme", "bob", "s-2")

contexts: list[ha.ToolContext] = []
keys: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_kept():
    contexts.clear()
    keys.clear()


async def notes(context: ha.ToolContext) -> str:
    """Keep what is told of the call, and fail in the first two attempts."""
    contexts.append(context)
    keys.append(context.idempotency_key)
    if context.attempt < 3:
        raise ConnectionError
    return context.idempotency_key


@each_way
async def test_a_tool_is_told_which_call_and_which_attempt(ask):
    """Id, name in the catalog, attempt and its end: the attempt's timeout, or the deadline where that is nearer."""
    tool = make(notes, name="renamed")
    async with listen(tool, sinks=[]) as rt:
        await ask(rt, "renamed", timeout=3)
    # Attempts at 0, 0.5 and 1.5 s; each may take 1 s, and the call 3 s.
    assert [("c", "renamed", 1, 1), ("c", "renamed", 2, 1.5), ("c", "renamed", 3, 2.5)] == [
        (context.call_id, context.tool, context.attempt, context.deadline) for context in contexts
    ]


async def test_the_time_that_is_left():
    """``remaining`` counts down to 0 and no further, and is infinite where nothing ends the attempt."""
    left: list[float] = []

    async def work(context: ha.ToolContext) -> None:
        for _ in range(3):
            left.append(context.remaining())
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.75)

    async with listen(make(work, None, name="free"), make(work, 5, name="timed"), sinks=[]) as rt:
        await rt.invoke("free")
        assert [math.inf] * 3 == left
        left.clear()
        await rt.invoke("timed", timeout=1)
        assert [1, 0.25, 0] == left


@each_way
async def test_the_key_is_one_for_all_attempts_of_a_call(ask):
    """The idempotency key is 32 letters and digits, the same in each attempt, and another one for each call."""
    async with listen(make(notes), sinks=[]) as rt:
        for _ in range(3):
            await ask(rt, "notes")
        assert [keys[0]] * 3 + [keys[3]] * 3 + [keys[6]] * 3 == keys
        assert 3 == len(set(keys))
        assert all(re.fullmatch("[0-9a-z]{32}", key) for key in keys)


async def test_no_two_calls_have_one_key():
    """Calls of a batch, of two runtimes, of one that is opened again, of programs, and without a runtime all differ."""

    async def key(context: ha.ToolContext) -> str:
        return context.idempotency_key

    tool = make(key)
    found: list[str] = []
    for _ in range(2):
        async with listen(tool, sinks=[]) as one, listen(tool, sinks=[]) as two:
            for rt in (one, two):
                results = await rt.invoke_many([ha.ToolCall("same", "key")] * 50)
                found += [result.value for result in results]
                found.append(await rt.call(tool))
                found.append(await rt.call(tool))
    found += [(await tool.invoke()).value for _ in range(5)]
    assert len(found) == len(set(found)) == 2 * 2 * 52 + 5


async def test_a_nested_call_has_a_key_of_its_own():
    """In each attempt of its caller a nested call is a new call: its key is neither the caller's nor an earlier one."""

    async def key(context: ha.ToolContext) -> str:
        return context.idempotency_key

    inner = make(key)
    seen: list[tuple[str, str]] = []

    async def outer(context: ha.ToolContext) -> None:
        seen.append((context.idempotency_key, await context.call(inner)))
        if context.attempt < 3:
            raise ConnectionError

    async with listen(inner, make(outer), sinks=[]) as rt:
        await rt.invoke("outer")
    assert (1, 3) == (len({mine for mine, _ in seen}), len({theirs for _, theirs in seen}))
    assert not {mine for mine, _ in seen} & {theirs for _, theirs in seen}


@each_way
async def test_the_logger_says_whose_record_it_is(ask, caplog):
    """Records carry tool, id and attempt, and what the tool adds, under the logger ``harbor_async.tool``."""

    async def talks(context: ha.ToolContext) -> None:
        context.logger.warning("half of %d", 2, extra={"order": 7})
        if context.attempt == 1:
            raise ConnectionError

    async with listen(make(talks), sinks=[]) as rt:
        with caplog.at_level(logging.WARNING, "harbor_async.tool"):
            await ask(rt, "talks")
    records: list[Any] = [record for record in caplog.records if record.name == "harbor_async.tool"]
    assert ["half of 2"] * 2 == [record.getMessage() for record in records]
    assert [("talks", "c", 1, 7), ("talks", "c", 2, 7)] == [
        (record.tool, record.call_id, record.attempt, record.order) for record in records
    ]


# --- nested calls ---------------------------------------------------------------------------------------------------


@ha.tool(scopes={"inner"}, policy=ha.ToolPolicy(timeout=1.0, attempts=1))
async def inner(n: int, *, factor: float = 2.0, context: ha.ToolContext) -> str:
    """Say who asks."""
    await anyio.sleep(0.25)
    return f"{n * factor:g} for {'nobody' if context.identity is None else context.identity.user}"


@ha.tool(policy=ha.ToolPolicy(timeout=None, attempts=1))
async def outer(context: ha.ToolContext) -> str:
    """Ask in turn, and say what came of it."""
    try:
        return await context.call(inner, 2, factor=1.5)
    except ScopeDeniedError as exc:
        return f"denied: {exc}"


@each_way
@pytest.mark.parametrize(
    ("identity", "answer"),
    [(None, "3 for nobody"), (ANN, "3 for ann"), (BOB, "denied: .*inner.*")],
    ids=["nobody", "ann", "bob"],
)
@pytest.mark.parametrize("limits", [{}, {"max_running": 1, "max_queued": 0}], ids=["unlimited", "limited"])
async def test_a_nested_call_is_made_for_whom_its_caller_is(ask, identity, answer, limits):
    """``context.call`` asks on behalf of the call's identity, not the runtime's; scopes hold, and so does its place."""
    sink = Recorder()
    async with listen(outer, inner, sinks=[sink], **limits) as rt:
        rt.identity = ha.Identity("other", "eve", "s", scopes={"inner"}) if identity is not None else None
        result = await rt.invoke("outer", identity=identity)
        assert re.fullmatch(answer, result.value)
        await ask(rt, "outer", identity=identity)
    assert {identity} == {event.identity for event in sink.events}
    assert {"rejected 0" if identity is BOB else "completed 1"} == {
        f"{event.type.removeprefix('tool.')} {event.attempts}"
        for event in sink.events
        if event.tool == "inner" and event.outcome is not None
    }


async def test_a_nested_call_is_a_program_s():
    """Python values go in and out as they are, the tool's own exception leaves, and wrong arguments are a TypeError."""
    value = object()

    async def passes(given: Any) -> Any:
        if given is None:
            raise KeyError("mine")
        return given

    passing = make(passes, attempts=1)

    async def work(context: ha.ToolContext) -> str:
        assert await context.call(passing, value) is value
        with pytest.raises(KeyError, match="mine") as caught:
            await context.call(passing, None)
        assert ["tool 'passes': 1 attempt, stopped by 'permanent'"] == caught.value.__notes__
        nested: Any = context.call
        with pytest.raises(TypeError, match="unexpected"):
            await nested(passing, value, unexpected=1)
        with pytest.raises(InvalidToolError, match="takes a tool descriptor"):
            await nested(passes, value)
        return "done"

    async with listen(make(work), sinks=[]) as rt:
        assert "done" == (await rt.invoke("work")).value


async def test_a_nested_call_ends_with_its_caller():
    """The caller's deadline cuts it, under the policy of both."""
    log: list[str] = []

    @ha.tool(policy=ha.ToolPolicy(timeout=5.0, attempts=2))
    async def slow() -> None:
        try:
            await anyio.sleep(9)
        finally:
            log.append(f"ended at {anyio.current_time():g}")

    async def work(context: ha.ToolContext) -> None:
        await context.call(slow)

    async with listen(make(work, None, 1), sinks=[]) as rt:
        assert "timed_out" == (await rt.invoke("work", timeout=1)).outcome
    assert ["ended at 1"] == log


async def test_a_nested_call_works_without_a_runtime():
    """In a tool that is invoked by itself it runs under its own policy, for nobody."""
    assert "3 for nobody" == (await outer.invoke()).value


@pytest.mark.virtual(grace=0.05)
async def test_a_synchronous_tool_can_ask_from_its_thread():
    """By ``anyio.from_thread.run``, for the same identity."""

    def work(context: ha.ToolContext) -> str:
        return from_thread.run(context.call, inner, 4)

    async with listen(make(work), inner, sinks=[]) as rt:
        assert "8 for ann" == (await rt.invoke("work", identity=ANN)).value


# --- made by hand ---------------------------------------------------------------------------------------------------


async def test_a_context_made_by_hand_belongs_to_no_call():
    """It has the values that it was given, a logger, and tells nobody; what needs a call says that there is none."""
    context = ha.ToolContext("c", "tool", 2, 5.0, ANN)
    assert ("c", "tool", 2, 5.0, ANN) == (
        context.call_id,
        context.tool,
        context.attempt,
        context.deadline,
        context.identity,
    )
    assert {"tool": "tool", "call_id": "c", "attempt": 2} == context.logger.extra
    context.report_progress(1, 2, "m")
    for ask in (context.remaining, lambda: context.idempotency_key):
        with pytest.raises(ha.HarborError, match="made by hand"):
            ask()
    with pytest.raises(ha.HarborError, match="made by hand"):
        await context.call(inner, 1)
    assert context == ha.ToolContext("c", "tool", 2, 5.0, ANN)
    assert "link" not in repr(context)


async def test_contexts_are_equal_by_what_they_tell():
    """The context of a call equals one that was made by hand with the same values, and cannot be changed."""
    async with listen(make(notes), sinks=[]) as rt:
        await rt.invoke("notes", id="c")
    assert ha.ToolContext("c", "notes", 1, 1.0) == contexts[0]
    changed: Any = contexts[0]
    with pytest.raises(AttributeError):
        changed.attempt = 5
