import anyio
from agents import Agent, RunConfig, Runner
from agents.testing import ScriptedModel, assistant_message, function_call
from agents.tool_context import ToolContext

import harbor_async as ha
from harbor_async.adapters import openai_agents


@ha.tool(name="weather.lookup", side_effect="read", scopes={"weather:read"})
async def lookup(city: str, *, days: int = 1) -> list[float]:
    """Look up the temperatures of the next days."""
    return [21.0, 19.5, 18.0][:days]


catalog = ha.Catalog([lookup])


def call(id: str, **args: object) -> object:
    return function_call("weather--lookup", args, call_id=id)


def model() -> ScriptedModel:
    """Stand in for a provider: two calls at once, one of them wrong; then the mended one; then an answer."""
    first = [call("c1", city="Rome", days=None), call("c2", city="Oslo", days="two")]
    return ScriptedModel([first, [call("c3", city="Oslo", days=2)], [assistant_message("21.0, then 19.5.")]])


def who(context: ToolContext[str]) -> ha.Identity:
    return ha.Identity("acme", context.context, "s1", scopes={"weather:read"})


async def main() -> None:
    async with ha.Runtime(catalog, limits=ha.Limits(max_running=10)) as runtime:
        tools = openai_agents.tools(runtime, identity=who, timeout=30)
        agent = Agent[str]("clerk", model=model(), tools=tools)
        config = RunConfig(tracing_disabled=True)
        run = await Runner.run(agent, "What will the weather be in Oslo?", context="ann", run_config=config)
    for item in run.to_input_list():
        if item.get("type") == "function_call_output":
            print(item["call_id"], item["output"])
    print(run.final_output)


if __name__ == "__main__":
    anyio.run(main)
