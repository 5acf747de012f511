"""Streams: backpressure, sources of every kind and their ends, and what a consumer may do. Virtual time."""

import itertools

import anyio
import pytest

from harbor_async import Catalog, HarborError, Limits, Runtime, ToolCall, describe
from harbor_async.errors import InvalidToolError
from harbor_async.testing import wait_all_tasks_blocked

pytestmark = pytest.mark.virtual


async def work(n: int, seconds: float = 1.0) -> int:
    await anyio.sleep(seconds)
    return n


def open_runtime(max_running=None):
    return Runtime(Catalog([describe(work)]), limits=Limits(max_running=max_running))


def call(n, seconds=1.0):
    return ToolCall(str(n), "work", {"n": n, "seconds": seconds})


class Source:
    """Calls without end; notes how many were pulled, and whether it was closed."""

    def __init__(self, count=None, seconds=1.0):
        self.numbers = itertools.count() if count is None else range(count)
        self.seconds = seconds
        self.pulled = 0
        self.is_closed = False

    def __iter__(self):
        for n in self.numbers:
            self.pulled += 1
            yield call(n, self.seconds)

    async def items(self):
        try:
            for item in self:
                yield item
        finally:
            self.is_closed = True


@pytest.fixture(params=["iterable", "async generator"])
def pull(request):
    return (lambda source: source) if request.param == "iterable" else Source.items


async def test_results_come_as_they_end():
    """The quickest first, whatever the order of the calls."""
    async with open_runtime() as runtime, runtime.stream([call(3, 3), call(1, 1), call(2, 2)]) as results:
        assert [(1, 1), (2, 2), (3, 3)] == [(result.value, anyio.current_time()) async for result in results]


async def test_no_more_calls_are_in_hand_than_may_run(pull):
    """Waiting, running and answered but not yet taken: together no more than ``max_running``, of an endless source."""
    source = Source()
    async with open_runtime(3) as runtime, runtime.stream(pull(source)) as results:
        await anyio.sleep(10)
        assert 3 == source.pulled
        taken = 0
        async for _ in results:
            taken += 1
            await wait_all_tasks_blocked()
            assert 3 + taken == source.pulled
            if taken == 7:
                break


async def test_an_endless_source_is_cut_by_leaving(pull):
    """Leaving the block ends a source without an end, and closes it if it is an async generator."""
    source = Source()
    async with open_runtime(2) as runtime:
        async with runtime.stream(pull(source)) as results:
            async for _ in results:
                break
        assert source.is_closed == (pull is Source.items)
        pulled = source.pulled
        await anyio.sleep(5)
        assert pulled == source.pulled


async def test_a_quick_source_without_end_lets_others_run():
    """Without a limit everything is pulled at once, but the event loop gets its turns."""
    async with open_runtime() as runtime:
        with anyio.move_on_after(5) as scope:
            async with runtime.stream(Source(seconds=0)) as results:
                count = 0
                async for _ in results:
                    count += 1
                    if count == 200:
                        break
        assert not scope.cancelled_caught
        assert 200 == count


async def test_an_error_of_the_source_comes_after_the_results_before_it(pull):
    """The calls that came before are answered first; then the error leaves the iteration, once."""

    class Broken(Source):
        def __iter__(self):
            yield call(0)
            yield call(1, 2)
            raise LookupError("source")

    seen = []
    async with open_runtime() as runtime, runtime.stream(pull(Broken())) as results:
        with pytest.raises(LookupError, match="source"):
            seen += [result.value async for result in results]
        assert 2 == anyio.current_time()
        with pytest.raises(StopAsyncIteration):
            await anext(results)


async def test_an_item_that_is_no_call_is_an_error_of_the_source(pull):
    """A dict in place of a ``ToolCall`` is refused with its type, after the results before it."""

    class Wrong(Source):
        def __iter__(self):
            yield call(0)
            yield {"id": "1", "name": "work"}

    async with open_runtime() as runtime, runtime.stream(pull(Wrong())) as results:
        assert 0 == (await anext(results)).value
        with pytest.raises(TypeError, match="got dict"):
            await anext(results)


async def test_an_unread_error_of_the_source_is_no_error_of_the_block():
    """Who leaves before reading it does not get it."""

    def broken():
        raise LookupError
        yield

    async with open_runtime() as runtime, runtime.stream(broken()):
        await wait_all_tasks_blocked()


