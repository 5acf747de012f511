"""A catalog as tools of the OpenAI Agents SDK, which runs on asyncio."""

import json

import anyio
import pytest

import harbor_async as ha
from harbor_async.errors import ExportError
from tests.unit.adapters.support import STRANGER, WHO, Crowd, framework

framework("agents")

from agents import Agent, RunConfig, Runner
from agents.testing import ScriptedModel, assistant_message, function_call

from harbor_async.adapters import openai_agents


def call(name, args, id):
    return function_call(name, args, call_id=id)


async def run(tools, *script, context=None):
    """Run an agent of a scripted model, and return what its tools said, by call id."""
    model = ScriptedModel([*script, [assistant_message("done")]])
    agent = Agent(name="clerk", model=model, tools=tools)
    result = await Runner.run(agent, "go", context=context, run_config=RunConfig(tracing_disabled=True))
    model.assert_complete()
    assert "done" == result.final_output
    return {
        item["call_id"]: item["output"] for item in result.to_input_list() if item.get("type") == "function_call_output"
    }


@pytest.mark.asyncio_only
async def test_agent_mends_its_calls():
    """Each call has the output of its id; that of a failure is the envelope, and the run goes on."""
    wrong = [call("add", {"a": 1, "b": "x"}, "c1"), call("lose", {}, "c2"), call("add", "{", "c3")]
    wrong.append(call("weather--lookup", {"city": "Oslo", "days": None}, "c4"))
    async with ha.Runtime(Crowd().catalog(), identity=STRANGER) as runtime:
        found = await run(openai_agents.tools(runtime), wrong, [call("add", {"a": 1, "b": 2}, "c5")])
    assert "3" == found.pop("c5")
    envelopes = {id: json.loads(output) for id, output in found.items()}
    assert {"c1": "validation", "c2": "not_found", "c3": "validation", "c4": "auth_failed"} == {
        id: envelope["error"]["category"] for id, envelope in envelopes.items()
    }
    problem = {"path": "/b", "code": "type", "message": "expected integer, got string"}
    assert [problem] == envelopes["c1"]["error"]["problems"]
    assert "syntax" == envelopes["c3"]["error"]["problems"][0]["code"]
    assert "rejected" == envelopes["c4"]["outcome"]


@pytest.mark.asyncio_only
async def test_identity_comes_from_the_context():
    """A function finds in the context of a run on whose behalf it calls; the tool sees the framework's call id."""
    crowd = Crowd()
    async with ha.Runtime(crowd.catalog(), identity=STRANGER) as runtime:
        tools = openai_agents.tools(runtime, identity=lambda context: context.context["who"])
        found = await run(tools, [call("weather--lookup", {"city": "Oslo", "days": 2}, "c1")], context={"who": WHO})
    assert [("c1", "ann")] == crowd.seen
    assert {"Oslo": 2} == json.loads(found["c1"])


@pytest.mark.asyncio_only
async def test_a_null_of_a_strict_tool_is_left_out():
    """What a strict tool calls null because it may not leave it out has its default."""
    async with ha.Runtime(Crowd().catalog()) as runtime:
        calls = [call("weather--lookup", {"city": "Oslo", "days": None}, "c1")]
        found = await run(openai_agents.tools(runtime, strict=True), calls)
    assert {"Oslo": 1} == json.loads(found["c1"])


@pytest.mark.asyncio_only
@pytest.mark.virtual(grace=0.05)
async def test_limits_hold():
    """Six calls of one response, a second each, share the two places of the runtime: three seconds."""
    crowd = Crowd()
    calls = [call("hold", {"seconds": 1}, f"c{index}") for index in range(6)]
    async with ha.Runtime(crowd.catalog(), limits=ha.Limits(max_running=2)) as runtime:
        begun = anyio.current_time()
        found = await run(openai_agents.tools(runtime), calls)
        elapsed = anyio.current_time() - begun
    assert 2 == crowd.peak
    assert 3.0 == pytest.approx(elapsed, abs=0.5)
    assert {f"c{index}": "held" for index in range(6)} == found


@pytest.mark.asyncio_only
@pytest.mark.virtual(grace=0.05)
async def test_caller_cancels():
    """The cancellation of a run reaches its tools, and leaves as a cancellation."""
    crowd = Crowd()
    calls = [call("hold", {"seconds": 100}, f"c{index}") for index in range(3)]
    async with ha.Runtime(crowd.catalog()) as runtime:
        with anyio.move_on_after(1) as scope:
            await run(openai_agents.tools(runtime), calls)
        assert 0 == runtime.statistics().running
    assert scope.cancelled_caught
    assert (3, 0) == (crowd.canceled, crowd.running)


@pytest.mark.asyncio_only
@pytest.mark.virtual(grace=0.05)
async def test_deadline():
    """A call that passes the adapter's deadline is told so."""
    async with ha.Runtime(Crowd().catalog()) as runtime:
        found = await run(openai_agents.tools(runtime, timeout=1), [call("hold", {"seconds": 5}, "c1")])
    assert "timed_out" == json.loads(found["c1"])["outcome"]


async def test_what_the_model_is_told():
    """A tool is strict where its schema can be, and the SDK takes each schema as it is."""
    catalog = Crowd().catalog()

    @ha.tool
    async def store(entry: dict[str, int]) -> None:
        """Store whatever it is."""

    catalog.register(store)
    async with ha.Runtime(catalog) as runtime:
        tools = {tool.name: tool for tool in openai_agents.tools(runtime)}
        plain = {tool.name: tool for tool in openai_agents.tools(runtime, strict=False)}
        with pytest.raises(ExportError, match="store"):
            openai_agents.tools(runtime, strict=True)
        some = openai_agents.tools(runtime, ha.CatalogFilter(name_regex="^a"))
    assert ["add", "hold", "lose", "store", "weather--lookup"] == list(tools)
    assert {"store": False} == {name: tool.strict_json_schema for name, tool in tools.items() if name == "store"}
    assert {True} == {tool.strict_json_schema for name, tool in tools.items() if name != "store"}
    assert ["city", "days"] == tools["weather--lookup"].params_json_schema["required"]
    assert catalog.resolve("weather.lookup").tool.args_schema == plain["weather--lookup"].params_json_schema
    assert ["add"] == [tool.name for tool in some]
