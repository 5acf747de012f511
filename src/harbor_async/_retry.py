"""The waits between the attempts of a call, and whether there is another attempt."""

from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, suppress
from typing import Any, cast

import anyio

from ._backoff import plan_retry
from ._call import Call
from ._classify import single_leaf
from ._policy import ToolPolicy
from ._settle import guard
from ._trouble import Trouble


class Retries:
    """The waits between the attempts of one call. stamina counts, waits and tells the host's instrumentation."""

    def __init__(self, policy: ToolPolicy) -> None:
        import stamina  # noqa: PLC0415 - as in plan_retry

        self._pause = pause = [0.0]
        self._error: BaseException | None = None
        self._attempts = policy.attempts
        self._turns: AsyncIterator[stamina.Attempt] | None = None
        self._turn: AbstractContextManager[None] | None = None
        self._context = stamina.retry_context(on=lambda _: pause[0], attempts=policy.attempts, timeout=None)

    async def wait(self, call: Call, trouble: Trouble, pause: float) -> Any:
        """Wait ``pause`` seconds after ``trouble``; None when the next attempt may begin, else how the call ends."""
        self._pause[0] = pause
        self._error = trouble.error
        if self._turn is None:
            self._turns = aiter(self._context)
            self._turn = await anext(self._turns)
        with self._turn:
            assert trouble.error is not None  # noqa: S101 - without one no retry is planned
            raise trouble.error
        ended = await guard(call, self._next)
        if ended is False:
            trouble.stop_reason = "attempts"
            return trouble
        return None if ended is True else ended

    async def _next(self, call: Call) -> bool:
        """Wait for the next turn; False when stamina has counted to its end, or we have in its place."""
        if self._turns is not None:
            try:
                self._turn = await anext(self._turns)
            except Exception as exc:  # noqa: BLE001 - told apart below
                if exc is self._error:
                    return False
                self._turns = None  # an instrumentation hook of the host broke, which must not change the answer
            else:
                return True
        if self._attempts is not None and call.attempts >= self._attempts:
            return False  # where the host is testing, nobody else has counted
        self._turn = suppress(Exception)
        await anyio.sleep(self._pause[0])
        return True


def plan(call: Call, trouble: Trouble) -> float | None:
    """Return the wait before the next attempt; None after noting in ``trouble`` why there is none."""
    if call.is_background and not call.function.may_repeat(call):
        trouble.stop_reason = "unsafe"
        return None
    assert trouble.verdict is not None  # noqa: S101 - what has no stop reason has an error and its verdict
    plan = plan_retry(
        call.function.policy,
        cast("Exception", single_leaf(cast("Exception", trouble.error))),
        trouble.verdict,
        is_effect=call.function.tool.declares_effect and not call.function.may_repeat(call),
        attempts=call.attempts,
        remaining=call.deadline - call.backend.time(),
        random=call.host.random,
    )
    if isinstance(plan, str):
        trouble.stop_reason = plan
        return None
    return plan
