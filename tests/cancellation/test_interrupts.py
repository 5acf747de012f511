"""``KeyboardInterrupt`` and ``SystemExit`` leave bare, after all siblings have ended."""

import anyio
import pytest

from harbor_async import Catalog, Runtime, ToolCall
from tests.cancellation.ways import each_way, make

pytestmark = pytest.mark.virtual
interrupts = pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])


@each_way
@interrupts
@pytest.mark.parametrize("waits", [True, False])
async def test_an_interrupt_leaves_bare_and_is_not_retried(ask, kind, waits):
    """What a tool is interrupted with leaves as itself after one attempt (N18, N06)."""
    runs = []

    async def stops():
        runs.append(1)
        if waits:
            await anyio.sleep(0.25)
        raise kind("stop")

    with pytest.raises(kind, match="stop"):
        await ask(make(stops))
    assert [1] == runs


@each_way
@interrupts
@pytest.mark.parametrize("depth", [1, 2])
async def test_an_interrupt_leaves_its_groups_bare(ask, kind, depth):
    """An interrupt inside the groups that the tool itself raises leaves without them (N10)."""

    async def stops():
        await anyio.sleep(0.25)
        error = BaseExceptionGroup("g", [ValueError("other"), kind("stop")])
        for _ in range(depth - 1):
            error = BaseExceptionGroup("g", [error, ConnectionError("reset")])
        raise error

    with pytest.raises(kind, match="stop"):
        await ask(make(stops))


@each_way
@interrupts
async def test_an_interrupt_wins_over_a_timeout(ask, kind):
    """A tool that turns its timeout into an interrupt leaves with it."""

    async def stops():
        try:
            await anyio.sleep(9)
        finally:
            raise kind("stop")

    with pytest.raises(kind, match="stop"):
        await ask(make(stops))


@interrupts
@pytest.mark.parametrize("how", ["invoke_many", "stream", "stream, unread"])
@pytest.mark.parametrize("waits", [True, False])
async def test_siblings_are_canceled_and_awaited_before_an_interrupt_leaves(kind, how, waits):
    """When it leaves, the siblings' cleanup, shielded and slow, has run; those not begun never run (N18, R002)."""
    log = []

    async def slow():
        try:
            await anyio.sleep(9)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.5)
                log.append("cleaned up")

    async def stops():
        if waits:
            await anyio.sleep(0.25)
        raise kind("stop")

    calls = [ToolCall("1", "slow"), ToolCall("2", "stops"), ToolCall("3", "slow")]
    async with Runtime(Catalog([make(slow), make(stops)])) as runtime:
        with pytest.raises(kind, match="stop"):  # noqa: PT012 - a stream leaves from its block
            if how == "invoke_many":
                await runtime.invoke_many(calls)
            else:
                async with runtime.stream(calls) as results:
                    if how == "stream":
                        async for _ in results:
                            pass
                    else:
                        await anyio.sleep(9)
    begun = len(log)
    assert begun in ({2} if waits else {0, 1, 2})  # without a wait it may be the first to run
    assert (0.75 if waits else 0.5 if begun else 0) == anyio.current_time()
    await anyio.sleep(9)
    assert begun == len(log)


@interrupts
async def test_an_interrupt_gives_its_place_back(kind):
    """After an interrupt the places of a limited runtime are free again."""
    from harbor_async import Limits

    async def stops():
        raise kind

    async def quick():
        return 1

    async with Runtime(Catalog([make(stops), make(quick)]), limits=Limits(max_running=1)) as runtime:
        with pytest.raises(kind):
            await runtime.invoke("stops")
        with pytest.raises(kind):
            await runtime.invoke_many([ToolCall("", "quick"), ToolCall("", "stops"), ToolCall("", "quick")])
        assert 1 == (await runtime.invoke("quick", timeout=1)).value


@interrupts
async def test_a_program_gets_the_interrupt_bare_too(kind):
    """``call`` lets an interrupt out as itself."""

    async def stops():
        raise BaseExceptionGroup("g", [kind("stop")])

    tool = make(stops)
    async with Runtime(Catalog([tool])) as runtime:
        with pytest.raises(kind, match="stop"):
            await runtime.call(tool)


@interrupts
async def test_an_interrupt_of_the_source_leaves_the_stream(kind):
    """An iterable that is interrupted while it is pulled leaves the stream with it."""

    def calls():
        yield ToolCall("1", "slow")
        raise kind("stop")

    async def slow():
        await anyio.sleep(9)

    async with Runtime(Catalog([make(slow)])) as runtime:
        with pytest.raises(kind, match="stop"):  # noqa: PT012 - as above
            async with runtime.stream(calls()) as results:
                async for _ in results:
                    pass
    assert 0 == anyio.current_time()


async def test_a_generator_exit_harms_no_sibling():
    """``GeneratorExit`` from one tool is an answer like any other (N18)."""

    async def leaves():
        await anyio.sleep(0.25)
        raise GeneratorExit

    async def quick():
        await anyio.sleep(0.5)
        return 1

    async with Runtime(Catalog([make(leaves), make(quick)])) as runtime:
        results = await runtime.invoke_many([ToolCall("1", "leaves"), ToolCall("2", "quick")])
    assert ["failed", "succeeded"] == [result.outcome for result in results]
