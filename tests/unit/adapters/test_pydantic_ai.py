"""A catalog as a toolset of Pydantic AI, and a toolset as descriptors. Agents run on asyncio, toolsets everywhere."""

import json
from datetime import date

import anyio
import pytest

import harbor_async as ha
from harbor_async.errors import InvalidToolError
from tests.unit.adapters.support import STRANGER, WHO, Crowd, framework

framework("pydantic_ai")

from pydantic import BaseModel
from pydantic_ai import Agent, ApprovalRequired, CallDeferred, ModelRetry, RunContext, ToolDefinition, ToolReturn
from pydantic_ai.exceptions import ToolFailed, UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import ExternalToolset, FunctionToolset
from pydantic_ai.usage import RunUsage

from harbor_async.adapters.pydantic_ai import RuntimeToolset, describe_toolset


def call(name, args, id):
    return ToolCallPart(name, args, tool_call_id=id)


def scripted(*script):
    """Return a model that makes the calls of each item of the script, and then says that it is done."""
    turns = iter([*script, [TextPart("done")]])
    return FunctionModel(lambda *_: ModelResponse(parts=next(turns)))


async def run(runtime, *script, deps=None, retries=1, **options):
    """Run an agent, and return the parts that its tools returned, by call id, and the run."""
    agent = Agent(scripted(*script), toolsets=[RuntimeToolset(runtime, **options)], deps_type=object, retries=retries)
    result = await agent.run("go", deps=deps)
    parts = [part for message in result.all_messages() for part in message.parts if isinstance(part, ToolReturnPart)]
    return {part.tool_call_id: part for part in parts}, result


@pytest.mark.asyncio_only
async def test_agent_mends_its_calls():
    """A wrong call is asked for anew; another failure and a refusal are told as failed, and the run goes on."""
    wrong = [call("add", {"a": 1, "b": "x"}, "c1"), call("lose", {}, "c2")]
    wrong.append(call("weather--lookup", '{"city": "Oslo"}', "c3"))
    async with ha.Runtime(Crowd().catalog(), identity=STRANGER) as runtime:
        found, result = await run(runtime, wrong, [call("add", {"a": 1, "b": 2}, "c4")])
    assert "done" == result.output
    assert (3, "success") == (found["c4"].content, found["c4"].outcome)
    assert {"outcome": "succeeded", "value": 3, "attempts": 1} == {
        key: value for key, value in found["c4"].metadata.items() if key != "elapsed"
    }
    assert ["failed", "failed"] == [found[id].outcome for id in ("c2", "c3")]
    envelopes = [json.loads(found[id].content) for id in ("c2", "c3")]
    assert ["not_found", "auth_failed"] == [each["error"]["category"] for each in envelopes]
    assert "rejected" == envelopes[1]["outcome"]
    assert "/b" in found["c1"].model_response_str()
    assert "expected integer, got string" in found["c1"].model_response_str()


@pytest.mark.asyncio_only
async def test_retries_are_the_agents():
    """A model that mends nothing ends its run after as many retries as the agent or the toolset allows."""
    wrong = [call("add", {"a": 1, "b": "x"}, "c1")]
    async with ha.Runtime(Crowd().catalog()) as runtime:
        with pytest.raises(UnexpectedModelBehavior, match="max retries count of 2"):
            await run(runtime, wrong, wrong, wrong, wrong, retries=2)
        with pytest.raises(UnexpectedModelBehavior, match="max retries count of 0"):
            await run(runtime, wrong, max_retries=0)


@pytest.mark.asyncio_only
async def test_identity_comes_from_the_deps():
    """A function finds in the context of a run on whose behalf it calls; the tool sees the framework's call id."""
    crowd = Crowd()
    async with ha.Runtime(crowd.catalog(), identity=STRANGER) as runtime:
        calls = [call("weather--lookup", {"city": "Oslo", "days": 2}, "c1")]
        found, _ = await run(runtime, calls, deps=WHO, identity=lambda context: context.deps)
    assert [("c1", "ann")] == crowd.seen
    assert {"Oslo": 2} == found["c1"].content


