"""The tools of a small shop, for ``make demo``. They answer from memory: no network, and the same answer each time."""

from enum import StrEnum
from typing import Annotated

import anyio
import attrs
from msgspec import Meta

import harbor_async as ha
from harbor_async.schema import Name


class Currency(StrEnum):
    EUR = "EUR"
    GBP = "GBP"
    NOK = "NOK"
    USD = "USD"


class Status(StrEnum):
    OPEN = "open"
    SHIPPED = "shipped"
    CANCELED = "canceled"


@attrs.frozen
class Forecast:
    city: str
    celsius: list[int]


@attrs.frozen
class Order:
    id: str
    status: Status
    total: float


@attrs.frozen
class OrderQuery:
    """What to look for; everything that is given must fit."""

    status: Status | None = None
    least: Annotated[float, Meta(ge=0, description="Lowest total, in euros.")] = 0.0
    limit: Annotated[int, Meta(ge=1, le=50)] = 10


@attrs.frozen
class Point:
    lat: Annotated[float, Meta(ge=-90, le=90)]
    lon: Annotated[float, Meta(ge=-180, le=180)]


Sku = Annotated[str, Meta(pattern=r"^[A-Z]{2}-[0-9]{4}$", description="As AB-1234.")]
OrderId = Annotated[str, Meta(pattern=r"^O-[0-9]{4}$", description="As O-1001.")]

RATES = {Currency.EUR: 1.0, Currency.GBP: 0.86, Currency.NOK: 11.5, Currency.USD: 1.08}
CITIES = {"Bergen": 9, "Lisbon": 21, "London": 14, "Oslo": 7, "Paris": 16}
ORDERS = [Order(f"O-{1000 + number}", list(Status)[number % 3], 12.5 * (number + 1)) for number in range(40)]


@ha.tool(name="weather.lookup", side_effect="read", tags=["weather"])
async def weather(city: str, *, days: Annotated[int, Meta(ge=1, le=7)] = 1) -> Forecast:
    """Look up the weather for a city.

    Args:
        city: City name, in English.
        days: Days ahead.
    """
    await anyio.sleep(0.02)
    if city not in CITIES:
        raise ha.ToolError("there is no forecast for this city", category="not_found")
    return Forecast(city, [CITIES[city] + day % 3 for day in range(days)])


@ha.tool(name="currency.convert", side_effect="pure")
async def convert(amount: float, source: Annotated[Currency, Name("from")], to: Currency) -> float:
    """Convert an amount of money at a fixed rate."""
    return round(amount / RATES[source] * RATES[to], 2)


@ha.tool(name="geo.distance", side_effect="pure")
async def distance(start: Point, end: Point) -> float:
    """Return the distance of two points in degrees, as on a flat map."""
    return round(((start.lat - end.lat) ** 2 + (start.lon - end.lon) ** 2) ** 0.5, 3)


@ha.tool(name="orders.search", side_effect="read", tags=["orders"])
async def search(query: OrderQuery, /) -> list[Order]:
    """Find orders, the oldest first."""
    await anyio.sleep(0.01)
    fitting = (order for order in ORDERS if query.status in {None, order.status} and order.total >= query.least)
    return list(fitting)[: query.limit]


@ha.tool(name="stock.check", side_effect="read", policy=ha.ToolPolicy(timeout=1.0, wait=ha.Backoff(initial=0.02)))
async def stock(sku: Sku, context: ha.ToolContext) -> int:
    """Say how many pieces of an article are in stock.

    Every third article needs a second attempt: its connection breaks at first. The runtime sees to that.
    """
    await anyio.sleep(0.005)
    number = int(sku[3:])
    if number % 3 == 0 and context.attempt == 1:
        raise ConnectionResetError
    return number % 17


@ha.tool(name="report.render", side_effect="read", policy=ha.ToolPolicy(timeout=1.0, attempts=1))
async def render(pages: Annotated[int, Meta(ge=1, le=500)]) -> str:
    """Render a report at 100 pages a second; the policy gives it one second."""
    await anyio.sleep(pages / 100)
    return f"report-{pages}.pdf"


@ha.tool(name="orders.refund", side_effect="external", tags=["orders"])
async def refund(order: OrderId, amount: Annotated[float, Meta(gt=0)]) -> str:
    """Pay money back.

    It declares an effect, so a broken connection is not tried again: nobody knows whether the money has left.
    """
    await anyio.sleep(0.03)
    total = next((known.total for known in ORDERS if known.id == order), 0.0)
    if amount > total:
        raise ha.ToolError("more than was paid", category="conflict", delivery="refused")
    if order.endswith("7"):
        raise ConnectionResetError
    return f"refunded {amount:.2f}"


catalog = ha.Catalog([weather, convert, distance, search, stock, render, refund])
