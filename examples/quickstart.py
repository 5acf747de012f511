import anyio

import harbor_async as ha


@ha.tool(side_effect="read", policy=ha.ToolPolicy(timeout=2.0, attempts=3))
async def forecast(city: str, *, days: int = 1) -> dict[str, list[int]]:
    """Look up the weather for a city.

    Args:
        city: City name, in English.
        days: Days ahead, 1 to 7.
    """
    return {city: [7 + day for day in range(days)]}


calls = [  # as a model sends them
    ha.ToolCall("1", "forecast", '{"city": "Oslo", "days": 2}'),
    ha.ToolCall("2", "forecast", '{"town": "Oslo", "days": "two"}'),
    ha.ToolCall("3", "forecst", "{}"),
]


async def main() -> None:
    async with ha.Runtime(ha.Catalog([forecast]), limits=ha.Limits(max_running=100)) as rt:
        for result in await rt.invoke_many(calls, timeout=5.0):
            print(result.call_id, result.outcome, result.error.message if result.error else result.value)


if __name__ == "__main__":
    anyio.run(main)  # or anyio.run(main, backend="trio")
