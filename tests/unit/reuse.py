"""Tools that end in every way there is, calls of them, and what each call must be answered."""

import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import partial
from typing import Any, Literal

import anyio
import attrs
import msgspec
from anyio.lowlevel import checkpoint

from harbor_async import (
    Backoff,
    Catalog,
    Failure,
    Identity,
    Limits,
    Runtime,
    ToolCall,
    ToolContext,
    ToolError,
    ToolPolicy,
    ToolResult,
    tool,
)

AT_ONCE = ToolPolicy(wait=Backoff(initial=0))
RUNTIME: ContextVar[Runtime] = ContextVar("runtime")
"""The runtime of the loop in which a tool runs, for nested calls."""


@attrs.frozen
class Options:
    unit: Literal["c", "f"]
    days: list[int]


@attrs.frozen
class Forecast:
    city: str
    unit: str
    temps: dict[str, float]


@tool
async def add(a: int, b: int = 1) -> int:
    return a + b


@tool
async def forecast(city: str, options: Options) -> Forecast:
    await checkpoint()
    return Forecast(city, options.unit, {str(day): day + 0.5 for day in options.days})


@tool
def shout(text: str) -> str:
    return text.upper()


@tool(policy=AT_ONCE, side_effect="read")
def flaky_thread(fails: int, context: ToolContext) -> int:
    if context.attempt <= fails:
        raise ConnectionError("reset")
    return context.attempt


@tool(policy=AT_ONCE)
async def flaky(fails: int, context: ToolContext) -> int:
    await checkpoint()
    if context.attempt <= fails:
        raise ConnectionResetError(f"attempt {context.attempt}")
    return context.attempt


@tool(policy=AT_ONCE, side_effect="write")
async def writes(n: int) -> None:
    await checkpoint()
    raise ConnectionError(f"write {n}")


@tool
async def breaks(n: int) -> int:
    raise LookupError(f"no {n}")


@tool
async def refuses(n: int) -> int:
    raise ToolError(f"taken {n}", category="conflict", delivery="refused")


@tool
async def lies(n: int) -> list[int]:
    return [n, "text"]  # type: ignore[list-item]


def _account(n: int) -> str:
    return f"account {n % 3}"


def _is_even(n: int) -> bool:
    return n % 2 == 0


def _in_own_words(failure: Failure, _: Any) -> str:
    return f'"{failure.category}"'


@tool(
    policy=AT_ONCE,
    exclusive=_account,
    idempotent=_is_even,
    max_running=2,
    weight=2,
    side_effect="write",
    render=_in_own_words,
)
async def pays(n: int) -> int:
    await checkpoint()
    raise ToolError("no money", category="api_request")


@tool(scopes={"admin"})
async def admin() -> None:
    raise AssertionError("nobody here may")


async def _double(call: ToolCall, *_: Any) -> dict[str, int]:
    await checkpoint()
    return {"n": 2 * call.arguments["n"]}


@tool(approve=_double)
async def approved(n: int) -> int:
    return n


@tool
async def nests(a: int) -> list[Any]:
    runtime = RUNTIME.get()
    inner = await runtime.invoke_many([ToolCall("x", "shout", {"text": "x"}), ToolCall("y", "add", {})])
    return [
        await runtime.call(add, a, 2),
        *(result.error.category if result.error else result.value for result in inner),
    ]


@tool
async def tells(context: ToolContext) -> list[Any]:
    return [context.call_id, context.tool, context.attempt, context.identity and context.identity.user]


TOOLS = [add, forecast, shout, flaky_thread, flaky, writes, breaks, refuses, lies, pays, admin, approved, nests, tells]

Answer = tuple[str, Any, int, str | None]
"""Outcome, value or category, attempts and why there were no more."""


def _ok(value: Any, attempts: int = 1) -> Answer:
    return "succeeded", value, attempts, None


def _flaky(fails: int) -> Answer:
    return _ok(fails + 1, fails + 1) if fails < 4 else _GIVEN_UP


_GIVEN_UP: Answer = ("failed", "api_request", 4, "attempts")
_INVALID: Answer = ("failed", "validation", 0, "invalid")
KINDS: list[Callable[[int], tuple[str, Any, Answer]]] = [
    lambda n: ("add", {"a": n}, _ok(n + 1)),
    lambda n: ("add", f'{{"a": {n}, "b": {n}}}', _ok(2 * n)),
    lambda n: ("add", f'{{"b": {n}, "a": {n}}}'.encode(), _ok(2 * n)),
    lambda n: (
        "forecast",
        {"city": f"c{n}", "options": {"unit": "cf"[n % 2], "days": [n]}},
        _ok(Forecast(f"c{n}", "cf"[n % 2], {str(n): n + 0.5})),
    ),
    lambda n: ("shout", {"text": f"a{n}"}, _ok(f"A{n}")),
    lambda n: ("flaky_thread", {"fails": n % 3}, _ok(n % 3 + 1, n % 3 + 1)),
    lambda n: ("flaky", {"fails": n % 6}, _flaky(n % 6)),
    lambda n: ("writes", {"n": n}, ("failed", "api_request", 1, "unsafe")),
    lambda n: ("breaks", {"n": n}, ("failed", "unknown", 1, "permanent")),
    lambda n: ("refuses", {"n": n}, ("failed", "conflict", 1, "permanent")),
    lambda n: ("lies", {"n": n}, ("failed", "unknown", 1, "invalid")),
    lambda n: ("pays", {"n": n}, ("failed", "api_request", 1, "unsafe") if n % 2 else _GIVEN_UP),
    lambda n: ("admin", "", ("rejected", "auth_failed", 0, "rejected")),
    lambda n: ("approved", {"n": n}, _ok(2 * n)),
    lambda n: ("nests", {"a": n}, _ok([n + 2, "X", "validation"])),
    lambda n: ("tells", "", _ok([str(n), "tells", 1, "somebody"])),
    lambda n: ("missing", {}, ("failed", "not_found", 0, "invalid")),
    lambda n: ("add", {"b": "text", f"key{n}": n}, _INVALID),
    lambda n: ("forecast", f'{{"city": {n}, "options": {{"unit": "k", "days": ["x"]}}}}', _INVALID),
    lambda n: ("add", '{"a": ', _INVALID),
]


