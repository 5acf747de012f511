"""A tracker in memory whose writes can go wrong at every point, and which knows what has really happened in it."""

from collections.abc import Callable
from typing import Any

import anyio
import attrs

from harbor_async import Backoff, Delivery, ErrorCategory, ToolPolicy
from harbor_async.tracker import Issue, TrackerError

EFFECT = 2
"""The point of a write at which it has its effect."""
POINTS = range(4)
"""Before anything is sent, on the way there, on the way back, and with half of the answer read."""
POLICY = ToolPolicy(timeout=1.0, attempts=4, wait=Backoff(initial=0.5, factor=1, jitter=0))


async def hang() -> None:
    await anyio.sleep_forever()


async def lose_connection() -> None:
    raise ConnectionResetError("connection reset by peer")


async def answer_nonsense() -> None:
    raise TrackerError("bad gateway", category=ErrorCategory.API_STATUS)


async def fail_before() -> None:
    raise TrackerError("database is locked", category=ErrorCategory.API_REQUEST, delivery=Delivery.NOT_SENT)


@attrs.define
class Memory:
    """Comments, closes, moves and links of one tracker, and the ways in which its next writes go wrong.

    Attributes:
        strike: What goes wrong.
        point: Where.
        times: In how many of the next writes.
        step: Seconds between one point and the next.
        effects: What has happened, in its order: operation, issue and value. What is done already has no effect.
        keys: The keys of all writes, in their order.
        running: Issues on which a write runs.
        overlaps: Issues on which a write began while another one ran.
    """

    strike: Callable[[], Any] = hang
    point: int = 0
    times: int = 0
    step: float = 0.0
    effects: list[tuple[str, str, str]] = attrs.field(factory=list)
    keys: list[str] = attrs.field(factory=list)
    comments: set[str] = attrs.field(factory=set)
    running: list[str] = attrs.field(factory=list)
    overlaps: list[str] = attrs.field(factory=list)

    async def close(self, id: str, reason: str, *, key: str) -> None:
        await self.write("close", id, reason, key)

    async def transition(self, id: str, to_state: str, *, key: str) -> None:
        await self.write("transition", id, to_state, key)

    async def comment(self, id: str, body: str, *, key: str) -> None:
        await self.write("comment", id, body, key)

    async def link_pr(self, id: str, pr_url: str, *, key: str) -> None:
        await self.write("link_pr", id, pr_url, key)

    async def write(self, op: str, id: str, value: str, key: str) -> None:
        self.keys.append(key)
        if id in self.running:
            self.overlaps.append(id)
        self.running.append(id)
        is_struck, self.times = self.times > 0, max(0, self.times - 1)
        try:
            for point in POINTS:
                if point == EFFECT:
                    self.apply(op, id, value, key)
                if is_struck and point == self.point:
                    await self.strike()
                await anyio.sleep(self.step)
        finally:
            self.running.remove(id)

    def apply(self, op: str, id: str, value: str, key: str) -> None:
        """Have the effect. A tracker that knows no keys repeats a comment, and never anything else."""
        if op == "comment":
            self.comments.add(key)
        elif self.is_there(op, id, value):
            return
        self.effects.append((op, id, value))

    def is_there(self, op: str, id: str, value: str) -> bool:
        last = [effect for effect in self.effects if effect[:2] == (op, id)]
        return bool(last) and (op == "close" or (op, id, value) in (last if op == "link_pr" else last[-1:]))


class Readable(Memory):
    """A tracker that can be asked what has happened."""

    async def find_comment(self, id: str, *, key: str) -> bool:
        await anyio.sleep(self.step)
        return key in self.comments

    async def get(self, id: str) -> Issue:
        await anyio.sleep(self.step)
        mine = [(op, value) for op, issue, value in self.effects if issue == id]
        moves = [value for op, value in mine if op == "transition"]
        links = tuple(value for op, value in mine if op == "link_pr")
        return Issue(id, "title", moves[-1] if moves else "open", is_closed=("close", "") in mine, links=links)
