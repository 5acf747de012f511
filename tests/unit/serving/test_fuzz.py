"""An MCP server on pipes is sent what no client should send, and goes on serving.

``HARBOR_FUZZ_INPUTS`` says how many inputs, of all kinds in turn; 10,000 need some minutes and
``--timeout=600``.
"""

import gc
import json
import logging
import os
import random
import sys

import anyio
import psutil
import pytest

from harbor_async import Catalog, Limits, describe
from harbor_async.serving.mcp import _stdio
from tests.unit.limits.support import until
from tests.unit.serving.wire import ERAS, INITIALIZED, LEGACY, MODERN, call, cancel, initialize, request, stdio, web

INPUTS = int(os.environ.get("HARBOR_FUZZ_INPUTS", "160"))
LIMIT = 4 * 1000
"""Longest message, of a server with ``max_arguments_bytes=1000``."""


async def echo(word: str = "") -> str:
    """Echo."""
    return word


async def wait() -> str:
    """Wait."""
    await anyio.sleep_forever()
    return ""


def damage(chance: random.Random, era: str, number: int) -> bytes:
    """Return one input, of a kind that ``number`` picks."""
    good = json.dumps(call(era, number, "echo", word="x")).encode()
    ids = ["", "né", -1, 2**70, 0.5, None, True, [], {"a": 1}, "x" * 900]
    kinds = [
        lambda: bytes(chance.randrange(256) for _ in range(chance.randrange(200))).replace(b"\n", b""),
        lambda: good[: chance.randrange(len(good))],
        lambda: bytes(byte ^ (1 << chance.randrange(8)) if chance.random() < 0.02 else byte for byte in good).replace(
            b"\n", b" "
        ),
        lambda: good[:-1] + b" " * LIMIT + b"}",
        lambda: b"[" * chance.randrange(1, LIMIT),
        lambda: json.dumps(request(era, chance.choice(ids), "tools/call", name="echo", arguments={})).encode(),
        lambda: json.dumps(request(era, number, chance.choice(["", "tools/none", "initialize", "ping"]))).encode(),
        lambda: json.dumps(request(era, number, "tools/call", name=chance.choice([1, None, "", "none"]))).encode(),
        lambda: json.dumps(call(era, number, "echo") | {"params": chance.choice(ids)}).encode(),
        lambda: json.dumps({"jsonrpc": "2.0", "id": chance.choice(ids), "result": {}}).encode(),
        lambda: json.dumps({"jsonrpc": "2.0", "method": "notifications/" + chance.choice(["progress", "x"])}).encode(),
        lambda: json.dumps(call(era, number, "wait")).encode() + b"\n" + json.dumps(cancel(number)).encode(),
        lambda: b"\n".join(json.dumps(cancel(chance.choice([*ids, number]))).encode() for _ in range(20)),
        lambda: json.dumps([json.loads(good)] * 3).encode(),
        lambda: good.replace(b'"x"', b'"\\ud800"'),
        lambda: json.dumps(request(era, number, "tools/list", cursor=chance.choice(["", "x", "/w==", "é"]))).encode(),
    ]
    return kinds[number % len(kinds)]() + b"\n"


async def drive(peer, era: str, first: int, count: int) -> None:
    """Send inputs in batches, and after each see that a good call is answered."""
    chance = random.Random(f"{era} {first}")
    for start in range(first, first + count, 50):
        last = min(start + 50, first + count)
        mark = f"mark {start}"
        await peer.send(
            *(damage(chance, era, number) for number in range(start, last)), call(era, mark, "echo", word="ok")
        )
        while (answer := await peer.read()).get("id") != mark:
            assert "2.0" == answer["jsonrpc"]
        assert "ok" == answer["result"]["content"][0]["text"]


