"""Tools that do what a script says, and tools round whose runs things go wrong."""

import asyncio
import math
from random import Random

import anyio
import attrs
import pytest

from harbor_async import (
    Backoff,
    Catalog,
    EventType,
    Limits,
    Runtime,
    ToolCall,
    ToolContext,
    ToolError,
    ToolPolicy,
    describe,
)
from harbor_async.errors import InvalidToolError
from harbor_async.testing import HANG, Fault, RecordingSink, ScriptedRandom, chance, inject, scripted_tool
from tests.unit.anatomy import anatomy, changes

AT_ONCE = ToolPolicy(timeout=10.0, attempts=4, wait=Backoff(initial=0))
pytestmark = pytest.mark.virtual


def make(runs=None, **options):
    """Return a tool that notes its runs and takes a second."""
    runs = [] if runs is None else runs

    async def work(context: ToolContext, x: int = 0) -> str:
        runs.append((context.attempt, x))
        await anyio.sleep(1.0)
        return "done"

    return describe(work, **{"policy": AT_ONCE, **options})


async def invoke(tool, arguments="", **options):
    async with Runtime(Catalog([tool])) as runtime:
        return await runtime.invoke(tool.name, arguments, **options)


def summary(result):
    return result.outcome, result.error and result.error.category, result.attempts


# --- scripts ----------------------------------------------------------------------------------------------------------


async def test_a_scripted_tool_does_one_item_an_attempt():
    """Each call begins with the first item; exceptions are raised, from a class or as they are; values are returned."""
    tool = scripted_tool("flaky", [ConnectionResetError, ToolError("later", category="rate_limited"), {"a": 1}])
    for _ in range(2):
        result = await invoke(tool)
        assert ("succeeded", None, 3) == summary(result)
        assert {"a": 1} == result.value


async def test_the_last_item_counts_for_all_that_follow():
    """A script of one failure is a tool that is down."""
    result = await invoke(scripted_tool("down", [ConnectionRefusedError], policy=AT_ONCE))
    assert ("failed", "api_request", 4) == summary(result)


async def test_an_iterator_is_used_up_over_the_calls():
    """Each run takes the next item, whatever call it belongs to, and after the end it fails for good."""
    tool = scripted_tool("search", iter(["one", ConnectionResetError(), "two"]), policy=AT_ONCE)
    assert "one" == (await invoke(tool)).value
    assert ("two", 2) == ((second := await invoke(tool)).value, second.attempts)
    third = await invoke(tool)
    assert ("failed", "unknown", 1) == summary(third)
    assert "the script of tool 'search' has ended" in third.error.message


async def test_a_scripted_tool_takes_any_object():
    """Any arguments are taken, but nothing that is no JSON object; a program may pass what it likes."""
    tool = scripted_tool("any", ["done"])
    for arguments in ("", "null", b" ", {}, {"x": [1]}, '{"x": {"y": 1}}', None):
        assert "succeeded" == (await invoke(tool, arguments)).outcome
    for arguments in ("[]", '"x"', '{"x": 1', b"\xff", "\ud800", 5, '{"x": ' + "[" * 99 + "]" * 99 + "}"):
        assert ("failed", "validation", 0) == summary(await invoke(tool, arguments))
    async with Runtime(Catalog([tool]), limits=Limits(max_arguments_bytes=8)) as runtime:
        results = [await runtime.invoke("any", text) for text in ('{"x": 1}', '{"x": 11}', '{"é": 1}')]
    assert ["succeeded", "failed", "failed"] == [result.outcome for result in results]
    assert {"type": "object"} == tool.tool.args_schema
    async with Runtime(Catalog([tool])) as runtime:
        assert "done" == await runtime.call(tool, 1, x=2)


async def test_a_scripted_tool_has_the_options_of_any():
    """Options are those of ``describe``: an effect that is declared is not repeated."""
    tool = scripted_tool("send", [ConnectionResetError], side_effect="external", policy=AT_ONCE)
    result = await invoke(tool)
    assert ("failed", "api_request", 1) == summary(result)
    assert result.error.ambiguous


@pytest.mark.parametrize("script", [[], (), "found", b"found"], ids=["list", "tuple", "str", "bytes"])
def test_what_is_no_script_is_refused(script):
    """A script is a list that is not empty; text, which would fall into its letters, is none."""
    with pytest.raises(InvalidToolError, match="expected a script"):
        scripted_tool("search", script)


# --- faults -----------------------------------------------------------------------------------------------------------


async def test_an_injected_tool_is_the_tool_in_everything_else():
    """Name, schemas, policy and limits stay, arguments are checked, and the bare function is not disturbed."""
    runs = []
    tool = make(runs, tags=["x"], max_running=2, exclusive="group", scopes=["s"])
    disturbed = inject(tool, [ConnectionResetError])
    assert tool.tool is disturbed.tool
    parts = ("name", "policy", "max_running", "group", "schema", "function", "is_sync", "is_limited")
    assert [getattr(tool, part) for part in parts] == [getattr(disturbed, part) for part in parts]
    assert ("failed", "validation", 0) == summary(await invoke(disturbed, {"x": "1"}))
    assert "done" == await disturbed(ToolContext("", "work", 1, math.inf))
    assert [(1, 0)] == runs


