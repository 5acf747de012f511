import json

import anyio
import httpx2
from anthropic import AsyncAnthropic

import harbor_async as ha
from harbor_async.export import anthropic


@ha.tool(name="weather.lookup", side_effect=ha.SideEffect.READ)
async def lookup(city: str, *, days: int = 1) -> list[float]:
    """Look up the temperatures of the next days.

    Args:
        city: City name, in English.
        days: Days ahead, 1 to 7.
    """
    return [21.0, 19.5, 18.0][:days]


catalog = ha.Catalog([lookup])


async def talk(client: AsyncAnthropic, question: str) -> str:
    """Ask the model until it calls no more tools."""
    tools = anthropic.tools(catalog, strict="auto")
    messages = [{"role": "user", "content": question}]
    async with ha.Runtime(catalog) as runtime:
        while True:
            message = await client.messages.create(
                model="claude-sonnet-4-6", max_tokens=1000, messages=messages, tools=tools
            )
            calls = anthropic.calls(message, catalog)
            if not calls:
                return message.content[0].text
            results = await runtime.invoke_many(calls, timeout=10)
            messages += [{"role": "assistant", "content": message.content}, *anthropic.answers(results)]


def model(request: httpx2.Request) -> httpx2.Response:
    """Stand in for the provider: call a tool twice, once wrongly, then say what it answered."""
    asked = json.loads(request.content)
    last = asked["messages"][-1]
    if isinstance(last["content"], str):
        tool = asked["tools"][0]
        print("offered:", tool["name"], "strict" if tool["strict"] else "")
        content = [
            {"type": "tool_use", "id": "toolu_1", "name": tool["name"], "input": {"city": "Oslo", "days": 2}},
            {"type": "tool_use", "id": "toolu_2", "name": "weather_map", "input": {}},
        ]
    else:
        for block in last["content"]:
            print("answered:", block["tool_use_id"], "error" if block.get("is_error") else "", block["content"])
        content = [{"type": "text", "text": "It will be 21 degrees."}]
    body = {"id": "1", "type": "message", "role": "assistant", "model": asked["model"], "content": content}
    return httpx2.Response(200, json={**body, "usage": {"input_tokens": 0, "output_tokens": 0}})


async def main() -> None:
    transport = httpx2.MockTransport(model)
    async with AsyncAnthropic(api_key="none", http_client=httpx2.AsyncClient(transport=transport)) as client:
        print(await talk(client, "How warm will it be in Oslo?"))


if __name__ == "__main__":
    anyio.run(main)