@pytest.mark.asyncio_only
async def test_messages_can_be_stored():
    """A run's messages become JSON with the envelopes in them, and come back."""
    async with ha.Runtime(Crowd().catalog()) as runtime:
        found, result = await run(runtime, [call("add", {"a": 1, "b": 2}, "c1"), call("lose", {}, "c2")])
    stored = ModelMessagesTypeAdapter.validate_json(result.all_messages_json())
    parts = [part for message in stored for part in message.parts if isinstance(part, ToolReturnPart)]
    assert [found["c1"].metadata, None] == [part.metadata for part in parts]


@pytest.mark.asyncio_only
@pytest.mark.virtual(grace=0.05)
async def test_limits_hold():
    """Six calls of one message, a second each, share the two places of the runtime: three seconds."""
    crowd = Crowd()
    calls = [call("hold", {"seconds": 1}, f"c{index}") for index in range(6)]
    async with ha.Runtime(crowd.catalog(), limits=ha.Limits(max_running=2)) as runtime:
        begun = anyio.current_time()
        found, _ = await run(runtime, calls)
        elapsed = anyio.current_time() - begun
    assert 2 == crowd.peak
    assert 3.0 == pytest.approx(elapsed, abs=0.5)
    assert ["held"] * 6 == [found[f"c{index}"].content for index in range(6)]


@pytest.mark.asyncio_only
@pytest.mark.virtual(grace=0.05)
async def test_caller_cancels():
    """The cancellation of a run reaches its tools, and leaves as a cancellation."""
    crowd = Crowd()
    async with ha.Runtime(crowd.catalog()) as runtime:
        with anyio.move_on_after(1) as scope:
            await run(runtime, [call("hold", {"seconds": 100}, f"c{index}") for index in range(3)])
        assert 0 == runtime.statistics().running
    assert scope.cancelled_caught
    assert (3, 0) == (crowd.canceled, crowd.running)


@pytest.mark.virtual
async def test_deadline():
    """A call that passes the adapter's deadline has failed and says so; a toolset runs on every backend."""
    async with ha.Runtime(Crowd().catalog()) as runtime:
        toolset = RuntimeToolset(runtime, timeout=1)
        context = RunContext(deps=None, model=TestModel(), usage=RunUsage(), tool_call_id="c1")
        tools = await toolset.get_tools(context)
        with pytest.raises(ToolFailed) as raised:
            await toolset.call_tool("hold", {"seconds": 5}, context, tools["hold"])
    assert "timed_out" == json.loads(raised.value.message)["outcome"]


async def test_what_a_provider_is_told():
    """A step sees the tools that the catalog has then, with both schemas, under names that every provider takes."""
    catalog = Crowd().catalog()

    @ha.tool(loading="deferred")
    async def later() -> None:
        """Come late."""

    async with ha.Runtime(catalog) as runtime:
        toolset = RuntimeToolset(runtime, id="ours")
        context = RunContext(deps=None, model=TestModel(), usage=RunUsage(), max_retries=4)
        before = await toolset.get_tools(context)
        catalog.register(later)
        after = await toolset.get_tools(context)
    assert ["add", "hold", "lose", "weather--lookup"] == list(before)
    assert {"later"} == set(after) - set(before)
    assert (True, False) == (after["later"].tool_def.defer_loading, after["add"].tool_def.defer_loading)
    told, tool = before["weather--lookup"], catalog.resolve("weather.lookup").tool
    assert (tool.args_schema, tool.out_schema) == (told.tool_def.parameters_json_schema, told.tool_def.return_schema)
    assert ("weather.lookup", "read") == (told.tool_def.metadata["name"], told.tool_def.metadata["side_effect"])
    assert ("ours", 4) == (toolset.id, told.max_retries)


class Point(BaseModel):
    x: int
    day: date


theirs = FunctionToolset()


