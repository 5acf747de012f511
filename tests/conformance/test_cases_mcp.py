"""Reported faults of MCP servers, each by its id: what a client of ours sees of the same."""

import asyncio
import json

import anyio

from harbor_async import Catalog, ToolPolicy, describe
from tests.conformance.support import is_asyncio
from tests.unit.serving.wire import LEGACY, MODERN, call, request, stdio, text

ONCE = ToolPolicy(timeout=None, attempts=1)


async def quick() -> str:
    """Answer at once."""
    return "quick"


async def test_r015_mcp_a_tool_canceled_from_within_is_answered():
    """A tool that awaits what somebody else cancels is failed / canceled; the session lives on."""

    async def wait() -> str:
        """Be canceled, as awaiting a canceled future is."""
        raise anyio.get_cancelled_exc_class() if is_asyncio() else asyncio.CancelledError

    async with stdio(Catalog([describe(wait, policy=ONCE), describe(quick)])) as (peer, _):
        answer = await peer.ask(call(MODERN, 1, "wait"))
        after = await peer.ask(call(MODERN, 2, "quick"))
    assert "canceled" == json.loads(text(answer))["error"]["category"]
    assert "quick" == text(after)


async def test_r035_other_calls_go_on_while_one_is_slow():
    """A hundred calls are answered while one runs that ends when they have been."""
    end = anyio.Event()

    async def slow() -> str:
        """Wait."""
        await end.wait()
        return "slow"

    async with stdio(Catalog([describe(slow, policy=ONCE), describe(quick)])) as (peer, _):
        await peer.greet(LEGACY)
        await peer.send(call(LEGACY, "slow", "slow"), *(call(LEGACY, n, "quick") for n in range(100)))
        others = [(await peer.read())["id"] for _ in range(100)]
        end.set()
        last = await peer.read()
    assert (set(range(100)), "slow", "slow") == (set(others), last["id"], text(last))


async def test_r036_a_slow_tool_is_answered_or_timed_out():
    """Its result is delivered however late; with a deadline the answer says that it has passed. Never nothing."""

    async def slow() -> str:
        """Take a while."""
        await anyio.sleep(0.2)
        return "slow"

    answers = []
    for timeout in (None, 0.05):
        async with stdio(Catalog([describe(slow, policy=ONCE)]), timeout=timeout) as (peer, _):
            answers.append(await peer.ask(call(MODERN, 1, "slow")))
    assert "slow" == text(answers[0])
    assert "timed_out" == json.loads(text(answers[1]))["outcome"]


async def test_r111_each_listed_name_can_be_called():
    """Whatever a list shows is callable by the name that it shows, also names that the protocol forbids."""
    names = ["plain", "with.dot", "with space", "ünï", "x" * 200, "a--b", "a---62-b"]
    tools = Catalog([describe(quick, name=name) for name in names])
    async with stdio(tools, page_size=2) as (peer, _):
        listed, cursor = [], None
        while cursor is not None or not listed:
            more = {} if cursor is None else {"cursor": cursor}
            page = (await peer.ask(request(MODERN, 1, "tools/list", **more)))["result"]
            listed += [tool["name"] for tool in page["tools"]]
            cursor = page.get("nextCursor")
        answers = [text(await peer.ask(call(MODERN, 2, name))) for name in listed]
    assert (len(names), len(names)) == (len(listed), len(set(listed)))
    assert ["quick"] * len(names) == answers
