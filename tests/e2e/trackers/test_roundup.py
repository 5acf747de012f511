"""Issues of a real Roundup."""

from contextlib import asynccontextmanager
from functools import partial
from random import Random
from urllib.parse import urlsplit

import anyio
import pytest
from anyio.to_thread import run_sync

from harbor_async import Catalog, Runtime, ToolCall
from harbor_async.testing import WriterConformance
from harbor_async.tracker import TrackerError, tracker_write
from harbor_async.tracker.writers.http import HTTPTransport
from harbor_async.tracker.writers.roundup import Roundup
from tests.e2e.trackers import weather
from tests.e2e.trackers.servers import NUMBERS, PASSWORD, free_port

MISSING = "99999"
pytestmark = pytest.mark.timeout(60)  # the first test waits for the server


@pytest.fixture(scope="module", autouse=True)
def user(roundup_server):
    return roundup_server.user()


def make(server, user, tracker="main", **options):
    return Roundup(server.url(tracker), **{"user": user, "password": PASSWORD, **options})


class TestConformance(WriterConformance):
    state = "in-progress"
    missing = MISSING

    @pytest.fixture(autouse=True)
    def _serve(self, roundup_server, user):
        self.server, self.user = roundup_server, user

    @asynccontextmanager
    async def make(self):
        self.issue = await run_sync(self.server.issue)
        async with make(self.server, self.user) as tracker:
            yield tracker


async def failure(ask):
    """Return the category and the delivery of the failure of ``ask``, and the error."""
    with pytest.raises(TrackerError) as caught:
        await ask
    error = caught.value
    assert PASSWORD not in repr(error) + str(error)
    return error.category.value, error.delivery.value, error


async def test_each_operation(roundup_server, user):
    """A comment, a move, a link and a close are in the tracker, in their order, and are read again."""
    id = await run_sync(roundup_server.issue)
    url = "https://example.org/pull/1?a=b&c=é"
    async with make(roundup_server, user) as tracker:
        await tracker.comment(id, "A line.\n\nAnother one.", key="1")
        await tracker.transition(id, "Testing", key="2")
        await tracker.link_pr(id, url, key="3")
        issue = await tracker.get(id)
        assert (id, "It leaks", "testing", False, (url,)) == (
            issue.id,
            issue.title,
            issue.state,
            issue.is_closed,
            issue.links,
        )
        await tracker.close(id, "it is dry", key="4")
        issue = await tracker.get(id)
        assert ("resolved", True) == (issue.state, issue.is_closed)
        assert [True, False] == [await tracker.find_comment(id, key=key) for key in ("1", "2")]
    assert ["A line.", f"Pull request: {url}", "it is dry"] == await run_sync(roundup_server.texts, id)


async def test_a_comment_is_there_once_for_each_key(roundup_server, user):
    """With the same key the same comment is written once, and by two writers at once, too."""
    id = await run_sync(roundup_server.issue)
    async with make(roundup_server, user) as tracker, anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(partial(tracker.comment, id, "once", key="1"))
    async with make(roundup_server, user) as tracker:
        await tracker.comment(id, "once", key="1")
        await tracker.comment(id, "once", key="2")
    assert ["once"] * 2 == await run_sync(roundup_server.texts, id)


async def test_a_message_that_belongs_to_nothing_is_used_again(roundup_server, user):
    """A message that was stored, and not added to its issue, is added by the next attempt."""

    class Half(HTTPTransport):
        """Loses each change of an issue, once."""

        lost = 0

        async def send(self, request, /):
            if request.method == "PATCH" and not self.lost:
                self.lost += 1
                raise ConnectionResetError
            return await super().send(request)

    id = await run_sync(roundup_server.issue)
    async with Half() as transport, make(roundup_server, user, transport=transport) as tracker:
        with pytest.raises(ConnectionResetError):
            await tracker.comment(id, "a comment", key=id)
        assert not await tracker.find_comment(id, key=id)
        before = await run_sync(roundup_server.ask, "GET", "msg")
        await tracker.comment(id, "a comment", key=id)
        after = await run_sync(roundup_server.ask, "GET", "msg")
    assert ["a comment"] == await run_sync(roundup_server.texts, id)
    assert before["@total_size"] == after["@total_size"]


