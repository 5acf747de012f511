"""What a type checker sees: a tool keeps its function's signature, a call its result's type.

Read by mypy and pyright, never run. Each ignored line must be an error to both: an ignore that is not needed is one.
"""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from collections.abc import AsyncIterable, Iterable
from typing import Any, assert_type

import attrs

import harbor_async as ha
from harbor_async import schema


@attrs.frozen
class Forecast:
    city: str
    temps: list[float]


@ha.tool
async def bare(city: str) -> Forecast:
    return Forecast(city, [])


@ha.tool(
    name="weather.lookup",
    side_effect=ha.SideEffect.READ,
    scopes={"weather:read"},
    policy=ha.ToolPolicy(timeout=2.0, attempts=3, wait=ha.Backoff(jitter=0)),
)
async def lookup(city: str, *, days: int = 1) -> Forecast:
    return Forecast(city, [20.5] * days)


@ha.tool
def plain(city: str, *, days: int = 1) -> Forecast:
    return Forecast(city, [20.5] * days)


@ha.tool(side_effect="read", policy=ha.ToolPolicy(timeout=1))
def temperature(context: ha.ToolContext, city: str) -> float:
    return 20.5


def doubled(n: int) -> int:
    return 2 * n


async def with_context(context: ha.ToolContext, city: str) -> int:
    return context.attempt + len(city)


async def a_tool_is_its_function() -> None:
    assert_type(await bare("Oslo"), Forecast)
    assert_type(await lookup("Oslo", days=2), Forecast)
    await lookup()  # type: ignore[call-arg]
    await lookup(1)  # type: ignore[arg-type]
    await lookup("Oslo", 2)  # type: ignore[call-arg]
    await lookup("Oslo", hours=2)  # type: ignore[call-arg]


async def a_plain_function_is_awaited() -> None:
    assert_type(await plain("Oslo", days=2), Forecast)
    await plain("Oslo", 2)  # type: ignore[call-arg]
    assert_type(await temperature(ha.ToolContext("1", "temperature", 1, 0.0), "Oslo"), float)
    assert_type(await ha.describe(doubled, name="twice")(2), int)


async def describe_keeps_the_signature() -> None:
    described = ha.describe(with_context, name="counted")
    assert_type(described.tool, ha.Tool)
    assert_type(await described(ha.ToolContext("1", "counted", 1, 0.0), "Oslo"), int)


async def a_program_calls_with_types(rt: ha.Runtime) -> None:
    assert_type(await rt.call(lookup, "Oslo", days=2), Forecast)
    assert_type(await rt.call(plain, "Oslo", days=2), Forecast)
    assert_type(await rt.call(ha.describe(doubled), 2), int)
    await rt.call(lookup, 1)  # type: ignore[arg-type]
    await rt.call(plain, 1)  # type: ignore[arg-type]
    await rt.call(lookup, "Oslo", hours=2)  # type: ignore[call-arg]


async def a_model_calls_with_text(rt: ha.Runtime, calls: Iterable[ha.ToolCall]) -> None:
    assert_type(await rt.invoke("weather.lookup", '{"city": "Oslo"}'), ha.ToolResult)
    assert_type(await rt.invoke("weather.lookup", b"{}", timeout=1.0), ha.ToolResult)
    assert_type(await rt.invoke("weather.lookup", {"city": "Oslo"}, timeout=None), ha.ToolResult)
    assert_type(await rt.invoke_many(calls, timeout=5), list[ha.ToolResult])
    await rt.invoke("weather.lookup", 1)  # type: ignore[arg-type]


async def a_stream_takes_both_kinds_of_iterable(
    rt: ha.Runtime, calls: Iterable[ha.ToolCall], arriving: AsyncIterable[ha.ToolCall]
) -> None:
    async with rt.stream(calls) as results:
        async for result in results:
            assert_type(result, ha.ToolResult)
    async with rt.stream(arriving, timeout=1.0) as results:
        async for result in results:
            assert_type(result, ha.ToolResult)


async def a_batch_gives_handles(rt: ha.Runtime, call: ha.ToolCall) -> None:
    async with rt.batch(timeout=1.0, join=ha.Join.at_least(2)) as batch:
        handle = batch.start(call)
        assert_type(handle.done, bool)
        assert_type(await handle.result(), ha.ToolResult)
        batch.start("call")  # type: ignore[arg-type]
    assert_type(await rt.invoke_many([call], join=ha.Join.FIRST_SUCCESS, atomic=True), list[ha.ToolResult])


async def a_runtime_is_its_context(catalog: ha.Catalog) -> None:
    async with ha.Runtime(catalog, limits=ha.Limits(max_running=2)) as rt:
        assert_type(rt, ha.Runtime)


def a_catalog_resolves() -> None:
    catalog = ha.Catalog([lookup, bare])
    assert_type(catalog.resolve("weather.lookup"), ha.ToolDescriptor[..., Any])
    assert_type(catalog.register_func("twice", doubled), ha.ToolDescriptor[..., Any])
    assert_type(catalog.register_func("counted", with_context), ha.ToolDescriptor[..., Any])
    assert_type(catalog.list(ha.CatalogFilter(scopes={"weather:read"}, loading=["always"])), list[ha.Tool])


def a_result_says_what_it_holds(result: ha.ToolResult) -> None:
    assert_type(result.outcome, ha.Outcome)
    assert_type(result.error, ha.Failure | None)
    assert_type(result.content, str)
    if result.error is not None:
        assert_type(result.error.category, ha.ErrorCategory)
        assert_type(result.error.problems, tuple[ha.Problem, ...])


def a_schema_is_a_dict() -> None:
    assert_type(schema.derive_schema(Forecast), dict[str, Any])