@pytest.mark.parametrize("calls", [5, None, call(0)])
async def test_what_is_no_iterable_is_refused_at_once(calls):
    """A number, None and one bare call."""
    async with open_runtime() as runtime:
        with pytest.raises(TypeError, match="expected an iterable or an async iterable of ToolCall"):
            runtime.stream(calls)


async def test_an_empty_source_has_no_results(pull):
    """The iteration ends at once."""
    async with open_runtime() as runtime, runtime.stream(pull(Source(0))) as results:
        assert [] == [result async for result in results]


async def test_a_stream_is_entered_once():
    """A second time is an error, and so is reading one that was not entered."""
    async with open_runtime() as runtime:
        stream = runtime.stream([call(0)])
        with pytest.raises(HarborError, match="enter the stream first"):
            await anext(stream)
        async with stream:
            pass
        with pytest.raises(HarborError, match="once"):
            await stream.__aenter__()


async def test_a_deadline_answers_every_call_of_a_list():
    """At the deadline what runs and what still waits is ``timed_out``; what is finished stays."""
    async with open_runtime(2) as runtime, runtime.stream(Source(5), timeout=1.5) as results:
        outcomes = {result.call_id: (result.outcome, result.attempts) async for result in results}
    assert {
        "0": ("succeeded", 1),
        "1": ("succeeded", 1),
        "2": ("timed_out", 1),
        "3": ("timed_out", 1),
        "4": ("timed_out", 0),
    } == outcomes
    assert 1.5 == anyio.current_time()


async def test_a_deadline_of_zero_answers_every_call():
    """``timeout=0`` runs nothing."""
    async with open_runtime(2) as runtime, runtime.stream(Source(3), timeout=0) as results:
        assert [("timed_out", 0)] * 3 == [(result.outcome, result.attempts) async for result in results]


async def test_a_deadline_ends_a_source_that_waits_for_ever():
    """An async source that gives nothing more is ended at the deadline, closed, and the stream with it."""
    closed = []

    async def endless():
        try:
            yield call(0)
            await anyio.sleep_forever()
        finally:
            closed.append(anyio.current_time())

    async with open_runtime() as runtime, runtime.stream(endless(), timeout=2) as results:
        assert [0] == [result.value async for result in results]
    assert [2] == closed


async def test_bad_calls_are_results_among_the_others():
    """An unknown tool and bad arguments are answered in the stream, and count as in hand."""
    bad = [ToolCall("a", "no_such_tool"), call(0), ToolCall("b", "work", "{")]
    async with open_runtime(1) as runtime, runtime.stream(bad) as results:
        categories = [(result.call_id, result.error and result.error.category) async for result in results]
    assert [("a", "not_found"), ("0", None), ("b", "validation")] == categories


@pytest.mark.parametrize("timeout", [-1, float("nan"), True, "1", float("inf")])
async def test_a_nonsense_deadline_is_refused(timeout):
    """By every way of asking."""
    async with open_runtime() as runtime:
        with pytest.raises(InvalidToolError, match="timeout: expected"):
            runtime.stream([], timeout=timeout)
        with pytest.raises(InvalidToolError, match="timeout: expected"):
            await runtime.invoke("work", {"n": 1}, timeout=timeout)
        with pytest.raises(InvalidToolError, match="timeout: expected"):
            await runtime.invoke_many([], timeout=timeout)
        with pytest.raises(InvalidToolError, match="timeout: expected"):
            await describe(work).invoke({"n": 1}, timeout=timeout)


async def test_two_consumers_share_the_results():
    """Two tasks that read one stream get each result once, and both end."""
    seen = []
    async with open_runtime(2) as runtime, runtime.stream(Source(6)) as results:

        async def read():
            async for result in results:
                seen.append(result.value)
                await anyio.sleep(0.25)

        async with anyio.create_task_group() as group:
            group.start_soon(read)
            group.start_soon(read)
    assert [0, 1, 2, 3, 4, 5] == sorted(seen)


async def test_a_source_of_another_stream_is_piped():
    """An async iterable may itself wait for results: two streams in a row."""
    async with open_runtime(2) as runtime, runtime.stream(Source(4)) as first:

        async def again():
            async for result in first:
                yield call(result.value + 10)

        async with runtime.stream(again()) as second:
            assert {10, 11, 12, 13} == {result.value async for result in second}
