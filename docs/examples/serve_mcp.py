import functools

import anyio
import attrs
from mcp import Client

import harbor_async as ha
from harbor_async.serving.mcp import Content, Image, MCPServer, Text

PIXEL = b"\x89PNG\r\n\x1a\n"  # and so on


@attrs.frozen
class Forecast:
    city: str
    temps: list[float]


@ha.tool(name="weather.lookup", side_effect=ha.SideEffect.READ)
async def lookup(context: ha.ToolContext, city: str, *, days: int = 1) -> Forecast:
    """Look up the weather for a city."""
    temps = []
    for day in range(days):
        temps.append(4.5 + day)
        context.report_progress(day + 1, days, f"day {day + 1}")
    return Forecast(city, temps)


@ha.tool(name="weather.map", side_effect=ha.SideEffect.READ)
async def draw(city: str) -> Content:
    """Draw a map."""
    return Content([Text(f"The sky over {city}:"), Image(PIXEL, "image/png")])


catalog = ha.Catalog([lookup, draw])


async def hear(done: float, total: float | None, message: str | None) -> None:
    print(f"  {message}: {done:g} of {total:g}")


async def main() -> None:
    async with ha.Runtime(catalog) as runtime, anyio.create_task_group() as group:
        server = MCPServer(runtime, name="weather")
        port = await group.start(functools.partial(server.serve_http, port=0))

        async with Client(f"http://127.0.0.1:{port}/mcp") as client:
            for tool in (await client.list_tools()).tools:
                print(tool.name, "read only" if tool.annotations.read_only_hint else "")
            result = await client.call_tool("weather.lookup", {"city": "Oslo", "days": 2}, progress_callback=hear)
            print(result.structured_content)
            result = await client.call_tool("weather.lookup", {"town": "Oslo"})
            print(result.is_error, result.content[0].text)
            result = await client.call_tool("weather.map", {"city": "Oslo"})
            print([block.type for block in result.content])

        group.cancel_scope.cancel()


if __name__ == "__main__":
    anyio.run(main)
