"""Many calls at once: one answer each, in order; and what a closed runtime says. Virtual time."""

import anyio
import pytest

from harbor_async import Catalog, HarborError, Runtime, ToolCall, ToolError, describe
from harbor_async.errors import InvalidToolError
from tests.cancellation.ways import steal_cancellation

pytestmark = pytest.mark.virtual


async def ok(n: int = 0) -> int:
    await anyio.sleep(n)
    return n


async def boom(n: int = 0) -> int:
    raise ValueError("boom")


async def canceled_inside():
    raise await steal_cancellation()


CATALOG = Catalog([describe(ok), describe(boom), describe(canceled_inside)])


async def test_answers_stand_in_the_order_of_the_calls():
    """Whatever ends first."""
    async with Runtime(CATALOG) as runtime:
        results = await runtime.invoke_many(ToolCall(f"id{n}", "ok", {"n": n}) for n in (3, 1, 2))
    assert [("id3", 3), ("id1", 1), ("id2", 2)] == [(result.call_id, result.value) for result in results]
    assert [3, 1, 2] == [result.elapsed for result in results]


async def test_one_failure_stops_nobody():
    """A value, an error, a cancellation from within, an unknown tool, bad arguments (R004, R014, R043)."""
    calls = [
        ToolCall("1", "ok", {"n": 1}),
        ToolCall("2", "boom"),
        ToolCall("3", "canceled_inside"),
        ToolCall("4", "no_such_tool"),
        ToolCall("5", "ok", {"n": "one"}),
        ToolCall("6", "ok", {"n": 2}),
    ]
    async with Runtime(CATALOG) as runtime:
        results = await runtime.invoke_many(calls)
    assert [
        ("succeeded", None, 1),
        ("failed", "unknown", 1),
        ("failed", "canceled", 1),
        ("failed", "not_found", 0),
        ("failed", "validation", 0),
        ("succeeded", None, 1),
    ] == [(result.outcome, result.error and result.error.category, result.attempts) for result in results]


async def test_two_calls_may_share_an_id():
    """Ids are the sender's; the order tells the answers apart."""
    async with Runtime(CATALOG) as runtime:
        results = await runtime.invoke_many([ToolCall("x", "ok", {"n": 1}), ToolCall("x", "ok", {"n": 0})])
    assert [("x", 1), ("x", 0)] == [(result.call_id, result.value) for result in results]


async def test_no_calls_have_no_answers():
    """An empty batch is empty."""
    async with Runtime(CATALOG) as runtime:
        assert [] == await runtime.invoke_many([])


async def test_what_is_no_call_begins_nothing():
    """A wrong item is refused before any call begins."""
    ran = []

    async def notes():
        ran.append(1)

    async with Runtime(Catalog([describe(notes)])) as runtime:
        with pytest.raises(TypeError, match="expected a ToolCall"):
            await runtime.invoke_many([ToolCall("1", "notes"), ("2", "notes")])
    await anyio.sleep(1)
    assert [] == ran


@pytest.mark.parametrize("name", [["ok"], {}, None, 5])
async def test_a_name_that_is_no_text_is_an_answer_too(name):
    """A name of another type is not found; the other calls of the batch are answered."""
    async with Runtime(CATALOG) as runtime:
        results = await runtime.invoke_many([ToolCall("1", "ok"), ToolCall("2", name), ToolCall("3", "ok")])
    assert ["succeeded", "failed", "succeeded"] == [result.outcome for result in results]
    assert "not_found" == results[1].error.category


async def test_a_runtime_that_is_not_open_says_so():
    """Before it is entered and after it is left."""
    runtime = Runtime(CATALOG)
    for _ in range(2):
        for ask in (
            lambda: runtime.invoke("ok"),
            lambda: runtime.invoke_many([ToolCall("1", "ok")]),
            lambda: runtime.call(describe(ok)),
        ):
            with pytest.raises(HarborError, match="not open"):
                await ask()
        with pytest.raises(HarborError, match="not open"):
            runtime.stream([])
        async with runtime:
            with pytest.raises(HarborError, match="open already"):
                await runtime.__aenter__()
            assert "succeeded" == (await runtime.invoke("ok")).outcome


