"""What an MCP server of ours answers, in each version of the protocol, on two pipes and over HTTP."""

import json
import sys

import anyio
import attrs
import pytest

from harbor_async import Catalog, CatalogFilter, Limits, LoadingMode, SideEffect, ToolContext, ToolPolicy, describe
from harbor_async.errors import HarborError, InvalidToolError
from harbor_async.serving.mcp import Audio, Content, Image, MCPServer, Resource, ResourceLink, Text
from tests.unit.limits.support import until
from tests.unit.serving.wire import ERAS, LEGACY, MODERN, call, cancel, request, stdio, text, web

each_era = pytest.mark.parametrize("era", ERAS)
ONCE = ToolPolicy(timeout=None, attempts=1)


@attrs.frozen
class Sum:
    total: int


async def add(a: int, b: int = 1) -> Sum:
    """Add two numbers."""
    return Sum(a + b)


async def count(n: int) -> list[int]:
    """Count."""
    return list(range(n))


async def fail() -> str:
    """Fail."""
    raise ConnectionError


async def climb(context: ToolContext) -> str:
    """Report progress, once more of what was reported before."""
    for done in (1, 2, 2, 1, 3):
        context.report_progress(done, 3, f"step {done}" if done > 1 else "")
    return "up"


class Hang:
    """A tool that waits until it is canceled, and tells of both."""

    def __init__(self) -> None:
        self.begun, self.cut = anyio.Event(), anyio.Event()

    async def __call__(self) -> str:
        """Hang."""
        self.begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.cut.set()

    @property
    def tool(self):
        return describe(self, name="hang", policy=ONCE)


def catalog(*more) -> Catalog:
    return Catalog([describe(function, policy=ONCE) for function in (add, count, fail, climb)] + list(more))


@each_era
async def test_each_version_calls_and_lists(era):
    """A listed tool has both schemas; its value comes as text and structured, an array wrapped for old versions."""
    async with stdio(catalog()) as (peer, _):
        await peer.greet(era)
        listed = (await peer.ask(request(era, 1, "tools/list")))["result"]["tools"]
        sums = await peer.ask(call(era, 2, "add", a=2))
        counts = await peer.ask(call(era, 3, "count", n=2))
    assert ["add", "climb", "count", "fail"] == [tool["name"] for tool in listed]
    assert ["a"] == listed[0]["inputSchema"]["required"]
    assert {"total": {"type": "integer"}} == listed[0]["outputSchema"]["properties"]
    assert ({"total": 3}, False) == (sums["result"]["structuredContent"], sums["result"]["isError"])
    assert {"outcome": "succeeded", "value": {"total": 3}} in (
        json.loads(text(sums)),
        {"outcome": "succeeded", "value": json.loads(text(sums))},
    )
    assert ([0, 1] if era == MODERN else {"result": [0, 1]}) == counts["result"]["structuredContent"]


@each_era
async def test_faults_are_results_that_a_model_can_mend(era):
    """Wrong arguments and a tool's own failure are results with isError and the envelope, problems included."""
    async with stdio(catalog()) as (peer, _):
        await peer.greet(era)
        wrong = await peer.ask(call(era, 1, "add", a="x", c=1))
        failed = await peer.ask(call(era, 2, "fail"))
    envelope = json.loads(text(wrong))
    assert (True, True) == (wrong["result"]["isError"], failed["result"]["isError"])
    assert "structuredContent" not in wrong["result"]
    assert {("/a", "type"), ("/c", "unknown")} == {(p["path"], p["code"]) for p in envelope["error"]["problems"]}
    assert "api_request" == json.loads(text(failed))["error"]["category"]


@each_era
async def test_an_unknown_tool_is_an_error_of_the_protocol(era):
    """-32602, as the specification has it."""
    async with stdio(catalog()) as (peer, _):
        await peer.greet(era)
        answer = await peer.ask(call(era, 1, "none"))
    assert -32602 == answer["error"]["code"]