@theirs.tool
async def plot(context: RunContext[str], point: Point, *, scale: int = 1) -> ToolReturn:
    """Plot a point."""
    return ToolReturn(
        {"point": point, "who": context.deps, "call": context.tool_call_id, "scale": scale}, metadata="kept back"
    )


@theirs.tool_plain
def count(words: list[str]) -> int:
    """Count words."""
    return len(words)


@theirs.tool_plain
async def refuse(how: str) -> str:
    """Fail in each way."""
    raise {
        "retry": ModelRetry("another word"),
        "failed": ToolFailed("gone"),
        "approval": ApprovalRequired(),
        "deferred": CallDeferred(),
    }[how]


async def test_described_toolset():
    """Functions of a toolset answer through the runtime, with the call's id and the deps that were given."""
    catalog = ha.Catalog(await describe_toolset(theirs, "ann", side_effect="read"))
    async with ha.Runtime(catalog) as runtime:
        good = await runtime.invoke("plot", {"point": {"x": 1, "day": "2026-02-03"}}, id="c1")
        plain = await runtime.invoke("count", {"words": ["a", "b"]})
        wrong = await runtime.invoke("plot", {"point": {"x": "1", "day": "2026-02-03"}}, id="c2")
        late = await runtime.invoke("plot", {"point": {"x": 1, "day": "soon"}}, id="c3")
    assert {"point": {"x": 1, "day": "2026-02-03"}, "who": "ann", "call": "c1", "scale": 1} == good.value
    assert 2 == plain.value
    assert [("/point/x", "type")] == [(each.path, each.code) for each in wrong.error.problems]
    assert 0 == wrong.attempts
    # Only pydantic knows that it is no date.
    assert ("validation", "not_sent", 1) == (late.error.category, late.error.delivery, late.attempts)
    assert ["/point/day"] == [each.path for each in late.error.problems]
    tool = catalog.resolve("plot").tool
    assert ("Plot a point.", "pydantic-ai", "read") == (tool.description, tool.source, tool.side_effect)


async def test_failures_of_a_toolset():
    """Each of the exceptions of Pydantic AI is a failure of its kind, and none is retried."""
    async with ha.Runtime(ha.Catalog(await describe_toolset(theirs))) as runtime:
        ways = ("retry", "failed", "approval", "deferred")
        errors = {how: (await runtime.invoke("refuse", {"how": how})) for how in ways}
    found = [(result.error.category, result.attempts) for result in errors.values()]
    assert [("validation", 1), ("unknown", 1), ("auth_failed", 1), ("unsupported", 1)] == found
    assert ["another word", "gone"] == [errors[how].error.message for how in ("retry", "failed")]


async def test_approval_is_the_runtimes():
    """A tool that needs approval is described only with ``approve``, which is then asked before each call."""
    asking = FunctionToolset()

    @asking.tool_plain(requires_approval=True)
    async def drop(table: str) -> str:
        """Drop a table."""
        return f"dropped {table}"

    async def approve(call, tool, identity):
        return "old" in call.arguments

    with pytest.raises(InvalidToolError, match="'drop' needs approval: give approve="):
        await describe_toolset(asking)
    wrapped = theirs.filtered(lambda _, tool: tool.name == "count").approval_required()
    catalog = ha.Catalog(await describe_toolset(asking, approve=approve))
    for descriptor in await describe_toolset(wrapped, approve=approve):
        catalog.register(descriptor)
    async with ha.Runtime(catalog) as runtime:
        assert "dropped old" == (await runtime.invoke("drop", '{"table": "old"}')).value
        assert "rejected" == (await runtime.invoke("drop", '{"table": "new"}')).outcome
        assert 1 == (await runtime.invoke("count", '{"words": ["old"]}')).value
        assert "rejected" == (await runtime.invoke("count", '{"words": ["new"]}')).outcome


async def test_external_tool():
    """A tool that its toolset does not run cannot be described."""
    with pytest.raises(InvalidToolError, match="expected one that its toolset runs; got kind 'external'"):
        await describe_toolset(ExternalToolset([ToolDefinition(name="far")]))
