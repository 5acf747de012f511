"""Comments on a real Roundup through a connection that fails: none twice, none lost."""

import uuid
from collections import Counter
from random import Random
from urllib.parse import urlsplit

import pytest
from anyio.to_thread import run_sync

from harbor_async.tracker.writers._http import Secret
from harbor_async.tracker.writers._roundup import API
from harbor_async.tracker.writers.http import HTTPTransport
from harbor_async.tracker.writers.roundup import Roundup
from tests.e2e.trackers import weather
from tests.e2e.trackers.servers import PASSWORD

pytestmark = pytest.mark.timeout(300)


async def prepare(server):
    issues = [await run_sync(server.issue) for _ in range(40)]
    return issues, await run_sync(server.user), urlsplit(server.origin).port


async def stored(server, issues):
    return Counter([text for issue in issues for text in await run_sync(server.texts, issue)])


async def test_no_comment_is_there_twice(roundup_server, capsys, anyio_backend_name):
    """200 comments through a connection that fails one time in ten: each is stored once, or was not told as there."""
    issues, user, port = await prepare(roundup_server)
    async with (
        weather.Proxy(port, Random(7)).serve() as proxy,
        HTTPTransport(timeout=weather.PATIENCE) as transport,
        Roundup(f"{proxy.origin}/main", user=user, password=PASSWORD, transport=transport) as writer,
    ):
        succeeded, results = await weather.write_many(writer, issues, 200)
    found = await stored(roundup_server, issues)
    attempts = sum(result.attempts for result in results)
    weather.report(capsys, f"Roundup, {anyio_backend_name}", succeeded, found, attempts, proxy.fates)
    assert {1} == set(found.values())
    assert set() == succeeded - set(found)
    assert len(succeeded) > 150  # the rest were too slow for this machine


async def test_a_blind_retry_writes_twice(roundup_server, capsys, anyio_backend_name):
    """The same without a look at what is there: many comments are stored more than once."""
    issues, user, port = await prepare(roundup_server)
    async with (
        weather.Proxy(port, Random(7)).serve() as proxy,
        HTTPTransport(timeout=weather.PATIENCE) as transport,
    ):
        api = API.of(f"{proxy.origin}/main", user, Secret(PASSWORD))

        async def ask(request, read):
            response = await transport.send(request)
            error = api.classify(response)
            if error is not None:
                raise error
            return read(response)

        me = await run_sync(lambda: roundup_server.ask("GET", f"user?username={user}")["collection"][0]["id"])

        async def send(issue, text):
            message = await ask(api.write_message(text, me, f"<{uuid.uuid4()}@x>"), api.read_made)
            found = await ask(api.issue(issue), api.read_issue)
            await ask(api.add_message(found, message), lambda _: None)

        await weather.write_blindly(send, issues, 100)
    found = await stored(roundup_server, issues)
    weather.report(capsys, f"Roundup blindly, {anyio_backend_name}", found.keys(), found, "?", proxy.fates)
    assert sum(times > 1 for times in found.values()) >= 3
