"""What a synchronous tool is given, and what its value or its exception becomes. Real time, on every loop."""

import functools
import gc
import threading
from contextvars import ContextVar
from functools import partial
from typing import Any

import anyio
import pytest
from anyio import from_thread
from anyio.lowlevel import checkpoint

from harbor_async import (
    Backoff,
    Catalog,
    Runtime,
    SideEffect,
    ToolCall,
    ToolContext,
    ToolError,
    ToolPolicy,
    describe,
    tool,
)
from tests.unit.thread.gate import WAYS, Gate, assert_free, invoke, limited, make, ways

USER = ContextVar("USER", default="nobody")


async def test_a_plain_function_runs_in_another_thread():
    """R044: the thread is not the loop's, whichever way it is called, and the value comes back."""

    @tool
    def ident() -> int:
        """Say where this runs."""
        return threading.get_ident()

    assert ident.is_sync
    async with Runtime(Catalog([ident])) as runtime:
        idents = [
            (await runtime.invoke("ident")).value,
            *[result.value for result in await runtime.invoke_many([ToolCall("", "ident")] * 2)],
            await runtime.call(ident),
            await ident(),
            (await ident.invoke()).value,
        ]
    assert threading.get_ident() not in idents
    assert [int] * 6 == [type(one) for one in idents]


async def test_two_threads_run_at_once():
    """Plain functions of one batch do not wait for one another, nor the loop for them."""
    barrier = threading.Barrier(3, timeout=15)

    def meet(n: int) -> int:
        barrier.wait()
        return n

    async def turn() -> str:
        await anyio.to_thread.run_sync(barrier.wait)
        return "turned"

    async with Runtime(Catalog([make(meet), make(turn)])) as runtime:
        calls = [ToolCall("", "meet", {"n": 1}), ToolCall("", "turn"), ToolCall("", "meet", {"n": 2})]
        assert [1, "turned", 2] == [result.value for result in await runtime.invoke_many(calls)]


class Counter:
    def __init__(self, start: int) -> None:
        self.start = start

    def add(self, n: int) -> int:
        """Add."""
        return self.start + n

    def __call__(self, n: int) -> int:
        """Add."""
        return self.start + n

    @staticmethod
    def double(n: int) -> int:
        return 2 * n

    @classmethod
    def name_of(cls, n: int) -> str:
        return cls.__name__ * n


def logged(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


def scale(factor: int, n: int, *, key: str = "k") -> str:
    return f"{factor * n}{key}"


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (Counter(40).add, 42),
        (Counter(40), 42),
        (Counter.double, 4),
        (Counter.name_of, "CounterCounter"),
        (partial(scale, 3, key="x"), "6x"),
        (partial(Counter(1).add), 3),
        (logged(Counter(40).add), 42),
        (logged(partial(scale, 3)), "6k"),
    ],
    ids=lambda value: str(getattr(value, "__name__", type(value).__name__)),
)
async def test_every_kind_of_plain_function(function, expected):
    """Methods, callable instances, partials and wrapped functions that are plain run in a thread as well."""
    where = []

    @functools.wraps(function)
    def noted(*args, **kwargs):
        where.append(threading.get_ident())
        return function(*args, **kwargs)

    described = describe(noted, name="noted")
    assert described.is_sync
    assert expected == (await invoke(described, arguments='{"n": 2}')).value
    assert [threading.get_ident()] != where

    assert describe(function, name="itself").is_sync
    assert expected == (await invoke(describe(function, name="itself"), arguments='{"n": 2}')).value


async def test_arguments_are_checked_before_a_thread_is_taken(gate: Gate):
    """Bad arguments are answered with every problem, and no thread runs, though the only one is busy."""

    def held() -> None:
        gate.hold()

    def add(a: int, b: int) -> int:
        return a + b

    async with limited(make(held), make(add)) as runtime, anyio.create_task_group() as group:
        group.start_soon(runtime.invoke, "held")
        await gate.came()
        result = await runtime.invoke("add", '{"a": "1", "c": 2}')
        gate.open()
    assert ("failed", "validation", 0) == (result.outcome, result.error.category, result.attempts)
    assert {"/a", "/b", "/c"} == {problem.path for problem in result.error.problems}


async def test_the_output_of_a_thread_is_checked():
    """A value that the annotation denies is an invalid output, and the function is not run again."""
    runs = []

    def lies() -> int:
        runs.append(1)
        return "text"

    result = await invoke(make(lies, attempts=3))
    assert ("failed", "invalid", False) == (result.outcome, result.stop_reason, result.is_retryable)
    assert [1] == runs