def make_calls(count: int) -> tuple[list[ToolCall], dict[str, Answer]]:
    """Return calls of all kinds in turn, and their answers by id."""
    calls, answers = [], {}
    for n in range(count):
        kind = (n + n // len(KINDS)) % len(KINDS)  # or each kind would only see numbers of one remainder
        name, arguments, answers[str(n)] = KINDS[kind](n)
        calls.append(ToolCall(str(n), name, arguments))
    return calls, answers


async def _one_by_one(runtime: Runtime, calls: list[ToolCall]) -> list[ToolResult]:
    return [await runtime.invoke(call.name, call.arguments, id=call.id) for call in calls]


async def _many(runtime: Runtime, calls: list[ToolCall]) -> list[ToolResult]:
    return await runtime.invoke_many(calls, timeout=600)


async def _stream(runtime: Runtime, calls: list[ToolCall]) -> list[ToolResult]:
    async with runtime.stream(calls) as results:
        return [result async for result in results]


async def _handles(runtime: Runtime, calls: list[ToolCall]) -> list[ToolResult]:
    async with runtime.batch() as batch:
        handles = [batch.start(call) for call in calls]
        return [await handle.result() for handle in handles]


WAYS = [_one_by_one, _many, _stream, _handles]
LIMITS = [
    Limits(max_threads=2),
    Limits(max_threads=2, max_running=1),
    Limits(max_threads=1, max_running=7),
    Limits(max_threads=3, max_running=50),
]
GROUP = 30


def serve(backend: str, calls: list[ToolCall], catalog: Catalog, begin: threading.Barrier) -> dict[str, Any]:
    """Have a loop of this thread's own answer ``calls``, in several runtimes at once and in all ways in turn.

    It begins when every thread has come to ``begin``.

    Returns:
        By id: each field of a result but ``elapsed``.
    """
    seen: dict[str, Any] = {}

    async def work(groups: Iterator[tuple[int, list[ToolCall]]], limits: Limits) -> None:
        async with Runtime(catalog, limits=limits, identity=Identity("t", "somebody", "s")) as runtime:
            RUNTIME.set(runtime)
            for number, group in groups:
                for result in await WAYS[(number + number // len(LIMITS)) % len(WAYS)](runtime, group):
                    assert result.call_id not in seen
                    seen[result.call_id] = fields(result)

    async def main() -> None:
        groups = enumerate(calls[at : at + GROUP] for at in range(0, len(calls), GROUP))
        shares: list[list[tuple[int, list[ToolCall]]]] = [[] for _ in LIMITS]
        for number, group in groups:
            shares[number % len(LIMITS)].append((number, group))
        async with anyio.create_task_group() as tasks:
            for share, limits in zip(shares, LIMITS, strict=True):
                tasks.start_soon(work, iter(share), limits)

    begin.wait(15)
    anyio.run(main, backend=backend)
    return seen


def fields(result: ToolResult) -> dict[str, Any]:
    """Return each field of a result but ``elapsed``; of the cause, which is compared by identity, type and text."""
    told = msgspec.structs.asdict(result)
    del told["elapsed"]
    cause = result.error and result.error.cause
    return told | {"error": result.error, "cause": cause and (type(cause), str(cause)), "content": result.content}


def summary(told: dict[str, Any]) -> Answer:
    value = told["error"].category if told["error"] else told["value"]
    return told["outcome"], value, told["attempts"], told["stop_reason"]


def in_threads(work: list[Callable[[], dict[str, Any]]]) -> list[dict[str, Any]]:
    """Run each of ``work`` in a thread of its own, all at once."""
    results: list[Any] = [None] * len(work)

    def run(index: int, each: Callable[[], dict[str, Any]]) -> None:
        try:
            results[index] = each()
        except BaseException as exc:  # noqa: BLE001 - told by the caller
            results[index] = exc

    threads = [threading.Thread(target=partial(run, index, each)) for index, each in enumerate(work)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    errors = [result for result in results if isinstance(result, BaseException)]
    if errors:
        raise BaseExceptionGroup("threads", errors)
    return results
