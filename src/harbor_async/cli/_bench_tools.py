"""The built-in tools of ``bench``: what tools may be like, without an effect."""

import math
from random import Random
from time import thread_time
from typing import Annotated

import anyio
import msgspec

from .._catalog import Catalog
from .._categories import ErrorClass, SideEffect
from .._declaration import describe
from ..errors import ToolError

_Seconds = Annotated[float, msgspec.Meta(ge=0, le=3600)]
_Percent = Annotated[float, msgspec.Meta(ge=0, le=100)]
_Sigma = Annotated[float, msgspec.Meta(ge=0, le=5)]


def synthetic_catalog(chance: Random) -> Catalog:
    """Return the built-in tools, with the default policy.

    Args:
        chance: Decides which calls of ``fail`` fail, and how long those of ``tail`` take.
    """

    async def sleep(seconds: _Seconds = 0.01) -> None:
        """Wait, as for a server that always takes the same time."""
        await anyio.sleep(seconds)

    async def cpu(seconds: _Seconds = 0.001) -> None:
        """Compute, for seconds of this thread's own time: the event loop does nothing else meanwhile."""
        end = thread_time() + seconds
        while thread_time() < end:
            pass

    async def fail(percent: _Percent = 10.0, seconds: _Seconds = 0.01) -> None:
        """Wait, and then fail in so many of a hundred calls, in a way that is not retried."""
        await anyio.sleep(seconds)
        if chance.uniform(0, 100) < percent:
            msg = "meant to fail"
            raise ToolError(msg, error_class=ErrorClass.PERMANENT)

    async def tail(median: _Seconds = 0.01, sigma: _Sigma = 1.0) -> None:
        """Wait for a time of a log-normal distribution: with sigma 1 one call in a hundred takes 10 medians."""
        await anyio.sleep(median * math.exp(sigma * chance.gauss()))

    return Catalog([describe(tool, side_effect=SideEffect.PURE) for tool in (sleep, cpu, fail, tail)])
