"""Our MCP client against real servers: a child process on stdio, and HTTP on the loopback interface."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

import harbor_async as ha
from harbor_async.errors import InvalidToolError
from harbor_async.providers.mcp import RemoteServer, RemoteServers, Stdio, StreamableHTTP, _endpoint

# The SDK leaves a finished event stream to the garbage collector, of which trio warns.
pytestmark = pytest.mark.filterwarnings("ignore:Async generator 'http:ResourceWarning")

PEER = str(Path(__file__).with_name("mcp_peer.py"))
QUICK = ha.Backoff(initial=0.05, maximum=0.2, jitter=0.0)
ONCE = ha.ToolPolicy(attempts=1, timeout=10)


class Process:
    """The peer over HTTP, in a process of its own."""

    def __init__(self) -> None:
        self.port = 0
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def start(self) -> None:
        command = [sys.executable, PEER, "http", str(self.port)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


@pytest.fixture
def process() -> Iterator[Process]:
    process = Process()
    yield process
    process.stop()


async def until(is_so: Callable[[], Any]) -> None:
    """Wait for what comes in a moment; tell when it does not."""
    with anyio.fail_after(10):
        while not is_so():  # noqa: ASYNC110 - another process does it
            await anyio.sleep(0.01)


@asynccontextmanager
async def connected(endpoint: Any, **options: Any) -> AsyncIterator[tuple[ha.Runtime, RemoteServer]]:
    catalog = ha.Catalog()
    async with RemoteServers(catalog, wait=QUICK) as servers, ha.Runtime(catalog) as rt:
        yield rt, await servers.connect(endpoint, **options)


async def frames(rt: ha.Runtime) -> list[tuple[str, Any]]:
    return [(method, id) for method, id in (await rt.invoke("frames")).value["frames"]]


async def cancel_once(rt: ha.Runtime) -> None:
    """Cancel a call, and see that the server heard of just that one, once."""
    results = await rt.invoke_many(
        [ha.ToolCall("", "slow", {"for": 5}), ha.ToolCall("", "slow", {"for": 5})], timeout=0.2
    )
    assert ["timed_out"] * 2 == [result.outcome for result in results]
    await anyio.sleep(0.2)
    seen = await frames(rt)
    canceled = [id for method, id in seen if method == "notifications/cancelled"]
    assert 2 == len(canceled) == len(set(canceled))
    assert set(canceled) <= {id for method, id in seen if method == "tools/call"}
    assert {"pid", "a"} == set((await rt.invoke("echo", {"a": 1})).value)


def stdio(*more: str) -> Stdio:
    return Stdio([sys.executable, PEER, *more], env={"PYTHONUNBUFFERED": "1"})


async def test_stdio_calls_changes_cancellation_and_garbage():
    """Over a child process: a call, a list that changes, a line that is no frame, and cancellations told once."""
    async with connected(stdio()) as (rt, server):
        assert "mcp_peer.py" == server.name
        result = await rt.invoke("echo", {"a": 1})
        assert (1, True) == (result.value["a"], result.value["pid"] != os.getpid())
        assert "succeeded" == (await rt.invoke("garbage")).outcome
        await rt.invoke("more", {"name": "new"})
        await until(lambda: "new" in rt.catalog)
        await cancel_once(rt)
    assert 0 == len(rt.catalog)


async def test_stdio_a_process_that_dies_is_started_again():
    """The call that it died under may have happened; the next one is answered by a new process."""
    async with connected(stdio(), policy=ha.ToolPolicy(timeout=10)) as (rt, _):
        first = (await rt.invoke("echo")).value["pid"]
        result = await rt.invoke("die")
        assert ("api_request", "unknown", "unsafe") == (
            result.error.category,
            result.error.delivery,
            result.stop_reason,
        )
        second = (await rt.invoke("echo")).value["pid"]
        assert first != second
    with pytest.raises(ProcessLookupError):
        os.kill(second, 0)


async def test_stdio_a_program_that_is_not_there_is_told():
    """It cannot be started, and the error names the server."""
    async with RemoteServers(ha.Catalog()) as servers:
        with pytest.raises(ha.ToolError, match="'no-such-server' cannot be reached"):
            await servers.connect(Stdio(["/nowhere/no-such-server"]))


async def test_http_calls_streams_and_cancellation(process: Process):
    """Over HTTP: JSON and event-stream answers, a change told in a stream, and cancellations told once."""
    async with connected(StreamableHTTP(process.url, headers={"x-key": "k"})) as (rt, server):
        assert "127.0.0.1" == server.name
        assert 1 == (await rt.invoke("echo", {"a": 1})).value["a"]
        await rt.invoke("more", {"name": "new"})
        assert 2 == (await rt.invoke("stream", {"a": 2})).value["a"]
        await until(lambda: "new" in rt.catalog)
        await cancel_once(rt)
    async with connected(StreamableHTTP(process.url)) as (rt, _):
        assert 1 == [method for method, _ in await frames(rt)].count("DELETE")  # the first session was ended


WRONG: list[tuple[str, Any, tuple[Any, ...]]] = [
    ("status", {"status": 401}, ("auth_failed", "permanent", "refused", None)),
    ("status", {"status": 403}, ("auth_failed", "permanent", "refused", None)),
    ("status", {"status": 429, "wait": 7}, ("rate_limited", "transient", "refused", 7.0)),
    ("status", {"status": 503, "wait": 2}, ("api_status", "5xx", "refused", 2.0)),
    ("status", {"status": 500}, ("api_status", "5xx", "unknown", None)),
    ("status", {"status": 307}, ("api_status", "permanent", "unknown", None)),
    ("status", {"status": 202}, ("api_status", "permanent", "unknown", None)),
    ("cut", {}, ("api_request", "transient", "unknown", None)),
    ("cut", {"type": "text/event-stream"}, ("api_request", "transient", "unknown", None)),
    ("garbage", {}, ("api_status", "permanent", "unknown", None)),
]


async def test_http_what_goes_wrong_is_told_apart(process: Process):
    """Status, wait and delivery of a refusal come through, and no other call of the session is harmed."""
    async with connected(StreamableHTTP(process.url), policy=ONCE) as (rt, server):
        calls = [ha.ToolCall("", tool, arguments) for tool, arguments, _ in WRONG]
        *bad, good = await rt.invoke_many([*calls, ha.ToolCall("", "slow", {"for": 0.3})])
        errors = [result.error for result in bad]
        assert [expected for _, _, expected in WRONG] == [
            (error.category, error.error_class, error.delivery, error.retry_after) for error in errors
        ]
        assert ("succeeded", True) == (good.outcome, server.is_connected)


async def test_http_a_server_that_is_down_is_not_sent_to_and_found_when_it_is_back(process: Process):
    """Where nothing can be sent a tool with an effect is retried; the new server gets the call once."""
    patient = ha.ToolPolicy(attempts=30, wait=QUICK)
    here = StreamableHTTP(process.url)
    async with connected(here, policy=patient) as (rt, server), connected(here, policy=ONCE) as (hasty, _):
        await anyio.to_thread.run_sync(process.stop)
        down = await hasty.invoke("echo")
        assert ("api_request", "not_sent", False) == (down.error.category, down.error.delivery, down.error.ambiguous)
        async with rt.batch(timeout=15) as batch:
            handle = batch.start(ha.ToolCall("", "echo", {"a": 1}))
            await anyio.sleep(0.2)
            await anyio.to_thread.run_sync(process.start)
            result = await handle.result()
        assert ("succeeded", 1) == (result.outcome, result.value["a"])
        assert result.attempts > 1
        assert 1 == [method for method, _ in await frames(rt)].count("tools/call") - 1
        assert server.is_connected


async def test_http_a_session_that_is_forgotten_is_opened_anew(process: Process):
    """A 404 for the session's id refuses the call, which is made again in a new session."""
    async with connected(StreamableHTTP(process.url)) as (rt, _):
        await rt.invoke("forget")
        result = await rt.invoke("echo", {"a": 1})
        assert ("succeeded", True) == (result.outcome, result.attempts > 1)


