"""A fake tracker behind real HTTP on the loopback interface, which breaks where it is told to."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import attrs
import h11
from anyio.abc import SocketAttribute, SocketStream

from harbor_async.tracker.writers.http import Request, Response, Transport


class CutError(Exception):
    """Close the connection; with ``half``, after the first byte of an answer that has two."""

    def __init__(self, *, half: bool = False) -> None:
        self.half = half


@attrs.define
class Server:
    """What serves.

    Attributes:
        url: Its address.
        open: Connections that are open.
        most: The most that were open at once.
        made: How many were made.
    """

    url: str
    open: int = 0
    most: int = 0
    made: int = 0


@asynccontextmanager
async def serve(fake: Transport) -> AsyncIterator[Server]:
    """Serve what ``fake`` answers, whatever the host of the address was."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    server = Server(f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}")

    async def handle(stream: SocketStream) -> None:
        server.open += 1
        server.made += 1
        server.most = max(server.most, server.open)
        try:
            async with stream:
                await talk(stream, fake, server.url)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, h11.RemoteProtocolError):
            pass  # the client has gone
        finally:
            server.open -= 1

    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, handle)
        yield server
        group.cancel_scope.cancel()


async def talk(stream: SocketStream, fake: Transport, url: str) -> None:
    """Answer one request after the other, for as long as both sides keep the connection."""
    connection = h11.Connection(h11.SERVER)
    while True:
        request = await read(stream, connection, url)
        if request is None:
            return
        try:
            response = await fake.send(request)
        except CutError as cut:
            if cut.half:
                await stream.send(b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{")
            return
        await stream.send(head(connection, response) + response.body)
        connection.send(h11.EndOfMessage())
        if connection.our_state is h11.MUST_CLOSE:
            return
        connection.start_next_cycle()


def head(connection: h11.Connection, response: Response) -> bytes:
    headers = [*response.headers.items(), ("content-length", str(len(response.body)))]
    if response.status == 204:
        headers.pop()
    start = connection.send(h11.Response(status_code=response.status, headers=headers))
    if response.body:
        connection.send(h11.Data(data=response.body))
    return start or b""


async def read(stream: SocketStream, connection: h11.Connection, url: str) -> Request | None:
    """Return the next request; None where the client has ended."""
    asked: h11.Request | None = None
    body = b""
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            try:
                connection.receive_data(await stream.receive())
            except anyio.EndOfStream:
                connection.receive_data(b"")
        elif isinstance(event, h11.Request):
            asked = event
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage) and asked is not None:
            headers = {name.decode().title(): value.decode() for name, value in asked.headers}
            method = asked.method.decode()
            return Request(method, url + asked.target.decode(), headers, body, is_read=method == "GET")
        else:  # ConnectionClosed
            return None


async def wait_until(condition: Callable[[], object]) -> None:
    """Return once ``condition`` holds, which the other end of a socket brings about."""
    with anyio.fail_after(10):
        while not condition():  # noqa: ASYNC110 - sockets set no event
            await anyio.sleep(0.001)