@each_era
async def test_progress_comes_before_the_answer_and_grows(era):
    """Each report that is more than the one before arrives under the caller's token, before the answer."""
    async with stdio(catalog()) as (peer, _):
        await peer.greet(era)
        await peer.send(call(era, 1, "climb", meta={"progressToken": "t"}))
        told = [await peer.read() for _ in range(4)]
        silent = await peer.ask(call(era, 2, "climb"))
    assert [1, 2, 3] == [each["params"]["progress"] for each in told[:3]]
    assert ["t"] * 3 == [each["params"]["progressToken"] for each in told[:3]]
    assert [None, "step 2", "step 3"] == [each["params"].get("message") for each in told[:3]]
    assert ("up", 2) == (text(told[3]), silent["id"])


@each_era
async def test_a_cancellation_reaches_the_tool_over_stdio(era):
    """``notifications/cancelled`` cancels the scope of that call, which gets no answer, and of no other."""
    hang = Hang()
    async with stdio(catalog(hang.tool)) as (peer, _):
        await peer.greet(era)
        await peer.send(call(era, 7, "hang"))
        await hang.begun.wait()
        await peer.send(cancel(7))
        await hang.cut.wait()
        answer = await peer.ask(call(era, 8, "add", a=1))
    assert 8 == answer["id"]


@each_era
async def test_a_cancellation_reaches_the_tool_over_http(era):
    """An old client sends it; one of 2026-07-28 closes the stream of the answer."""
    hang = Hang()
    async with web(catalog(hang.tool), era) as (client, _):
        async with anyio.create_task_group() as group:
            group.start_soon(client.post, call(era, 7, "hang"))
            await hang.begun.wait()
            if era == MODERN:
                group.cancel_scope.cancel()
            else:
                assert 202 == (await client.post(cancel(7))).status_code
        with anyio.CancelScope(shield=True):
            await hang.cut.wait()
        (answer,) = await client.ask(call(era, 8, "add", a=1))
    assert {"total": 2} == answer["result"]["structuredContent"]


@each_era
async def test_http_answers_with_progress(era):
    """Reports come on the stream of the answer."""
    async with web(catalog(), era) as (client, _):
        told = await client.ask(call(era, 1, "climb", meta={"progressToken": 5}))
    assert [1, 2, 3] == [each["params"]["progress"] for each in told[:-1]]
    assert "up" == text(told[-1])


async def test_one_server_speaks_all_versions_at_once():
    """Clients of every version are served side by side."""
    async with web(catalog()) as (client, state):
        for era in (LEGACY, ERAS[2]):
            from tests.unit.serving.wire import Web

            other = Web(state.port, era)
            async with other.http:
                await other.greet()
                (answer,) = await other.ask(call(era, 1, "add", a=1))
            assert {"total": 2} == answer["result"]["structuredContent"]
        (answer,) = await client.ask(call(MODERN, 1, "add", a=1))
    assert {"total": 2} == answer["result"]["structuredContent"]


async def test_old_sessions_hear_of_changes():
    """Each client with a handshake is told when the catalog has changed, and sees the change."""
    tools = catalog()
    async with stdio(tools) as (peer, _):
        await peer.greet(LEGACY)
        await peer.ask(request(LEGACY, 1, "ping"))
        tools.register(describe(add, name="more"))
        told = await peer.read()
        listed = (await peer.ask(request(LEGACY, 2, "tools/list")))["result"]["tools"]
    assert "notifications/tools/list_changed" == told["method"]
    assert "more" in [tool["name"] for tool in listed]


async def test_new_clients_hear_of_changes_they_listen_to():
    """Who has asked by ``subscriptions/listen`` is told, also from another thread, and of two changes at least once."""
    tools = catalog()
    async with stdio(tools) as (peer, _):
        asked = request(MODERN, 1, "subscriptions/listen", notifications={"toolsListChanged": True})
        acknowledged = await peer.ask(asked)
        await anyio.to_thread.run_sync(tools.register, describe(add, name="more"))
        told = await peer.read()
    assert "notifications/subscriptions/acknowledged" == acknowledged["method"]
    assert "notifications/tools/list_changed" == told["method"]