async def test_http_a_cancellation_that_is_not_taken_holds_up_nobody_for_long(
    process: Process, monkeypatch: pytest.MonkeyPatch
):
    """A server that never accepts the notification is not waited for: other calls of the session go on."""
    monkeypatch.setattr(_endpoint, "_NOTICE_TIMEOUT", 0.3)
    async with connected(StreamableHTTP(process.url)) as (rt, server):
        await rt.invoke("deaf")
        result = await rt.invoke("slow", timeout=0.2)
        assert "timed_out" == result.outcome
        assert ("succeeded", True) == ((await rt.invoke("echo")).outcome, server.is_connected)


async def test_http_many_calls_at_once(process: Process):
    """A hundred calls share one session and its pool, and each has its own answer."""
    async with connected(StreamableHTTP(process.url)) as (rt, _):
        results = await rt.invoke_many([ha.ToolCall("", "echo", {"n": n}) for n in range(100)])
    assert list(range(100)) == [result.value["n"] for result in results]


@pytest.mark.parametrize("url", ["", "example.com/mcp", "ftp://a.example/mcp", 1])
def test_an_endpoint_needs_a_url(url: Any):
    """What is no URL of http or https is refused at once."""
    with pytest.raises(InvalidToolError, match="expected a URL"):
        StreamableHTTP(url)


