"""Makes calls as a load says, and measures them. It runs in a process of its own, beside nothing but the tool."""

import math
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import count as count_from, islice, repeat, takewhile
from random import Random
from time import monotonic
from typing import Final, TypeAlias

import anyio
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint

from .._results import ToolCall
from .._runtime import Runtime
from ._bench_load import Arrivals, Ended, Load, Phase, Sample
from ._bench_meter import Meter
from ._run import invoke

Send: TypeAlias = Callable[[Sample], Awaitable[None]]

TICK: Final = 0.1
"""Seconds between two samples."""
PROBE: Final = 0.01
"""Seconds between two looks at how late the event loop's timers are."""
_MOST_IN_A_ROW: Final = 100
"""Late calls that are begun before other tasks get a turn: under too high a rate those that run go on, and those that
are still to be begun take no memory."""


def arrivals(load: Load, rate: float, start: float) -> Iterator[float]:
    """Yield when the calls of an open loop are due, without end.

    Args:
        load: Says what lies between two calls.
        rate: Calls a second.
        start: When the first is due, or for Poisson arrivals when to begin to wait for it.
    """
    if load.arrivals is Arrivals.CONSTANT:
        for number in count_from():
            yield start + number / rate
    chance = Random(load.seed)  # noqa: S311 - arrivals, no secret
    due = start
    while True:
        due += chance.expovariate(rate)
        yield due


class Bench:
    """Measures one tool. Made inside the event loop that it measures."""

    def __init__(
        self,
        runtime: Runtime,
        call: ToolCall,
        load: Load,
        timeout: float | None,
        send: Send,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Prepare to measure.

        Args:
            runtime: Answers the calls.
            call: What is called, time and again.
            load: How.
            timeout: The deadline of each call, in seconds. None: no deadline.
            send: Takes a sample every ``TICK`` and at the end of each phase.
            clock: Seconds. Not the event loop's own by default: that of uvloop has milliseconds, and stands still while
                the loop is busy.
        """
        self._runtime = runtime
        self._call = call
        self._load = load
        self._timeout = timeout
        self._send = send
        self._clock = clock
        self._scope = anyio.CancelScope()
        self._meter = Meter(self._clock(), is_open=load.rate is not None)
        self._elapsed = 0.0
        self._cause = ""

    def stop(self, code: int, cause: str) -> None:  # noqa: ARG002 - as tools that end the program say it
        """End it early, with what has been measured; ``cause`` says why."""
        self._cause = self._cause or cause
        self._scope.cancel()

    async def run(self) -> Ended:
        """Warm up, then measure until every call that counts has ended, or ``stop`` is called."""
        load, meter = self._load, self._meter
        async with anyio.create_task_group() as group:
            group.start_soon(self._watch_timers)
            group.start_soon(self._tell)
            with self._scope:
                if load.warm_up:
                    await self._make_calls(load.warm_up, None)
                await self._send(meter.turn(Phase.MEASURING, self._clock()))
                await self._make_calls(load.duration, load.count)
            group.cancel_scope.cancel()
        last = meter.read(self._clock())
        await self._send(last)
        if meter.phase is Phase.WARMING_UP:
            return Ended(0.0, 0, 0.0, self._cause)
        return Ended(self._elapsed or last.time, meter.cut, meter.oldest, self._cause)

    async def _make_calls(self, duration: float | None, count: int | None) -> None:
        """Make the calls of one phase and wait for them."""
        load = self._load
        start = self._clock()
        end = math.inf if duration is None else start + duration
        async with anyio.create_task_group() as calls:
            if load.rate is None:
                turns = repeat(None) if count is None else repeat(None, count)
                for _ in range(load.in_flight):
                    calls.start_soon(self._work, turns, end)
            else:
                dues = islice(arrivals(load, load.rate, start), count)
                calls.start_soon(self._pace, takewhile(lambda due: due < end, dues), calls)
            if duration is not None:
                await self._sleep_until(end)
                if self._meter.phase is Phase.MEASURING:
                    sample = self._meter.turn(Phase.WAITING, self._clock())
                    self._elapsed = sample.time
                    await self._send(sample)

    async def _work(self, turns: Iterator[None], end: float) -> None:
        """Make one call after the other: closed loop."""
        for _ in turns:
            now = self._clock()
            if now >= end:
                break
            await self._make_call(now)
            await checkpoint()  # a tool that never waits would leave no turn to the others

    async def _pace(self, dues: Iterable[float], group: TaskGroup) -> None:
        """Begin each call when it is due, whatever becomes of the others: open loop."""
        row = 0
        for due in dues:
            if due > self._clock():
                await self._sleep_until(due)
                row = 0
            elif row == _MOST_IN_A_ROW:
                await checkpoint()
                row = 0
            group.start_soon(self._make_call, due)
            row += 1

    async def _make_call(self, due: float) -> None:
        meter = self._meter
        begun = self._clock()
        meter.begin(begun)
        result = None
        try:
            result = await invoke(self._runtime, self._call, self._timeout, self.stop)
        finally:
            meter.end(due, begun, self._clock(), result)

    async def _watch_timers(self) -> None:
        """Note how late a timer would come that is due now, every ``PROBE``: those that a stall hides count, too."""
        due = self._clock()
        while True:
            await self._sleep_until(due)
            now = self._clock()
            while due <= now:
                self._meter.lags.append(now - due)
                due += PROBE

    async def _sleep_until(self, due: float) -> None:
        """Sleep, and again where a timer comes early: uvloop's are rounded to milliseconds."""
        await checkpoint()
        while (left := due - self._clock()) > 0:  # noqa: ASYNC110 - time is all that it waits for
            await anyio.sleep(left)

    async def _tell(self) -> None:
        while True:
            await anyio.sleep(TICK)
            await self._send(self._meter.read(self._clock()))