@pytest.mark.parametrize("options", [{"catalog": [describe(ok)]}, {"catalog": CATALOG, "limits": {"max_running": 1}}])
def test_a_runtime_of_something_else_is_refused(options):
    """A list is no catalog, a dict no limits."""
    with pytest.raises(InvalidToolError, match="Runtime: expected a"):
        Runtime(**options)


async def test_a_thousand_calls_at_once():
    """They all sleep at the same time, and are answered in order."""
    async with Runtime(CATALOG) as runtime:
        results = await runtime.invoke_many([ToolCall(str(n), "ok", {"n": 1}) for n in range(1000)])
    assert 1 == anyio.current_time()
    assert [str(n) for n in range(1000)] == [result.call_id for result in results]


async def test_calls_of_a_tool_run_inside_a_call():
    """A tool may ask the same runtime, for one call and for many."""

    async def outer() -> list[int]:
        inner = await runtime.invoke_many([ToolCall("", "ok", {"n": n}) for n in (1, 2)])
        return [result.value for result in inner] + [await runtime.call(describe(ok), 1)]

    async with Runtime(Catalog([describe(outer), describe(ok)])) as runtime:
        assert [1, 2, 1] == (await runtime.invoke("outer")).value


# --- the program's way ----------------------------------------------------------------------------------------------


async def test_a_program_gets_the_value_as_it_is():
    """Python values in and out: no JSON, and the very objects."""
    token = object()

    async def same(value: dict) -> dict:
        return value

    tool = describe(same)
    async with Runtime(Catalog([])) as runtime:
        value = {"token": token}
        assert (await runtime.call(tool, value)) is value
        assert (await runtime.call(tool, value=value)) is value


@pytest.mark.parametrize(("args", "kwargs"), [((), {}), ((1, 2), {}), ((1,), {"n": 1}), ((), {"x": 1})])
async def test_a_program_that_passes_other_arguments_gets_a_type_error(args, kwargs):
    """As from the function itself."""

    async def needs(n: int):
        raise AssertionError("run")

    async with Runtime(Catalog([])) as runtime:
        with pytest.raises(TypeError):
            await runtime.call(describe(needs), *args, **kwargs)


async def test_a_program_gets_what_the_tool_raised_with_a_note_of_the_attempts():
    """The exception is the tool's own, its traceback leads to the tool, and a note tells how it was tried."""
    from harbor_async import Backoff, ToolPolicy

    error = ConnectionError("reset")

    async def fails():
        raise error

    async with Runtime(Catalog([])) as runtime:
        with pytest.raises(ConnectionError) as info:
            await runtime.call(describe(fails, policy=ToolPolicy(attempts=3, wait=Backoff(jitter=0))))
        assert info.value is error
        assert ["tool 'fails': 3 attempts, stopped by 'attempts'"] == error.__notes__
        assert "fails" == info.traceback[-1].name
        with pytest.raises(ValueError, match="boom") as info:
            await runtime.call(describe(boom))
        assert ["tool 'boom': 1 attempt, stopped by 'permanent'"] == info.value.__notes__


async def test_a_program_gets_our_own_ends_as_our_errors():
    """A timeout and a cancellation from within are ``ToolTimeoutError`` and ``ToolCanceledError``."""
    from harbor_async import ToolPolicy
    from harbor_async.errors import ToolCanceledError, ToolTimeoutError

    async def slow():
        await anyio.sleep(9)

    async with Runtime(Catalog([])) as runtime:
        with pytest.raises(ToolTimeoutError, match="'slow' did not end within 1 s") as info:
            await runtime.call(describe(slow, policy=ToolPolicy(1, 1), side_effect="write"))
        assert info.value.ambiguous
        assert isinstance(info.value, TimeoutError)
        with pytest.raises(ToolCanceledError, match="from within"):
            await runtime.call(describe(canceled_inside))
        with pytest.raises(InvalidToolError, match="takes a tool descriptor"):
            await runtime.call(ok)


async def test_a_tools_own_error_reaches_the_program_unchanged():
    """A ``ToolError`` after one attempt carries no note of ours."""

    async def fails():
        raise ToolError("no such city", category="not_found")

    async with Runtime(Catalog([])) as runtime:
        with pytest.raises(ToolError, match="no such city") as info:
            await runtime.call(describe(fails))
    assert not hasattr(info.value, "__notes__")
