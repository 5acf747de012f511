"""A runtime under fire for minutes: random tools, faults, cancels and deadlines, with thousands of calls in flight.

``python -m bench.soak [--backend trio] [--seconds 600]`` prints what happened and exits with 1 when a call was not
answered exactly once, when the memory grew, or when a task, a thread or a place was left.
"""

import argparse
import logging
import sys
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from random import Random
from resource import getpagesize
from statistics import median
from typing import Final

import anyio
import attrs

from harbor_async import (
    Backoff,
    Catalog,
    EventType,
    Identity,
    Join,
    Limits,
    Runtime,
    SideEffect,
    Statistics,
    ToolCall,
    ToolContext,
    ToolError,
    ToolEvent,
    ToolPolicy,
    ToolResult,
    tool,
)

BATCH: Final = 20
AIM: Final = 1.25
"""How many calls to begin with, as a multiple of those wanted: on a machine that gets idle they are answered sooner."""
LIMITS: Final = Limits(max_running=500, max_threads=16, max_running_per_tenant=200)
SAMPLES: Final = 200
GROWTH: Final = 1.05
"""What the last tenth of the time may need of the memory of the second one."""
WARM: Final = 30.0
"""Seconds. In a shorter run the memory is still warming up, and idle worker threads are not waited for: neither is
judged."""
PATIENCE: Final = 15.0
"""Seconds in which an idle worker thread of either backend ends."""
BRISK: Final = ToolPolicy(timeout=0.05, attempts=3, wait=Backoff(initial=0.005, maximum=0.02))
ENDS: Final = frozenset(EventType) - {
    EventType.INVOKED,
    EventType.ATTEMPT,
    EventType.RETRY,
    EventType.PROGRESS,
    EventType.CANCEL_IGNORED,
}


@tool
async def quick(n: int) -> int:
    """Return at once."""
    return n


@tool(policy=BRISK)
async def slow(n: int) -> int:
    """Sleep, now and then past the timeout."""
    await anyio.sleep(n % 60 / 1000)
    return n


@tool(policy=BRISK)
async def failing(n: int) -> int:
    """Raise one thing or another."""
    await anyio.sleep(n % 5 / 1000)
    error = (ConnectionError, ValueError, TimeoutError, ToolError)[n % 4]
    raise error(n)


@tool(policy=BRISK, side_effect=SideEffect.EXTERNAL, exclusive=lambda n: f"account {n % 50}")
async def paying(n: int) -> int:
    """Have an effect, one at a time for each account."""
    await anyio.sleep(n % 10 / 1000)
    return n


@tool(policy=BRISK)
async def retried(context: ToolContext, n: int) -> int:
    """Succeed in the third attempt."""
    await anyio.sleep(n % 3 / 1000)
    if context.attempt < BRISK.attempts:
        raise ConnectionError
    return n


@tool(policy=BRISK, max_running=100)
async def nested(context: ToolContext, n: int) -> int:
    """Call others."""
    context.report_progress(0, 2)
    return await context.call(quick, n) + await context.call(slow, n)


@tool(policy=BRISK)
async def stubborn(n: int) -> int:
    """Swallow a cancellation, and return late."""
    try:
        await anyio.sleep(n % 100 / 1000)
    except anyio.get_cancelled_exc_class():
        return -n
    return n


@tool(policy=BRISK, weight=2)
async def careful(n: int) -> int:
    """Clean up behind a shield."""
    try:
        await anyio.sleep(n % 70 / 1000)
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.sleep(0.002)
    return n


@tool(policy=BRISK)
def blocking(n: int) -> int:
    """Block a thread, now and then past the timeout."""
    time.sleep(0.06 if n % 100 == 0 else 0.001)
    return n


TOOLS: Final = (quick, slow, failing, paying, retried, nested, stubborn, careful, blocking)
NAMES: Final = [*(item.name for item in TOOLS), "no_such_tool"]
TENANTS: Final = [None, *(Identity(f"tenant {number}", "user", "session") for number in range(5))]