@each_era
async def test_long_lists_come_in_pages(era):
    """Each tool is on one page, in the order of the names, also if the catalog changes between two pages."""
    tools = Catalog([describe(add, name=f"t{n:02}") for n in range(7)])
    names = []
    async with stdio(tools, page_size=3) as (peer, _):
        await peer.greet(era)
        cursor = None
        while cursor is not None or not names:
            more = {} if cursor is None else {"cursor": cursor}
            await peer.send(request(era, len(names), "tools/list", **more))
            while "result" not in (answer := await peer.read()):
                pass  # that the list has changed
            names += [tool["name"] for tool in answer["result"]["tools"]]
            cursor = answer["result"].get("nextCursor")
            if len(names) == 3:
                tools.register(describe(add, name="t00a"))
        while "error" not in (wrong := await peer.ask(request(era, 99, "tools/list", cursor="né"))):
            pass
    assert [f"t{n:02}" for n in range(7)] == names
    assert -32602 == wrong["error"]["code"]


async def test_what_the_filter_leaves_out_is_not_served():
    """A tool that is not offered can neither be listed nor called; a deferred one is offered."""
    tools = Catalog([describe(add, tags=["x"]), describe(count), describe(climb, loading=LoadingMode.DEFERRED)])
    async with stdio(tools, filter=CatalogFilter(tags={"x"})) as (peer, _):
        listed = (await peer.ask(request(MODERN, 1, "tools/list")))["result"]["tools"]
        answer = await peer.ask(call(MODERN, 2, "count", n=1))
    async with stdio(tools) as (peer, _):
        everything = (await peer.ask(request(MODERN, 1, "tools/list")))["result"]["tools"]
    assert (["add"], -32602) == ([tool["name"] for tool in listed], answer["error"]["code"])
    assert 3 == len(everything)


async def test_names_and_hints_are_those_of_the_protocol():
    """A name that MCP forbids is written in what it allows, and called so; the side effect gives the annotations."""
    tools = Catalog([describe(add, name="wetter köln", side_effect=SideEffect.READ)])
    async with stdio(tools) as (peer, _):
        (tool,) = (await peer.ask(request(MODERN, 1, "tools/list")))["result"]["tools"]
        answer = await peer.ask(call(MODERN, 2, tool["name"], a=1))
    assert all(letter.isascii() and (letter.isalnum() or letter in "_.-") for letter in tool["name"])
    assert True is tool["annotations"]["readOnlyHint"]
    assert {"total": 2} == answer["result"]["structuredContent"]


@each_era
async def test_content_comes_as_blocks(era):
    """A tool that returns ``Content`` has no out schema, and each block is as the protocol has it."""
    everything = Content(
        [
            "a",
            Text("b"),
            Image(b"\0", "image/png"),
            Audio(b"\1", "audio/wav"),
            Resource("x:t", "text", "text/plain"),
            Resource("x:b", b"\2"),
            ResourceLink("x:l", "link", "it", "text/html"),
        ]
    )

    async def show() -> Content:
        """Show."""
        return everything

    async with stdio(Catalog([describe(show)])) as (peer, _):
        await peer.greet(era)
        (tool,) = (await peer.ask(request(era, 1, "tools/list")))["result"]["tools"]
        answer = (await peer.ask(call(era, 2, "show")))["result"]
    assert ("outputSchema" in tool, "structuredContent" in answer, answer["isError"]) == (False, False, False)
    assert [
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b"},
        {"type": "image", "data": "AA==", "mimeType": "image/png"},
        {"type": "audio", "data": "AQ==", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "x:t", "mimeType": "text/plain", "text": "text"}},
        {"type": "resource", "resource": {"uri": "x:b", "blob": "Ag=="}},
        {"type": "resource_link", "uri": "x:l", "name": "link", "description": "it", "mimeType": "text/html"},
    ] == answer["content"]


