"""Context variables: a tool sees its caller's, its caller and its other attempts never see the tool's. Virtual time."""

from contextvars import ContextVar

import anyio
import pytest
from anyio.lowlevel import checkpoint

from harbor_async import Backoff, Catalog, Limits, Runtime, ToolCall, ToolPolicy, describe
from tests.cancellation.ways import WAYS

pytestmark = pytest.mark.virtual
variable: ContextVar[str] = ContextVar("variable", default="nobody's")
POLICY = ToolPolicy(attempts=3, wait=Backoff(jitter=0))


@pytest.mark.parametrize("ask", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("waits", [True, False])
async def test_what_a_tool_sets_stays_in_its_attempt(ask, waits):
    """Each attempt begins with the caller's value, before and after waits; the caller keeps its own (N19)."""
    seen = []

    async def sets():
        seen.append(variable.get())
        variable.set("leaked")
        if waits:
            await checkpoint()
            await anyio.sleep(1)
        seen.append(variable.get())
        raise ConnectionError

    variable.set("caller's")
    await ask(describe(sets, policy=POLICY))
    assert ["caller's", "leaked"] * 3 == seen
    assert "caller's" == variable.get()


async def test_a_program_s_call_does_not_leak_either():
    """``call`` isolates as well."""

    async def sets():
        variable.set("leaked")
        return variable.get()

    variable.set("caller's")
    async with Runtime(Catalog([])) as runtime:
        assert "leaked" == await runtime.call(describe(sets))
    assert "caller's" == variable.get()


async def test_children_of_a_tool_inherit_its_context():
    """A task that the tool starts sees what the tool has set."""
    seen = []

    async def child():
        seen.append(variable.get())

    async def sets():
        variable.set("tool's")
        async with anyio.create_task_group() as group:
            group.start_soon(child)

    await describe(sets).invoke()
    assert ["tool's"] == seen


@pytest.mark.parametrize("limit", [None, 1])
async def test_calls_of_one_batch_do_not_see_each_other(limit):
    """Each begins with the caller's value."""
    seen = []

    async def sets(n: int):
        seen.append(variable.get())
        variable.set(str(n))
        await anyio.sleep(1)
        assert str(n) == variable.get()

    variable.set("caller's")
    async with Runtime(Catalog([describe(sets)]), limits=Limits(max_running=limit)) as runtime:
        results = await runtime.invoke_many([ToolCall("", "sets", {"n": n}) for n in range(5)])
    assert ["caller's"] * 5 == seen
    assert ["succeeded"] * 5 == [result.outcome for result in results]


@pytest.mark.parametrize("kind", ["generator", "async generator"])
async def test_what_a_source_sets_for_a_call_holds_for_each_of_its_attempts(kind):
    """A source that sets a request's id before it gives the call: the retry of the call sees that id, too."""
    seen: dict[int, list[str]] = {0: [], 1: []}

    async def fails(n: int):
        seen[n].append(variable.get())
        raise ConnectionError

    def source():
        for n in range(2):
            variable.set(f"request {n}")
            yield ToolCall(str(n), "fails", {"n": n})

    async def async_source():
        for call in source():
            yield call

    calls = source() if kind == "generator" else async_source()
    async with Runtime(Catalog([describe(fails, policy=POLICY)])) as runtime, runtime.stream(calls) as results:
        assert 2 == len([result async for result in results])
    assert {0: ["request 0"] * 3, 1: ["request 1"] * 3} == seen


async def test_a_retry_rule_and_a_wait_run_in_the_callers_context():
    """What the policy's own functions see and set is the caller's."""
    seen = []

    async def sets():
        variable.set("tool's")
        raise ConnectionError

    policy = ToolPolicy(attempts=2, wait=Backoff(jitter=0), retry_on=lambda _: not seen.append(variable.get()))
    variable.set("caller's")
    await describe(sets, policy=policy).invoke()
    assert ["caller's", "caller's"] == seen