@pytest.mark.parametrize("era", ERAS[:2])
async def test_it_goes_on_serving_with_flat_memory(era, caplog):
    """After all of it calls are answered, nothing runs, and no more is held than after the first quarter."""
    tools = Catalog([describe(echo), describe(wait)])
    held = []
    caplog.set_level(logging.CRITICAL, "mcp")  # what is kept of each message would be counted
    async with stdio(tools, limits=Limits(max_arguments_bytes=1000)) as (peer, state):
        await peer.greet(era)
        for first, count in ((0, INPUTS // 4), (INPUTS // 4, INPUTS - INPUTS // 4)):
            await drive(peer, era, first, count)
            await until(lambda: not state.runtime.statistics().running)
            gc.collect()
            held.append((len(gc.get_objects()), psutil.Process().memory_info().rss))
    sys.stdout.write(f"objects and bytes held, early and late: {held}\n")
    assert held[1][0] - held[0][0] < 1000
    assert held[1][1] - held[0][1] < 20_000_000


async def test_half_closed_and_cut_connections_leave_nothing():
    """Clients that end in the midst of a message, or with calls that run, leave no call behind."""
    tools = Catalog([describe(echo), describe(wait)])
    for number in range(20):
        async with stdio(tools, drain=0.01) as (peer, state):
            era = (MODERN, LEGACY)[number % 2]
            opening = [] if era == MODERN else [initialize(era), INITIALIZED]
            rest = json.dumps(call(era, 2, "echo")).encode()[: number * 5]
            await peer.send(*opening, call(era, 1, "wait"), rest)
            peer.close()
            await state.ended.wait()
        assert state.cut in (0, 1)


async def test_who_does_not_read_is_not_read_from(monkeypatch):
    """While nobody takes its answers it stops reading; once they are taken, every call has its answer."""
    monkeypatch.setattr(_stdio, "_MOST_UNWRITTEN", 50_000)  # 8 MB would take their time
    word, count, is_sent = "x" * 2000, 150, anyio.Event()
    async with stdio(Catalog([describe(echo)])) as (peer, _):

        async def flood() -> None:
            await peer.send(*(call(MODERN, n, "echo", word=word) for n in range(count)))
            is_sent.set()

        async with anyio.create_task_group() as group:
            group.start_soon(flood)
            with anyio.move_on_after(0.3):
                await is_sent.wait()
            was_sent = is_sent.is_set()
            answers = [await peer.read() for _ in range(count)]
    assert (False, set(range(count))) == (was_sent, {answer["id"] for answer in answers})


@pytest.mark.parametrize("era", ERAS[:2])
async def test_http_goes_on_serving(era, caplog):
    """Each wrong body has an answer, no fault of the server; cut connections leave no call; good calls are answered."""
    caplog.set_level(logging.CRITICAL)
    chance = random.Random(era)
    tools = Catalog([describe(echo), describe(wait)])
    async with web(tools, era, limits=Limits(max_arguments_bytes=1000)) as (client, state):
        head = client.head(call(era, 0, "echo")) | {"content-type": "application/json"}
        codes = set()
        for number in range(INPUTS // 4):
            answer = await client.http.post(client.url, content=damage(chance, era, number), headers=head)
            codes.add(answer.status_code)
        body = json.dumps(call(era, 1, "wait")).encode()
        lines = [f"{name}: {value}" for name, value in (head | {"content-length": str(len(body))}).items()]
        asked = "\r\n".join(["POST /mcp HTTP/1.1", f"host: 127.0.0.1:{state.port}", *lines, "", ""]).encode() + body
        for number in range(1, 12):
            async with await anyio.connect_tcp("127.0.0.1", state.port) as stream:
                await stream.send(asked[: len(asked) * number // 11])
                await (stream.aclose() if number % 2 else stream.send_eof())
        answers = await client.ask(call(era, 2, "echo", word="ok"))
        if era == MODERN:  # an old client's session goes on without the connection
            await until(lambda: not state.runtime.statistics().running)
    assert "ok" == answers[-1]["result"]["content"][0]["text"]
    assert {200, 400} <= codes
    assert max(codes) < 500
