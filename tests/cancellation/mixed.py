"""Tools of every kind that is hard to cancel, and batches that mix them."""

import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
from anyio import from_thread
from anyio.lowlevel import checkpoint
from anyio.to_thread import current_default_thread_limiter

from harbor_async import (
    Backoff,
    Join,
    Runtime,
    ToolCall,
    ToolContext,
    ToolDescriptor,
    ToolPolicy,
    ToolResult,
    describe,
)
from tests.unit.thread.gate import assert_free, limited

PLACES = 3
THREADS = 2
Answer = tuple[str, Any, int, str | None]
"""Outcome, value or category, attempts and why there were no more."""


Body = Callable[["Floor"], Awaitable["list[ToolResult]"]]


class Floor:
    """The tools, how many of them run, and all batches that were made.

    Attributes:
        runtime: The runtime whose tools they are.
        live: Runs of coroutine functions, now.
        threads: Runs of plain functions, now.
        batches: Every batch, those of nested calls too.
        handles: Every handle.
    """

    def __init__(self, timeout: float | None) -> None:
        policy = ToolPolicy(timeout, 3, Backoff(initial=0.25, jitter=0))
        self.live = 0
        self.threads = 0
        self.batches: list[Any] = []
        self.handles: list[Any] = []
        self._lock = threading.Lock()
        self._pause = threading.Event()
        effect = {"shields": "write", "writes": "write"}
        self.tools: dict[str, ToolDescriptor[..., Any]] = {
            name: describe(getattr(self, name), policy=policy, side_effect=effect.get(name, "read"))
            for name in (
                *("steps", "hangs", "swallows", "shields", "retries", "gives_up", "nests", "deepens"),
                *("reads", "reads_again", "writes", "gives", "calls_back"),
            )
        }

    @contextmanager
    def _running(self) -> Iterator[None]:
        self.live += 1
        try:
            yield
        finally:
            self.live -= 1

    @contextmanager
    def _in_thread(self) -> Iterator[None]:
        with self._lock:
            self.threads += 1
        try:
            yield
        finally:
            with self._lock:
                self.threads -= 1

    async def steps(self) -> str:
        with self._running():
            for _ in range(3):
                await checkpoint()
            await anyio.sleep(0.5)
        return "steps"

    async def hangs(self) -> None:
        with self._running():
            await anyio.sleep_forever()

    async def swallows(self) -> str:
        with self._running():
            try:
                await anyio.sleep_forever()
            except anyio.get_cancelled_exc_class():
                return "swallowed"

    async def shields(self) -> str:
        with self._running(), anyio.CancelScope(shield=True):
            await anyio.sleep(0.75)
        return "sent"

    async def retries(self, context: ToolContext) -> str:
        with self._running():
            await anyio.sleep(0.125)
            if context.attempt < 3:
                raise ConnectionError("reset")
        return "at last"

    async def gives_up(self) -> str:
        with self._running():
            await checkpoint()
            raise ConnectionError("reset")

    async def nests(self) -> list[Any]:
        with self._running():
            async with self.batch() as batch:
                first = self.start(batch, "retries")
                late = self.start(batch, "hangs")
                self.start(batch, "reads")
                await first.result()
                late.cancel()
        return [summary(result)[1] for result in batch.results]

    async def deepens(self, levels: int, last: str) -> str:
        with self._running():
            if levels:
                return await self.runtime.call(self.tools["deepens"], levels - 1, last)
            results = await self.runtime.invoke_many(calls_of("shields", last))
        return " ".join(str(result.value) for result in results)

    def reads(self) -> str:
        with self._in_thread():
            self._pause.wait(0.0005)
        return "read"

    def reads_again(self, context: ToolContext) -> str:
        with self._in_thread():
            if context.attempt < 2:
                raise ConnectionError("reset")
        return "read"

    def writes(self) -> str:
        with self._in_thread():
            self._pause.wait(0.0005)
        return "written"

    def gives(self):
        with self._in_thread():
            return self.steps()

    def calls_back(self) -> str:
        with self._in_thread():
            return from_thread.run(self.runtime.call, self.tools["steps"])

    def batch(self, **options: Any) -> Any:
        batch = self.runtime.batch(**options)
        self.batches.append(batch)
        return batch

    def start(self, batch: Any, name: str, **arguments: Any) -> Any:
        handle = batch.start(ToolCall(str(len(self.handles)), name, arguments))
        self.handles.append(handle)
        return handle

    def open(self) -> Runtime:
        """Make a runtime for one run of a scenario."""
        self.batches.clear()
        self.handles.clear()
        self.runtime = limited(*self.tools.values(), threads=THREADS, max_running=PLACES)
        return self.runtime

    async def check(self, *, is_joined: bool) -> None:
        """Assert that nothing runs, that every call is answered and that every place is free."""
        assert not is_joined or (0, 0) == (self.live, self.threads)
        assert all(handle.done for handle in self.handles)
        assert all(result is not None for batch in self.batches for result in batch.results)
        assert len(self.handles) == sum(len(batch.results) for batch in self.batches)
        await assert_free(self.runtime)
        before = anyio.current_time()
        results = await self.runtime.invoke_many(calls_of(*["steps"] * PLACES))
        assert [("succeeded", "steps", 1, None)] * PLACES == list(map(summary, results))
        assert before + 0.5 == anyio.current_time()
        assert (0, 0) == (self.live, self.threads)
        counted = self.runtime.statistics()
        assert (0, 0, 0, 0) == (counted.running, counted.queued, counted.threads, counted.background)
        assert 0 == current_default_thread_limiter().borrowed_tokens


