"""Calls of remote tools: results, errors and what they mean for a retry."""

import json
from typing import Any

import anyio
import pytest

import harbor_async as ha
from harbor_async.providers.mcp import RemoteServers
from tests.unit.providers.peer import OBJECT, Peer, RefusalError, text

pytestmark = pytest.mark.virtual

ONCE = ha.ToolPolicy(attempts=1)


async def invoke(peer: Peer, arguments: Any = "", **options: Any) -> ha.ToolResult:
    catalog = ha.Catalog()
    async with RemoteServers(catalog) as servers, ha.Runtime(catalog) as rt:
        await servers.connect(peer, **options)
        return await rt.invoke(peer.tools[0]["name"], arguments)


def giving(result: Any) -> Peer:
    async def on_call(_: Any) -> Any:
        return result

    return Peer(on_call=on_call)


IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}


@pytest.mark.parametrize(
    ("result", "value"),
    [
        (text("hi", structuredContent={"n": 1}), {"n": 1}),
        (text("hi"), "hi"),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "a\nb"),
        ({"content": []}, ""),
        ({"content": [{"type": "text", "text": "a"}, IMAGE]}, [{"type": "text", "text": "a"}, IMAGE]),
    ],
)
async def test_the_value_of_a_result(result: Any, value: Any):
    """Structured content if there is any, else the text, else the content blocks as they are."""
    answered = await invoke(giving(result))
    assert ("succeeded", value) == (answered.outcome, answered.value)


async def test_arguments_are_checked_before_anything_is_sent():
    """What the foreign schema refuses never reaches the server, and every problem is told."""
    peer = Peer({"name": "add", "inputSchema": {**OBJECT, "properties": {"a": {"type": "number"}}, "required": ["b"]}})
    result = await invoke(peer, '{"a": "x"}')
    assert ("validation", "not_sent", 0) == (result.error.category, result.error.delivery, result.attempts)
    assert {("/a", "type"), ("/b", "missing")} == {(problem.path, problem.code) for problem in result.error.problems}
    assert [] == peer.of("tools/call")


async def test_a_result_that_its_schema_denies_is_an_invalid_output():
    """The out schema of the server is held against what it gives; a missing structured content is no object."""
    tool = {"name": "add", "inputSchema": OBJECT, "outputSchema": {**OBJECT, "properties": {"n": {"type": "number"}}}}
    for given in (text("hi", structuredContent={"n": "x"}), text("hi")):
        peer = giving(given)
        peer.tools = [tool]
        result = await invoke(peer)
        assert ("failed", "unknown", 1) == (result.outcome, result.error.category, result.attempts)
        assert result.error.problems


async def test_an_error_of_the_tool_is_told_in_its_own_words_and_not_retried():
    """``isError``: the tool has run and says what is wrong; another attempt of the same call would not help."""
    peer = giving(text("no such city", isError=True))
    result = await invoke(peer, trusted=True)
    assert ("failed", "no such city", "permanent", 1) == (
        result.outcome,
        result.error.message,
        result.stop_reason,
        result.attempts,
    )


async def test_the_envelope_of_another_harbor_keeps_its_category():
    """A server that answers with our envelope is understood: category and wait come through."""
    error = {"category": "rate_limited", "message": "too many", "retry_after": 3}
    for told in (text(json.dumps({"outcome": "failed", "error": error}), isError=True),):
        result = await invoke(giving(told))
        assert ("rate_limited", "too many", 3.0) == (
            result.error.category,
            result.error.message,
            result.error.retry_after,
        )


@pytest.mark.parametrize("words", ["", '{"outcome": 1}', '{"outcome": "failed", "error": {"category": []}}', "[1]"])
async def test_what_is_no_envelope_is_text(words: str):
    """A look-alike is told as it came; silence is said to be that."""
    result = await invoke(giving(text(words, isError=True)))
    assert ("unknown", words or "the tool failed, and did not say why") == (result.error.category, result.error.message)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (-32602, ("validation", "permanent", "refused")),
        (-32601, ("unsupported", "permanent", "refused")),
        (-32042, ("unsupported", "permanent", "refused")),
        (-32603, ("api_status", "5xx", "unknown")),
        (-32001, ("timeout", "timeout", "unknown")),
        (-32000, ("api_request", "transient", "unknown")),
        (-32700, ("api_status", "permanent", "unknown")),
        (7, ("api_status", "5xx", "unknown")),
    ],
)
async def test_an_error_of_the_protocol_has_category_class_and_delivery(code: int, expected: tuple[str, str, str]):
    """Each JSON-RPC code means something for the model and for a retry."""

    async def on_call(_: Any) -> Any:
        raise RefusalError(code, "words of the server")

    error = (await invoke(Peer(on_call=on_call), policy=ONCE)).error
    assert expected == (error.category, error.error_class, error.delivery)


