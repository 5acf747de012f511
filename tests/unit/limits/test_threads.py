"""Synchronous tools under the limits of tools and groups, and calls from their threads."""

from typing import Any

import anyio
import pytest
from anyio import from_thread

from harbor_async import ToolCall, ToolContext
from tests.unit.limits.support import AWAY, OK, assert_free, make, runtime, summary, until
from tests.unit.thread.gate import PATIENCE, Gate, pass_time

virtual = pytest.mark.virtual(grace=PATIENCE)


@pytest.fixture
def gate():
    """Return a closed gate, which is open when the test has ended, so that no thread is left in it."""
    gate = Gate()
    yield gate
    gate.open()


def plain() -> str:
    return "plain"


@pytest.mark.parametrize("options", [{"exclusive": "g"}, {"max_running": 1}], ids=str)
async def test_threads_keep_to_the_limit_of_their_tool(gate: Gate, options):
    """Of four calls one has a thread, though there are threads for all; the others wait for their turn and run."""

    def held() -> None:
        gate.hold()

    async with runtime(make(held, **options), max_threads=4) as rt, anyio.create_task_group() as group:
        group.start_soon(rt.invoke_many, [ToolCall("", "held")] * 4)
        await gate.came()
        await anyio.wait_all_tasks_blocked()
        assert (1, 1, 3) == (gate.live, rt.statistics().running, rt.statistics().queued)
        gate.open()
    assert (1, 4) == (gate.peak, gate.runs)


async def test_a_call_that_waits_for_a_thread_has_its_group(gate: Gate):
    """Who has the group and no thread yet keeps it: the next one of the group waits, others do not."""

    def held() -> None:
        gate.hold()

    tools = make(held), make(plain, "grouped", exclusive="g")
    async with runtime(*tools, max_threads=1) as rt:
        async with anyio.create_task_group() as group:
            group.start_soon(rt.invoke, "held")
            await gate.came()
            for _ in range(2):
                group.start_soon(rt.invoke, "grouped")
            await anyio.wait_all_tasks_blocked()
            seen = rt.statistics()
            assert (1, 2, 1) == (seen.running, seen.queued, seen.threads)
            gate.open()
        assert_free(rt)


@pytest.mark.parametrize("limits", [{}, {"max_running": 2}], ids=str)
async def test_a_thread_does_not_wait_for_a_group_that_waits_for_a_thread(gate: Gate, limits):
    """The last thread asks for a group which one has that waits for a thread: it is refused, and both end."""

    async def grouped() -> str:
        return "had its turn"

    def outer() -> list[Any]:
        gate.hold()
        result = from_thread.run(rt.invoke, "grouped")
        return [*summary(result), result.error.message]

    tools = make(outer), make(grouped, exclusive="g"), make(plain, "waits", exclusive="g")
    async with runtime(*tools, max_threads=1, **limits) as rt:
        async with anyio.create_task_group() as group:
            results: dict[str, Any] = {}

            async def ask(tool: str) -> None:
                results[tool] = await rt.invoke(tool)

            group.start_soon(ask, "outer")
            await gate.came()
            group.start_soon(ask, "waits")
            await anyio.wait_all_tasks_blocked()
            gate.open()
        assert_free(rt)
    *answer, message = results["outer"].value
    assert AWAY == tuple(answer)
    for word in ("group 'g'", "'grouped'", "'outer'", "a worker thread"):
        assert word in message
    assert (OK, "plain") == (summary(results["waits"]), results["waits"].value)


@pytest.mark.parametrize("how", ["invoke", "call", "context"])
async def test_calls_from_a_thread_use_the_group_of_their_caller(how):
    """From its thread a synchronous tool calls into its own group and its own place, and further from there."""

    async def middle() -> str:
        return await rt.call(inner)

    inner = make(plain, "inner", exclusive="g")
    nested = make(middle, exclusive="g")

    def outer(context: ToolContext) -> str:
        if how == "call":
            return from_thread.run(rt.call, nested)
        if how == "context":
            return from_thread.run(context.call, nested)
        return from_thread.run(rt.invoke, "middle").value

    async with runtime(inner, nested, make(outer, exclusive="g"), max_running=1, max_threads=2) as rt:
        assert "plain" == (await rt.invoke("outer")).value
        assert_free(rt)


async def test_a_thread_waits_for_nothing_that_calls_share():
    """Of two calls that a thread makes at once in its own group the second is refused, not kept in the queue."""

    async def inner() -> str:
        await anyio.lowlevel.checkpoint()
        return "ran"

    def outer() -> list[str]:
        return [str(result.outcome) for result in from_thread.run(rt.invoke_many, [ToolCall("", "inner")] * 2)]

    async with runtime(make(inner, exclusive="g"), make(outer, exclusive="g")) as rt:
        assert ["succeeded", "rejected"] == (await rt.invoke("outer")).value
        assert_free(rt)


@virtual
async def test_the_group_of_a_thread_that_is_left_behind_comes_back(gate: Gate):
    """A thread that outlives its call keeps its thread's place alone: group, tool and place are the next one's."""

    def held() -> str:
        gate.hold()
        return "late"

    tools = make(held, timeout=1, exclusive="g", max_running=1), make(plain, exclusive="g")
    async with runtime(*tools, max_running=1, max_threads=2) as rt:
        async with anyio.create_task_group() as group:
            results: list[Any] = []

            async def ask() -> None:
                results.append(await rt.invoke("held"))

            group.start_soon(ask)
            await gate.came()
            await pass_time(1)
        assert ("failed", "timeout", 1, "unsafe") == summary(results[0])
        assert results[0].error.background
        seen = rt.statistics()
        assert (0, 0, 1, 1) == (seen.running, seen.queued, seen.threads, seen.background)
        assert OK == summary(await rt.invoke("plain"))
        gate.open()
        await until(lambda: rt.statistics().threads == 0)
        assert 0 == rt.statistics().background
