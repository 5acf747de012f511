"""A catalog within LangChain and LangGraph, and their tools within a catalog. Both run asynchronous code on asyncio."""

import json
from typing import Annotated, Any

import anyio
import pytest

import harbor_async as ha
from harbor_async.errors import InvalidToolError
from tests.unit.adapters.support import STRANGER, WHO, Crowd, framework, names

framework("langchain_core", "langgraph")

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import InjectedToolCallId, StructuredTool, Tool, ToolException, tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command

from harbor_async.adapters import langchain

pytestmark = pytest.mark.blocks_loop  # LangChain runs the fake model in a thread, and waits until that has begun


def call(name, args, id):
    return {"type": "tool_call", "name": name, "args": args, "id": id}


def says(*calls):
    return AIMessage("", tool_calls=list(calls))


def agent(tools, *script, **options):
    """Return the graph of an agent: a model that says what stands in the script, and its tools."""
    model = GenericFakeChatModel(messages=iter([*script, AIMessage("done")]))

    async def think(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", think)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph.compile(**options)


async def run(app, config=None):
    """Run an agent, and return the messages of its tools by call id."""
    state = await app.ainvoke({"messages": [HumanMessage("go")]}, config)
    return {message.tool_call_id: message for message in state["messages"] if isinstance(message, ToolMessage)}


@pytest.mark.asyncio_only
async def test_agent_mends_its_calls():
    """Each call has the message of its id; that of a failure is an error and says how to mend the call."""
    wrong = (
        call("add", {"a": 1, "b": "x"}, "c1"),
        call("lose", {}, "c2"),
        call("weather--lookup", {"city": "Oslo"}, "c3"),
    )
    async with ha.Runtime(Crowd().catalog(), identity=STRANGER) as runtime:
        app = agent(langchain.tools(runtime), says(*wrong), says(call("add", {"a": 1, "b": 2}, "c4")))
        found = await run(app)
    assert {"c1": "error", "c2": "error", "c3": "error", "c4": "success"} == {id: found[id].status for id in found}
    envelopes = {id: json.loads(found[id].content) for id in ("c1", "c2", "c3")}
    assert ["validation", "not_found", "auth_failed"] == [each["error"]["category"] for each in envelopes.values()]
    problem = {"path": "/b", "code": "type", "message": "expected integer, got string"}
    assert [problem] == envelopes["c1"]["error"]["problems"]
    assert "rejected" == envelopes["c3"]["outcome"] == found["c3"].artifact["outcome"]
    assert ("3", 3, 1) == (found["c4"].content, found["c4"].artifact["value"], found["c4"].artifact["attempts"])


@pytest.mark.asyncio_only
async def test_identity_comes_from_the_config():
    """A function finds in the config of a run on whose behalf it calls; the tool sees the framework's call id."""
    crowd = Crowd()
    async with ha.Runtime(crowd.catalog(), identity=STRANGER) as runtime:
        tools = langchain.tools(runtime, identity=lambda config: config["configurable"]["who"])
        app = agent(tools, says(call("weather--lookup", {"city": "Oslo"}, "c1")))
        found = await run(app, {"configurable": {"who": WHO}})
    assert [("c1", "ann")] == crowd.seen
    assert {"Oslo": 1} == found["c1"].artifact["value"]


@pytest.mark.asyncio_only
async def test_messages_can_be_stored():
    """A checkpointer stores the messages with their envelopes, and gives them back."""
    async with ha.Runtime(Crowd().catalog()) as runtime:
        app = agent(
            langchain.tools(runtime),
            says(call("add", {"a": 1, "b": 2}, "c1"), call("lose", {}, "c2")),
            checkpointer=InMemorySaver(),
        )
        config = {"configurable": {"thread_id": "t1"}}
        found = await run(app, config)
        stored = (await app.aget_state(config)).values["messages"]
    assert [found["c1"].artifact, found["c2"].artifact] == [each.artifact for each in stored if each.type == "tool"]


@pytest.mark.asyncio_only
@pytest.mark.virtual(grace=0.05)
async def test_limits_hold():
    """Six calls of one message, a second each, share the two places of the runtime: three seconds."""
    crowd = Crowd()
    calls = [call("hold", {"seconds": 1}, f"c{index}") for index in range(6)]
    async with ha.Runtime(crowd.catalog(), limits=ha.Limits(max_running=2)) as runtime:
        begun = anyio.current_time()
        found = await run(agent(langchain.tools(runtime), says(*calls)))
        elapsed = anyio.current_time() - begun
    assert 2 == crowd.peak
    assert 3.0 == pytest.approx(elapsed, abs=0.5)
    assert ["held"] * 6 == [found[f"c{index}"].content for index in range(6)]


@pytest.mark.asyncio_only
@pytest.mark.virtual(grace=0.05)
async def test_caller_cancels():
    """The cancellation of a run reaches its tools, and leaves as a cancellation."""
    crowd = Crowd()
    calls = [call("hold", {"seconds": 100}, f"c{index}") for index in range(3)]
    async with ha.Runtime(crowd.catalog()) as runtime:
        with anyio.move_on_after(1) as scope:
            await run(agent(langchain.tools(runtime), says(*calls)))
        assert 0 == runtime.statistics().running
    assert scope.cancelled_caught
    assert (3, 0) == (crowd.canceled, crowd.running)


@pytest.mark.asyncio_only
@pytest.mark.virtual(grace=0.05)
async def test_deadline():
    """A call that passes the adapter's deadline is an error that says so."""
    async with ha.Runtime(Crowd().catalog()) as runtime:
        [hold] = langchain.tools(runtime, ha.CatalogFilter(name_regex="hold"), timeout=1)
        message = await hold.ainvoke(call("hold", {"seconds": 5}, "c1"))
    assert ("error", "timed_out") == (message.status, message.artifact["outcome"])


@pytest.mark.asyncio_only
async def test_without_a_call_id():
    """Invoked with bare arguments a tool gives its text, and a failure is LangChain's own exception."""
    async with ha.Runtime(Crowd().catalog()) as runtime:
        add, _, lose, _ = langchain.tools(runtime)
        assert "3" == await add.ainvoke({"a": 1, "b": 2})
        assert "3" == await add.ainvoke('{"a": 1, "b": 2}')
        with pytest.raises(ToolException, match="no such city"):
            await lose.ainvoke({})
        lose.handle_tool_error = True
        assert "not_found" == json.loads(await lose.ainvoke({}))["error"]["category"]
        with pytest.raises(NotImplementedError, match="ainvoke"):
            add.invoke({"a": 1, "b": 2})


async def test_what_a_provider_is_told():
    """A model is told a tool's schema as it is, under a name that every provider takes."""
    catalog = Crowd().catalog()
    async with ha.Runtime(catalog) as runtime:
        tools = langchain.tools(runtime, ha.CatalogFilter(scopes={"weather:read"}))
    assert ["add", "hold", "lose", "weather--lookup"] == names(tools)
    told = convert_to_openai_tool(tools[-1])["function"]
    schema = catalog.resolve("weather.lookup").tool.args_schema
    assert {"name": "weather--lookup", "description": "Look up the weather.", "parameters": schema} == told
    assert schema["properties"] == tools[-1].args


@tool
async def search(query: str, config: RunnableConfig, call_id: Annotated[str, InjectedToolCallId], most: int = 3) -> str:
    """Search the archive."""
    who = config["configurable"].get("identity")
    if query == "nothing":
        raise ToolException("the archive is closed")
    return f"{most} of {query} for {who and who.user} in {call_id}"


@tool
def count(words: list[str]) -> dict[str, int]:
    """Count words."""
    return {word: words.count(word) for word in words}


def test_described_tool():
    """A LangChain tool's name, description and schema are its descriptor's, without what is injected."""
    described = langchain.describe_tool(search, side_effect="read").tool
    assert ("search", "Search the archive.", "langchain") == (described.name, described.description, described.source)
    assert {"query", "most"} == set(described.args_schema["properties"])
    assert ha.SideEffect.READ == described.side_effect
    assert "find" == langchain.describe_tool(search, name="find").name


@pytest.mark.asyncio_only
async def test_described_tool_answers():
    """Called through the runtime it gets the call's id and identity, and its arguments are checked by us."""
    async with ha.Runtime(ha.Catalog([langchain.describe_tool(search)]), identity=WHO) as runtime:
        good = await runtime.invoke("search", '{"query": "ships"}', id="c1")
        bad = await runtime.invoke("search", '{"query": 5, "more": 1}', id="c2")
    assert "3 of ships for ann in c1" == good.value
    assert {("/query", "type"), ("/more", "unknown")} >= {(each.path, each.code) for each in bad.error.problems}
    assert "/query" in [each.path for each in bad.error.problems]


async def test_synchronous_tool():
    """A tool without an asynchronous form runs in a worker thread, on every backend."""
    async with ha.Runtime(ha.Catalog([langchain.describe_tool(count)])) as runtime:
        result = await runtime.invoke("count", {"words": ["a", "b", "a"]})
    assert {"a": 2, "b": 1} == json.loads(result.value)
    assert langchain.describe_tool(count).is_sync


def test_kinds_of_tools():
    """What runs asynchronously is told by the tool's own class or its coroutine."""
    plain = Tool(name="plain", description="Plain.", func=str)
    structured = StructuredTool.from_function(coroutine=search.coroutine, name="structured", description="Found.")
    assert [True, True, False, False] == [
        langchain.describe_tool(each).is_sync for each in (plain, count, search, structured)
    ]


@pytest.mark.asyncio_only
async def test_failures_of_described_tools():
    """A ToolException, an error that was handled and arguments that pydantic refuses are failures of their kinds."""

    @tool
    async def picky(number: int) -> str:
        """Take an even number."""
        raise ToolException("odd")

    @tool
    async def jump() -> Command:
        """Leave the graph."""
        return Command(goto="end")

    handled = picky.model_copy(update={"name": "handled", "handle_tool_error": "try another"})
    catalog = ha.Catalog(map(langchain.describe_tool, (picky, handled, jump)))
    async with ha.Runtime(catalog) as runtime:
        raised = await runtime.invoke("picky", {"number": 1})
        told = await runtime.invoke("handled", {"number": 1})
        left = await runtime.invoke("jump")
    assert ("odd", "permanent", 1) == (raised.error.message, raised.error.error_class, raised.attempts)
    assert ("try another", "permanent") == (told.error.message, told.error.error_class)
    assert ("unsupported", True) == (left.error.category, "Command" in left.error.message)


async def test_asynchronous_tool_needs_asyncio(anyio_backend_name):
    """On trio an asynchronous LangChain tool is refused in words, not begun."""
    result = await langchain.describe_tool(search).invoke({"query": "ships"})
    if anyio_backend_name == "trio":
        assert ("unsupported", "not_sent") == (result.error.category, result.error.delivery)
    else:
        assert result.error is None


def test_no_tool():
    """What is no LangChain tool is refused."""
    with pytest.raises(InvalidToolError, match="takes a LangChain tool; got int"):
        langchain.describe_tool(5)
