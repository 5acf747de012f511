"""No token appears in anything that a program or a person sees: logs, errors, events, representations, tracebacks."""

import logging
import traceback
from typing import Any

import anyio
import pytest

from harbor_async import Backoff, Catalog, Runtime, ToolPolicy
from harbor_async.tracker import NAME, TrackerError, tracker_write
from harbor_async.tracker.writers.http import HTTPTransport, Response, Transport
from tests.unit.writers.fakes import FAKES, TOKEN, Fake
from tests.unit.writers.served import CutError, serve
from tests.unit.writers.test_failures import CASES, response, write
from tests.unit.writers.test_safe_writing import Elsewhere, arguments
from tests.unit.writers.test_transport import TLS


def echo(fake: Fake) -> Response:
    """Return a refusal that holds all that the request held, its token included."""
    headers = fake.requests[-1].reveal_headers()
    return Response(400, {}, b'{"message": "%s"}' % " ".join(headers.values()).replace('"', "'").encode())


def cut(_: Fake) -> Response:
    raise CutError


def half(_: Fake) -> Response:
    raise CutError(half=True)


async def silent(_: Fake) -> Response:
    await anyio.sleep_forever()
    raise AssertionError


FAULTS: dict[str, Any] = {"echo": echo, "cut": cut, "half": half, "silent": silent}
for _name, _row in CASES:
    FAULTS.setdefault(f"{_row['status']}-{_row['what']}", lambda _, row=_row: response(row))


class Events:
    """Keeps how each event looks."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def emit(self, event: Any) -> None:
        self.seen.append(f"{event!r} {event}")


def unfold(error: BaseException) -> list[str]:
    """Return an exception as the tools that show it do, with the values of all local variables but the tests' own."""
    told = traceback.TracebackException.from_exception(error, capture_locals=True)
    texts = [repr(error), str(error), repr(vars(error)), *traceback.format_exception(error)]
    queue = [told]
    for item in queue:
        frames = [frame for frame in item.stack if "harbor_async" in frame.filename or "httpx2" in frame.filename]
        texts += [repr(frame.locals) for frame in frames]
        queue += [it for it in (item.__cause__, item.__context__) if it is not None]
    return texts


@pytest.mark.parametrize("name", FAKES)
async def test_no_token_is_seen(name: str, caplog: pytest.LogCaptureFixture, capfd: Any) -> None:
    """Whatever fails, and however closely it is logged and looked at, the token is not in it."""
    caplog.set_level(1)
    for logger in ("httpx2", "httpcore2", "harbor_async"):
        logging.getLogger(logger).setLevel(1)
    seen: list[str] = []
    fake = FAKES[name]()
    events = Events()
    async with serve(fake) as server, HTTPTransport(tls=TLS, timeout=0.2) as http:
        writer = fake.writer(transport=Elsewhere(http, server))
        for strike in FAULTS.values():
            fake.strike, fake.times, fake.reads = (lambda strike=strike: strike(fake)), 1, False
            try:
                await write(fake, writer, "comment")
            except TrackerError as error:
                seen += unfold(error)
            fake.comments.clear()
        seen += [repr(writer), repr(vars(writer)), repr(http), repr(vars(http)), repr(writer._api)]
        seen += [f"{request!r} {request.show()}" for request in requests_of(writer)]
        fake.strike, fake.times = (lambda: echo(fake)), 9
        policy = ToolPolicy(attempts=2, wait=Backoff(initial=0))
        async with Runtime(Catalog([tracker_write(writer, policy=policy)]), sinks=[events]) as runtime:
            result = await runtime.invoke(NAME, arguments(fake, "comment"))
            seen += [result.content, repr(result), repr(result.to_wire()), repr(result.error)]
    seen += events.seen
    seen += [repr(record.__dict__) + record.getMessage() for record in caplog.records]
    seen += capfd.readouterr()
    assert len(FAULTS) > 40
    assert len(seen) > 4 * len(FAULTS)
    assert events.seen
    assert any("httpcore2" in record.name for record in caplog.records)
    secrets = {TOKEN, TOKEN[:12]}
    assert [] == [text for text in seen if any(secret in text for secret in secrets)]


def requests_of(writer: Any) -> list[Any]:
    """Return a request of each kind that a writer builds."""
    api = writer._api
    issue = {"_API": "1"}.get(type(api).__name__, "T-1")
    made = [api.issue(issue)]
    if hasattr(api, "me"):
        made.append(api.me())
    return made


async def test_no_server_and_no_certificate() -> None:
    """Neither a connection that is refused nor one whose server speaks no TLS tells the token."""
    seen: list[str] = []
    fake = FAKES["gitea"]()
    async with serve(fake) as server, HTTPTransport(tls=TLS) as http:
        for url in (server.url.replace("http://", "https://"), "http://127.0.0.1:1"):
            transport: Transport = http
            with pytest.raises(TrackerError) as caught:
                await fake.writer(url=url, transport=transport).comment("1", "x", key="k")
            assert "not_sent" == caught.value.delivery
            seen += unfold(caught.value)
    assert [] == [text for text in seen if TOKEN in text]
