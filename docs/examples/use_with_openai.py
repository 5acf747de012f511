import json

import anyio
import httpx2
from openai import AsyncOpenAI

import harbor_async as ha
from harbor_async.export import openai


@ha.tool(name="weather.lookup", side_effect=ha.SideEffect.READ)
async def lookup(city: str, *, days: int = 1) -> list[float]:
    """Look up the temperatures of the next days.

    Args:
        city: City name, in English.
        days: Days ahead, 1 to 7.
    """
    return [21.0, 19.5, 18.0][:days]


catalog = ha.Catalog([lookup])


async def talk(client: AsyncOpenAI, question: str) -> str:
    """Ask the model until it calls no more tools."""
    tools = openai.tools(catalog)
    messages = [{"role": "user", "content": question}]
    async with ha.Runtime(catalog) as runtime:
        while True:
            completion = await client.chat.completions.create(model="gpt-5", messages=messages, tools=tools)
            message = completion.choices[0].message
            calls = openai.calls(message, catalog)
            if not calls:
                return message.content
            results = await runtime.invoke_many(calls, timeout=10)
            messages += [message, *openai.answers(results)]


def model(request: httpx2.Request) -> httpx2.Response:
    """Stand in for the provider: call a tool, then say what it answered."""
    asked = json.loads(request.content)
    last = asked["messages"][-1]
    if last["role"] == "user":
        function = asked["tools"][0]["function"]
        print("offered:", function["name"], json.dumps(function["parameters"]["properties"]["days"]))
        call = {"name": function["name"], "arguments": '{"city": "Oslo", "days": null}'}
        message = {"tool_calls": [{"id": "call_1", "type": "function", "function": call}]}
    else:
        print("answered:", last["tool_call_id"], last["content"])
        message = {"content": "It will be 21 degrees."}
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
    body = {"id": "1", "object": "chat.completion", "created": 0, "model": asked["model"], "choices": [choice]}
    return httpx2.Response(200, json=body)


async def main() -> None:
    transport = httpx2.MockTransport(model)
    async with AsyncOpenAI(api_key="none", http_client=httpx2.AsyncClient(transport=transport)) as client:
        print(await talk(client, "How warm will it be in Oslo?"))


if __name__ == "__main__":
    anyio.run(main)