async def test_a_thread_sees_the_callers_context_and_leaks_nothing():
    """N19: each attempt sees the caller's context variables, and neither the next nor the caller what it sets."""
    seen = []

    def leaks() -> str:
        seen.append(USER.get())
        USER.set("leaked")
        if len(seen) % 2:
            raise ConnectionError("again")
        return USER.get()

    USER.set("caller")
    async with limited(make(leaks, attempts=2)) as runtime:
        for way in ways(runtime, runtime.catalog.resolve("leaks")).values():
            await way()
            assert "caller" == USER.get()
    result = await runtime.catalog.resolve("leaks").invoke()
    assert ("leaked", 2) == (result.value, result.attempts)
    assert ["caller"] * 12 == seen
    assert "caller" == USER.get()


async def test_a_thread_sees_the_context_of_its_own_call():
    """Calls that are made in different contexts see each its own."""

    def who() -> str:
        return USER.get()

    values = {}
    async with limited(make(who), threads=2) as runtime, anyio.create_task_group() as group:

        async def ask(name):
            USER.set(name)
            values[name] = (await runtime.invoke("who")).value

        for name in ("ada", "bob", "cyd"):
            group.start_soon(ask, name)
    assert {"ada": "ada", "bob": "bob", "cyd": "cyd"} == values


async def test_a_plain_function_may_return_a_coroutine():
    """R051: what a plain function returns is awaited in the loop when it can be, and no coroutine is left over."""
    idents = []

    async def inner(n: int) -> int:
        idents.append(threading.get_ident())
        await checkpoint()
        return n + 1

    def outer(n: int):
        return inner(n)

    described = make(outer)
    assert described.is_sync
    async with Runtime(Catalog([described])) as runtime:
        values = [
            (await runtime.invoke("outer", {"n": 1})).value,
            (await runtime.invoke_many([ToolCall("", "outer", {"n": 2})]))[0].value,
            await runtime.call(described, 3),
            await described(4),
            (await described.invoke({"n": 5})).value,
        ]
    assert [2, 3, 4, 5, 6] == values
    assert {threading.get_ident()} == set(idents)
    gc.collect()


async def test_a_plain_wrapper_round_an_async_tool():
    """R051: a wrapper that is plain and says nothing of what it wraps gives the value all the same."""

    async def wrapped(n: int) -> int:
        await checkpoint()
        return n + 1

    def wrapper(n: int) -> int:
        return wrapped(n)

    assert 2 == (await invoke(make(wrapper), arguments={"n": 1})).value


async def test_an_async_wrapper_round_a_plain_tool():
    """R060: a plain tool that an async function calls through its descriptor still runs in a thread."""

    @tool
    def plain() -> int:
        return threading.get_ident()

    async def middleware() -> int:
        await checkpoint()
        return await plain()

    result = await invoke(make(middleware))
    assert result.outcome == "succeeded"
    assert threading.get_ident() != result.value


def identity(value: Any) -> Any:
    return value


async def test_a_value_that_cannot_be_awaited_is_the_value():
    """A plain function may return anything; None, a list and a class instance are themselves."""

    class Thing:
        pass

    thing = Thing()
    async with Runtime(Catalog([])) as runtime:
        for value in (None, [1], thing):
            assert value is await runtime.call(make(partial(identity, value), name="gives"))


async def test_the_awaited_value_is_bound_by_the_timeout():
    """The attempt's timeout holds for thread and coroutine together; no thread is left when it cuts the coroutine."""
    cleaned = []

    async def hang() -> None:
        try:
            await anyio.sleep(60)
        finally:
            cleaned.append(1)

    def outer():
        return hang()

    result = await invoke(make(outer, timeout=0.2))
    assert ("failed", "timeout", False) == (result.outcome, result.error.category, result.error.background)
    assert [1] == cleaned


async def test_a_context_is_filled_in():
    """A plain function gets the ``ToolContext`` of its call and attempt."""
    contexts = []

    def fails(context: ToolContext, n: int) -> int:
        contexts.append((context.call_id, context.tool, context.attempt))
        if context.attempt < 3:
            raise ConnectionError
        return n

    described = make(fails, attempts=3)
    assert {"n"} == set(described.tool.args_schema["properties"])
    assert 7 == (await invoke(described, arguments={"n": 7}, id="c1")).value
    assert [("c1", "fails", 1), ("c1", "fails", 2), ("c1", "fails", 3)] == contexts


async def test_exceptions_are_classified():
    """What a thread raises is classified and retried as what an async tool raises, with the exception as the cause."""
    runs = []
    errors = {
        "permanent": LookupError("no such city"),
        "transient": ConnectionResetError("reset"),
        "own": ToolError("busy", category="rate_limited", retry_after=0),
    }

    def fails(how: str) -> None:
        runs.append(how)
        raise errors[how]

    async with Runtime(Catalog([make(fails, attempts=3)])) as runtime:
        found = {how: await runtime.invoke("fails", {"how": how}) for how in errors}
    assert {"permanent": 1, "transient": 3, "own": 3} == {how: runs.count(how) for how in errors}
    assert errors == {how: result.error.cause for how, result in found.items()}
    assert {"permanent": "unknown", "transient": "api_request", "own": "rate_limited"} == {
        how: result.error.category for how, result in found.items()
    }
    assert ["permanent", "attempts", "attempts"] == [result.stop_reason for result in found.values()]
    assert not any(result.error.background for result in found.values())
    assert all(error.__traceback__ is None for error in errors.values())


