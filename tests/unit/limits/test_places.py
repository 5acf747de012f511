"""Places and weights: who runs at once, and who waits for whom. Virtual time."""

from contextvars import ContextVar

import anyio
import pytest

from harbor_async import Limits, ToolCall
from harbor_async.errors import InvalidToolError
from harbor_async.testing import wait_all_tasks_blocked
from tests.unit.limits.support import OK, Log, ask_all, assert_free, call, make, runtime, summary

pytestmark = pytest.mark.virtual


async def test_two_heavy_calls_share_eight_places():
    """Of five calls of weight 4 two run at once in eight places, which takes three rounds (R072)."""
    log = Log()
    async with runtime(make(log.work, weight=4), max_running=8) as rt:
        results = await rt.invoke_many([call("work", str(n)) for n in range(5)])
        assert_free(rt)
    assert [OK] * 5 == [*map(summary, results)]
    assert [(0, 1), (0, 1), (1, 2), (1, 2), (2, 3)] == [*log.spans.values()]


async def test_light_calls_fill_what_a_heavy_one_leaves():
    """Beside one call of weight 4 in six places two light ones run, and a third waits."""
    log = Log()
    tools = make(log.work, "heavy", weight=4), make(log.work, "light")
    async with runtime(*tools, max_running=6) as rt:
        await rt.invoke_many([call("heavy", "h"), *[call("light", f"l{n}") for n in range(3)]])
    assert {"h": (0, 1), "l0": (0, 1), "l1": (0, 1), "l2": (1, 2)} == log.spans


async def test_a_heavy_call_is_not_starved_by_light_ones():
    """Light calls that come behind a heavy one wait until it has begun, though there is a place for each of them."""
    log = Log()
    tools = make(log.work, "heavy", weight=3), make(log.work, "light")
    async with runtime(*tools, max_running=3) as rt:
        lights = [(call("light", f"l{n}", 2), None) for n in range(10)]
        await ask_all(rt, lights[0], (call("heavy", "h"), None), *lights[1:], gap=0.5)
        assert_free(rt)
    assert (2, 3) == log.spans["h"]
    assert (3, 5) == log.spans["l1"]


@pytest.mark.parametrize("weight", [3, 4, 10**9])
async def test_a_weight_above_all_places_takes_all(weight):
    """A call that weighs more than there is runs by itself, and not never."""
    log = Log()
    tools = make(log.work, "heavy", weight=weight), make(log.work, "light")
    async with runtime(*tools, max_running=3) as rt:
        await rt.invoke_many([call("light", "a"), call("heavy", "h"), call("light", "b"), call("heavy", "i")])
        assert_free(rt)
    assert {"a": (0, 1), "h": (1, 2), "b": (2, 3), "i": (3, 4)} == log.spans


async def test_a_weight_is_nothing_without_a_limit():
    """In a runtime without ``max_running`` heavy calls run at once."""
    log = Log()
    async with runtime(make(log.work, weight=1000)) as rt:
        await rt.invoke_many([call("work", str(n)) for n in range(20)])
    assert {(0, 1)} == {*log.spans.values()}


async def test_the_order_stands_when_the_first_of_a_kind_gives_up():
    """A later call of a tool does not inherit the turn of an earlier one that was canceled."""
    log = Log()
    tools = make(log.work, "grouped", exclusive="g"), make(log.work, "plain")
    async with runtime(*tools, max_running=1) as rt, rt.batch() as batch:
        batch.start(call("plain", "first"))
        gives_up = batch.start(call("grouped", "a"))
        batch.start(call("plain", "b"))
        batch.start(call("grouped", "c"))
        await wait_all_tasks_blocked()
        gives_up.cancel()
    assert "first b c" == log.order


async def test_places_stay_in_use_while_a_heavy_call_waits_for_its_group():
    """A heavy call that was next, and whose group a nested call takes, no longer keeps light ones out."""
    log = Log()
    light = make(log.work, "light")
    grouped = make(log.work, "grouped", exclusive="g")
    heavy = make(log.work, "heavy", exclusive="g", weight=4)

    async def outer() -> None:
        await anyio.sleep(1)
        await rt.call(grouped, "nested", 5)

    async with runtime(light, grouped, heavy, make(outer), max_running=4) as rt:
        async with anyio.create_task_group() as group:
            group.start_soon(rt.invoke, "outer")
            await anyio.sleep(0.5)
            group.start_soon(rt.call, heavy, "heavy")  # waits for four places
            await anyio.sleep(0.25)
            group.start_soon(rt.call, light, "before")  # waits behind it
            await anyio.sleep(0.5)
            group.start_soon(rt.call, light, "after")
        assert_free(rt)
    assert {"nested": (1, 6), "before": (1, 2), "after": (1.25, 2.25), "heavy": (6, 7)} == log.spans


@pytest.mark.parametrize("value", [0, -1, 1.0, "1", True, None])
def test_a_weight_is_a_count(value):
    """Nonsense is refused where the tool is made, naming tool and option."""
    with pytest.raises(InvalidToolError, match=r"tool 'work': weight: expected an int of at least 1"):
        make(Log().work, weight=value)


@pytest.mark.parametrize("value", [0, -1, 1.0, "1", True])
def test_limits_are_counts(value):
    """Nonsense is refused where it is written, and None means none."""
    with pytest.raises(InvalidToolError, match=r"tool 'work': max_running: expected an int of at least 1"):
        make(Log().work, max_running=value)
    with pytest.raises(InvalidToolError, match=r"Limits\.max_running_per_tenant: expected an int of at least 1"):
        Limits(max_running_per_tenant=value)
    assert make(Log().work, max_running=None).max_running is None


async def test_waiting_calls_of_a_batch_share_a_task():
    """Of 500 calls the three that run have a task each, and the 497 that wait have one together."""
    log = Log()
    async with runtime(make(log.work), max_running=3) as rt:
        before = len(anyio.get_running_tasks())
        async with rt.batch() as batch:
            batch.start_all([call("work", str(n), 1.0) for n in range(500)])
            await wait_all_tasks_blocked()
            assert 3 + 1 == len(anyio.get_running_tasks()) - before
            assert (3, 497) == (rt.statistics().running, rt.statistics().queued)
        assert [OK] * 500 == [*map(summary, batch.results)]
        assert_free(rt)
    assert (166, 167) == log.spans["499"]


async def test_a_call_whose_turn_comes_keeps_the_context_of_its_batch():
    """A call that starts in another batch's place sees the context variables with which its own batch began it."""
    who = ContextVar("who", default="nobody")

    async def tell() -> str:
        await anyio.sleep(1)
        return who.get()

    async def ask(name: str, told: list[str]) -> None:
        who.set(name)
        told += [result.value for result in await rt.invoke_many([ToolCall("", "tell", "")] * 2)]

    ann: list[str] = []
    ben: list[str] = []
    async with runtime(make(tell), max_running=1) as rt, anyio.create_task_group() as group:
        group.start_soon(ask, "ann", ann)
        group.start_soon(ask, "ben", ben)
    assert ["ann", "ann"] == ann
    assert ["ben", "ben"] == ben