async def test_a_mark_counts_under_the_own_name_only(roundup_server, user):
    """Another user's message with the same id is another user's."""
    id = await run_sync(roundup_server.issue)
    other = await run_sync(roundup_server.user)
    async with make(roundup_server, other) as tracker:
        await tracker.comment(id, "a comment", key="1")
    async with make(roundup_server, user) as tracker:
        assert not await tracker.find_comment(id, key="1")


@pytest.mark.parametrize("op", ["comment", "transition", "close", "link_pr", "get", "find_comment"])
async def test_an_issue_that_is_missing(roundup_server, user, op):
    """What is not there is ``not_found``, and a comment leaves no message behind."""
    before = await run_sync(roundup_server.ask, "GET", "msg")
    async with make(roundup_server, user) as tracker:
        texts = {
            "comment": ["x"],
            "transition": ["testing"],
            "close": [""],
            "link_pr": ["https://example.org/1"],
        }.get(op, [])
        options = {} if op == "get" else {"key": "1"}
        category, delivery, _ = await failure(getattr(tracker, op)(MISSING, *texts, **options))
        assert ("not_found", True) == (category, delivery in {"refused", "not_sent"})
    after = await run_sync(roundup_server.ask, "GET", "msg")
    assert before["@total_size"] == after["@total_size"]


async def test_what_is_no_id(roundup_server, user):
    """Roundup's numbers are the ids; anything else goes into no address."""
    async with make(roundup_server, user) as tracker:
        for id in ("abc", "1/status", "../user/1", "-1", "1?x=y"):
            assert ("validation", "not_sent") == (await failure(tracker.get(id)))[:2]


async def test_a_state_that_is_missing(roundup_server, user):
    """The message lists the states that there are, in the tracker's order."""
    id = await run_sync(roundup_server.issue)
    async with make(roundup_server, user) as tracker:
        category, delivery, error = await failure(tracker.transition(id, "Done", key="1"))
    assert ("validation", "not_sent") == (category, delivery)
    listing = "unread, deferred, chatting, need-eg, in-progress, testing, done-cbb, resolved"
    assert error.message.endswith(listing)


async def test_a_move_that_a_rule_forbids(roundup_server, user):
    """A detector's refusal is told in its own words, with the other states; nothing has moved."""
    id = await run_sync(roundup_server.issue)
    async with make(roundup_server, user) as tracker:
        category, _, error = await failure(tracker.transition(id, "done-cbb", key="1"))
        assert "unread" == (await tracker.get(id)).state
    assert "validation" == category
    assert "no issue may be moved to done-cbb" in error.message
    assert "resolved" in error.message


async def test_who_may_not_write(roundup_server, user):
    """A user without the permission is told so, and nothing is written."""
    id = await run_sync(roundup_server.issue)
    viewer = await run_sync(roundup_server.user, "Anonymous")
    async with make(roundup_server, viewer) as tracker:
        assert ("auth_failed", "refused") == (await failure(tracker.transition(id, "testing", key="1")))[:2]


async def test_a_bad_password_is_not_tried_again(roundup_server):
    """A password that is wrong is asked once, though the tool may try four times: the tracker locks the user out."""
    name = await run_sync(roundup_server.user)
    sent = []

    class Counting(HTTPTransport):
        async def send(self, request, /):
            sent.append(request)
            return await super().send(request)

    async with (
        Counting() as transport,
        make(roundup_server, name, password="wrong", transport=transport) as tracker,
        Runtime(Catalog([tracker_write(tracker)])) as runtime,
    ):
        result = await runtime.invoke("tracker_write", {"op": "comment", "id": "1", "body": "x"})
    assert ("failed", "auth_failed", 1, 1) == (result.outcome, result.error.category, result.attempts, len(sent))
    assert not result.is_retryable


async def test_a_user_that_is_locked_out(roundup_server):
    """After some wrong passwords the right one is refused, too: ``rate_limited``, with the time to wait."""
    name = await run_sync(roundup_server.user)
    id = await run_sync(roundup_server.issue)
    async with make(roundup_server, name, password="wrong") as tracker:
        categories = [(await failure(tracker.get(id)))[0] for _ in range(6)]
    assert ["auth_failed", "rate_limited"] == sorted(set(categories))
    async with make(roundup_server, name) as tracker:
        category, delivery, error = await failure(tracker.comment(id, "x", key="1"))
    assert ("rate_limited", True) == (category, delivery in {"refused", "not_sent"})
    assert 0 < error.retry_after <= 600