def test_content_holds_blocks_alone():
    """Anything else is refused when it is made."""
    with pytest.raises(InvalidToolError, match="got int"):
        Content([1])


async def test_calls_beyond_the_limits_are_rejected():
    """The runtime's queue holds for MCP, too: what has no place is a result that says so."""
    hang = Hang()
    async with stdio(catalog(hang.tool), drain=0, limits=Limits(max_running=1, max_queued=0)) as (peer, _):
        await peer.send(call(MODERN, 1, "hang"))
        await hang.begun.wait()
        answer = await peer.ask(call(MODERN, 2, "add", a=1))
    assert "rejected" == json.loads(text(answer))["outcome"]


async def test_a_deadline_of_the_server_ends_a_call():
    """``timeout`` is the deadline of each call, and its passing is an answer."""
    async with stdio(catalog(Hang().tool), timeout=0.05) as (peer, _):
        answer = await peer.ask(call(MODERN, 1, "hang"))
    assert ("timed_out", True) == (json.loads(text(answer))["outcome"], answer["result"]["isError"])


@each_era
async def test_requests_that_were_read_are_answered_when_the_input_ends(era):
    """Who writes and closes its side gets every answer; then the server ends."""
    async with stdio(catalog()) as (peer, state):
        await peer.greet(era)
        await peer.send(*(call(era, n, "add", a=n) for n in range(50)))
        peer.close()
        answers = [await peer.read() for _ in range(50)]
        assert None is await peer.read()
        await state.ended.wait()
    assert (set(range(50)), 0) == ({answer["id"] for answer in answers}, state.cut)


async def test_stop_drains_stdio():
    """Once told to stop, it reads no more, answers what runs within its time, and says how many it cut."""
    hang = Hang()
    async with stdio(catalog(hang.tool), drain=0.05) as (peer, state):
        await peer.send(call(MODERN, 1, "hang"))
        await hang.begun.wait()
        state.stop.set()
        await state.ended.wait()
    assert (1, True) == (state.cut, hang.cut.is_set())


async def test_stop_drains_http():
    """A call that runs ends and is answered; then the server ends."""
    gate, begun = anyio.Event(), anyio.Event()

    async def wait() -> str:
        """Wait."""
        begun.set()
        await gate.wait()
        return "here"

    answers = []
    async with web(Catalog([describe(wait)])) as (client, state):

        async def ask() -> None:
            answers.extend(await client.ask(call(MODERN, 1, "wait")))

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await begun.wait()
            state.stop.set()
            await until(lambda: state.runtime._host.is_closing)  # drain has begun, which nothing public says
            gate.set()
        await until(lambda: state.cut is not None)
    assert ("here", 0) == (text(answers[0]), state.cut)


async def test_a_client_that_reads_no_more_ends_the_server():
    """A broken pipe is an end like another."""
    import os

    async with stdio(catalog()) as (peer, state):
        await peer.ask(call(MODERN, 1, "add", a=1))
        os.dup2(os.open(os.devnull, os.O_RDONLY), peer._reader._fd)
        await peer.send(call(MODERN, 2, "add", a=1))
        await state.ended.wait()


async def test_the_runtime_must_be_open_and_values_make_sense():
    """What a program can mend is raised at once."""
    from harbor_async import Runtime

    runtime = Runtime(Catalog())
    with pytest.raises(HarborError, match="not open"):
        await MCPServer(runtime).serve_stdio()
    with pytest.raises(InvalidToolError, match="page_size"):
        MCPServer(runtime, page_size=0)
    with pytest.raises(InvalidToolError, match="Runtime"):
        MCPServer(Catalog())
    async with runtime:
        with pytest.raises(InvalidToolError, match="allowed_hosts"):
            await MCPServer(runtime).serve_http("0.0.0.0")
    assert "mcp" in sys.modules
