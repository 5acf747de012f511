"""Who owns a session, what happens when it is lost, and how it is closed."""

from typing import Any

import anyio
import anyio.lowlevel
import pytest

import harbor_async as ha
from harbor_async.errors import HarborError, InvalidToolError
from harbor_async.providers.mcp import RemoteServers
from tests.unit.providers.peer import Peer, text

pytestmark = pytest.mark.virtual

STEADY = ha.Backoff(initial=2.0, factor=2.0, maximum=8.0, jitter=0.0)
ONCE = ha.ToolPolicy(attempts=1, timeout=None)


@pytest.mark.parametrize("first", ["a", "b"])
@pytest.mark.parametrize("closer", ["same task", "another task"])
async def test_r032_servers_are_closed_in_any_order_from_any_task(first: str, closer: str):
    """R032: of two servers either may be closed first, by another task too; the other one goes on."""
    catalog = ha.Catalog()
    async with RemoteServers(catalog) as servers, ha.Runtime(catalog) as rt:
        opened = {name: await servers.connect(Peer(), prefix=f"{name}.") for name in ("a", "b")}
        (second,) = {"a", "b"} - {first}
        if closer == "same task":
            await opened[first].aclose()
        else:
            async with anyio.create_task_group() as group:
                group.start_soon(opened[first].aclose)
        assert (True, False) == (opened[first].is_closed, opened[second].is_closed)
        assert [f"{second}.echo"] == [tool.name for tool in catalog.list()]
        assert "succeeded" == (await rt.invoke(f"{second}.echo")).outcome
        await opened[second].aclose()
        await opened[second].aclose()
    assert [] == catalog.list()


async def test_a_server_may_be_opened_by_a_task_that_ends_before_it():
    """The task that connects it may be long gone, its scope canceled, when it is used and closed."""
    catalog = ha.Catalog()
    held: list[Any] = []

    async with RemoteServers(catalog) as servers, ha.Runtime(catalog) as rt:

        async def opener() -> None:
            with anyio.CancelScope() as scope:
                held.append(await servers.connect(Peer()))
                scope.cancel()
                await anyio.lowlevel.checkpoint()

        async with anyio.create_task_group() as group:
            group.start_soon(opener)
        assert "succeeded" == (await rt.invoke("echo")).outcome
        await held[0].aclose()


async def test_r033_two_calls_share_a_session_that_is_opened_once():
    """R033: calls that come while there is no session yet wait for the same one; it is opened once."""
    catalog = ha.Catalog()
    peer = Peer()
    async with RemoteServers(catalog, wait=STEADY) as servers, ha.Runtime(catalog) as rt:
        server = await servers.connect(peer)
        peer.drop()
        await anyio.lowlevel.checkpoint()
        await anyio.wait_all_tasks_blocked()
        assert not server.is_connected
        results = await rt.invoke_many([ha.ToolCall(str(n), "echo", {"n": n}) for n in range(20)])
        assert [{"n": n} for n in range(20)] == [result.value for result in results]
        assert 2 == peer.opened


async def test_calls_before_the_first_session_wait_for_it():
    """``start`` does not wait; the tools come when the server is there, and ``wait_ready`` says when."""
    catalog = ha.Catalog()
    peer = Peer()
    async with RemoteServers(catalog) as servers:
        server = servers.start(peer)
        assert (False, ()) == (server.is_connected, server.tools)
        async with anyio.create_task_group() as group:
            group.start_soon(server.wait_ready)
            group.start_soon(server.wait_ready)
        assert (True, ("echo",), 1) == (server.is_connected, server.tools, peer.opened)


async def test_a_call_in_flight_when_the_server_dies_may_have_happened():
    """Its delivery is unknown, and it is not repeated; the next call has a new session."""
    peer = Peer()

    async def die(_: Any) -> Any:
        peer.drop()
        await anyio.sleep(60)

    catalog = ha.Catalog()
    async with RemoteServers(catalog, wait=STEADY) as servers, ha.Runtime(catalog) as rt:
        server = await servers.connect(peer)
        peer.on_call = die
        result = await rt.invoke("echo")
        assert ("api_request", "unknown", "unsafe", 1, True) == (
            result.error.category,
            result.error.delivery,
            result.stop_reason,
            result.attempts,
            result.error.ambiguous,
        )
        assert "was closed before its answer" in result.error.message
        peer.on_call = peer._echo
        result = await rt.invoke("echo", '{"a": 1}')
        assert ({"a": 1}, 2) == (result.value, peer.opened)
        assert server.error is None


