"""The built-in tools of the benchmark."""

import math
from random import Random
from statistics import median, quantiles
from time import thread_time

import anyio
import pytest

import harbor_async as ha
from harbor_async.cli._bench_load import Load
from harbor_async.cli._bench_tools import synthetic_catalog
from tests.unit.cli.bench import measure


def tool(name, seed=1):
    return synthetic_catalog(Random(seed)).resolve(name)


def test_they_are_pure_and_have_defaults():
    """Four tools without an effect, each of which needs no argument."""
    tools = synthetic_catalog(Random(1)).list()
    assert {"sleep", "cpu", "fail", "tail"} == {tool.name for tool in tools}
    assert {ha.SideEffect.PURE} == {tool.side_effect for tool in tools}
    assert [[]] * 4 == [tool.args_schema.get("required", []) for tool in tools]


@pytest.mark.virtual
async def test_sleep_takes_its_time():
    """``sleep`` takes the seconds that it is given, and 10 ms by itself."""
    start = anyio.current_time()
    assert (await tool("sleep").invoke('{"seconds": 0.25}')).error is None
    assert math.isclose(0.25, anyio.current_time() - start)
    assert (await tool("sleep").invoke("{}")).error is None
    assert math.isclose(0.26, anyio.current_time() - start)


async def test_cpu_computes():
    """``cpu`` takes the processor for its seconds, and lets no other task run."""
    others = 0

    async def other() -> None:
        nonlocal others
        others += 1

    async with anyio.create_task_group() as group:
        group.start_soon(other)
        before = thread_time()
        await tool("cpu")(seconds=0.005)
        assert 0 == others
    assert thread_time() - before >= 0.005


@pytest.mark.virtual
async def test_fail_fails_in_so_many_of_a_hundred_calls():
    """Of 1,000 calls of ``fail`` with 25 percent a quarter fails, but for chance, each after one attempt."""
    record = await measure(tool("fail"), Load(in_flight=100, count=1000), arguments='{"percent": 25}')
    failed = record.tally.ends[ha.Outcome.FAILED, "unknown"]
    assert failed == record.tally.failures
    assert math.isclose(250, failed, abs_tol=4 * math.sqrt(1000 * 0.25 * 0.75))
    assert record.elapsed < 10 * 0.01 + 0.001  # 10 calls a worker, none of them retried


@pytest.mark.virtual
@pytest.mark.parametrize(("percent", "count"), [(0, 0), (100, 50)])
async def test_fail_never_and_always(percent, count):
    """With 0 percent no call fails, with 100 each."""
    record = await measure(tool("fail"), Load(in_flight=5, count=50), arguments=f'{{"percent": {percent}}}')
    assert count == record.tally.failures


@pytest.mark.virtual
async def test_tail_is_log_normal():
    """The times of ``tail`` have the median that it is given, and one in a hundred is 10 medians or more: e^2.326."""
    function = tool("tail")
    times = []
    for _ in range(2000):
        start = anyio.current_time()
        await function(median=0.5)
        times.append(anyio.current_time() - start)
    # Four standard errors of a quantile: √(p(1-p)/n) / density, as a share of the quantile.
    assert math.isclose(0.5, median(times), rel_tol=0.12)
    assert math.isclose(0.5 * math.exp(2.326), quantiles(times, n=100)[-1], rel_tol=0.34)


@pytest.mark.virtual
async def test_tail_without_spread_and_without_a_median():
    """With sigma 0 each call takes the median, and with a median of 0 no time."""
    start = anyio.current_time()
    await tool("tail")(median=0.5, sigma=0)
    assert math.isclose(0.5, anyio.current_time() - start)
    await tool("tail")(median=0)
    assert math.isclose(0.5, anyio.current_time() - start)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("sleep", '{"seconds": -1}'),
        ("cpu", '{"seconds": 1e9}'),
        ("fail", '{"percent": 101}'),
        ("tail", '{"sigma": -1}'),
        ("tail", '{"mean": 1}'),
    ],
)
def test_arguments_without_sense_are_refused(name, arguments):
    """A time or a share that makes no sense is refused before anything is measured."""
    with pytest.raises(ha.errors.InvalidArgumentsError):
        tool(name).decode(arguments)
