"""Issues of a real Redmine."""

from collections import Counter
from contextlib import asynccontextmanager
from random import Random
from urllib.parse import urlsplit

import pytest
from anyio.to_thread import run_sync

from harbor_async import Catalog, Runtime, ToolCall
from harbor_async.testing import WriterConformance
from harbor_async.tracker import TrackerError, tracker_write
from harbor_async.tracker.writers._http import Secret
from harbor_async.tracker.writers.http import HTTPTransport, Response
from harbor_async.tracker.writers.redmine import API, Redmine
from tests.e2e.trackers import weather

MISSING = "99999"
pytestmark = pytest.mark.timeout(300)


def make(server, who="agent", **options):
    return Redmine(server.origin, **{"token": server.keys.get(who, who), **options})


class TestConformance(WriterConformance):
    state = "Doing"
    missing = MISSING

    @pytest.fixture(autouse=True)
    def _serve(self, redmine_server):
        self.server = redmine_server

    @asynccontextmanager
    async def make(self):
        self.issue = await run_sync(self.server.issue)
        async with make(self.server) as tracker:
            yield tracker


async def failure(ask):
    """Return the category and the delivery of the failure of ``ask``, and the error."""
    with pytest.raises(TrackerError) as caught:
        await ask
    error = caught.value
    return error.category.value, error.delivery.value, error


async def test_each_operation(redmine_server):
    """A comment, a move, a link and a close are in the tracker, in their order, and are read again."""
    id = await run_sync(redmine_server.issue)
    url = "https://example.org/pull/1"
    async with make(redmine_server) as tracker:
        await tracker.comment(id, "A line.\n\nAnother one.", key="1")
        await tracker.transition(id, "doing", key="2")
        await tracker.link_pr(id, url, key="3")
        issue = await tracker.get(id)
        assert (id, "It leaks", "Doing", False, (url,)) == (
            issue.id,
            issue.title,
            issue.state,
            issue.is_closed,
            issue.links,
        )
        await tracker.close(id, "it is dry", key="4")
        issue = await tracker.get(id)
        assert ("Done", True) == (issue.state, issue.is_closed)
        assert [True, False] == [await tracker.find_comment(id, key=key) for key in ("1", "2")]
    assert ["A line.", f"Pull request: {url}", "it is dry"] == await run_sync(redmine_server.texts, id)


async def test_what_is_refused(redmine_server):
    """Each failure that Redmine can show has its category, and nothing was written."""
    id = await run_sync(redmine_server.issue)
    hidden = await run_sync(redmine_server.issue, redmine_server.hidden)
    async with make(redmine_server) as tracker, make(redmine_server, "x" * 40) as stranger:
        assert ("not_found", "refused") == (await failure(tracker.get(MISSING)))[:2]
        assert "not_found" == (await failure(tracker.comment(MISSING, "x", key="1")))[0]
        assert ("auth_failed", "refused") == (await failure(stranger.comment(id, "x", key="1")))[:2]
        assert ("auth_failed", "refused") == (await failure(tracker.comment(hidden, "x", key="1")))[:2]
        assert ("validation", "not_sent") == (await failure(tracker.comment("1.json", "x", key="1")))[:2]
    async with make(redmine_server, "viewer") as tracker:
        assert "auth_failed" == (await failure(tracker.comment(id, "x", key="1")))[0]
    assert [] == await run_sync(redmine_server.texts, id)


async def test_a_move_that_is_not_allowed(redmine_server):
    """A state that there is not, or that the role may not set, is refused with those that it may; it stays."""
    id = await run_sync(redmine_server.issue)
    async with make(redmine_server) as tracker:
        for state in ("Solved", "Done", "Never"):
            category, _, error = await failure(tracker.transition(id, state, key="1"))
            assert ("validation", True) == (category, error.message.endswith("Todo, Doing, Review"))
        category, _, error = await failure(tracker.close(id, "why", key="1"))
        assert ("validation", True) == (category, "cannot be closed from where it is" in error.message)
        assert "Todo" == (await tracker.get(id)).state


class Patched(HTTPTransport):
    """Changes each answer to a question for an issue."""

    def __init__(self, old, new):
        super().__init__()
        self.old, self.new = old, new

    async def send(self, request, /):
        answer = await super().send(request)
        return Response(answer.status, answer.headers, answer.body.replace(self.old, self.new), answer.is_whole)


async def test_redmine_says_yes_and_does_nothing(redmine_server):
    """A move that Redmine leaves out, with 204, is no success: the workflow was another when it was asked for."""
    id = await run_sync(redmine_server.issue)
    async with Patched(b'"name":"Doing"', b'"name":"Never"') as transport:
        api = API(redmine_server.origin, Secret(redmine_server.keys["agent"]))
        assert 204 == (await transport.send(api.move(id, 999_999, ""))).status
        statuses = await run_sync(redmine_server.ask, "GET", "issue_statuses.json")
        numbers = {state["name"]: str(state["id"]).encode() for state in statuses["issue_statuses"]}
    old, new = (b'{"id":%s,"name"' % numbers[name] for name in ("Doing", "Never"))
    async with Patched(old, new) as transport, make(redmine_server, transport=transport) as tracker:
        category, delivery, error = await failure(tracker.transition(id, "Doing", key="1"))
    assert ("conflict", "refused", True) == (category, delivery, "still in the state 'Todo'" in error.message)


