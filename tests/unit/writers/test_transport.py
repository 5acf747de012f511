"""The transport on httpx2, over real HTTP on the loopback interface."""

import json
import math
import random
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import anyio
import httpx2
import pytest
from anyio.abc import TaskGroup

from harbor_async.errors import InvalidToolError, MissingExtraError
from harbor_async.tracker import TrackerError
from harbor_async.tracker.writers.http import HTTPTransport, Request, Response, Secret
from tests.unit.writers.served import CutError, serve, wait_until

TLS = ssl.create_default_context()
"""Read once: each transport would read the certificates anew."""


class Answering:
    """Answers every request in one way, and keeps the requests."""

    def __init__(self, action: Callable[[Request], Awaitable[Response]]) -> None:
        self.action = action
        self.requests: list[Request] = []

    async def send(self, request: Request) -> Response:
        self.requests.append(request)
        return await self.action(request)


async def created(_: Request) -> Response:
    return Response(201, {"X-One": "1"}, b'{"id":1}')


async def silent(_: Request) -> Response:
    await anyio.sleep_forever()
    raise AssertionError


async def cut(_: Request) -> Response:
    raise CutError


async def half(_: Request) -> Response:
    raise CutError(half=True)


def transport(**options: Any) -> HTTPTransport:
    return HTTPTransport(tls=TLS, **options)


def post(url: str, **headers: Any) -> Request:
    return Request.json("POST", f"{url}/a%2Fb/c?d=e", headers, {"text": "ä"})


async def test_what_is_sent_and_what_comes_back() -> None:
    """Method, path as it is written, headers and body arrive; status, headers in small letters and body come back."""
    served = Answering(created)
    async with serve(served) as server, transport() as http:
        response = await http.send(post(server.url, Authorization=Secret("tok").prefixed("Bearer ")))
    (request,) = served.requests
    assert ("POST", f"{server.url}/a%2Fb/c?d=e", {"text": "ä"}) == (
        request.method,
        request.url,
        json.loads(request.body),
    )
    assert "Bearer tok" == request.headers["Authorization"]
    assert "identity" == request.headers["Accept-Encoding"]
    assert str(request.headers["User-Agent"]).startswith("harbor-async/")
    assert (201, "1", b'{"id":1}', True) == (
        response.status,
        response.headers["x-one"],
        response.body,
        response.is_whole,
    )


async def test_a_redirect_is_not_followed() -> None:
    """An answer that sends the client elsewhere is the answer: a token goes nowhere but where it belongs."""

    async def away(request: Request) -> Response:
        return Response(307, {"Location": f"{request.url}/elsewhere"})

    served = Answering(away)
    async with serve(served) as server, transport() as http:
        response = await http.send(post(server.url))
    assert (307, 1) == (response.status, len(served.requests))


async def test_a_long_body_is_cut() -> None:
    """No more is read than was allowed, and the response says that it is not whole; the next request is served."""

    async def long(_: Request) -> Response:
        return Response(200, {}, b"x" * 1000)

    async with serve(Answering(long)) as server, transport(max_body_bytes=999) as http:
        response = await http.send(post(server.url))
        assert (999, False) == (len(response.body), response.is_whole)
        await http.send(post(server.url))
    async with serve(Answering(long)) as server, transport(max_body_bytes=1000) as http:
        assert (await http.send(post(server.url))).is_whole


@pytest.mark.parametrize(
    ("action", "category"),
    [(cut, "api_request"), (half, "api_request"), (silent, "timeout")],
    ids=["cut", "half", "silent"],
)
async def test_what_was_sent_may_have_happened(action: Any, category: str) -> None:
    """Without an answer to a request that was sent nobody knows."""
    served = Answering(action)
    async with serve(served) as server, transport(timeout=0.2) as http:
        error = await failure(http, post(server.url))
    assert (category, "unknown", 1) == (error.category, error.delivery, len(served.requests))


async def test_no_server() -> None:
    """Where nobody listens, nothing was sent."""
    async with serve(Answering(created)) as server:
        pass
    async with transport() as http:
        error = await failure(http, post(server.url))
    assert ("api_request", "not_sent") == (error.category, error.delivery)
    assert "reached" in error.message


@pytest.mark.virtual(grace=0.05)
async def test_no_free_connection() -> None:
    """A request that waits for a connection until its deadline says, before that, that it was not sent."""
    served = Answering(silent)
    async with serve(served) as server, transport(max_connections=1) as http, anyio.create_task_group() as group:
        group.start_soon(http.send, post(server.url))
        await wait_until(lambda: served.requests)
        with anyio.fail_after(3):
            error = await failure(http, post(server.url))
        group.cancel_scope.cancel()
    assert ("timeout", "not_sent", 1) == (error.category, error.delivery, len(served.requests))


