"""Tests of a tool, and of what a backend makes of tools that go wrong: in virtual time, on asyncio and trio."""

from random import Random

import anyio
import pytest

import harbor_async as ha
from harbor_async.testing import HANG, Fault, RecordingSink, chance, inject, scripted_tool, virtual_backend

pytestmark = pytest.mark.anyio
sent: list[str] = []


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    sent.clear()
    return virtual_backend(request.param)


@ha.tool(side_effect=ha.SideEffect.EXTERNAL, policy=ha.ToolPolicy(timeout=10.0))
async def send_mail(to: str) -> str:
    """Send a mail."""
    sent.append(to)
    return "sent"


async def invoke(tool: ha.ToolDescriptor, arguments: str, **options) -> ha.ToolResult:
    async with ha.Runtime(ha.Catalog([tool]), **options) as rt:
        return await rt.invoke(tool.name, arguments)


async def test_a_wrong_address_is_refused():
    result = await invoke(send_mail, '{"to": 5}')
    assert [("/to", "type")] == [(problem.path, problem.code) for problem in result.error.problems]
    assert [] == sent


async def test_a_mail_whose_answer_is_lost_is_not_sent_twice():
    lossy = inject(send_mail, [Fault(error=ConnectionResetError, after=True)])
    result = await invoke(lossy, '{"to": "ann"}')
    assert (1, True) == (result.attempts, result.error.ambiguous)
    assert ["ann"] == sent


async def test_a_mail_that_surely_was_not_sent_is_tried_again():
    result = await invoke(inject(send_mail, [ConnectionRefusedError, ConnectionRefusedError]), '{"to": "ann"}')
    assert ("sent", 3) == (result.value, result.attempts)
    assert ["ann"] == sent


async def test_a_server_that_hangs_ends_with_the_timeout():
    result = await invoke(inject(send_mail, [HANG]), '{"to": "ann"}')
    assert ("timeout", 10.0) == (result.error.category, result.elapsed)


async def test_the_second_attempt_comes_after_the_wait_that_was_asked_for():
    sink = RecordingSink()
    busy = ha.ToolError("busy", category="rate_limited", retry_after=5.0)
    await invoke(scripted_tool("search", [busy, ["found"]]), '{"query": "x"}', sinks=[sink])
    assert [0.0, 5.0] == [event.time for event in sink.select("tool.attempt")]


async def test_an_agent_gets_an_answer_to_everything():
    shaky = inject(send_mail, chance(Random(7).random, (0.2, ConnectionRefusedError), (0.1, HANG)))
    calls = [ha.ToolCall(str(number), "send_mail", {"to": f"user{number}"}) for number in range(200)]
    async with ha.Runtime(ha.Catalog([shaky]), limits=ha.Limits(max_running=20)) as rt:
        results = await rt.invoke_many(calls, timeout=60.0)
    assert [call.id for call in calls] == [result.call_id for result in results]
    assert len(sent) == len(set(sent)) == sum(result.outcome == "succeeded" for result in results)


async def test_a_canceled_call_is_seen_to_run():
    sink = RecordingSink()
    async with ha.Runtime(ha.Catalog([inject(send_mail, [HANG])]), sinks=[sink]) as rt, rt.batch() as batch:
        handle = batch.start(ha.ToolCall("1", "send_mail", {"to": "ann"}))
        with anyio.fail_after(1.0):
            await sink.wait_for("tool.attempt", call_id="1")
        handle.cancel()
    assert "canceled" == (await handle.result()).error.category