async def test_redmine_leaves_a_comment_out(redmine_server):
    """A user who may edit and not comment gets 204, too, and is told that nothing was added."""
    id = await run_sync(redmine_server.issue)
    async with make(redmine_server, "silent") as tracker:
        category, delivery, _ = await failure(tracker.comment(id, "x", key="1"))
    assert ("auth_failed", "refused") == (category, delivery)
    assert [] == await run_sync(redmine_server.texts, id)


async def test_a_stale_lock(redmine_server):
    """An old version of an issue is 422 with an empty list, and a ``conflict``; a wrong value is ``validation``."""
    id = await run_sync(redmine_server.issue)
    api = API(redmine_server.origin, Secret(redmine_server.keys["agent"]))
    async with HTTPTransport() as transport:
        for body, expected in (
            (b'{"issue":{"notes":"x","subject":"y","lock_version":-1}}', ("conflict", "refused")),
            (b'{"issue":{"subject":""}}', ("validation", "refused")),
            (b"{", ("validation", "refused")),
        ):
            request = api.comment(id, "x")
            request = type(request)(request.method, request.url, request.headers, body)
            error = api.classify(await transport.send(request))
            assert expected == (error.category.value, error.delivery.value)


async def test_a_mark_is_not_shown(redmine_server):
    """Redmine's own formatting leaves the mark out of what readers see."""
    id = await run_sync(redmine_server.issue)
    async with make(redmine_server) as tracker:
        await tracker.comment(id, "to be seen", key="1")
    headers = {"X-Redmine-API-Key": redmine_server.keys["agent"]}
    from urllib.request import Request, urlopen

    page = await run_sync(lambda: urlopen(Request(f"{redmine_server.origin}/issues/{id}", headers=headers)).read())
    if b"to be seen" not in page:
        pytest.skip("this Redmine shows pages to browsers alone")
    assert b"harbor-async:" not in page.replace(b"data-", b"")


@pytest.mark.parametrize(("fate", "expected"), weather.CUTS)
async def test_a_connection_that_fails(redmine_server, fate, expected):
    """A change whose answer does not come may have happened; a question whose answer does not come changed nothing."""
    id = await run_sync(redmine_server.issue)
    port = urlsplit(redmine_server.origin).port
    for only, told in ((b"PUT", expected), (b"GET", (expected[0], "not_sent"))):
        async with (
            weather.Proxy(port, Random(0), [fate], only).serve() as proxy,
            HTTPTransport(timeout=2.0) as transport,
            Redmine(proxy.origin, token=redmine_server.keys["agent"], transport=transport) as tracker,
        ):
            ask = tracker.comment(id, "x", key="1") if only == b"PUT" else tracker.transition(id, "Doing", key="1")
            assert told == (await failure(ask))[:2]


async def test_the_tool_answers(redmine_server):
    """Through the runtime all four operations succeed, and the issue is closed at the end."""
    id = await run_sync(redmine_server.issue)
    async with make(redmine_server) as tracker, Runtime(Catalog([tracker_write(tracker)])) as runtime:
        calls = [
            {"op": "comment", "id": id, "body": "Done."},
            {"op": "transition", "id": id, "toState": "Review"},
            {"op": "link_pr", "id": id, "prURL": "https://example.org/pull/1"},
            {"op": "close", "id": id, "reason": "done"},
        ]
        results = await runtime.invoke_many([ToolCall(str(n), "tracker_write", call) for n, call in enumerate(calls)])
        assert ["succeeded"] * 4 == [result.outcome for result in results]
        assert (await tracker.get(id)).is_closed


async def stored(server, issues):
    return Counter([text for issue in issues for text in await run_sync(server.texts, issue)])


async def test_no_comment_is_there_twice(redmine_server, capsys, anyio_backend_name):
    """200 comments through a connection that fails one time in ten: each is stored once, or was not told as there."""
    issues = [await run_sync(redmine_server.issue) for _ in range(40)]
    async with (
        weather.Proxy(urlsplit(redmine_server.origin).port, Random(7)).serve() as proxy,
        HTTPTransport(timeout=weather.PATIENCE * 2) as transport,
        Redmine(proxy.origin, token=redmine_server.keys["agent"], transport=transport) as writer,
    ):
        succeeded, results = await weather.write_many(writer, issues, 200)
    found = await stored(redmine_server, issues)
    attempts = sum(result.attempts for result in results)
    weather.report(capsys, f"Redmine, {anyio_backend_name}", succeeded, found, attempts, proxy.fates)
    assert {1} == set(found.values())
    assert set() == succeeded - set(found)
    assert len(succeeded) > 150  # the rest were too slow for this machine


async def test_a_blind_retry_writes_twice(redmine_server, capsys, anyio_backend_name):
    """The same without a look at what is there: some comments are stored more than once."""
    issues = [await run_sync(redmine_server.issue) for _ in range(20)]
    async with (
        weather.Proxy(urlsplit(redmine_server.origin).port, Random(7)).serve() as proxy,
        HTTPTransport(timeout=weather.PATIENCE * 2) as transport,
    ):
        api = API(proxy.origin, Secret(redmine_server.keys["agent"]))

        async def send(issue, text):
            error = api.classify(await transport.send(api.comment(issue, text)))
            if error is not None:
                raise error

        await weather.write_blindly(send, issues, 200)
    found = await stored(redmine_server, issues)
    weather.report(capsys, f"Redmine blindly, {anyio_backend_name}", found.keys(), found, "?", proxy.fates)
    assert sum(times > 1 for times in found.values()) >= 3
