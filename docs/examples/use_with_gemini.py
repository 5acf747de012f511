import json
from functools import partial

import anyio
import httpx2
from google import genai
from google.genai import types

import harbor_async as ha
from harbor_async.export import gemini


@ha.tool(name="weather.lookup", side_effect=ha.SideEffect.READ)
async def lookup(city: str, *, days: int = 1) -> list[float]:
    """Look up the temperatures of the next days.

    Args:
        city: City name, in English.
        days: Days ahead, 1 to 7.
    """
    return [21.0, 19.5, 18.0][:days]


catalog = ha.Catalog([lookup])


async def talk(client: genai.Client, question: str) -> str:
    """Ask the model until it calls no more tools."""
    no_loop_of_its_own = types.AutomaticFunctionCallingConfig(disable=True)
    config = types.GenerateContentConfig(tools=gemini.tools(catalog), automatic_function_calling=no_loop_of_its_own)
    contents = [{"role": "user", "parts": [{"text": question}]}]
    async with ha.Runtime(catalog) as runtime:
        while True:
            # The SDK's own async client runs on asyncio alone; in a thread the plain one runs on trio, too.
            generate = partial(client.models.generate_content, model="gemini-3-pro", contents=contents, config=config)
            response = await anyio.to_thread.run_sync(generate)
            calls = gemini.calls(response, catalog)
            if not calls:
                return response.text
            results = await runtime.invoke_many(calls, timeout=10)
            contents += [response.candidates[0].content, *gemini.answers(results)]


def model(request: httpx2.Request) -> httpx2.Response:
    """Stand in for the provider: call a tool, its int as a float, then say what it answered."""
    asked = json.loads(request.content)
    last = asked["contents"][-1]["parts"][0]
    if "text" in last:
        declaration = asked["tools"][0]["functionDeclarations"][0]
        print("offered:", declaration["name"])
        part = {"functionCall": {"name": declaration["name"], "args": {"city": "Oslo", "days": 2.0}}}
    else:
        answer = last["functionResponse"]
        print("answered:", answer["name"], json.dumps(answer["response"]))
        part = {"text": "It will be 21 degrees."}
    return httpx2.Response(200, json={"candidates": [{"content": {"role": "model", "parts": [part]}}]})


async def main() -> None:
    options = types.HttpOptions(client_args={"transport": httpx2.MockTransport(model)})
    with genai.Client(api_key="none", http_options=options) as client:
        print(await talk(client, "How warm will it be in Oslo?"))


if __name__ == "__main__":
    anyio.run(main)