async def test_what_http_cannot_carry() -> None:
    """An address of another scheme is refused, and nothing is sent."""
    async with transport() as http:
        error = await failure(http, Request("GET", "gopher://127.0.0.1/"))
    assert ("unsupported", "not_sent") == (error.category, error.delivery)


async def test_a_cancellation_leaves() -> None:
    """A cancellation that comes while an answer is awaited leaves, at once; one that came before sends nothing."""
    served = Answering(silent)
    async with serve(served) as server, transport() as http:
        with anyio.move_on_after(0.2) as scope:
            await http.send(post(server.url))
        assert scope.cancelled_caught
        before = len(served.requests)
        with anyio.CancelScope() as scope:
            scope.cancel()
            await http.send(post(server.url))
        assert scope.cancelled_caught
        assert before == len(served.requests)


async def test_it_is_used_inside_async_with() -> None:
    """Outside of it nothing is sent, and the error says what to do; inside it cannot be opened again."""
    http = transport()
    error = await failure(http, post("http://127.0.0.1:1"))
    assert ("unsupported", "not_sent") == (error.category, error.delivery)
    assert "async with" in error.message
    async with http:
        with pytest.raises(InvalidToolError, match="open already"):
            await http.__aenter__()
    async with http:
        pass


@pytest.mark.parametrize(
    "options", [{"timeout": -1}, {"timeout": math.nan}, {"max_connections": 0}, {"max_body_bytes": True}]
)
def test_nonsense_is_refused(options: Any) -> None:
    """A number that makes no sense is refused when the transport is made."""
    with pytest.raises(InvalidToolError):
        transport(**options)


def test_httpx2_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without httpx2 the error names the extra."""
    monkeypatch.setitem(__import__("sys").modules, "httpx2", None)
    with pytest.raises(MissingExtraError, match=r"harbor-async\[http\]"):
        transport()


def test_every_exception_of_httpx2_has_its_meaning() -> None:
    """Each exception class that a request can raise is mapped, before and after the request was begun."""
    known = {
        name: kind
        for name, kind in vars(httpx2).items()
        if isinstance(kind, type) and issubclass(kind, httpx2.TransportError)
    }
    timeouts = {"TimeoutException", "ConnectTimeout", "ReadTimeout", "WriteTimeout", "PoolTimeout"}
    impossible = {"UnsupportedProtocol", "LocalProtocolError"}
    assert timeouts | impossible < set(known)
    http = transport()
    for name, kind in known.items():
        before = http._explain(kind, "", is_sent=False)
        after = http._explain(kind, "", is_sent=True)
        expected = "timeout" if name in timeouts else "unsupported" if name in impossible else "api_request"
        assert (expected, "not_sent") == (before.category, before.delivery)
        assert ("timeout" if name in timeouts else "api_request", "unknown") == (after.category, after.delivery)


async def test_requests_canceled_at_random_moments_leave_the_pool_as_it_was(anyio_backend: Any) -> None:
    """A thousand requests canceled at random moments on a pool of 10, then 100 plain ones: each of them is served."""
    rounds = 5 if anyio_backend[1].get("debug") else 25  # of 40; a request takes four times as long in debug mode
    chance = random.Random(7)
    waits = random.Random(8)

    async def some_time(_: Request) -> Response:
        await anyio.sleep(waits.uniform(0, 0.004))
        return Response(201, {}, b"{}")

    async def cut_after(scope: anyio.CancelScope, seconds: float) -> None:
        await anyio.sleep(seconds)
        scope.cancel()

    async def canceled(http: HTTPTransport, url: str, group: TaskGroup) -> None:
        if chance.random() < 0.5:  # by a deadline, which is known, so that some are given up before it
            with suppress(TrackerError), anyio.move_on_after(chance.uniform(0, 0.02)):
                await http.send(post(url))
        else:
            with anyio.CancelScope() as scope:
                group.start_soon(cut_after, scope, chance.uniform(0, 0.02))
                await http.send(post(url))

    answered: list[int] = []

    async def plain(http: HTTPTransport, url: str) -> None:
        answered.append((await http.send(post(url))).status)

    async with serve(Answering(some_time)) as server:
        async with transport() as http:
            for _ in range(rounds):
                async with anyio.create_task_group() as group:
                    for _ in range(40):
                        group.start_soon(canceled, http, server.url, group)
            async with anyio.create_task_group() as group:
                for _ in range(100):
                    group.start_soon(plain, http, server.url)
            assert [201] * 100 == answered
            assert server.most <= 11  # a server hears of a closed connection a little later
        await wait_until(lambda: not server.open)


async def failure(http: HTTPTransport, request: Request) -> TrackerError:
    with pytest.raises(TrackerError) as caught:
        await http.send(request)
    return caught.value
