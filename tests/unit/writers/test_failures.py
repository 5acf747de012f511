"""Each failure that a tracker's documentation tells of, and what it becomes; the tables in the docs are the same rows.

``failures.json`` holds what is answered, at noon of 30 November 2026 by the tracker's clock.
"""

import json
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from harbor_async.tracker import TrackerError
from harbor_async.tracker.writers.http import Response
from tests.unit.writers import tables
from tests.unit.writers.fakes import DATE, FAKES, Fake

ROWS = json.loads((Path(__file__).parent / "failures.json").read_text())
CASES = list(
    chain.from_iterable(
        [(name, row) for name in FAKES] if row["tracker"] == "any" else [(row["tracker"], row)] for row in ROWS
    )
)
URL = "https://example.org/pull/1"
READS = [case for case in CASES if case[1]["what"] != "it did not do it"]  # which only a write can be told


def each(cases: list[Any]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("name", "row"), cases, ids=[f"{name}-{row['what']}" for name, row in cases])


each_case, each_read = each(CASES), each(READS)


def response(row: dict[str, Any]) -> Response:
    body = row["body"]
    data = body.encode() if isinstance(body, str) else b"" if body is None else json.dumps(body).encode()
    return Response(row["status"], {"Date": DATE, **row["headers"]}, data)


async def write(fake: Fake, writer: Any, op: str) -> None:
    if op == "comment":
        await writer.comment(fake.issue, "done", key="k")
    elif op == "close":
        await writer.close(fake.issue, "", key="k")
    elif op == "link_pr":
        await writer.link_pr(fake.issue, URL, key="k")
    else:
        await writer.transition(fake.issue, {"jira": "In Progress", "linear": "In Review"}[fake.name], key="k")


@each_case
async def test_a_failure_of_a_write(name: str, row: dict[str, Any]) -> None:
    """The answer to a write has the category, the delivery and the wait of its row."""
    fake = FAKES[name](strike=lambda: response(row), times=1)
    with pytest.raises(TrackerError) as caught:
        await write(fake, fake.writer(), row["op"])
    error = caught.value
    assert (row["category"], row["delivery"], row.get("wait")) == (error.category, error.delivery, error.retry_after)


@each_read
async def test_a_failure_of_a_read(name: str, row: dict[str, Any]) -> None:
    """The same answer to a request that only reads leaves no doubt: nothing was sent that changes anything."""
    fake = FAKES[name](strike=lambda: response(row), times=1, reads=True)
    with pytest.raises(TrackerError) as caught:
        await fake.writer().get(fake.issue)
    error = caught.value
    delivery = "not_sent" if row["delivery"] == "unknown" else "refused"
    assert (row["category"], delivery, row.get("wait")) == (error.category, error.delivery, error.retry_after)


@each_case
async def test_what_the_tracker_says_is_told(name: str, row: dict[str, Any]) -> None:
    """The message has the status and the tracker's own words, is one line of bounded length, and shows no page."""
    fake = FAKES[name](strike=lambda: response(row), times=1)
    with pytest.raises(TrackerError) as caught:
        await write(fake, fake.writer(), row["op"])
    message = caught.value.message
    assert "\n" not in message
    assert len(message) < 550
    assert "<html>" not in message
    for text in said(row["body"]):
        assert text in message


def said(body: Any) -> list[str]:
    """Return what a model should read of an answer: its messages."""
    if not isinstance(body, dict):
        return []
    if isinstance(body.get("errors"), list) and body["errors"]:
        return [error["message"] for error in body["errors"]]
    message = body.get("message")
    return [message] if isinstance(message, str) else [*body.get("errorMessages", [])]


def test_each_tracker_shows_what_it_must() -> None:
    """No tracker is without a row for a bad token, a missing issue, a refused request and a limit."""
    for name in FAKES:
        found = {row["category"] for tracker, row in CASES if tracker == name}
        assert {"auth_failed", "not_found", "validation", "rate_limited", "api_request", "api_status"} <= found


@pytest.mark.parametrize("name", tables.TRACKERS)
def test_the_docs_show_these_rows(name: str) -> None:
    """The table in the tracker's page is made of these rows, and of no others."""
    page = (tables.PAGES / f"{name}.md").read_text()
    assert tables.table(name) in page
    assert tables.filled(page, name) == page
