"""A proxy between a writer and its tracker, which loses, delays and cuts what passes, and what is measured with it."""

from collections import Counter
from contextlib import asynccontextmanager, suppress
from random import Random

import anyio
import anyio.abc
import attrs

from harbor_async import Backoff, Catalog, Limits, Runtime, ToolCall, ToolPolicy
from harbor_async.tracker import tracker_write

FATES = ["pass"] * 45 + ["refuse", "lose", "halve", "swallow", "delay"]
"""What may happen to a request: it is answered; it does not arrive; its answer is lost, or half of it, or never comes;
or comes late."""
PATIENCE = 2.0
"""Seconds after which the writers of these tests give an answer up."""
POLICY = ToolPolicy(timeout=10.0, attempts=12, wait=Backoff(initial=0.02, maximum=0.2))
IN_FLIGHT = 4


@attrs.define
class Proxy:
    """Passes connections on to ``port``, each request with a fate of its own.

    Attributes:
        port: Where the tracker is.
        random: Decides.
        choices: The fates that a request can have.
        only: How those requests begin; the others are answered.
        fates: What has happened.
        origin: The proxy's own address.
    """

    port: int
    random: Random
    choices: list = FATES
    only: bytes = b""
    fates: Counter = attrs.field(factory=Counter)
    origin: str = ""

    @asynccontextmanager
    async def serve(self):
        """Serve while the block runs."""
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        self.origin = f"http://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}"
        async with listener, anyio.create_task_group() as group:
            group.start_soon(listener.serve, self._handle)
            yield self
            group.cancel_scope.cancel()

    async def _handle(self, client):
        try:
            async with client, await anyio.connect_tcp("127.0.0.1", self.port) as server:
                while await self._exchange(client, server):
                    pass
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream):
            pass  # one of them has gone

    async def _exchange(self, client, server):
        """Pass one request, and its answer; say whether the connection goes on."""
        head, end, body = (await whole(client)).partition(b"\r\n\r\n")
        # The tracker wants to see its own address, as host and as origin.
        request = head.replace(self.origin[7:].encode(), b"127.0.0.1:%d" % self.port) + end + body
        fate = self.random.choice(self.choices) if request.startswith(self.only) else "pass"
        self.fates[fate] += 1
        if fate == "refuse":
            return False
        await server.send(request)
        answer = await whole(server)
        if fate == "lose":
            return False
        if fate == "swallow":
            await client.receive()  # until it gives up
        if fate == "delay":
            await anyio.sleep(self.random.uniform(0.0, PATIENCE / 4))
        await client.send(answer[: len(answer) // 2] if fate == "halve" else answer)
        return fate != "halve"


async def whole(stream):
    """Return one message of HTTP, whose length stands in it, is nothing, or ends with the connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += await stream.receive()
    head, _, body = data.partition(b"\r\n\r\n")
    lines = [line.lower().partition(b":") for line in head.split(b"\r\n")]
    fields = {name: value.strip() for name, _, value in lines[1:]}
    is_answer, status = head.startswith(b"HTTP/"), head.split(b" ")[1]
    length = int(fields.get(b"content-length", b"0"))
    if b"chunked" in fields.get(b"transfer-encoding", b""):
        while not data.endswith(b"0\r\n\r\n"):
            data += await stream.receive()
    elif is_answer and b"content-length" not in fields and status != b"204":
        try:
            while True:
                data += await stream.receive()
        except anyio.EndOfStream:
            pass
    else:
        while len(body) < length:
            chunk = await stream.receive()
            data, body = data + chunk, body + chunk
    return data


async def write_many(writer, issues, number):
    """Write so many comments through the tool, to the issues in turn; return the texts of those that succeeded."""
    texts = [f"comment {index}" for index in range(number)]
    tool = tracker_write(writer, policy=POLICY)
    async with Runtime(Catalog([tool]), limits=Limits(max_running=IN_FLIGHT)) as runtime:
        calls = [
            ToolCall(text, "tracker_write", {"op": "comment", "id": issues[index % len(issues)], "body": text})
            for index, text in enumerate(texts)
        ]
        results = await runtime.invoke_many(calls)
    return {result.call_id for result in results if result.outcome == "succeeded"}, results


async def write_blindly(send, issues, number):
    """Write so many comments with ``send``, each again until an answer says yes."""
    limiter = anyio.Semaphore(IN_FLIGHT)

    async def write(index):
        async with limiter:
            for _ in range(POLICY.attempts):
                with suppress(Exception):
                    await send(issues[index % len(issues)], f"comment {index}")
                    break

    async with anyio.create_task_group() as group:
        for index in range(number):
            group.start_soon(write, index)


def report(capsys, name, succeeded, stored, attempts, fates):
    """Print what was measured."""
    twice = sum(times > 1 for times in stored.values())
    extra = sum(times - 1 for times in stored.values())
    with capsys.disabled():
        print(  # noqa: T201 - its figures
            f"\n{name}: {len(succeeded)} succeeded in {attempts} attempts, {len(stored)} stored, {twice} twice or more"
            f" ({extra} too many); {dict(sorted(fates.items()))}"
        )


CUTS = [
    ("refuse", ("api_request", "unknown")),
    ("lose", ("api_request", "unknown")),
    ("halve", ("api_request", "unknown")),
    ("swallow", ("timeout", "unknown")),
]
"""What becomes of a write whose connection fails so."""
