"""An MCP server on pipes is sent what no client should send, and goes on serving.

``HARBOR_FUZZ_INPUTS`` says how many inputs, of all kinds in turn; 10,000 take half a minute.
"""

import gc
import json
import os
import random
import tracemalloc

import anyio
import pytest

from harbor_async import Catalog, Limits, describe
from tests.unit.serving.wire import ERAS, INITIALIZED, LEGACY, MODERN, call, cancel, initialize, request, stdio

INPUTS = int(os.environ.get("HARBOR_FUZZ_INPUTS", "600"))
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
async def test_it_goes_on_serving_with_flat_memory(era):
    """After all of it calls are answered, nothing runs, and no more memory is held than after the first tenth."""
    tools = Catalog([describe(echo), describe(wait)])
    held = []
    async with stdio(tools, limits=Limits(max_arguments_bytes=1000)) as (peer, state):
        await peer.greet(era)
        tracemalloc.start()
        try:
            for part in range(10):
                await drive(peer, era, part * INPUTS // 10, INPUTS // 10)
                while state.runtime.statistics().running:
                    await anyio.sleep(0.01)
                gc.collect()
                held.append(tracemalloc.get_traced_memory()[0])
        finally:
            tracemalloc.stop()
        assert 0 == state.runtime.statistics().running
    print("held", held)
    assert held[-1] - held[1] < 300_000, held


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


async def test_who_does_not_read_is_not_read_from():
    """A flood of calls whose answers nobody takes stops being read, and is answered whole once they are taken."""
    from harbor_async.serving.mcp import _stdio

    size, count = 200_000, 80  # 16 MB of answers, twice what is kept
    tools = Catalog([describe(big)])
    async with stdio(tools) as (peer, state):

        async def flood() -> None:
            await peer.send(*(call(MODERN, n, "big", size=size) for n in range(count)))

        async with anyio.create_task_group() as group:
            group.start_soon(flood)
            for _ in range(50):
                await anyio.sleep(0.01)
            answers = [await peer.read() for _ in range(count)]
    assert set(range(count)) == {answer["id"] for answer in answers}
    assert size * count > _stdio._MOST_UNWRITTEN


async def big(size: int) -> str:
    """Return much."""
    return "x" * size