async def test_a_call_while_there_is_no_session_is_not_sent():
    """It fails at once, says when the next attempt to connect is due, and a retry then finds the server."""
    peer = Peer()
    catalog = ha.Catalog()
    async with RemoteServers(catalog, wait=STEADY) as servers, ha.Runtime(catalog) as rt:
        await servers.connect(peer, policy=ONCE)
        peer.drop()
        await anyio.sleep(0.5)
        error = (await rt.invoke("echo")).error
        assert ("api_request", "not_sent", pytest.approx(1.5)) == (error.category, error.delivery, error.retry_after)
        await anyio.sleep(2)
        assert "succeeded" == (await rt.invoke("echo")).outcome


async def test_a_tool_with_an_effect_is_retried_where_nothing_was_sent():
    """A dead server is no reason to give up: the call waits as long as it is told, and is sent once."""
    peer = Peer()
    catalog = ha.Catalog()
    async with RemoteServers(catalog, wait=STEADY) as servers, ha.Runtime(catalog) as rt:
        await servers.connect(peer)
        peer.drop()
        await anyio.sleep(0.5)
        result = await rt.invoke("echo")
        assert ("succeeded", 2, 1) == (result.outcome, result.attempts, len(peer.of("tools/call")))


async def test_waits_between_attempts_to_connect_grow():
    """2, 4 and 8 s after failures of a server that stays away; one that has lived for long is looked for soon again."""
    peer = Peer()
    catalog = ha.Catalog()
    async with RemoteServers(catalog, wait=STEADY) as servers:
        server = servers.start(peer)
        peer.fails = [OSError("away")] * 3
        with pytest.raises(ha.ToolError, match="cannot be reached: away"):
            await server.wait_ready()
        opened: list[int] = []
        for pause in (1, 2, 4, 8):
            await anyio.sleep(pause)
            opened.append(peer.opened)
        assert ([1, 2, 3, 4], True) == (opened, server.is_connected)
        await anyio.sleep(100)
        peer.drop()
        await anyio.sleep(2.1)
        assert (5, True) == (peer.opened, server.is_connected)


async def test_a_server_that_cannot_be_reached_is_an_error_of_connect():
    """Whoever connects it hears why; nothing is tried again, and nothing is left."""
    peer = Peer()
    peer.fails = [OSError("no such program")]
    async with RemoteServers(ha.Catalog()) as servers:
        with pytest.raises(ha.ToolError, match="'peer' cannot be reached: no such program") as caught:
            await servers.connect(peer)
        assert ("api_request", "not_sent") == (caught.value.category, caught.value.delivery)
        await anyio.sleep(100)
        assert 1 == peer.opened


async def test_a_server_that_does_not_answer_is_given_up():
    """Connecting is bounded, listing included."""
    peer = Peer()

    async def silent(_: Any) -> Any:
        await anyio.sleep(1000)

    peer._list = silent  # type: ignore[method-assign]
    async with RemoteServers(ha.Catalog()) as servers:
        with pytest.raises(ha.ToolError, match="no answer within 3 s"):
            await servers.connect(peer, connect_timeout=3)
        assert 3 == pytest.approx(anyio.current_time())


async def test_connect_can_be_canceled():
    """The caller's cancellation leaves as one, when the session that was being opened is closed."""
    peer = Peer()

    async def silent(_: Any) -> Any:
        await anyio.sleep(1000)

    peer._initialize = silent  # type: ignore[method-assign]
    async with RemoteServers(ha.Catalog()) as servers:
        with anyio.move_on_after(1) as scope:
            await servers.connect(peer)
        assert scope.cancelled_caught
        assert [] == [server for server in servers._servers if not server.is_closed]


