"""The events of a call, for each way in which it can end and each way of asking for it. Virtual time."""

import asyncio
from typing import Any

import anyio
import attrs
import pytest

from harbor_async import (
    Identity,
    Join,
    ToolCall,
    ToolDescriptor,
    ToolError,
    ToolEvent,
    ToolResult,
)
from harbor_async.errors import InvalidArgumentsError, OverloadedError
from harbor_async.testing import block, wait_all_tasks_blocked
from tests.cancellation.ways import steal_cancellation
from tests.unit.events.support import WAYS, Recorder, check, last, listen, make

pytestmark = pytest.mark.virtual
each_way = pytest.mark.parametrize("ask", WAYS, ids=lambda way: way.__name__)
TIMEOUT = ("failed", "timeout", "timeout")


async def quick() -> str:
    return "v"


async def works() -> str:
    await anyio.sleep(0.25)
    return "v"


async def slow() -> None:
    await anyio.sleep(9)


async def slow_to_stop() -> str:
    with anyio.CancelScope(shield=True):
        await anyio.sleep(1.5)
    return "late"


async def blocks() -> str:
    block(1.5)
    return "late"


async def flaky() -> str:
    flaky_runs.append(1)
    if len(flaky_runs) % 2:
        raise ConnectionError("reset")
    return "v"


flaky_runs: list[int] = []


async def wrong() -> None:
    raise ValueError("no")


async def refuses() -> None:
    raise InvalidArgumentsError([])


async def names_a_category() -> None:
    raise ToolError("no", category="conflict")


async def own_timeout() -> None:
    raise TimeoutError


async def closes() -> None:
    raise GeneratorExit


async def is_canceled() -> None:
    raise await steal_cancellation()


async def two_errors() -> None:
    raise ExceptionGroup("", [ValueError(), ConnectionError()])


async def one_error_in_groups() -> None:
    raise ExceptionGroup("", [ExceptionGroup("", [ConnectionError()])])


async def turns_its_end_into_an_error() -> None:
    try:
        await anyio.sleep(9)
    except anyio.get_cancelled_exc_class():
        raise ValueError("stopped") from None


async def returns_all_the_same() -> str:
    try:
        await anyio.sleep(9)
    except anyio.get_cancelled_exc_class():
        return "all the same"
    return "v"


async def takes(n: int) -> int:
    return n


async def promises() -> int:
    return "no int"  # type: ignore[return-value]


async def no(*_: object) -> bool:
    return False


def thread() -> str:
    return "v"


@attrs.frozen
class End:
    """One way in which a call ends.

    Attributes:
        tool: What is called.
        told: Type and attempts of each event.
        last: Outcome, category, class and reason of the last one.
        options: Of the call.
        waits: Those of its retries.
    """

    tool: ToolDescriptor[..., Any]
    told: list[str]
    last: tuple[Any, ...]
    options: dict[str, Any] = attrs.field(factory=dict)
    waits: tuple[float, ...] = ()
    category: tuple[str, str] | None = None


