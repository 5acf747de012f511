"""The work that is timed: a small forecast, once as a tool and once as one would write it by hand.

Both get the same JSON text and end with JSON text of the same value. The tool is typed: a nested attrs class, a
``Literal``, a list, an attrs result, and the default policy (a timeout of 30 s, four attempts, the output checked).
By hand nothing is validated and nothing is bounded.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import attrs

Sleep = Callable[[float], Awaitable[None]]

ARGUMENTS = '{"city": "Lisbon", "days": 5, "tags": ["rain", "wind", "uv"], "opts": {"unit": "c", "precise": true}}'
ANSWER = {"city": "Lisbon", "temps": [20.5] * 5, "summary": "3 tags in c"}
PAUSE = 0.01
"""Seconds that a sleeping call sleeps."""


@attrs.frozen
class Options:
    unit: Literal["c", "f"]
    precise: bool


@attrs.frozen
class Forecast:
    city: str
    temps: list[float]
    summary: str


async def forecast(city: str, tags: list[str], opts: Options, days: int = 3) -> Forecast:
    """Forecast the weather of a city.

    Args:
        city: Its name.
        tags: Which readings to include.
        opts: Unit and precision.
        days: Days ahead.
    """
    return Forecast(city=city, temps=[20.5] * days, summary=f"{len(tags)} tags in {opts.unit}")


async def forecast_by_hand(city: str, tags: list[str], opts: dict[str, Any], days: int = 3) -> dict[str, Any]:
    return {"city": city, "temps": [20.5] * days, "summary": f"{len(tags)} tags in {opts['unit']}"}


def make_sleeping(sleep: Sleep) -> tuple[Callable[..., Awaitable[Forecast]], Callable[..., Awaitable[dict[str, Any]]]]:
    """Return the tool's function and the one by hand that sleep with the backend's own ``sleep`` first."""

    async def slow_forecast(city: str, tags: list[str], opts: Options, days: int = 3) -> Forecast:
        """Forecast the weather of a city."""
        await sleep(PAUSE)
        return Forecast(city=city, temps=[20.5] * days, summary=f"{len(tags)} tags in {opts.unit}")

    async def by_hand(city: str, tags: list[str], opts: dict[str, Any], days: int = 3) -> dict[str, Any]:
        await sleep(PAUSE)
        return {"city": city, "temps": [20.5] * days, "summary": f"{len(tags)} tags in {opts['unit']}"}

    return slow_forecast, by_hand


def check(*texts: str) -> None:
    """Stop a run that would time something else than the work."""
    for text in texts:
        assert json.loads(text) == ANSWER, text
