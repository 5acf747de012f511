import anyio
from pydantic_ai import Agent, ModelResponse, RunContext, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.toolsets import FunctionToolset

import harbor_async as ha
from harbor_async.adapters.pydantic_ai import RuntimeToolset, describe_toolset


@ha.tool(name="weather.lookup", side_effect="read", scopes={"weather:read"})
async def lookup(city: str, *, days: int = 1) -> list[float]:
    """Look up the temperatures of the next days."""
    return [21.0, 19.5, 18.0][:days]


theirs = FunctionToolset[None]()


@theirs.tool_plain
def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()


def call(id: str, name: str, **args: object) -> ToolCallPart:
    return ToolCallPart(name, args, tool_call_id=id)


def model() -> FunctionModel:
    """Stand in for a provider: two calls at once, one of them wrong; then the mended one; then an answer."""
    first = [call("c1", "shout", text="hello"), call("c2", "weather--lookup", city="Oslo", days="two")]
    turns = iter([first, [call("c3", "weather--lookup", city="Oslo", days=2)], [TextPart("21.0, then 19.5.")]])
    return FunctionModel(lambda *_: ModelResponse(parts=next(turns)))


def who(context: RunContext[str]) -> ha.Identity:
    return ha.Identity("acme", context.deps, "s1", scopes={"weather:read"})


async def main() -> None:
    catalog = ha.Catalog([lookup, *await describe_toolset(theirs, side_effect="pure")])  # one of ours, one of theirs
    async with ha.Runtime(catalog, limits=ha.Limits(max_running=10)) as runtime:
        toolset = RuntimeToolset(runtime, identity=who, timeout=30)
        agent = Agent(model(), deps_type=str, toolsets=[toolset])
        run = await agent.run("What will the weather be in Oslo?", deps="ann")
    for message in run.all_messages():
        for part in message.parts:
            if part.part_kind == "tool-return":
                print(part.tool_call_id, part.outcome, part.content)
    print(run.output)


if __name__ == "__main__":
    anyio.run(main)