OK = ("succeeded", None, None, None)
THREE = ["invoked 0", "attempt 1", "retry 1", "attempt 2", "retry 2", "attempt 3", "policy_exhausted 3"]
ENDS = {
    "a value at once": End(make(quick), ["invoked 0", "attempt 1", "completed 1"], OK),
    "a value": End(make(works), ["invoked 0", "attempt 1", "completed 1"], OK),
    "a value in time": End(make(works), ["invoked 0", "attempt 1", "completed 1"], OK, {"timeout": 5}),
    "timeouts": End(make(slow), THREE, (*TIMEOUT, "attempts"), {}, (0.5, 1), ("timeout", "timeout")),
    "a timeout of the tool's": End(
        make(own_timeout), THREE, (*TIMEOUT, "attempts"), {}, (0.5, 1), ("timeout", "timeout")
    ),
    "late values": End(make(slow_to_stop), THREE, (*TIMEOUT, "attempts"), {}, (0.5, 1), ("timeout", "timeout")),
    "a blocked loop": End(make(blocks, attempts=1), [*THREE[:2], "policy_exhausted 1"], (*TIMEOUT, "attempts")),
    "a timeout of an effect": End(
        make(slow, side_effect="write"), ["invoked 0", "attempt 1", "failed 1"], (*TIMEOUT, "unsafe")
    ),
    "the deadline in an attempt": End(
        make(slow), ["invoked 0", "attempt 1", "failed 1"], ("timed_out", *TIMEOUT[1:], "deadline"), {"timeout": 0.25}
    ),
    "the deadline in the second attempt": End(
        make(slow),
        ["invoked 0", "attempt 1", "retry 1", "attempt 2", "failed 2"],
        ("timed_out", *TIMEOUT[1:], "deadline"),
        {"timeout": 2},
        (0.5,),
        ("timeout", "timeout"),
    ),
    "the deadline before a retry": End(
        make(slow), ["invoked 0", "attempt 1", "failed 1"], (*TIMEOUT, "deadline"), {"timeout": 1.25}
    ),
    "no time at all": End(
        make(quick), ["invoked 0", "failed 0"], ("timed_out", *TIMEOUT[1:], "deadline"), {"timeout": 0}
    ),
    "a permanent error": End(
        make(wrong), ["invoked 0", "attempt 1", "failed 1"], ("failed", "unknown", "permanent", "permanent")
    ),
    "an error with a category": End(
        make(names_a_category),
        ["invoked 0", "attempt 1", "failed 1"],
        ("failed", "conflict", "permanent", "permanent"),
    ),
    "errors of two kinds": End(
        make(two_errors), ["invoked 0", "attempt 1", "failed 1"], ("failed", "unknown", "permanent", "permanent")
    ),
    "one error in groups": End(
        make(one_error_in_groups, attempts=1),
        ["invoked 0", "attempt 1", "policy_exhausted 1"],
        ("failed", "api_request", "transient", "attempts"),
    ),
    "an end turned into an error": End(
        make(turns_its_end_into_an_error), THREE, (*TIMEOUT, "attempts"), {}, (0.5, 1), ("timeout", "timeout")
    ),
    "an end that is swallowed": End(
        make(returns_all_the_same), THREE, (*TIMEOUT, "attempts"), {}, (0.5, 1), ("timeout", "timeout")
    ),
    "one try": End(
        make(flaky, attempts=1),
        ["invoked 0", "attempt 1", "policy_exhausted 1"],
        ("failed", "api_request", "transient", "attempts"),
    ),
    "a second try": End(
        make(flaky),
        ["invoked 0", "attempt 1", "retry 1", "attempt 2", "completed 2"],
        OK,
        {},
        (0.5,),
        ("api_request", "transient"),
    ),
    "arguments of the tool's refusal": End(
        make(refuses), ["invoked 0", "attempt 1", "invalid_args 1"], ("failed", "validation", "permanent", "permanent")
    ),
    "a result that breaks its promise": End(
        make(promises), ["invoked 0", "attempt 1", "failed 1"], ("failed", "unknown", "permanent", "invalid")
    ),
    "wrong arguments": End(
        make(takes), ["invoked 0", "invalid_args 0"], ("failed", "validation", "permanent", "invalid")
    ),
    "missing scopes": End(
        make(quick, scopes={"s"}),
        ["invoked 0", "rejected 0"],
        ("rejected", "auth_failed", "permanent", "rejected"),
        {"identity": Identity("t", "u", "s")},
    ),
    "no approval": End(
        make(quick, approve=no), ["invoked 0", "rejected 0"], ("rejected", "auth_failed", "permanent", "rejected")
    ),
    "a foreign cancellation": End(
        make(is_canceled), ["invoked 0", "attempt 1", "canceled 1"], ("failed", "canceled", "permanent", "canceled")
    ),
    "a generator's exit": End(
        make(closes), ["invoked 0", "attempt 1", "failed 1"], ("failed", "unknown", "permanent", "permanent")
    ),
    "a turn": End(make(works, max_running=1, exclusive="g"), ["invoked 0", "attempt 1", "completed 1"], OK),
}


@each_way
@pytest.mark.parametrize("name", ENDS)
async def test_each_end_has_its_events(ask, name):
    """First ``tool.invoked``, then each attempt and each retry, at last one event that says how it has ended."""
    end = ENDS[name]
    flaky_runs.clear()
    sink = Recorder()
    who = end.options.get("identity")
    async with listen(end.tool, sinks=[sink]) as rt:
        await ask(rt, end.tool.name, **end.options)
    assert end.told == sink.told()
    (events,) = sink.calls().values()
    assert end.last == last(events[-1])[1:]
    retries = [event for event in events if event.type == "tool.retry"]
    assert [*end.waits] == [event.wait for event in retries]
    assert [end.category] * len(retries) == [(event.category, event.error_class) for event in retries]
    assert {("c", end.tool.name, "inprocess", who)} == {
        (event.call_id, event.tool, event.transport, event.identity) for event in events
    }


