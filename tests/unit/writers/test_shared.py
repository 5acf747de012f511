"""The shared values: secrets, requests, responses, and what an answer asks to wait."""

import copy
import pickle
from typing import Any

import pytest

from harbor_async.errors import InvalidToolError
from harbor_async.tracker import TrackerError
from harbor_async.tracker.writers._http import check_base, find_state, hide, link_text, links_in, mark, wait_of
from harbor_async.tracker.writers.gitea import Gitea
from harbor_async.tracker.writers.github import GitHub
from harbor_async.tracker.writers.gitlab import GitLab
from harbor_async.tracker.writers.http import Request, Response, Secret
from harbor_async.tracker.writers.jira import Jira
from tests.unit.writers.fakes import DATE, FakeGitHub

# --- secrets ----------------------------------------------------------------------------------------------------------


def test_a_secret_tells_nothing() -> None:
    """Neither its text, its representation, nor that of what holds it has the token; ``reveal`` has."""
    secret = Secret(" tok-123\n")
    shown = f"{secret} {secret!r} {[secret]} {Request('GET', 'https://x.org', {'A': secret})}"
    assert "tok-123" not in shown
    assert "***" in shown
    assert "tok-123" == secret.reveal()
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(secret)
    with pytest.raises(TypeError, match="pickled"):
        copy.deepcopy(secret)


def test_headers_made_of_a_secret() -> None:
    """``Basic`` is the example of RFC 7617; both forms hide the token and what it was made into."""
    basic = Secret("open-sesame").basic("Aladdin")
    assert "Basic QWxhZGRpbjpvcGVuLXNlc2FtZQ==" == basic.reveal()
    assert "*** ***" == basic.redact("QWxhZGRpbjpvcGVuLXNlc2FtZQ== open-sesame")
    assert "Bearer tok" == Secret("tok").prefixed("Bearer ").reveal()


def test_secrets_are_compared_by_their_token() -> None:
    """Two secrets of one token are equal, and a secret is no text."""
    assert Secret("a") == Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert 1 == len({Secret("a"), Secret("a")})
    assert Secret.of("a") == Secret.of(Secret("a"))


@pytest.mark.parametrize("token", ["", " ", "two words", "line\nfeed", "päss", "\x00", None, 7], ids=repr)
def test_what_no_header_can_carry_is_no_token(token: Any) -> None:
    """It is refused where it is given, without a word of it in the message."""
    with pytest.raises(InvalidToolError, match="expected a token") as caught:
        Secret(token)
    assert "words" not in str(caught.value)


# --- requests and responses -------------------------------------------------------------------------------------------


def test_a_request_is_shown_without_its_token() -> None:
    """Method, address, headers and body as they are sent, ``***`` for the token wherever it stands."""
    headers = {"Authorization": Secret("tok").prefixed("Bearer "), "X-Key": Secret("other")}
    request = Request.json("POST", "https://x.org/a", headers, {"body": "tok and other"})
    assert (
        "POST https://x.org/a\nContent-Type: application/json\nAccept: application/json\n"
        'Authorization: Bearer ***\nX-Key: ***\n\n{"body":"*** and ***"}'
    ) == request.show()


def test_half_of_a_surrogate_pair_is_refused() -> None:
    """It cannot be sent as UTF-8, and so is not sent."""
    with pytest.raises(TrackerError, match="surrogate") as caught:
        Request.json("POST", "https://x.org", {}, {"body": "\ud800"})
    assert ("validation", "not_sent") == (caught.value.category, caught.value.delivery)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[1]", b'{"id": "x"}', b"[" * 100_000, b"\xff"],
    ids=["empty", "open", "list", "type", "deep", "bytes"],
)
def test_an_answer_that_is_something_else(body: bytes) -> None:
    """It leaves in doubt what has happened, and its text is not in the message."""
    with pytest.raises(TrackerError) as caught:
        Response(201, {}, body).read(dict[str, int])
    assert ("api_status", "unknown") == (caught.value.category, caught.value.delivery)
    assert "201" in caught.value.message


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.org",
        "ftp://x.org",
        "https://",
        "https://u:p@x.org",
        "https://x.org?a",
        "https://x.org/ a",
        None,
        "http://x:99999",
    ],
)
def test_what_is_no_address_of_a_server(url: Any) -> None:
    """It is refused when the writer is made, without the address in the message: it may hold a password."""
    with pytest.raises(InvalidToolError, match="expected the address") as caught:
        check_base(url)
    assert "p@x" not in str(caught.value)