def calls_of(*names: str) -> list[ToolCall]:
    """Return a call of each; ``deepens name`` is one of ``name`` four tools down."""
    calls = []
    for number, (name, _, last) in enumerate(name.partition(" ") for name in names):
        calls.append(ToolCall(str(number), name, {"levels": 2, "last": last} if last else ""))
    return calls


def summary(result: ToolResult) -> Answer:
    value = result.error.category.value if result.error else result.value
    return result.outcome.value, value, result.attempts, result.stop_reason


def ok(value: Any, attempts: int = 1) -> Answer:
    return "succeeded", value, attempts, None


async def by_handles(floor: Floor) -> list[ToolResult]:
    """Start all kinds by handles, wait for some of them elsewhere, cancel one that runs and one that waits."""
    answers = []

    async def wait(handle: Any) -> None:
        answers.append(await handle.result())

    async with anyio.create_task_group() as group, floor.batch() as batch:
        swallows = floor.start(batch, "swallows")
        shields = floor.start(batch, "shields")
        for name in ("nests", "retries", "reads_again", "gives", "steps"):
            group.start_soon(wait, floor.start(batch, name))
        floor.start(batch, "steps").cancel()
        await shields.result()
        swallows.cancel()
    assert all(answer in batch.results for answer in answers)
    return batch.results


async def at_once(floor: Floor) -> list[ToolResult]:
    """Ask for all kinds at once."""
    return await floor.runtime.invoke_many(
        calls_of("deepens reads", "writes", "nests", "retries", "gives_up", "reads_again", "shields", "gives")
    )


async def as_they_end(floor: Floor) -> list[ToolResult]:
    """Read a stream to its end."""
    names = ("retries", "nests", "shields", "gives", "reads", "steps")
    async with floor.runtime.stream(calls_of(*names, *names)) as results:
        return [result async for result in results]


async def leaving(floor: Floor) -> list[ToolResult]:
    """Leave a stream while all kinds of calls run."""
    async with floor.runtime.stream(calls_of("retries", "hangs", "nests", "gives", "hangs")) as results:
        async for result in results:
            return [result]
    raise AssertionError("no result came")


async def until_one_succeeds(floor: Floor) -> list[ToolResult]:
    """Have enough with one success while others hang, wait for a retry or for a place."""
    async with floor.batch(join=Join.FIRST_SUCCESS) as batch:
        for name in ("hangs", "shields", "retries", "reads_again", "nests"):
            floor.start(batch, name)
    return batch.results


async def from_threads(floor: Floor) -> list[ToolResult]:
    """Call tools from the threads of tools."""
    return await floor.runtime.invoke_many(
        calls_of("calls_back", "deepens calls_back", "retries", "calls_back", "steps", "reads_again")
    )


CANCELED: Answer = ("failed", "canceled", 1, "canceled")
QUEUED: Answer = ("failed", "canceled", 0, "canceled")
NESTED = ok(["at last", "canceled", "read"])
AGAIN = ok("read", 2)
LAST = ok("at last", 3)
STEPS = ok("steps")
ANSWERS: dict[Body, list[Answer]] = {
    by_handles: [CANCELED, ok("sent"), NESTED, LAST, AGAIN, STEPS, STEPS, QUEUED],
    at_once: [
        *(ok("sent read"), ok("written"), NESTED, LAST, ("failed", "api_request", 3, "attempts")),
        *(AGAIN, ok("sent"), STEPS),
    ],
    as_they_end: [LAST, NESTED, ok("sent"), STEPS, ok("read"), STEPS] * 2,
    until_one_succeeds: [CANCELED, ok("sent"), ("failed", "canceled", 2, "canceled"), QUEUED, QUEUED],
    from_threads: [STEPS, ok("sent steps"), LAST, STEPS, STEPS, AGAIN],
}
"""The answers of each batch when nobody cuts it, in whatever order."""
