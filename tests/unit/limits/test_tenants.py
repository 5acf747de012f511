"""Tenants: how many calls of each run, and whose turn is next. Virtual time."""

import anyio
import pytest

from harbor_async import Identity
from tests.unit.limits.support import OK, Log, X, Y, Z, ask_all, assert_free, call, make, runtime, summary

pytestmark = pytest.mark.virtual


async def test_a_tenant_runs_no_more_than_it_may():
    """Each tenant has two calls running, whatever they are; calls of nobody are not counted."""
    log = Log()
    tools = make(log.work, "a"), make(log.work, "b", weight=3)
    async with runtime(*tools, max_running_per_tenant=2) as rt:
        asked = [(call("ab"[n % 2], f"{who.tenant if who else '-'}{n}"), who) for who in (X, Y, None) for n in range(4)]
        results = await ask_all(rt, *asked)
        assert_free(rt)
    assert [OK] * 12 == [*map(summary, results.values())]
    assert (2, 2, 4) == (log.at_once("x"), log.at_once("y"), log.at_once("-"))
    assert {(0, 1), (1, 2)} == {span for name, span in log.spans.items() if name[0] in "xy"}


async def test_a_tenant_is_told_by_its_name():
    """Users and sessions of one tenant share its limit."""
    log = Log()
    who = [Identity("t", user, session) for user in "ab" for session in "cd"]
    async with runtime(make(log.work), max_running_per_tenant=1) as rt:
        await ask_all(rt, *[(call("work", str(n)), one) for n, one in enumerate(who)])
    assert (1, 4) == (log.at_once(""), anyio.current_time())


async def test_a_tenant_that_has_enough_lets_others_pass():
    """Calls that wait for their tenant's limit keep no place and hold up no other tenant."""
    log = Log()
    async with runtime(make(log.work), max_running=3, max_running_per_tenant=2) as rt:
        mine = [(call("work", f"x{n}"), X) for n in range(6)]
        await ask_all(rt, *mine, (call("work", "y0"), Y), (call("work", "y1"), Y))
        assert_free(rt)
    assert (2, 1) == (log.at_once("x"), log.at_once("y"))
    assert {"y0": (0, 1), "y1": (1, 2)} == {name: span for name, span in log.spans.items() if name[0] == "y"}


BOTTLENECKS = {
    "places": ({}, {"max_running": 1}),
    "tool": ({"max_running": 1}, {}),
    "group": ({"exclusive": "g"}, {}),
    "group by function": ({"exclusive": lambda name, *_: "g"}, {}),
    "tool, each in a group of its own": ({"max_running": 1, "exclusive": lambda name, *_: name}, {}),
    "tool and places": ({"max_running": 1}, {"max_running": 1}),
    "all": ({"max_running": 1, "exclusive": "g", "weight": 2}, {"max_running": 3, "max_running_per_tenant": 1}),
}
each_bottleneck = pytest.mark.parametrize(("options", "limits"), BOTTLENECKS.values(), ids=BOTTLENECKS)


@pytest.mark.parametrize("name", BOTTLENECKS)
async def test_a_thousand_calls_of_one_tenant_do_not_hold_up_another(name):
    """Whatever is scarce, one call of another tenant waits for the call that runs and for one turn of the first."""
    log, (options, limits) = Log(), BOTTLENECKS[name]
    count = 1_000 if name == "tool" else 50
    async with runtime(make(log.work, **options), **limits) as rt:
        asked = [(call("work", f"x{n}"), X) for n in range(count)]
        await ask_all(rt, *asked, (call("work", "y"), Y))
        assert_free(rt)
    assert log.spans["y"] in {(1, 2), (2, 3)}
    assert count + 1 == anyio.current_time()


@each_bottleneck
async def test_turns_go_round_the_tenants(options, limits):
    """Three tenants, and those without one, take turns; within each the order of the calls is kept."""
    log = Log()
    who = {"x": X, "y": Y, "z": Z, "-": None}
    async with runtime(make(log.work, **options), **limits) as rt:
        asked = [(call("work", f"{name}{n}"), one) for name, one in who.items() for n in range(5)]
        await ask_all(rt, *asked)
        assert_free(rt)
    order = log.order.split()
    for name in who:
        assert [f"{name}{n}" for n in range(5)] == [one for one in order if one[0] == name]
    # The first call of x had its turn before the others came; from then on nobody has a second one in a round.
    rounds = [order[number : number + 4] for number in range(1, 17, 4)]
    assert [{*who}] * 4 == [{name[0] for name in one} for one in rounds]


async def test_the_first_in_a_group_does_not_hide_another_tenant_behind_its_own():
    """Where a group comes free for a call far back in its tenant's queue, another tenant's call of it does not wait."""
    log = Log()
    tools = make(log.work, "grouped", exclusive="g"), make(log.work, "plain")
    async with runtime(*tools, max_running=1) as rt:
        asked = [
            (call("grouped", "holder"), Z),
            *[(call("plain", f"x{n}"), X) for n in range(50)],
            (call("grouped", "x-grouped"), X),
            (call("grouped", "y"), Y),
        ]
        await ask_all(rt, *asked)
        assert_free(rt)
    assert log.spans["y"][0] <= 3


async def test_a_tenant_that_comes_later_has_its_turn_as_well():
    """Of tenants that come while others wait each gets a turn before any has two more."""
    log = Log()
    async with runtime(make(log.work, max_running=1)) as rt, anyio.create_task_group() as group:
        group.start_soon(ask_all, rt, *[(call("work", f"x{n}"), X) for n in range(100)])
        await anyio.sleep(3.5)
        group.start_soon(ask_all, rt, *[(call("work", f"y{n}"), Y) for n in range(3)])
        await anyio.sleep(3)
        group.start_soon(ask_all, rt, *[(call("work", f"z{n}"), Z) for n in range(3)])
    order = log.order.split()
    assert order.index("y0") <= 5
    assert order.index("z0") <= 9


async def test_a_nested_call_uses_the_turn_of_its_caller_for_every_tenant():
    """A call on behalf of another tenant, made from within one that runs, needs none of that tenant's turns."""
    log = Log()
    inner = make(log.work, "inner")

    async def outer() -> str:
        return (await rt.invoke("inner", {"name": "nested"}, identity=Y)).outcome

    async with runtime(inner, make(outer), max_running_per_tenant=1) as rt, anyio.create_task_group() as group:
        group.start_soon(ask_all, rt, (call("inner", "y", 5), Y))
        await anyio.sleep(1)
        assert "succeeded" == (await rt.invoke("outer", identity=X)).value
        assert 2 == anyio.current_time()


async def test_calls_that_give_up_take_no_turn():
    """Calls that are canceled while they wait take no turn of their tenant's."""
    log = Log()
    async with runtime(make(log.work, max_running=1)) as rt:
        async with anyio.create_task_group() as group:
            group.start_soon(ask_all, rt, *[(call("work", f"x{n}"), X) for n in range(3)])
            await anyio.sleep(0.25)
            with anyio.move_on_after(0.5):
                await ask_all(rt, *[(call("work", f"y{n}"), Y) for n in range(20)])
            group.start_soon(ask_all, rt, (call("work", "y"), Y))
        assert_free(rt)
    assert log.spans["y"] in {(1, 2), (2, 3)}
    assert 4 == anyio.current_time()
