"""What the servers of the end-to-end tests cannot be made to answer: the pure halves of their writers."""

import pytest

from harbor_async.errors import InvalidToolError
from harbor_async.tracker import TrackerError
from harbor_async.tracker.writers import fossil, redmine, roundup
from harbor_async.tracker.writers._roundup import API, comment_id, link_id, link_of
from harbor_async.tracker.writers.command import Exit
from harbor_async.tracker.writers.http import Response, Secret

ROUNDUP = API.of("https://issues.example.org/tracker", "agent", Secret("secret"))
REDMINE = redmine.API("https://redmine.example.org", Secret("secret"))
ANSWERS = [
    (500, "api_status", "unknown"),
    (502, "api_request", "unknown"),
    (503, "api_request", "refused"),
    (504, "api_request", "unknown"),
    (409, "conflict", "refused"),
    (413, "validation", "refused"),
    (301, "not_found", "refused"),
]


@pytest.mark.parametrize("api", [ROUNDUP, REDMINE], ids=["roundup", "redmine"])
@pytest.mark.parametrize(("status", "category", "delivery"), ANSWERS)
@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"error": 1, "errors": null}'])
def test_what_a_status_means(api, status, category, delivery, body):
    """Whatever the body is, the status tells the category and what is known of the effect."""
    error = api.classify(Response(status, {}, body))
    assert (category, delivery) == (error.category.value, error.delivery.value)


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"Retry-After": "12"}, 12.0),
        ({"X-RateLimit-Reset": "37"}, 37.0),
        ({"Retry-After": "soon", "X-RateLimit-Reset": "9"}, 9.0),
        ({}, None),
    ],
)
def test_roundup_counts_seconds_to_go(headers, wait):
    """Its reset is no time of day, as others' is."""
    error = ROUNDUP.classify(Response(429, headers, b""))
    assert ("rate_limited", "refused", wait) == (error.category.value, error.delivery.value, error.retry_after)


@pytest.mark.parametrize("api", [ROUNDUP, REDMINE], ids=["roundup", "redmine"])
@pytest.mark.parametrize("body", [b"", b"null", b"<html>", b'{"data": {}}', b'{"issue": []}'])
def test_an_answer_that_is_no_issue(api, body):
    """What cannot be read is ``api_status``."""
    with pytest.raises(TrackerError) as caught:
        api.read_issue(Response(200, {}, body))
    assert "api_status" == caught.value.category.value


def test_what_goes_to_roundup():
    """Each write shows the tracker's own origin, and the password is not shown."""
    request = ROUNDUP.write_message("x", "3", comment_id("7", "key"))
    assert "https://issues.example.org" == request.headers["Origin"]
    assert "https://issues.example.org/tracker/rest/data/msg" == request.url
    assert ("secret" in request.show(), "Basic ***" in request.show()) == (False, True)


@pytest.mark.parametrize("url", ["https://example.org/pull/1", "http://x/ü?a=b&c=d#e", "https://x/" + "y" * 500])
def test_a_link_is_read_from_its_message_id(url):
    """The id of a link holds its address; that of another issue, or of anything else, holds none."""
    assert url == link_of("7", link_id("7", url))
    assert [None] * 4 == [
        link_of("7", text) for text in (link_id("77", url), comment_id("7", url), "", "<harbor-async-link.7.%@x>")
    ]


@pytest.mark.parametrize(
    ("script", "states"),
    [
        (None, fossil.STATES),
        ("set other {a b}", fossil.STATES),
        ("set status_choices {}", fossil.STATES),
        ("set status_choices {Open Done}", ("Open", "Done")),
        ("x\n  set status_choices {\n  Open\n  {On Hold}\n\tDone\n}\nset y {z}", ("Open", "On Hold", "Done")),
    ],
)
def test_states_of_a_fossil_repository(script, states):
    """They stand in its "Ticket Common Script", a name with a space in braces."""
    assert states == fossil.states_in(script)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (Exit(1, b"", b"Database error: database is locked: {INSERT}"), ("api_request", "not_sent")),
        (Exit(1, b"", b"unknown ticket: 'x'!"), ("not_found", "refused")),
        (Exit(1, b"", b"unknown field name 'x'!"), ("validation", "refused")),
        (Exit(1, b"", b"Cannot figure out who you are!"), ("auth_failed", "refused")),
        (Exit(0, b"", b"Parse error near line 1: no such column"), ("api_status", "unknown")),
        (Exit(-9, b"ticket set", b""), ("api_request", "unknown")),
        (Exit(1, b"", b"\xff"), ("api_status", "unknown")),
    ],
)
def test_how_fossil_ends(result, expected):
    """Recorded from runs of fossil 2.21: nearly all failures end with 1, one with 0, and their words tell."""
    error = fossil.classify(result)
    assert expected == (error.category.value, error.delivery.value)


def test_fossil_ends_well():
    """What it says of a change, and a query that finds nothing."""
    assert [None, None] == [fossil.classify(Exit(0, text)) for text in (b"ticket set succeeded for 1\n", b"[]\n")]


@pytest.mark.parametrize(
    "make",
    [
        lambda: roundup.Roundup("ftp://x", user="a", password="b"),
        lambda: roundup.Roundup("https://x", user="a:b", password="b"),
        lambda: roundup.Roundup("https://x", user="a", password=""),
        lambda: roundup.Roundup("https://x", user="a", password="b", closed=[]),
        lambda: redmine.Redmine("x", token="b"),
        lambda: redmine.Redmine("https://x", token=""),
        lambda: fossil.Fossil("x", user=""),
        lambda: fossil.Fossil("x", user="a\nb"),
        lambda: fossil.Fossil("x", user="a", closed="Closed"),
        lambda: fossil.Fossil("x", user="a", closed=[]),
    ],
    ids=range(10),
)
def test_options_that_make_no_sense(make):
    """They are refused when the writer is made."""
    with pytest.raises(InvalidToolError, match="expected"):
        make()