@pytest.mark.parametrize("state", ["opening", "resting", "open"])
async def test_a_server_is_closed_in_whatever_state(state: str):
    """While it connects, waits for the next attempt, or serves: it ends at once."""
    peer = Peer()
    catalog = ha.Catalog()
    async with RemoteServers(catalog, wait=STEADY) as servers:
        if state == "resting":
            peer.fails = [OSError()]
        server = servers.start(peer)
        if state != "opening":
            await anyio.wait_all_tasks_blocked()
        began = anyio.current_time()
        await server.aclose()
        assert began == anyio.current_time()
        with pytest.raises(ha.ToolError, match="is closed") as caught:
            await server.wait_ready()
        assert ("permanent", "not_sent") == (caught.value.error_class, caught.value.delivery)
    assert [] == catalog.list()


async def test_closing_ends_calls_in_flight():
    """A call that runs when its server is closed fails, its delivery unknown."""

    async def slow(_: Any) -> Any:
        await anyio.sleep(100)

    catalog = ha.Catalog()
    async with RemoteServers(catalog) as servers, ha.Runtime(catalog) as rt:
        server = await servers.connect(Peer(on_call=slow))
        async with rt.batch() as batch:
            handle = batch.start(ha.ToolCall("", "echo"))
            await anyio.sleep(1)
            await server.aclose()
            result = await handle.result()
        assert ("failed", "unknown", 1) == (result.outcome, result.error.delivery, result.elapsed)


async def test_what_the_block_raises_leaves_as_itself():
    """No exception group, and all servers are closed before it leaves."""
    catalog = ha.Catalog()

    async def fail() -> None:
        async with RemoteServers(catalog) as servers:
            await servers.connect(Peer())
            raise LookupError

    with pytest.raises(LookupError):
        await fail()
    assert [] == catalog.list()


async def test_a_canceled_block_closes_its_servers():
    """A cancellation from outside leaves as one, and no tool is left in the catalog."""
    catalog = ha.Catalog()
    with anyio.move_on_after(1) as scope:
        async with RemoteServers(catalog) as servers:
            await servers.connect(Peer())
            await anyio.sleep(100)
    assert (True, []) == (scope.cancelled_caught, catalog.list())


async def test_servers_are_used_inside_their_block():
    """Before it, after it and a second time within it, that is refused; afterwards it can be opened anew."""
    servers = RemoteServers(ha.Catalog())
    with pytest.raises(HarborError, match="not open"):
        servers.start(Peer())
    for _ in range(2):
        async with servers:
            with pytest.raises(HarborError, match="open already"):
                await servers.__aenter__()
            await servers.connect(Peer())
    with pytest.raises(InvalidToolError, match="expected a Catalog"):
        RemoteServers({})  # type: ignore[arg-type]
    with pytest.raises(InvalidToolError, match="for wait="):
        RemoteServers(ha.Catalog(), wait=2)  # type: ignore[arg-type]


@pytest.mark.virtual(grace=0.05)
async def test_a_call_from_another_threads_loop_is_refused():
    """A session belongs to one event loop; a call in another one fails with words, and is not sent."""
    catalog = ha.Catalog()
    results: list[ha.ToolResult] = []

    async def elsewhere() -> None:
        results.append(await catalog.resolve("echo").invoke())

    async with RemoteServers(catalog) as servers:
        await servers.connect(Peer())
        await anyio.to_thread.run_sync(anyio.run, elsewhere)
    (result,) = results
    assert ("not_sent", "permanent") == (result.error.delivery, result.error.error_class)
    assert "another thread" in result.error.message


async def test_text_is_answered_in_every_call_of_a_long_session():
    """Two hundred calls over one session, fifty at a time, each have their own answer."""

    async def on_call(params: Any) -> Any:
        await anyio.sleep(params["arguments"]["n"] % 7)
        return text(str(params["arguments"]["n"]))

    catalog = ha.Catalog()
    async with RemoteServers(catalog) as servers, ha.Runtime(catalog, limits=ha.Limits(max_running=50)) as rt:
        await servers.connect(Peer(on_call=on_call))
        results = await rt.invoke_many([ha.ToolCall("", "echo", {"n": n}) for n in range(200)])
    assert [str(n) for n in range(200)] == [result.value for result in results]