@attrs.define
class Ledger:
    """What has become of the calls: a sink that hears of each, and what the callers got."""

    open: set[str] = attrs.field(factory=set)
    faults: list[str] = attrs.field(factory=list)
    sent: int = 0
    answers: Counter[str] = attrs.field(factory=Counter)
    abandoned: int = 0
    events: int = 0

    async def emit(self, event: ToolEvent) -> None:
        self.events += 1
        if not event.call_id:  # made from within another one
            return
        if event.type is EventType.INVOKED:
            if event.call_id in self.open:
                self.faults.append(f"{event.call_id} began twice")
            self.open.add(event.call_id)
        elif event.call_id not in self.open:
            self.faults.append(f"{event.call_id}: {event.type} after its end")
        elif event.type in ENDS:
            self.open.remove(event.call_id)

    def take(self, calls: list[ToolCall], results: list[ToolResult]) -> None:
        """Check the answers of calls against them: one each, in their order."""
        if [call.id for call in calls] != [result.call_id for result in results]:
            self.faults.append(f"answers of {calls[0].id} to {calls[-1].id} are missing or mixed up")
        for result in results:
            self.answers[result.outcome if result.error is None else f"{result.outcome} / {result.error.category}"] += 1


class Driver:
    """Sends batches, one after the other, each in another way."""

    def __init__(self, runtime: Runtime, ledger: Ledger, random: Random, ids: "count[int]") -> None:
        self.runtime = runtime
        self.ledger = ledger
        self.random = random
        self.ids = ids
        self.ways: list[Callable[[list[ToolCall]], Awaitable[None]]] = [
            self.all_at_once,
            self.until_some_succeed,
            self.by_handles,
            self.as_they_end,
            self.one_by_one,
            self.hung_up,
        ]

    async def run(self, end: float) -> None:
        """Send batches until ``end``, on the event loop's clock."""
        while anyio.current_time() < end:
            names = self.random.choices(NAMES, k=BATCH)
            calls = [ToolCall(str(next(self.ids)), name, {"n": self.random.randrange(10**6)}) for name in names]
            self.ledger.sent += BATCH
            await self.random.choice(self.ways)(calls)

    async def all_at_once(self, calls: list[ToolCall]) -> None:
        who = self.random.choice(TENANTS)
        timeout = self.random.choice([None, 0.0, 0.02, 0.2])
        self.ledger.take(calls, await self.runtime.invoke_many(calls, timeout=timeout, identity=who))

    async def until_some_succeed(self, calls: list[ToolCall]) -> None:
        join = self.random.choice([Join.FIRST_SUCCESS, Join.at_least(5)])
        self.ledger.take(calls, await self.runtime.invoke_many(calls, join=join))

    async def by_handles(self, calls: list[ToolCall]) -> None:
        async with self.runtime.batch(timeout=self.random.choice([None, 0.1])) as batch:
            handles = [batch.start(call) for call in calls]
            await anyio.sleep(self.random.random() * 0.03)
            for handle in self.random.sample(handles, 5):
                handle.cancel()
            if self.random.random() < 0.2:
                batch.cancel()
        self.ledger.take(calls, [await handle.result() for handle in handles])

    async def as_they_end(self, calls: list[ToolCall]) -> None:
        async with self.runtime.stream(calls) as stream:
            results = [result async for result in stream]
        self.ledger.take(calls, sorted(results, key=lambda result: int(result.call_id)))

    async def one_by_one(self, calls: list[ToolCall]) -> None:
        async def send(call: ToolCall) -> None:
            result = await self.runtime.invoke(call.name, call.arguments, id=call.id, timeout=0.1)
            self.ledger.take([call], [result])

        async with anyio.create_task_group() as group:
            for call in calls:
                group.start_soon(send, call)

    async def hung_up(self, calls: list[ToolCall]) -> None:
        with anyio.move_on_after(self.random.random() * 0.05):
            self.ledger.take(calls, await self.runtime.invoke_many(calls))
            return
        self.ledger.abandoned += BATCH


