import anyio
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

import harbor_async as ha
from harbor_async.adapters import langchain


@ha.tool(name="weather.lookup", side_effect="read", scopes={"weather:read"})
async def lookup(city: str, *, days: int = 1) -> list[float]:
    """Look up the temperatures of the next days."""
    return [21.0, 19.5, 18.0][:days]


@tool
def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()


catalog = ha.Catalog([lookup, langchain.describe_tool(shout, side_effect="pure")])  # one of ours, one of theirs


def call(id: str, name: str, **args: object) -> dict[str, object]:
    return {"type": "tool_call", "id": id, "name": name, "args": args}


def model() -> GenericFakeChatModel:
    """Stand in for a provider: two calls at once, one of them wrong; then the mended one; then an answer."""
    first = [call("c1", "shout", text="hello"), call("c2", "weather--lookup", city="Oslo", days="two")]
    second = [call("c3", "weather--lookup", city="Oslo", days=2)]
    says = AIMessage("", tool_calls=first), AIMessage("", tool_calls=second), AIMessage("21.0, then 19.5.")
    return GenericFakeChatModel(messages=iter(says))


async def main() -> None:
    async with ha.Runtime(catalog, limits=ha.Limits(max_running=10)) as runtime:
        tools = langchain.tools(runtime, identity=lambda config: config["configurable"]["who"], timeout=30)
        chat = model()  # with a provider: init_chat_model(…).bind_tools(tools)

        async def think(state: MessagesState) -> dict[str, list[object]]:
            return {"messages": [await chat.ainvoke(state["messages"])]}

        graph = StateGraph(MessagesState)
        graph.add_node("model", think)
        graph.add_node("tools", ToolNode(tools))
        graph.add_edge(START, "model")
        graph.add_conditional_edges("model", tools_condition)
        graph.add_edge("tools", "model")

        who = ha.Identity("acme", "ann", "s1", scopes={"weather:read"})
        question = {"messages": [HumanMessage("What will the weather be in Oslo?")]}
        state = await graph.compile().ainvoke(question, {"configurable": {"who": who}})
    for message in state["messages"]:
        if message.type == "tool":
            print(message.tool_call_id, message.status, message.content)
    print(state["messages"][-1].content)


if __name__ == "__main__":
    anyio.run(main)