@pytest.mark.parametrize("command", [[], "python server.py", [1]])
def test_a_process_needs_a_command(command: Any):
    """A command is a list of text that is not empty; a line for a shell is none."""
    with pytest.raises(InvalidToolError, match=r"Stdio\.command"):
        Stdio(command)


def test_secrets_are_not_shown():
    """Headers, variables and authentication are left out of an endpoint's repr."""
    assert "secret" not in repr(StreamableHTTP("https://a.example/mcp", headers={"authorization": "secret"}))
    assert "secret" not in repr(Stdio(["a"], env={"KEY": "secret"}))


@pytest.mark.timeout(60)  # the server's imports alone take a while
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("over", ["stdio", "http"])
def test_the_newest_protocol_against_the_sdks_own_server(over: str, backend: str, tmp_path: Path):
    """2026-07-28, both ways: the tool's own scope is canceled, progress is heard, and a changed list is followed."""
    anyio.run(speak_the_newest, over, tmp_path / "told", backend=backend)


async def speak_the_newest(over: str, told: Path) -> None:
    command = [sys.executable, str(Path(__file__).with_name("mcp_modern.py")), over, str(told)]
    reports: list[str] = []
    async with AsyncExitStack() as stack:
        endpoint: Any = Stdio(command)
        if over == "http":
            process = await stack.enter_async_context(await anyio.open_process(command, stderr=None))
            stack.callback(process.kill)
            assert process.stdout is not None
            endpoint = StreamableHTTP(f"http://127.0.0.1:{int(await process.stdout.receive())}/mcp")
        rt, _ = await stack.enter_async_context(connected(endpoint))
        assert ["2026-07-28"] == (await rt.invoke("version")).value
        assert {"a": 1} == (await rt.invoke("echo", {"a": 1})).value
        result = await rt.invoke("slow", timeout=0.5, on_progress=lambda _done, _total, words: reports.append(words))
        assert ("timed_out", ["begun"]) == (result.outcome, reports)
        await until(lambda: told.exists() and "canceled\n" == told.read_text())
        await rt.invoke("more", {"name": "new"})
        await until(lambda: "new" in rt.catalog)
        assert "validation" == (await rt.invoke("new")).error.category
