"""A call that ends early: the server hears of it once, and what it answers afterwards is dropped."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest

import harbor_async as ha
from harbor_async.providers.mcp import RemoteServers
from tests.unit.providers.peer import Peer, text

pytestmark = pytest.mark.virtual


class Slow(Peer):
    """It answers after ten seconds, whatever it hears."""

    def __init__(self) -> None:
        super().__init__(on_call=self._slow)

    async def _slow(self, params: Any) -> Any:
        await anyio.sleep(10)
        return text("late")

    def pairs(self) -> list[tuple[Any, int]]:
        """Each call's id, and how many cancellations there were of it."""
        told = [frame["params"]["requestId"] for frame in self.of("notifications/cancelled")]
        assert set(told) <= {frame["id"] for frame in self.of("tools/call")}
        return [(frame["id"], told.count(frame["id"])) for frame in self.of("tools/call")]


async def by_deadline(rt: ha.Runtime) -> None:
    result = await rt.invoke("echo", timeout=1)
    assert ("timed_out", True) == (result.outcome, result.error.ambiguous)


async def by_handle(rt: ha.Runtime) -> None:
    async with rt.batch() as batch:
        handle = batch.start(ha.ToolCall("", "echo"))
        await anyio.sleep(1)
        handle.cancel()
        handle.cancel()
        result = await handle.result()
    assert "canceled" == result.error.category


async def by_batch(rt: ha.Runtime) -> None:
    async with rt.batch() as batch:
        batch.start(ha.ToolCall("", "echo"))
        await anyio.sleep(1)
        batch.cancel()


async def by_caller(rt: ha.Runtime) -> None:
    with anyio.move_on_after(1) as scope:
        await rt.invoke("echo")
    assert scope.cancelled_caught


async def by_two_scopes(rt: ha.Runtime) -> None:
    with anyio.move_on_after(1), anyio.move_on_after(1):
        await rt.invoke("echo", timeout=1)


async def by_a_stream_that_is_left(rt: ha.Runtime) -> None:
    async with rt.stream([ha.ToolCall("", "echo")]):
        await anyio.sleep(1)


WAYS = [by_deadline, by_handle, by_batch, by_caller, by_two_scopes, by_a_stream_that_is_left]


@pytest.mark.parametrize("cancel", WAYS)
async def test_the_server_hears_of_a_cancellation_exactly_once(cancel: Callable[[ha.Runtime], Any]):
    """In each of the ways to end a call early one notification is sent, and the late answer harms nothing."""
    peer = Slow()
    catalog = ha.Catalog()
    async with RemoteServers(catalog) as servers, ha.Runtime(catalog) as rt:
        await servers.connect(peer)
        await cancel(rt)
        await anyio.sleep(0.5)
        ((_, count),) = peer.pairs()
        assert 1 == count
        await anyio.sleep(20)  # the late answer has come
        peer.on_call = peer._echo
        assert {"a": 1} == (await rt.invoke("echo", {"a": 1})).value
        assert [1, 0] == [count for _, count in peer.pairs()]


async def test_each_attempt_that_times_out_is_canceled_once():
    """Three attempts: three requests with ids of their own, and one cancellation each."""
    peer = Slow()
    catalog = ha.Catalog()
    async with RemoteServers(catalog) as servers, ha.Runtime(catalog) as rt:
        await servers.connect(peer, side_effect="read", policy=ha.ToolPolicy(timeout=1, attempts=3))
        result = await rt.invoke("echo")
        await anyio.sleep(20)
    assert ("timeout", 3) == (result.error.category, result.attempts)
    assert [1, 1, 1] == [count for _, count in peer.pairs()]
    assert 3 == len({id for id, _ in peer.pairs()})


async def test_a_call_that_has_its_answer_is_not_canceled():
    """Nothing is sent after an answer, also when the caller is canceled later."""
    peer = Peer()
    catalog = ha.Catalog()
    async with RemoteServers(catalog) as servers, ha.Runtime(catalog) as rt:
        await servers.connect(peer)
        with anyio.move_on_after(1):
            await rt.invoke("echo")
            await anyio.sleep(5)
    assert [] == peer.of("notifications/cancelled")


async def test_a_call_that_was_never_sent_is_not_canceled():
    """Of a call that is canceled while it waits for a session the server hears nothing."""
    peer = Peer()

    async def silent(_: Any) -> Any:
        await anyio.sleep(1000)

    catalog = ha.Catalog()
    async with RemoteServers(catalog) as servers, ha.Runtime(catalog) as rt:
        await servers.connect(peer)
        peer._initialize = silent  # type: ignore[method-assign]
        peer.drop()
        await anyio.sleep(1)
        with anyio.move_on_after(1) as scope:
            await rt.invoke("echo")
        assert scope.cancelled_caught
    assert ([], []) == (peer.of("tools/call"), peer.of("notifications/cancelled"))


async def test_many_calls_canceled_together_are_each_canceled_once():
    """A batch of a hundred that is cut sends a hundred notifications, one for each id."""
    peer = Slow()
    catalog = ha.Catalog()
    async with RemoteServers(catalog) as servers, ha.Runtime(catalog) as rt:
        await servers.connect(peer)
        results = await rt.invoke_many([ha.ToolCall("", "echo")] * 100, timeout=1)
        await anyio.sleep(1)
    assert {"timed_out"} == {result.outcome for result in results}
    assert [1] * 100 == [count for _, count in peer.pairs()]


async def test_telling_a_server_that_reads_nothing_is_bounded():
    """A peer that takes no more messages holds a canceled call for five seconds; then its session is given up."""
    peer = Slow()
    catalog = ha.Catalog()
    async with RemoteServers(catalog) as servers, ha.Runtime(catalog) as rt:
        await servers.connect(peer)
        peer.is_deaf = True
        with anyio.move_on_after(1) as scope:
            await rt.invoke("echo")
        assert scope.cancelled_caught
        assert 6 == pytest.approx(anyio.current_time(), abs=0.1)
        peer.is_deaf, peer.on_call = False, peer._echo
        assert ({"a": 1}, 2) == ((await rt.invoke("echo", {"a": 1})).value, peer.opened)