async def test_a_declared_effect_is_not_repeated():
    """A plain function that declares an effect runs once when it is open whether it had it."""
    runs = []

    def sends() -> None:
        runs.append(1)
        raise ConnectionResetError("reset")

    result = await invoke(make(sends, attempts=3, side_effect=SideEffect.EXTERNAL))
    assert ("unsafe", True, 1) == (result.stop_reason, result.error.ambiguous, len(runs))


async def test_a_programs_call_gets_the_exception_itself():
    """``rt.call`` raises what the thread raised, with the frame that raised it and a note on the attempts."""
    error = LookupError("no such city")

    def fails(city: str) -> str:
        raise error

    async with Runtime(Catalog([])) as runtime:
        with pytest.raises(LookupError) as caught:
            await runtime.call(make(fails), "Oslo")
        with pytest.raises(TypeError):
            await runtime.call(make(fails), town="Oslo")
    assert error is caught.value
    assert ["tool 'fails': 1 attempt, stopped by 'permanent'"] == error.__notes__
    assert "fails" == caught.traceback[-1].name


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
async def test_an_interrupt_leaves_bare(interrupt, name):
    """``KeyboardInterrupt`` and ``SystemExit`` of a thread leave as themselves, and the place is free again."""

    def stops() -> None:
        raise interrupt

    async with limited(make(stops, attempts=3)) as runtime:
        with pytest.raises(interrupt):
            await ways(runtime, runtime.catalog.resolve("stops"))[name]()
        await assert_free(runtime)


@pytest.mark.parametrize("error", [GeneratorExit, StopIteration, StopAsyncIteration])
async def test_an_exception_that_coroutines_make_something_of(error):
    """A thread's ``GeneratorExit`` or ``StopIteration`` is a failure like any other, and ends nothing but its call."""

    def odd() -> None:
        raise error

    async with limited(make(odd)) as runtime:
        result = await runtime.invoke("odd")
        assert ("failed", "unknown") == (result.outcome, result.error.category)
        results = await runtime.invoke_many([ToolCall("1", "odd"), ToolCall("2", "meet")])
        assert ["failed", "succeeded"] == [result.outcome for result in results]


async def test_an_exception_leaves_no_cycle():
    """A failed call holds nothing: its frames die with its exception, without the garbage collector."""
    died = threading.Event()

    class Big:
        def __del__(self):
            died.set()

    def fails() -> None:
        big = Big()
        raise ValueError(str(big)[:0])

    described = make(fails)
    async with Runtime(Catalog([described])) as runtime:
        for ask in (partial(runtime.invoke, "fails"), partial(runtime.call, described), described):
            died.clear()
            gc.disable()
            try:
                await ask()
            except ValueError:
                assert not died.is_set()
            assert died.is_set()
            gc.enable()


async def test_an_exception_of_an_async_tool_leaves_no_cycle():
    """The same where no thread is between."""
    died = threading.Event()

    class Big:
        def __del__(self):
            died.set()

    async def fails() -> None:
        big = Big()
        raise ValueError(str(big)[:0])

    described = make(fails)
    async with Runtime(Catalog([described])) as runtime:
        for ask in (partial(runtime.invoke, "fails"), partial(runtime.call, described), described):
            died.clear()
            gc.disable()
            try:
                await ask()
            except ValueError:
                assert not died.is_set()
            assert died.is_set()
            gc.enable()


async def test_without_a_runtime():
    """``descriptor.invoke`` runs the whole shell round a thread: decoding, retries, encoding."""
    runs = []

    def fails_once(n: int) -> dict[str, int]:
        runs.append(n)
        if len(runs) == 1:
            raise TimeoutError
        return {"n": n}

    described = describe(fails_once, policy=ToolPolicy(wait=Backoff(initial=0)))
    result = await described.invoke('{"n": 3}', timeout=30)
    assert ("succeeded", 2, '{"n":3}') == (result.outcome, result.attempts, result.content)
    assert "validation" == (await described.invoke('{"n": "3"}')).error.category


async def test_a_thread_may_call_into_the_loop():
    """Inside a plain tool ``from_thread`` works, and the tool may call another through the runtime that way."""

    async def shout(text: str) -> str:
        await checkpoint()
        return text.upper()

    def nests() -> str:
        return from_thread.run(runtime.call, shouting, "oslo")

    shouting = make(shout)
    async with limited(make(nests)) as runtime:
        assert "OSLO" == (await runtime.invoke("nests")).value