@each_way
@pytest.mark.virtual(grace=0.05)
async def test_a_thread_has_the_same_events(ask):
    """A synchronous tool is told of as any other."""
    sink = Recorder()
    async with listen(make(thread), sinks=[sink]) as rt:
        await ask(rt, "thread")
    assert ["invoked 0", "attempt 1", "completed 1"] == sink.told()
    check(sink.events)


@each_way
async def test_times_are_those_of_the_loop(ask):
    """Each event says when it was, and how long after the call's beginning."""
    sink = Recorder()
    async with listen(make(slow), sinks=[sink]) as rt:
        await anyio.sleep(2)
        await ask(rt, "slow")
    assert [2, 2, 3, 3.5, 4.5, 5.5, 6.5] == [event.time for event in sink.events]
    assert [0, 0, 1, 1.5, 2.5, 3.5, 4.5] == [event.elapsed for event in sink.events]


@each_way
async def test_an_effect_that_came_late_is_told_as_such(ask):
    """A declared effect that ended after its timeout has happened: completed, and late."""
    sink = Recorder()
    async with listen(make(slow_to_stop, side_effect="write"), sinks=[sink]) as rt:
        await ask(rt, "slow_to_stop")
    assert ["invoked 0", "attempt 1", "completed 1"] == sink.told()
    assert [False, False, True] == [event.late for event in sink.events]


@each_way
async def test_an_unknown_tool_has_two_events(ask):
    """What was asked for is told, cut to a sane length, and that it is not there."""
    sink = Recorder()
    async with listen(make(quick), sinks=[sink]) as rt:
        await ask(rt, "x" * 5_000)
    assert ["invoked 0", "failed 0"] == sink.told()
    assert ("failed", "failed", "not_found", "permanent", "invalid") == last(sink.events[-1])
    assert {"x" * 2000 + "… (3000 more characters)"} == {event.tool for event in sink.events}


@pytest.mark.parametrize("name", [5, None, ["a"], {"a": 1}, "\ud800"])
async def test_a_name_that_is_none_is_told_too(name):
    """What is no text, or cannot be written, is answered and told as unknown."""
    sink = Recorder()
    async with listen(make(quick), sinks=[sink]) as rt:
        assert "not_found" == (await rt.invoke(name)).error.category
    assert ["invoked 0", "failed 0"] == sink.told()
    for event in sink.events:
        event.tool.encode()


@pytest.mark.parametrize("at", [0, 0.5, 1.25, 2.0])
@pytest.mark.parametrize("by", ["handle", "batch"])
async def test_a_call_that_is_canceled_by_hand(at, by):
    """Canceled before it ran, in an attempt, in the wait after it and in the next: told at once, in full."""
    sink = Recorder()
    async with listen(make(slow), sinks=[sink]) as rt, rt.batch() as started:
        handle = started.start(ToolCall("c", "slow"))
        if at:
            await anyio.sleep(at)
        (handle if by == "handle" else started).cancel()
        await handle.result()
        await wait_all_tasks_blocked()
        if at == 0 and len(sink.told()) > 2:
            return  # an eager task has begun before it could be canceled
        told = {0: 0, 0.5: 1, 1.25: 1, 2.0: 2}[at]
        before = ["invoked 0", "attempt 1", "retry 1", "attempt 2"][: {0: 1, 0.5: 2, 1.25: 3, 2.0: 4}[at]]
        assert [*before, f"canceled {told}"] == sink.told()
        assert ("canceled", "failed", "canceled", "permanent", "canceled") == last(sink.events[-1])
        assert at == sink.events[-1].time
        check(sink.events)


@pytest.mark.parametrize("function", [returns_all_the_same, turns_its_end_into_an_error, slow_to_stop])
@pytest.mark.parametrize("effect", [None, "write"])
async def test_a_value_that_comes_after_the_handle_was_canceled(function, effect):
    """It is dropped and told as canceled, but for a declared effect that has happened: completed, and late."""
    sink = Recorder()
    options = {} if effect is None else {"side_effect": effect}
    async with listen(make(function, **options), sinks=[sink]) as rt, rt.batch() as started:
        handle = started.start(ToolCall("c", function.__name__))
        await anyio.sleep(0.5)
        handle.cancel()
    check(sink.events)
    is_late = effect is not None and function is not turns_its_end_into_an_error
    assert ["invoked 0", "attempt 1", "completed 1" if is_late else "canceled 1"] == sink.told()
    assert is_late == sink.events[-1].late


