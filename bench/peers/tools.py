"""The work of ``bench.work`` as the peers want it: typed with pydantic, returning what each makes JSON of itself."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal

from pydantic import BaseModel

Function = Callable[..., Awaitable[Any]]
Answer = Callable[[str], Awaitable[str]]
"""From the JSON text of the arguments to the JSON text of the result."""
Pause = Callable[[float], Awaitable[Any]]


class Options(BaseModel):
    unit: Literal["c", "f"]
    precise: bool


class Forecast(BaseModel):
    city: str
    temps: list[float]
    summary: str


def to_text(**fields: Any) -> str:
    return Forecast(**fields).model_dump_json()


ENDS: Final[dict[str, tuple[Callable[..., Any], type]]] = {
    "model": (Forecast, Forecast),
    "dict": (dict, dict),
    "text": (to_text, str),
}


def make_function(returns: str, pause: Pause | None = None) -> Function:
    """Return the function that a peer registers.

    Args:
        returns: A key of ``ENDS``: what it returns.
        pause: Awaited first, with the seconds to sleep, if given.
    """
    end, annotation = ENDS[returns]

    async def forecast(city: str, tags: list[str], opts: Options, days: int = 3) -> Any:
        """Forecast the weather of a city.

        Args:
            city: Its name.
            tags: Which readings to include.
            opts: Unit and precision.
            days: Days ahead.
        """
        if pause is not None:
            await pause(0.01)
        unit = opts["unit"] if isinstance(opts, dict) else opts.unit  # who does not validate hands over what came
        return end(city=city, temps=[20.5] * days, summary=f"{len(tags)} tags in {unit}")

    forecast.__annotations__["return"] = annotation
    return forecast