async def test_too_many_calls(roundup_server):
    """Beyond the limit a call is ``rate_limited``, and waits as long as the tracker asks: a fifth of a minute."""
    name = await run_sync(roundup_server.user, "User", "limited")
    async with make(roundup_server, name, "limited") as tracker:
        errors = [await failure(tracker.get(MISSING)) for _ in range(6)]
    assert ["not_found"] * 5 + ["rate_limited"] == [category for category, *_ in errors]
    assert 0 < errors[-1][2].retry_after <= 12


class Meddling(HTTPTransport):
    """Before each change that the writer sends, somebody else changes the issue."""

    def __init__(self, meddle, times):
        super().__init__()
        self.meddle, self.times = meddle, times

    async def send(self, request, /):
        if "If-Match" in request.headers and self.times:
            self.times -= 1
            await run_sync(self.meddle)
        return await super().send(request)


def rename(server, id):
    server.change(id, title=f"title {next(NUMBERS)}")


@pytest.mark.parametrize(("times", "is_done"), [(3, True), (4, False)])
async def test_somebody_else_changes_the_issue(roundup_server, user, times, is_done):
    """An issue that changes meanwhile is read anew, three times; then it is a ``conflict``, and nothing was written."""
    for op, text in (("comment", "a comment"), ("transition", "testing")):
        id = await run_sync(roundup_server.issue)
        transport = Meddling(partial(rename, roundup_server, id), times)
        async with transport, make(roundup_server, user, transport=transport) as tracker:
            write = getattr(tracker, op)(id, text, key=id)
            if is_done:
                await write
            else:
                assert ("conflict", "refused") == (await failure(write))[:2]
            issue = await tracker.get(id)
            found = await tracker.find_comment(id, key=id) if op == "comment" else issue.state == "testing"
            assert is_done == found


async def test_somebody_else_moves_the_issue(roundup_server, user):
    """A move from where the issue is no more is a ``conflict``: whoever moved it meanwhile had a reason."""
    id = await run_sync(roundup_server.issue)
    transport = Meddling(partial(roundup_server.change, id, status="resolved"), 1)
    async with transport, make(roundup_server, user, transport=transport) as tracker:
        assert ("conflict", "refused") == (await failure(tracker.transition(id, "testing", key="1")))[:2]
        assert "resolved" == (await tracker.get(id)).state


@pytest.mark.parametrize(("fate", "expected"), weather.CUTS)
async def test_a_connection_that_fails(roundup_server, user, fate, expected):
    """A change whose answer does not come may have happened; a question whose answer does not come changed nothing."""
    id = await run_sync(roundup_server.issue)
    port = urlsplit(roundup_server.origin).port
    for only, told in ((b"PATCH", expected), (b"GET", (expected[0], "not_sent"))):
        async with (
            weather.Proxy(port, Random(0), [fate], only).serve() as proxy,
            HTTPTransport(timeout=1.0) as transport,
            Roundup(f"{proxy.origin}/main", user=user, password=PASSWORD, transport=transport) as tracker,
        ):
            assert told == (await failure(tracker.comment(id, "x", key="1")))[:2]


async def test_no_server(roundup_server, user):
    """Where nobody listens nothing is sent."""
    async with Roundup(f"http://127.0.0.1:{free_port()}/main", user=user, password=PASSWORD) as tracker:
        assert ("api_request", "not_sent") == (await failure(tracker.comment("1", "x", key="1")))[:2]


async def test_the_tool_answers(roundup_server, user):
    """Through the runtime all four operations succeed, and the issue is closed at the end."""
    id = await run_sync(roundup_server.issue)
    async with make(roundup_server, user) as tracker, Runtime(Catalog([tracker_write(tracker)])) as runtime:
        calls = [
            {"op": "comment", "id": id, "body": "Done."},
            {"op": "transition", "id": id, "toState": "testing"},
            {"op": "link_pr", "id": id, "prURL": "https://example.org/pull/1"},
            {"op": "close", "id": id, "reason": "done"},
        ]
        results = await runtime.invoke_many([ToolCall(str(n), "tracker_write", call) for n, call in enumerate(calls)])
        assert ["succeeded"] * 4 == [result.outcome for result in results]
        assert (await tracker.get(id)).is_closed
