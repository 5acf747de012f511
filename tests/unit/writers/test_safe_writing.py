"""``tracker_write`` on each writer: a write whose answer is lost happens once, over real HTTP and without."""

from typing import Any

import anyio
import pytest

from harbor_async import Backoff, Catalog, Runtime, ToolCall, ToolPolicy
from harbor_async.tracker import NAME, tracker_write
from harbor_async.tracker.writers.http import HTTPTransport, Request, Response
from tests.unit.writers.fakes import FAKES, Fake, answer
from tests.unit.writers.served import CutError, Server, serve
from tests.unit.writers.test_transport import TLS

URL = "https://example.org/pull/1"
POLICY = ToolPolicy(timeout=5.0, attempts=4, wait=Backoff(initial=0))
each_tracker = pytest.mark.parametrize("name", FAKES)
each_op = pytest.mark.parametrize("op", ["comment", "transition", "close", "link_pr"])
BODY = {"comment": {"body": "done"}, "close": {"reason": "mended"}, "link_pr": {"prURL": URL}}


def arguments(fake: Fake, op: str) -> dict[str, Any]:
    state = {"jira": "In Progress", "linear": "In Review"}.get(fake.name, "closed")
    return {"op": op, "id": fake.issue, **BODY.get(op, {"toState": state})}


async def lose_connection() -> Response:
    raise ConnectionResetError("connection reset by peer")


def bad_gateway() -> Response:
    return Response(502, {}, b"<html>bad gateway</html>")


def limited() -> Response:
    return answer(429, {}, {"Retry-After": "0"})


async def invoke(fake: Fake, op: str) -> Any:
    async with Runtime(Catalog([tracker_write(fake.writer(), policy=POLICY)])) as runtime:
        return await runtime.invoke(NAME, arguments(fake, op))


async def effects(fake: Fake) -> tuple[Any, ...]:
    issue = await fake.writer().get(fake.issue)
    return sorted(fake.texts()), issue.state, issue.links


@each_tracker
@each_op
@pytest.mark.parametrize("point", ["before", "after"])
@pytest.mark.parametrize("strike", [lose_connection, bad_gateway], ids=["lost", "502"])
async def test_a_lost_answer_does_not_repeat_the_write(name: str, op: str, point: str, strike: Any) -> None:
    """Whether the request or its answer was lost, the tracker is as it is after one write that was answered."""
    alone = FAKES[name]()
    await invoke(alone, op)
    fake = FAKES[name](strike=strike, point=point, times=1)
    result = await invoke(fake, op)
    assert ("succeeded", 2) == (result.outcome, result.attempts)
    assert await effects(alone) == await effects(fake)


@each_tracker
@each_op
async def test_a_refused_write_is_repeated(name: str, op: str) -> None:
    """After a limit the write is sent again, and happens once."""
    alone = FAKES[name]()
    await invoke(alone, op)
    fake = FAKES[name](strike=limited, times=3)
    result = await invoke(fake, op)
    assert ("succeeded", 4) == (result.outcome, result.attempts)
    assert await effects(alone) == await effects(fake)


@each_tracker
@each_op
async def test_a_bad_token_is_tried_once(name: str, op: str) -> None:
    """A refusal of the token is not tried again: some trackers lock the account that does."""
    fake = FAKES[name](times=9, reads=True)
    fake.strike = fake.unauthorized
    result = await invoke(fake, op)
    assert ("failed", "auth_failed", 1, 1) == (
        result.outcome,
        result.error.category,
        result.attempts,
        len(fake.requests),
    )


# --- over HTTP --------------------------------------------------------------------------------------------------------


class Elsewhere:
    """Sends to a server on the loopback interface what is meant for another."""

    def __init__(self, http: HTTPTransport, server: Server) -> None:
        self.http, self.server = http, server

    async def send(self, request: Request) -> Response:
        path = request.url.split("/", 3)[3]
        there = Request(request.method, f"{self.server.url}/{path}", request.headers, request.body, request.is_read)
        return await self.http.send(there)


def cut() -> Response:
    raise CutError


def half() -> Response:
    raise CutError(half=True)


@each_tracker
@pytest.mark.parametrize("point", ["before", "after"])
@pytest.mark.parametrize("strike", [cut, half], ids=["cut", "half"])
async def test_a_cut_connection(name: str, point: str, strike: Any) -> None:
    """A connection that is cut on the way there, on the way back or in the middle of the answer: one comment."""
    fake = FAKES[name](strike=strike, point=point, times=1)
    async with serve(fake) as server, HTTPTransport(tls=TLS) as http:
        tool = tracker_write(fake.writer(transport=Elsewhere(http, server)), policy=POLICY)
        async with Runtime(Catalog([tool])) as runtime:
            result = await runtime.invoke(NAME, arguments(fake, "comment"))
    assert ("succeeded", 2, ["done"]) == (result.outcome, result.attempts, fake.texts())


@each_tracker
async def test_a_slow_tracker(name: str) -> None:
    """An attempt that times out after the effect is followed by a look, and by no second comment."""
    fake = FAKES[name](strike=anyio.sleep_forever, point="after", times=1)
    policy = ToolPolicy(timeout=0.5, attempts=4, wait=Backoff(initial=0))
    async with serve(fake) as server, HTTPTransport(tls=TLS) as http:
        tool = tracker_write(fake.writer(transport=Elsewhere(http, server)), policy=policy)
        async with Runtime(Catalog([tool])) as runtime:
            result = await runtime.invoke(NAME, arguments(fake, "comment"))
    assert ("succeeded", ["done"]) == (result.outcome, fake.texts())


@each_tracker
async def test_many_comments_with_lost_answers(name: str) -> None:
    """Of 12 comments whose answers are lost now and then, each is there once."""
    fake = FAKES[name]()
    count = 0

    async def sometimes(request: Request) -> Response:
        nonlocal count
        count += not request.is_read
        if count % 3 == 0 and not request.is_read:
            if count % 6 == 0:
                await type(fake).send(fake, request)
            raise CutError
        return await type(fake).send(fake, request)

    class Lossy:
        send = staticmethod(sometimes)

    calls = [ToolCall(str(i), NAME, {"op": "comment", "id": fake.issue, "body": f"comment {i}"}) for i in range(12)]
    async with serve(Lossy()) as server, HTTPTransport(tls=TLS) as http:
        tool = tracker_write(fake.writer(transport=Elsewhere(http, server)), policy=POLICY)
        async with Runtime(Catalog([tool])) as runtime:
            results = await runtime.invoke_many(calls)
    assert {"succeeded"} == {result.outcome for result in results}
    assert [f"comment {i}" for i in range(12)] == fake.texts()