@each_way
@pytest.mark.parametrize("at", [0.5, 1.25])
async def test_a_task_that_is_canceled_natively_is_told_of(ask, at):
    """On asyncio ``task.cancel()`` of the caller is told as any other end of it."""
    if anyio.get_cancelled_exc_class() is not asyncio.CancelledError:
        pytest.skip("trio has no cancellation without a scope")
    sink = Recorder()
    async with listen(make(slow), sinks=[sink]) as rt:
        task = asyncio.create_task(ask(rt, "slow"))
        await anyio.sleep(at)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
    check(sink.events)
    before = ["invoked 0", "attempt 1", "retry 1"][: 2 if at == 0.5 else 3]
    assert [*before, "canceled 1"] == sink.told()


@each_way
@pytest.mark.parametrize("at", [0, 0.5, 1.25, 2.0])
async def test_a_caller_that_is_canceled_is_told_of(ask, at):
    """There is no answer, and one last event that says so, at once, though the caller is gone."""
    sink = Recorder()
    async with listen(make(slow), sinks=[sink]) as rt:
        with anyio.CancelScope() as scope:
            if at == 0:
                scope.cancel()
            else:
                scope.deadline = at
            await ask(rt, "slow")
        assert scope.cancelled_caught
        await wait_all_tasks_blocked()
        check(sink.events)
        before = ["invoked 0", "attempt 1", "retry 1", "attempt 2"]
        expected = {0: (1, 0), 0.5: (2, 1), 1.25: (3, 1), 2.0: (4, 2)}[at]
        assert [*before[: expected[0]], f"canceled {expected[1]}"] == sink.told()
        assert ("canceled", "canceled", "canceled") == (
            last(sink.events[-1])[0],
            sink.events[-1].category,
            sink.events[-1].stop_reason,
        )
        assert at == sink.events[-1].time


@pytest.mark.parametrize("at", [0, 0.5, 2.0])
async def test_a_program_that_is_canceled_is_told_of(at):
    """The same holds for ``call``, whose id is empty."""
    sink = Recorder()
    tool = make(slow)
    async with listen(tool, sinks=[sink]) as rt:
        with anyio.move_on_after(at):
            await rt.call(tool)
    check(sink.events)
    assert {0: "canceled 0", 0.5: "canceled 1", 2.0: "canceled 2"}[at] == sink.told()[-1]
    assert None is sink.events[-1].outcome
    assert {""} == {event.call_id for event in sink.events}


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
@each_way
async def test_an_interrupt_ends_all_calls(ask, kind):
    """A call that was interrupted, and those that are canceled for it, are each told of."""
    sink = Recorder()

    async def interrupted() -> None:
        await anyio.sleep(0.5)
        raise kind

    tools = make(interrupted), make(slow)

    async def ask_both() -> None:
        async with listen(*tools, sinks=[sink]) as rt, rt.batch() as sibling:
            sibling.start(ToolCall("sibling", "slow"))
            await ask(rt, "interrupted")

    with pytest.raises(kind):
        await ask_both()
    assert {"c", "sibling"} == {*sink.calls()}
    for call_id in ("c", "sibling"):
        assert ["invoked 0", "attempt 1", "canceled 1"] == sink.told(call_id)


async def test_programs_calls_are_told_as_those_of_models():
    """``call`` has the same events: with a value, after a retry, with an error, and where it is refused."""
    sink = Recorder()
    flaky_runs.clear()
    tools = make(works), make(flaky), make(wrong), make(quick, scopes={"s"})
    async with listen(*tools, sinks=[sink]) as rt:
        expected = {
            tools[0]: ["invoked 0", "attempt 1", "completed 1"],
            tools[1]: ["invoked 0", "attempt 1", "retry 1", "attempt 2", "completed 2"],
            tools[2]: ["invoked 0", "attempt 1", "failed 1"],
        }
        for tool, told in expected.items():
            try:
                assert "v" == await rt.call(tool)
            except ValueError:
                assert tool is tools[2]
            await wait_all_tasks_blocked()
            assert told == sink.told()
            check(sink.events)
            sink.events.clear()
        await rt.drain()
        with pytest.raises(OverloadedError):
            await rt.call(tools[0])
        await wait_all_tasks_blocked()
        assert ["invoked 0", "rejected 0"] == sink.told()


async def test_a_queue_that_is_full_and_a_wait_that_is_too_long():
    """A call that is sent away is rejected; one whose turn does not come in time has failed; both without a run."""
    sink = Recorder()
    async with listen(make(slow), sinks=[sink], max_running=1, max_queued=1) as rt:
        await rt.invoke_many([ToolCall(name, "slow") for name in ("runs", "waits", "sent away")], timeout=0.5)
    calls = sink.calls()
    assert ["invoked 0", "failed 0"] == sink.told("waits")
    assert ("failed", "timed_out", "timeout", "timeout", "deadline") == last(calls["waits"][-1])
    assert ["invoked 0", "rejected 0"] == sink.told("sent away")
    assert ("rejected", "rejected", "rate_limited", "transient", "rejected") == last(calls["sent away"][-1])