def memory() -> int:
    """Return the bytes that this process has in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * getpagesize()


@attrs.define
class Soak:
    """One run, and what is wrong with it."""

    ledger: Ledger
    seconds: float
    samples: list[int] = attrs.field(factory=list)
    in_flight: list[int] = attrs.field(factory=list)
    statistics: Statistics | None = None
    tasks_left: int = 0

    async def run(self, in_flight: int, seed: int) -> None:
        before = len(anyio.get_running_tasks())
        random, ids = Random(seed), count(1)
        async with Runtime(Catalog(TOOLS), limits=LIMITS, sinks=[self.ledger]) as runtime:
            end = anyio.current_time() + self.seconds
            async with anyio.create_task_group() as group:
                aim = round(AIM * in_flight)
                lacking = aim
                while anyio.current_time() < end:
                    # Most batches wait for their last calls, so that more are needed than so many calls would fill. As
                    # many as they are in the first tenth they are to the end, or their own memory would grow.
                    for _ in range(lacking // BATCH if len(self.samples) < SAMPLES // 10 else 0):
                        group.start_soon(Driver(runtime, self.ledger, Random(random.random()), ids).run, end)
                    await anyio.sleep(self.seconds / SAMPLES)
                    self.samples.append(memory())
                    now = runtime.statistics()
                    self.in_flight.append(now.running + now.queued)
                    lacking = aim - self.in_flight[-1]
            for _ in range(100):
                self.statistics = runtime.statistics()
                if not self.statistics.threads:
                    break
                await anyio.sleep(0.05)
        self.tasks_left = len(anyio.get_running_tasks()) - before

    def growth(self) -> float:
        """Return the memory of the last tenth of the time, as a multiple of the second tenth's."""
        tenth = len(self.samples) // 10
        return median(self.samples[-tenth:]) / median(self.samples[tenth : 2 * tenth])

    def faults(self, threads: int) -> list[str]:
        """Return all that is wrong."""
        ledger, left = self.ledger, self.statistics
        faults = ledger.faults[:10]
        answered = ledger.answers.total() + ledger.abandoned
        if answered != ledger.sent:
            faults.append(f"{ledger.sent} calls were sent and {answered} answered or given up")
        if ledger.open:
            faults.append(f"{len(ledger.open)} calls have no last event")
        if left is None or left.running or left.queued or left.threads or left.dropped_events:
            faults.append(f"left in the runtime: {left}")
        if self.seconds >= WARM and self.growth() > GROWTH:
            faults.append(f"the memory grew to {self.growth():.3f} times what it was")
        if self.tasks_left:
            faults.append(f"{self.tasks_left} tasks are left")
        if threads:
            faults.append(f"{threads} threads are left")
        return faults


def main(arguments: list[str] | None = None) -> int:
    """Run, print the figures, and return 1 if something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description="A runtime under fire for minutes.")
    parser.add_argument("--backend", choices=["asyncio", "trio"], default="asyncio")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--in-flight", type=int, default=2000, help=f"calls at once, in batches of {BATCH}; about")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)

    logging.getLogger("stamina").disabled = True  # which tells of each retry
    soak = Soak(Ledger(), options.seconds)
    anyio.run(soak.run, options.in_flight, options.seed, backend=options.backend)
    waited_until = time.monotonic() + PATIENCE
    while options.seconds >= WARM and threading.active_count() > 1 and time.monotonic() < waited_until:
        time.sleep(0.1)
    threads = threading.active_count() - 1 if options.seconds >= WARM else 0
    ledger = soak.ledger
    print(f"{options.backend}, {options.seconds:g} s, seed {options.seed}")
    print(f"{ledger.sent:,} calls, {ledger.sent / options.seconds:,.0f} a second; {ledger.events:,} events")
    print(f"in flight: half of the time over {median(soak.in_flight):,.0f}, at most {max(soak.in_flight):,}")
    for outcome, calls in ledger.answers.most_common():
        print(f"  {calls:>9,} {outcome}")
    print(f"  {ledger.abandoned:>9,} given up by their callers")
    print(f"memory {median(soak.samples) / 1e6:.0f} MB; the last tenth {soak.growth():.3f} of the second")
    faults = soak.faults(threads)
    print("\n".join(faults) or "every call was answered once, and nothing is left")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