async def test_faults_come_one_an_attempt_and_then_none():
    """The first attempts of each call go wrong, and the tool is run with its arguments in those that do not."""
    runs = []
    tool = inject(make(runs), [ConnectionResetError, None, ToolError("busy", error_class="transient")])
    result = await invoke(tool, {"x": 7})
    assert ("succeeded", None, 2) == summary(result)
    assert [(2, 7)] == runs
    assert 1.0 == result.elapsed


async def test_a_fault_may_come_after_the_effect():
    """An error ``after`` finds the tool run: the answer is lost, and the effect has happened."""
    runs = []
    tool = inject(make(runs), [Fault(error=ConnectionResetError, after=True)])
    assert ("succeeded", None, 2) == summary(await invoke(tool))
    assert [(1, 0), (2, 0)] == runs


async def test_a_hang_ends_with_its_timeout():
    """A hang holds the attempt until its timeout, and the tool is not run in it."""
    runs = []
    result = await invoke(inject(make(runs), [HANG]))
    assert ("succeeded", None, 2) == summary(result)
    assert [(2, 0)] == runs
    assert 11.0 == result.elapsed


async def test_a_delay_goes_before_or_after_the_tool():
    """A slow attempt takes its delay and the tool's own time, and another value may be given in place of its own."""
    before = await invoke(inject(make(), [Fault(delay=3.0)]))
    after = await invoke(inject(make(), [Fault(delay=3.0, after=True)]))
    other = await invoke(inject(make(), [Fault(delay=3.0, value="other")]))
    late = await invoke(inject(make(), [Fault(delay=3.0, value="other", after=True)]))
    assert [("done", 4.0), ("done", 4.0), ("other", 3.0), ("other", 4.0)] == [
        (result.value, result.elapsed) for result in (before, after, other, late)
    ]


async def test_a_value_that_does_not_fit_is_an_invalid_output():
    """A value in place of the tool's own is checked as that would be."""
    result = await invoke(inject(make(), [Fault(value=5)]))
    assert ("failed", "unknown", 1, "invalid") == (*summary(result), result.stop_reason)


async def test_a_swallowed_cancel_lets_the_delay_pass():
    """An attempt that swallows its timeout goes on to the end of its delay and of the tool; the value comes late."""
    runs = []
    policy = ToolPolicy(timeout=2.0, attempts=1)
    result = await invoke(inject(make(runs, policy=policy), [Fault(delay=5.0, swallow=True)]))
    assert ("failed", "timeout", 1) == summary(result)
    assert 6.0 == result.elapsed
    assert [(1, 0)] == runs
    written = await invoke(inject(make(policy=policy, side_effect="write"), [Fault(delay=5.0, swallow=True)]))
    assert ("done", True) == (written.value, written.late)


async def test_a_swallowed_cancel_may_become_an_error():
    """A cancel that a tool turns into an error is a timeout whose cause is that error."""
    tool = inject(make(), [Fault(delay=15.0, swallow=True, error=ValueError("odd"))])
    result = await invoke(tool, timeout=12.0)
    assert ("timed_out", "timeout", 1) == summary(result)
    assert isinstance(result.error.cause, ValueError)


async def test_a_swallowed_cancel_is_told_of():
    """A runtime tells its sinks of a tool that goes on after its cancel: ``tool.cancel_ignored``."""
    sink = RecordingSink()
    tool = inject(make(), [Fault(delay=15.0, swallow=True)])
    async with Runtime(Catalog([tool]), sinks=[sink]) as runtime:
        await runtime.invoke(tool.name, timeout=2.0)
    assert 1 == len(sink.select(EventType.CANCEL_IGNORED))


async def test_a_task_that_is_canceled_leaves_in_the_end():
    """A caller's own cancel that the tool swallows still leaves once the tool has ended."""
    tool = inject(make(), [Fault(delay=5.0, swallow=True)])
    with anyio.move_on_after(2.0) as scope:
        await invoke(tool)
    assert scope.cancelled_caught
    assert 6.0 == anyio.current_time()
    if anyio.get_cancelled_exc_class() is asyncio.CancelledError:
        task = asyncio.ensure_future(invoke(tool))
        await anyio.sleep(1.0)
        for _ in range(5):  # each is swallowed
            task.cancel()
            await anyio.sleep(0.1)
        await asyncio.wait([task])
        assert task.cancelled()
        assert 12.0 == pytest.approx(anyio.current_time())