# --- waits ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "12"}, 12),
        ({"retry-after": "Mon, 30 Nov 2026 12:01:30 GMT"}, 90),
        ({"retry-after": "Mon, 30 Nov 2026 11:00:00 GMT"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "soon", "x-ratelimit-reset": "7"}, 7),
        ({"retry-after": "3", "x-ratelimit-reset": "7"}, 3),
        ({"x-ratelimit-reset": "1796040060"}, 60),  # GitHub, GitLab
        ({"ratelimit-reset": "1796040060"}, 60),
        ({"x-ratelimit-reset": "1796030000"}, 0),
        ({"x-ratelimit-reset": "2026-11-30T12:01Z"}, 60),  # Jira
        ({"x-ratelimit-reset": "2026-11-30T13:01:00+01:00"}, 60),
        ({"x-ratelimit-reset": "1796040060000"}, 60),  # Linear
        ({"x-ratelimit-reset": "42"}, 42),  # Roundup
        ({"x-ratelimit-reset": "nan"}, None),
        ({"x-ratelimit-reset": "9" * 400}, None),
        ({"x-ratelimit-reset": "0001-01-01T00:00:00+23:00"}, 0),
    ],
    ids=str,
)
def test_what_an_answer_asks_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    """Seconds, by the tracker's own clock; nothing where it cannot be read."""
    assert seconds == wait_of({"date": DATE, **headers})


def test_a_wrong_clock_of_the_answer() -> None:
    """Without a date that can be read the clock of this machine counts: a time of long ago is no wait."""
    for date in ("", "noon", "Mon, 99 Nov 2026"):
        assert 0 == wait_of({"date": date, "x-ratelimit-reset": "1000000001"})


# --- marks and states -------------------------------------------------------------------------------------------------


def test_marks() -> None:
    """A mark is the same for the same key, and stands in a comment of HTML whatever is in the key."""
    assert mark("k") == mark("k") != mark("l")
    assert mark("--> \ud800").replace("harbor-async:", "").isalnum()
    assert "done\n\n<!-- m -->" == hide("done", "m")


def test_links() -> None:
    """A link is read from the comment that makes it, and from no other that names the address."""
    url = "https://example.org/o/r/pull/1"
    assert [url] == links_in(link_text(url))
    assert [] == links_in(f"Pull request: {url}")


def test_states_are_found_in_any_letter_case() -> None:
    """The exact name first, then one that differs in case alone; two of those cannot be told apart."""
    states = [("Done", 1), ("done", 2), ("In Review", 3), ("Twice", 4), ("Twice", 5)]
    assert [1, 2, 3] == [find_state(name, states) for name in ("Done", "done", "IN REVIEW")]
    assert 6 == find_state("Finish", states, [("finish", 6)])
    for name in ("DONE", "Twice"):
        with pytest.raises(TrackerError, match="more than one"):
            find_state(name, states)
    with pytest.raises(TrackerError, match="cannot be moved from where it is"):
        find_state("x", [])


# --- what a writer is made with ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: GitHub("octocat", token="t"),
        lambda: GitHub("octocat/..", token="t"),
        lambda: GitHub("a/b/c", token="t"),
        lambda: GitHub("a/b", token=""),
        lambda: GitHub("a/b", token="t", url="github.com"),
        lambda: Gitea("https://x.org", "", token="t"),
        lambda: GitLab("", token="t"),
        lambda: GitLab("a/../b", token="t"),
        lambda: Jira("https://x.org", token="t", email="a:b@x.org"),
    ],
    ids=range(9),
)
def test_nonsense_is_refused(make: Any) -> None:
    """Arguments that make no sense are refused when the writer is made."""
    with pytest.raises(InvalidToolError):
        make()


async def test_a_token_in_an_answer_is_not_told() -> None:
    """A tracker that repeats the token in its answer does not get it into the message."""
    fake = FakeGitHub(times=1)
    fake.strike = lambda: Response(
        401, {}, b'{"message": "bad token %s"}' % fake.requests[-1].headers["Authorization"].reveal()[7:].encode()
    )
    with pytest.raises(TrackerError, match=r"bad token \*\*\*"):
        await fake.writer().comment("1", "x", key="k")
