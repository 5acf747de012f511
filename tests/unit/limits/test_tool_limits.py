"""The limit of a tool, and what waiting for it counts against. Virtual time."""

import anyio
import pytest

from harbor_async import Identity, ToolCall
from harbor_async.errors import OverloadedError
from harbor_async.testing import wait_all_tasks_blocked
from tests.unit.limits.support import AWAY, CANCELED, LATE, OK, Log, ask_all, assert_free, call, make, runtime, summary

pytestmark = pytest.mark.virtual


async def test_a_tool_runs_no_more_often_than_it_may():
    """Of six calls two run at once, in their order, and another tool is not held up."""
    log = Log()
    tools = make(log.work, "few", max_running=2), make(log.work, "free")
    async with runtime(*tools) as rt:
        await rt.invoke_many([call("few", f"a{n}") for n in range(6)] + [call("free", f"b{n}") for n in range(6)])
        assert_free(rt)
    assert (2, 6) == (log.at_once("a"), log.at_once("b"))
    assert [(n // 2, n // 2 + 1) for n in range(6)] == [log.spans[f"a{n}"] for n in range(6)]


async def test_one_limit_holds_for_every_way_of_asking():
    """``invoke``, ``call``, a batch and a stream share the limit of a tool."""
    log = Log()
    tool = make(log.work, "few", max_running=1)
    async with runtime(tool) as rt:

        async def stream() -> None:
            async with rt.stream([call("few", "c"), call("few", "d")]) as results:
                assert {"c", "d"} == {result.value async for result in results}

        async with anyio.create_task_group() as group:
            group.start_soon(rt.call, tool, "a")
            group.start_soon(rt.invoke, "few", {"name": "b"})
            group.start_soon(stream)
            group.start_soon(rt.invoke_many, [call("few", "e"), call("few", "f")])
        assert_free(rt)
    assert (1, 6) == (log.at_once(""), anyio.current_time())


async def test_a_limit_is_one_of_a_runtime():
    """Two runtimes that serve one descriptor do not wait for each other."""
    log = Log()
    tool = make(log.work, "few", max_running=1)
    async with runtime(tool) as one, runtime(tool) as two, anyio.create_task_group() as group:
        for number, rt in enumerate((one, two)):
            group.start_soon(rt.call, tool, str(number))
    assert [(0, 1), (0, 1)] == [*log.spans.values()]


async def test_a_call_that_waits_for_its_tool_lets_others_pass():
    """A call whose tool is busy keeps no place, and holds up nobody who has one."""
    log = Log()
    tools = make(log.work, "few", max_running=1), make(log.work, "free")
    async with runtime(*tools, max_running=2) as rt:
        await rt.invoke_many([call("few", "a", 4), call("few", "b"), call("free", "c"), call("free", "d")])
    assert {"a": (0, 4), "c": (0, 1), "d": (1, 2), "b": (4, 5)} == log.spans


async def test_waiting_does_not_count_against_the_timeout_of_an_attempt():
    """Calls that wait for 1, 2 and 3 s under a timeout of 1.5 s succeed."""
    log = Log()
    async with runtime(make(log.work, timeout=1.5, max_running=1)) as rt:
        results = await rt.invoke_many([call("work", str(n)) for n in range(4)])
    assert [OK] * 4 == [*map(summary, results)]
    assert [1, 2, 3, 4] == [result.elapsed for result in results]


async def test_waiting_counts_against_the_deadline():
    """A call whose turn has not come at its deadline is timed out, was not begun, and leaves nothing behind."""
    log = Log()
    async with runtime(make(log.work, max_running=1, side_effect="write")) as rt:
        results = await rt.invoke_many([call("work", str(n)) for n in range(4)], timeout=1.5)
        assert_free(rt)
        await rt.invoke("work", {"name": "next"})
    assert [OK, ("timed_out", "timeout", 1, "deadline"), LATE, LATE] == [*map(summary, results)]
    assert [True, False, False] == [result.error.ambiguous for result in results[1:]]
    assert ["unknown", "not_sent", "not_sent"] == [result.error.delivery for result in results[1:]]
    assert {"0": (0, 1), "1": (1, 1.5), "next": (1.5, 2.5)} == log.spans


@pytest.mark.parametrize("how", ["handle", "batch", "scope"])
async def test_one_that_is_canceled_while_it_waits_leaves_nothing(how):
    """The turn of a call that is canceled in the queue goes to the next one, and it has never run."""
    log = Log()
    async with runtime(make(log.work, max_running=1, exclusive="g"), max_running=3) as rt:
        async with anyio.create_task_group() as group:
            group.start_soon(rt.invoke, "work", {"name": "first"})
            await wait_all_tasks_blocked()
            with anyio.move_on_after(0.5 if how == "scope" else None):
                async with rt.batch() as batch:
                    handle = batch.start(call("work", "canceled"))
                    group.start_soon(rt.invoke, "work", {"name": "last"})
                    await anyio.sleep(0.5)
                    (handle if how == "handle" else batch).cancel()
                assert CANCELED == summary(await handle.result())
            assert 0.5 == anyio.current_time()
            assert (1, 1) == (rt.statistics().running, rt.statistics().queued)
        assert_free(rt)
    assert {"first": (0, 1), "last": (1, 2)} == log.spans


@pytest.mark.parametrize("options", [{"max_running": 1}, {"exclusive": "g"}], ids=str)
async def test_the_queue_of_tools_and_groups_is_bounded(options):
    """``max_queued`` counts those that wait for a tool or a group, too; one more is sent away."""
    log = Log()
    tool = make(log.work, "few", **options)
    async with runtime(tool, make(log.work, "free"), max_queued=2) as rt:
        results = await ask_all(rt, *[(call("few", str(n)), None) for n in range(4)], (call("free", "f"), None))
        assert [OK] * 3 + [AWAY, OK] == [*map(summary, (results[name] for name in "0123f"))]
        assert results["3"].is_retryable
        async with anyio.create_task_group() as group:
            for name in "456":
                group.start_soon(rt.invoke, "few", {"name": name})
            await wait_all_tasks_blocked()
            with pytest.raises(OverloadedError, match=r"2 calls wait for their turn, .*\(max_queued\)"):
                await rt.call(tool, "7")
        assert_free(rt)
    assert not {"3", "7"} & set(log.spans)


async def test_a_stream_keeps_to_the_limit_of_a_tool():
    """A stream with room for four has four calls in hand, of which one runs, and answers them all."""
    log = Log()
    pulled: list[float] = []

    def source():
        for n in range(6):
            pulled.append(anyio.current_time())
            yield call("few", str(n))

    async with runtime(make(log.work, "few", max_running=1), max_running=4, max_queued=0) as rt:
        async with rt.stream(source()) as results:
            assert [*"012345"] == [result.value async for result in results]
        assert_free(rt)
    assert [0, 0, 0, 0, 1, 2] == pulled
    assert 1 == log.at_once("")


async def test_leaving_a_stream_leaves_the_queue():
    """Calls of a stream that wait for their tool when the block is left have never run, and wait no more."""
    log = Log()
    async with runtime(make(log.work, "few", max_running=1)) as rt:
        async with rt.stream([call("few", str(n)) for n in range(5)]) as results:
            assert "0" == (await anext(results)).value
        assert_free(rt)
    assert {"0": (0, 1)} == {name: span for name, span in log.spans.items() if span[0] < span[1]}


async def test_a_call_keeps_its_turn_between_its_attempts():
    """Nobody gets the tool, the group or the place of a call that waits for its next attempt."""
    runs: list[tuple[str, float]] = []

    async def flaky(name: str) -> None:
        runs.append((name, anyio.current_time()))
        await anyio.sleep(1)
        if [begun for begun, _ in runs].count(name) < 3:
            raise ConnectionError

    for options, limits in (({"max_running": 1}, {}), ({"exclusive": "g"}, {}), ({}, {"max_running": 1})):
        runs.clear()
        start = anyio.current_time()
        async with runtime(make(flaky, attempts=3, **options), **limits) as rt:
            results = await rt.invoke_many([ToolCall("", "flaky", {"name": name}) for name in "ab"])
        assert [3, 3] == [result.attempts for result in results]
        # Each takes three attempts of 1 s, with waits of 1 and 2 s between them.
        expected = [("a", 0), ("a", 2), ("a", 5), ("b", 6), ("b", 8), ("b", 11)]
        assert expected == [(name, begun - start) for name, begun in runs]


async def test_calls_that_are_refused_or_wrong_take_no_turn():
    """Bad arguments, missing scopes and denied calls are answered though the tool is busy."""
    log = Log()

    async def deny(*_: object) -> bool:
        return False

    tools = (
        make(log.work, "few", max_running=1),
        make(log.work, "denied", exclusive="g", approve=deny),
        make(log.work, "scoped", exclusive="g", scopes={"s"}),
    )
    async with runtime(*tools, max_queued=0) as rt, anyio.create_task_group() as group:
        group.start_soon(rt.invoke, "few", {"name": "a"})
        await wait_all_tasks_blocked()
        assert "validation" == (await rt.invoke("few", {"nome": "b"})).error.category
        assert "auth_failed" == (await rt.invoke("denied", {"name": "b"})).error.category
        nobody = Identity("tenant", "user", "session")
        assert "auth_failed" == (await rt.invoke("scoped", {"name": "b"}, identity=nobody)).error.category
        assert AWAY == summary(await rt.invoke("few", {"name": "c"}))