@pytest.mark.parametrize(
    "result", [{"content": [{"type": "poem"}]}, {"content": "x"}, {}], ids=["unknown block", "no list", "nothing"]
)
async def test_an_answer_that_is_no_mcp_is_an_error(result: Any):
    """What cannot be read is no value, and may have had its effect."""
    error = (await invoke(giving(result))).error
    assert ("api_status", "permanent", "unknown") == (error.category, error.error_class, error.delivery)
    assert "not valid MCP" in error.message


@pytest.mark.parametrize(
    ("options", "attempts", "stop"),
    [
        ({}, 1, "unsafe"),
        ({"trusted": True}, 3, None),
        ({"side_effect": "read"}, 3, None),
        ({"trusted": True, "idempotent": False}, 1, "unsafe"),
    ],
)
async def test_retries_follow_what_is_believed_of_the_effect(options: Any, attempts: int, stop: str | None):
    """A server's failure is retried for a tool that may be repeated, as its trusted hints or the program say."""
    failures = [RefusalError(-32603), RefusalError(-32603)]

    async def on_call(_: Any) -> Any:
        if failures:
            raise failures.pop()
        return text("done")

    peer = Peer({"name": "put", "inputSchema": OBJECT, "annotations": {"idempotentHint": True}}, on_call=on_call)
    result = await invoke(peer, **options)
    assert (attempts, stop) == (result.attempts, result.stop_reason)
    assert len(peer.of("tools/call")) == attempts


async def test_a_refused_call_makes_the_tools_be_listed_anew():
    """Invalid parameters after our own check mean that the tool has changed: the list is read again."""

    async def on_call(_: Any) -> Any:
        raise RefusalError(-32602)

    peer = Peer(on_call=on_call)
    catalog = ha.Catalog()
    async with RemoteServers(catalog) as servers, ha.Runtime(catalog) as rt:
        await servers.connect(peer)
        peer.tools[0]["description"] = "new"
        await rt.invoke("echo")
        await anyio.sleep(1)
        assert "new" == catalog.resolve("echo").tool.description


async def test_progress_of_the_server_becomes_progress_of_the_call():
    """What the server reports is heard by the runtime's sinks; nonsense in it harms nothing."""
    peer = Peer()

    async def on_call(params: Any) -> Any:
        token = params["_meta"]["progressToken"]
        peer.tell("notifications/progress", progressToken=token, progress=1, total=4, message="a quarter")
        peer.tell("notifications/progress", progressToken=token, progress=float("inf"))
        peer.tell("notifications/progress", progressToken=999, progress=3)
        await anyio.sleep(1)
        return text("done")

    peer.on_call = on_call
    events: list[ha.ToolEvent] = []

    class Sink:
        async def emit(self, event: ha.ToolEvent) -> None:
            events.append(event)

    catalog = ha.Catalog()
    async with RemoteServers(catalog) as servers, ha.Runtime(catalog, sinks=[Sink()]) as rt:
        await servers.connect(peer)
        assert "done" == (await rt.invoke("echo")).value
    told = [(event.done, event.total, event.message) for event in events if event.type == "tool.progress"]
    assert [(1, 4, "a quarter")] == told


async def test_a_program_calls_it_by_its_descriptor():
    """rt.call() takes arguments by name, and raises what a tool of its own would."""
    catalog = ha.Catalog()
    peer = Peer()
    async with RemoteServers(catalog) as servers, ha.Runtime(catalog) as rt:
        await servers.connect(peer)
        assert {"a": 1} == await rt.call(catalog.resolve("echo"), a=1)
        peer.on_call = giving(text("bad", isError=True)).on_call
        with pytest.raises(ha.ToolError, match="bad"):
            await rt.call(catalog.resolve("echo"), a=1)


async def test_r035_a_slow_tool_does_not_hold_up_others():
    """R035: while one call takes 6 s, others over the same session are answered at once."""

    async def on_call(params: Any) -> Any:
        await anyio.sleep(params["arguments"].get("for", 0))
        return text("done")

    catalog = ha.Catalog()
    async with RemoteServers(catalog) as servers, ha.Runtime(catalog) as rt:
        await servers.connect(Peer(on_call=on_call))
        calls = [ha.ToolCall("slow", "echo", {"for": 6}), *(ha.ToolCall(str(n), "echo", {}) for n in range(50))]
        async with rt.stream(calls) as results:
            order = [(result.call_id, result.elapsed) async for result in results]
    assert ("slow", pytest.approx(6)) == order[-1]
    assert all(elapsed == pytest.approx(0) for _, elapsed in order[:-1])


@pytest.mark.parametrize(("timeout", "outcome"), [(7, "succeeded"), (5, "failed")])
async def test_r036_a_slow_tool_has_its_result_or_an_explicit_timeout(timeout: float, outcome: str):
    """R036: a tool of 6 s answers, or its attempt times out with words; it is never nothing."""

    async def on_call(_: Any) -> Any:
        await anyio.sleep(6)
        return text("done")

    result = await invoke(Peer(on_call=on_call), policy=ha.ToolPolicy(timeout=timeout, attempts=1))
    assert outcome == result.outcome
    assert "done" == result.value if outcome == "succeeded" else "timeout" == result.error.category
