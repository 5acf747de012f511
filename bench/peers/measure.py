"""``python -m bench.peers.measure PEER``: measure one peer in this interpreter, which has it, and print JSON."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from importlib import import_module
from importlib.metadata import version

import anyio
import attrs

from ..gate import Gate
from ..hand import BY_HAND, in_task_group, sequence_by_hand
from ..pair import Effort, Pair, Row, measure
from ..work import ARGUMENTS, check, make_sleeping
from . import PEERS
from .tools import Answer, Function, make_function

EFFORT = Effort(rounds=7)
COUNTS = (1_000, 10_000)
HELD = 1_000


async def measure_peer(name: str) -> list[Row]:
    """Time one call after the other and two batches, and count the bytes of a call in flight."""
    peer = PEERS[name]
    make = import_module(f".adapters.{name.replace('-', '_')}", __package__).make
    at_once = await make(make_function(peer.returns))
    sleeping = await make(make_function(peer.returns, asyncio.sleep))
    _, by_hand = make_sleeping(asyncio.sleep)

    async def sequence(calls: int) -> None:
        text = ""
        for _ in range(calls):
            text = await at_once(ARGUMENTS)
        check(text)

    rows = [await measure(Pair("sequence", BY_HAND, sequence_by_hand, sequence), EFFORT)]
    for count in COUNTS:
        if count <= peer.many:
            floor = partial(in_task_group, partial(_by_hand, by_hand))
            ours = partial(in_task_group, partial(sleeping, ARGUMENTS))
            pair = Pair(f"{count:,} parallel", BY_HAND, floor, ours, calls=count)
            rows.append(await measure(pair, EFFORT.of(0.4)))
    return [*rows, await _memory(make, peer.returns)]


async def _memory(make: Callable[..., Awaitable[Answer]], returns: str) -> Row:
    gate = Gate(asyncio.Event)
    answer = await make(make_function(returns, gate.sleep))
    _, by_hand = make_sleeping(gate.sleep)
    floor = await gate.measure(partial(in_task_group, partial(_by_hand, by_hand)), HELD)
    ours = await gate.measure(partial(in_task_group, partial(answer, ARGUMENTS)), HELD)
    return Row.exact("memory in flight", BY_HAND, floor, ours)


async def _by_hand(function: Function) -> str:
    return json.dumps(await function(**json.loads(ARGUMENTS)))


def main(name: str) -> None:
    rows = anyio.run(measure_peer, name)
    versions = {package: version(package) for package in PEERS[name].packages}
    print(json.dumps({"versions": versions, "rows": [attrs.asdict(row) for row in rows]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