async def test_enough_successes_and_calls_that_are_not_begun():
    """Calls that a join or an atomic batch ends are told as canceled, with the attempts that they had."""
    sink = Recorder()
    async with listen(make(works), make(slow), make(takes), sinks=[sink], max_running=2) as rt:
        calls = [ToolCall("first", "works"), ToolCall("cut", "slow"), ToolCall("never", "works")]
        await rt.invoke_many(calls, join=Join.FIRST_SUCCESS)
        await rt.invoke_many([ToolCall("good", "works"), ToolCall("bad", "takes", "{}")], atomic=True)
    sink.calls()
    told = {name: sink.told(name) for name in ("first", "cut", "never", "good", "bad")}
    assert {
        "first": ["invoked 0", "attempt 1", "completed 1"],
        "cut": ["invoked 0", "attempt 1", "canceled 1"],
        "never": ["invoked 0", "canceled 0"],
        "good": ["invoked 0", "canceled 0"],
        "bad": ["invoked 0", "invalid_args 0"],
    } == told


async def test_leaving_a_stream_is_told():
    """Calls of a stream that is left are told as canceled, those that were not pulled have no event."""
    sink = Recorder()
    async with listen(make(slow), sinks=[sink], max_running=2) as rt:
        async with rt.stream([ToolCall(str(n), "slow") for n in range(4)]):
            await anyio.sleep(0.5)
        await wait_all_tasks_blocked()
        assert {"0", "1"} == {*sink.calls()}
        assert ["canceled 1"] * 2 == [told for told in sink.told() if told.startswith("canceled")]


async def test_nested_calls_have_events_of_their_own():
    """Those of a nested call come between those of its caller, with its own id, name and counts."""
    sink = Recorder()

    async def outer() -> str:
        (result,) = await rt.invoke_many([ToolCall("inner", "flaky")])
        return result.value

    flaky_runs.clear()
    async with listen(make(outer, timeout=None), make(flaky), sinks=[sink]) as rt:
        await rt.invoke("outer", id="outer")
    assert {"outer", "inner"} == {*sink.calls()}
    told = [f"{event.call_id} {event.type.removeprefix('tool.')}" for event in sink.events]
    inner = [f"inner {what}" for what in ("invoked", "attempt", "retry", "attempt", "completed")]
    assert ["outer invoked", "outer attempt", *inner, "outer completed"] == told


async def test_whose_call_it_is():
    """Each event tells the identity of its call: the runtime's, the call's own, or none."""
    sink = Recorder()
    mine, yours = Identity("a", "u", "s"), Identity("b", "u", "s", "run")
    tool = make(works)
    async with listen(tool, sinks=[sink]) as rt:
        await rt.invoke("works", id="nobody")
        rt.identity = mine
        await rt.invoke("works", id="mine")
        await rt.invoke_many([ToolCall("yours", "works")], identity=yours)
        await rt.invoke("unknown", id="unknown", identity=yours)
    assert {"nobody": {None}, "mine": {mine}, "yours": {yours}, "unknown": {yours}} == {
        name: {event.identity for event in events} for name, events in sink.calls().items()
    }


async def test_every_sink_hears_the_same_in_the_same_order():
    """Three sinks get the same frozen records of many calls at once."""
    sinks = [Recorder(), Recorder(), Recorder()]
    async with listen(make(works), make(slow), sinks=sinks, max_running=3) as rt:
        await rt.invoke_many([ToolCall(str(n), ("works", "slow")[n % 2]) for n in range(30)], timeout=4)
    assert 30 == len(sinks[0].calls())
    for sink in sinks[1:]:
        assert all(one is other for one, other in zip(sink.events, sinks[0].events, strict=True))
    event: Any = sinks[0].events[0]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        event.attempts = 5
    assert isinstance(event, ToolEvent)


async def test_a_retry_under_stamina_s_test_switch_is_told_only_if_it_follows():
    """Where the host lets stamina count, no retry is told that does not come."""
    import stamina

    sink = Recorder()
    async with listen(make(own_timeout, attempts=4), sinks=[sink]) as rt:
        with stamina.set_testing(True, attempts=2):
            result: ToolResult = await rt.invoke("own_timeout", id="c")
    assert 2 == result.attempts
    assert ["invoked 0", "attempt 1", "retry 1", "attempt 2", "policy_exhausted 2"] == sink.told()
    assert 0 == sink.events[2].wait
