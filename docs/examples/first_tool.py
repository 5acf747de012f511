"""A coroutine function becomes a tool, and a model's calls are answered."""

import anyio
import attrs

import harbor_async as ha


@attrs.frozen
class Forecast:
    city: str
    temps: list[float]


@ha.tool(name="weather.lookup", side_effect=ha.SideEffect.READ)
async def lookup(city: str, *, days: int = 1) -> Forecast:
    """Look up the weather for a city.

    Args:
        city: City name, in English.
        days: Days ahead, 1 to 7.
    """
    return Forecast(city, [20.5] * days)


async def main() -> None:
    async with ha.Runtime(ha.Catalog([lookup])) as rt:
        result = await rt.invoke("weather.lookup", '{"city": "Oslo", "days": 2}')
        print(result.outcome, result.content)

        result = await rt.invoke("weather.lookup", '{"town": "Oslo", "days": "2"}')
        print(result.outcome, result.error and result.error.category)
        for problem in result.error.problems if result.error else ():
            print("   ", problem.path, problem.code)

        forecast = await rt.call(lookup, "Oslo", days=2)  # a program's call: typed, and an error is raised
        print(forecast.temps)


if __name__ == "__main__":
    anyio.run(main)
