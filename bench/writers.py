"""What a writer adds to the bare request of httpx2, on the loopback interface.

``python -m bench.writers`` prints the ratio on both backends. The server is a process of its own and answers at once;
rounds of both sides alternate in one run, and the ratio is that of their quickest: a loaded machine slows the others.
"""

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from time import perf_counter
from typing import Any, Final

import anyio
import httpx2

from harbor_async.tracker.writers.github import GitHub

ROUNDS: Final = 40
REQUESTS: Final = 25
BODY: Final = "The pump leaks at the lower seal."
SERVER: Final = """
import asyncio
BODY = b'{"id":1,"body":"x","user":{"login":"me"}}'
HEAD = b"HTTP/1.1 201 Created\\r\\nContent-Type: application/json\\r\\nContent-Length: %d\\r\\n\\r\\n"
ANSWER = HEAD % len(BODY) + BODY

class Serve(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.data = transport, b""

    def data_received(self, data):
        self.data += data
        head, found, body = self.data.partition(b"\\r\\n\\r\\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\\r\\n")[0]) if found else 1
        if found and len(body) >= length:
            self.data = b""
            self.transport.write(ANSWER)

async def main():
    server = await asyncio.get_running_loop().create_server(Serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


@contextmanager
def server() -> Any:
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


@asynccontextmanager
async def bare(url: str) -> AsyncIterator[Callable[[], Awaitable[object]]]:
    """Post as a program by hand would, and read what came."""
    headers = {"Authorization": "Bearer none", "Accept": "application/vnd.github+json"}
    async with httpx2.AsyncClient(headers=headers, verify=False, timeout=30) as client:

        async def post() -> object:
            response = await client.post(f"{url}/repos/a/b/issues/1/comments", json={"body": BODY})
            response.raise_for_status()
            return json.loads(response.content)

        yield post


@asynccontextmanager
async def ours(url: str) -> AsyncIterator[Callable[[], Awaitable[object]]]:
    keys = count()
    async with GitHub("a/b", token="none", url=url) as tracker:  # noqa: S106 - it is none

        async def comment() -> object:
            return await tracker.comment("1", BODY, key=str(next(keys)))

        yield comment


async def measure(url: str) -> tuple[float, float]:
    """Return the microseconds of one request: bare, and by the writer."""
    times: tuple[list[float], list[float]] = ([], [])
    async with bare(url) as post, ours(url) as comment:
        for _ in range(ROUNDS + 1):  # the first is to warm up
            for one, spent in zip((post, comment), times, strict=True):
                began = perf_counter()
                for _ in range(REQUESTS):
                    await one()
                spent.append((perf_counter() - began) / REQUESTS * 1e6)
    return min(times[0][1:]), min(times[1][1:])


def main() -> None:
    with server() as url:
        for backend in ("asyncio", "trio"):
            plain, writer = anyio.run(measure, url, backend=backend)
            print(
                f"{backend}: bare httpx2 {plain:.0f} µs, a comment by the writer {writer:.0f} µs: {writer / plain:.2f}"
            )


if __name__ == "__main__":
    main()
