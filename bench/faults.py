"""What a call costs that does not go well, against one by hand that does."""

import logging

from harbor_async import Backoff, Catalog, Runtime, SideEffect, ToolPolicy, ToolResult, describe

from .codec import FAULTS, FAULTY
from .hand import sequence_by_hand
from .pair import Effort, Pair, Row, measure
from .work import ARGUMENTS, Forecast, Options, check, forecast

FLOOR = "one good call by hand"


async def faults(effort: Effort, backend: str) -> list[Row]:
    """Time a call whose first attempt fails and whose second follows at once, and one with four faulty arguments."""
    logging.getLogger("stamina").addHandler(logging.NullHandler())  # not a line on the terminal for each retry
    failed = False

    async def flaky(city: str, tags: list[str], opts: Options, days: int = 3) -> Forecast:
        """Fail at every other attempt."""
        nonlocal failed
        failed = not failed
        if failed:
            msg = "the line is down"
            raise ConnectionError(msg)
        return await forecast(city, tags, opts, days)

    at_once = ToolPolicy(wait=Backoff(initial=0.0))
    tools = [describe(flaky, side_effect=SideEffect.PURE, policy=at_once), describe(forecast)]
    async with Runtime(Catalog(tools)) as runtime:

        async def retried(calls: int) -> None:
            text = ""
            for _ in range(calls):
                result = await runtime.invoke("flaky", ARGUMENTS)
                assert result.attempts == 2, result
                text = result.content
            check(text)

        async def refused(calls: int) -> None:
            for _ in range(calls):
                result = await runtime.invoke("forecast", FAULTY)
                assert result.error is not None, result
            check_refusal(await runtime.invoke("forecast", FAULTY))

        return [
            await measure(Pair("retried once, no wait", FLOOR, sequence_by_hand, retried, target=20.0), effort),
            await measure(Pair("refused with 4 faults", FLOOR, sequence_by_hand, refused, target=8.0), effort),
        ]


def check_refusal(result: ToolResult) -> None:
    """Stop a run whose calls were not refused for all of their faults."""
    assert result.error is not None, result
    assert {problem.path for problem in result.error.problems} == FAULTS, result