@pytest.mark.virtual(grace=0.05)
async def test_a_plain_function_is_disturbed_in_the_loop():
    """What goes wrong round a plain function waits in the event loop; its thread runs when it is its turn."""
    runs = []

    def work() -> str:
        runs.append(1)
        return "done"

    tool = inject(describe(work, policy=AT_ONCE), [ConnectionResetError, HANG, Fault(delay=2.0, after=True)])
    result = await invoke(tool)
    assert ("succeeded", None, 3) == summary(result)
    assert [1] == runs
    assert not (result.error and result.error.background)
    assert 12.0 <= result.elapsed < 12.5


async def test_faults_may_be_injected_twice():
    """A disturbed tool is a tool, and can be disturbed again: the outer fault comes first."""
    tool = inject(inject(make(), [None, ConnectionResetError]), [ConnectionRefusedError])
    assert ("succeeded", None, 3) == summary(await invoke(tool))


async def test_a_list_keeps_the_tool_without_state():
    """With a list a disturbed tool is as stateless as any other: calls at once get the same, and nothing changes."""
    tool = inject(scripted_tool("work", [ConnectionRefusedError, "done"], policy=AT_ONCE), [ConnectionResetError])
    before = anatomy(tool)
    async with Runtime(Catalog([tool])) as runtime:
        results = await runtime.invoke_many([ToolCall(str(number), "work") for number in range(50)])
    assert {("done", 2)} == {(result.value, result.attempts) for result in results}
    assert [] == changes(before, anatomy(tool))


async def test_a_running_catalog_is_disturbed_in_place():
    """Put into the place of its tool, a disturbed one serves the next call."""
    tool = make()
    catalog = Catalog([tool])
    async with Runtime(catalog) as runtime:
        assert 1 == (await runtime.invoke("work")).attempts
        catalog.replace([inject(tool, [ConnectionResetError])])
        assert 2 == (await runtime.invoke("work")).attempts


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delay": -1.0}, "seconds"),
        ({"delay": math.nan}, "seconds"),
        ({"delay": True}, "seconds"),
        ({"delay": "1"}, "seconds"),
        ({"error": "timeout"}, "expected an exception"),
        ({"error": int}, "expected an exception"),
        ({"error": ValueError, "value": 1}, "not both"),
        ({"delay": math.inf, "swallow": True}, "never end"),
    ],
    ids=str,
)
def test_a_fault_that_makes_no_sense_is_refused(options, message):
    """A delay is a number of seconds ≥ 0, an error an exception; a hang that swallows its cancel would never end."""
    with pytest.raises(InvalidToolError, match=message):
        Fault(**options)


def test_what_cannot_be_injected_is_refused():
    """Faults go round a tool, and are faults, exceptions, classes of them or None."""
    with pytest.raises(InvalidToolError, match="got function"):
        inject(make().function, [HANG])
    for wrong in ("timeout", 5, int):
        with pytest.raises(InvalidToolError, match="expected a Fault"):
            inject(make(), [wrong])


# --- chance -----------------------------------------------------------------------------------------------------------


async def test_chance_goes_by_its_random_source():
    """Each run draws one number: below the first share the first fault, then the second, and nothing above both."""
    drawn = ScriptedRandom([0.0, 0.09, 0.11, 0.29, 0.31, 0.99])
    faults = chance(drawn, (0.1, ValueError("first")), (0.2, KeyError("second")))
    tool = inject(make(policy=ToolPolicy(attempts=1)), faults)
    results = [await invoke(tool) for _ in range(6)]
    assert ["first"] * 2 == [result.error.message for result in results[:2]]
    assert [True] * 2 == ["second" in result.error.message for result in results[2:4]]
    assert ["done"] * 2 == [result.value for result in results[4:]]
    assert 6 == drawn.used


async def test_chance_repeats_with_its_seed():
    """The same seed makes the same calls fail; about a tenth of them, with a tenth as the share."""

    async def fail(seed):
        tool = inject(
            scripted_tool("x", ["ok"], policy=ToolPolicy(attempts=1)), chance(Random(seed).random, (0.1, OSError))
        )
        async with Runtime(Catalog([tool])) as runtime:
            return [(await runtime.invoke("x")).outcome == "failed" for _ in range(500)]

    first = await fail(7)
    assert first == await fail(7)
    assert first != await fail(8)
    assert 25 <= sum(first) <= 80  # five standard deviations round 50


@pytest.mark.parametrize("share", [-0.1, 1.1, math.nan])
def test_a_share_is_a_probability(share):
    """A share is from 0 to 1, and all of them together at most 1."""
    with pytest.raises(InvalidToolError, match="probabilities"):
        chance(Random(1).random, (share, HANG))
    with pytest.raises(InvalidToolError, match="probabilities"):
        chance(Random(1).random, (0.6, HANG), (0.6, None))
    with pytest.raises(InvalidToolError, match="expected a Fault"):
        chance(Random(1).random, (0.5, "x"))


def test_a_fault_is_a_frozen_value():
    """Two faults with the same fields are equal, and none can be changed."""
    assert Fault(delay=math.inf) == HANG
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        HANG.delay = 0.0
