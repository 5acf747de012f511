"""What each writer does with its tracker's ways: marks, pages, reasons, states, links."""

import json
from typing import Any

import pytest

from harbor_async.tracker import TrackerError
from tests.unit.writers.fakes import FAKES, ME, FakeGitea, FakeGitHub, FakeGitLab, FakeJira, FakeLinear, answer, failure

URL = "https://github.com/octocat/hello/pull/7"
FORGES = [FakeGitHub, FakeGitLab, FakeGitea]
each_forge = pytest.mark.parametrize("kind", FORGES)
each_tracker = pytest.mark.parametrize("kind", FAKES.values())


async def refused(ask: Any, category: str, *words: str) -> str:
    with pytest.raises(TrackerError) as caught:
        await ask
    assert category == caught.value.category
    for word in words:
        assert word in caught.value.message
    return caught.value.message


# --- all of them ------------------------------------------------------------------------------------------------------


@each_tracker
@pytest.mark.parametrize(
    "id", ["", " ", "../1", "1/x", "1?x", "#1", "-1", "0", "1\n", "T-", "https://x.org/1", "\u0661"]
)
async def test_what_is_no_id_is_not_sent(kind: Any, id: str) -> None:
    """An id that is none of this tracker's reaches no address: nothing is sent."""
    fake = kind()
    writer = fake.writer()
    for ask in (
        writer.comment(id, "x", key="k"),
        writer.close(id, "", key="k"),
        writer.link_pr(id, URL, key="k"),
        writer.get(id),
        writer.find_comment(id, key="k"),
    ):
        await refused(ask, "validation", "expected the")
    assert [] == fake.requests


@each_tracker
@pytest.mark.parametrize("url", ["x", "javascript:alert(1)", "https://x.org/ 1", "https://x.org/\n- [x]", "http://"])
async def test_what_is_no_pull_request_is_not_sent(kind: Any, url: str) -> None:
    """Only the address of a page is linked."""
    fake = kind()
    await refused(fake.writer().link_pr(fake.issue, url, key="k"), "validation", "expected the address")
    assert [] == fake.requests


@each_tracker
async def test_a_comment_is_shown_as_it_was_written(kind: Any) -> None:
    """Readers see the text and nothing else, in one comment."""
    fake = kind()
    await fake.writer().comment(fake.issue, "One\ntwo\n\n**three** <b>", key="k")
    assert ["One\ntwo\n\n**three** <b>"] == fake.texts()


@each_tracker
async def test_a_reason_is_told_once(kind: Any) -> None:
    """A reason in words of its own is a comment; a close that is sent again with the same key does not repeat it."""
    fake = kind()
    writer = fake.writer()
    await writer.close(fake.issue, "It was mended in 2.0", key="k")
    assert (await writer.get(fake.issue)).is_closed
    fake.state = fake.start
    await writer.close(fake.issue, "It was mended in 2.0", key="k")
    assert (await writer.get(fake.issue)).is_closed
    assert ["It was mended in 2.0"] == fake.texts()


@each_tracker
async def test_what_is_done_is_not_sent_again(kind: Any) -> None:
    """A closed issue is closed without a write, and a state in which it is not moved to."""
    fake = kind()
    writer = fake.writer()
    await writer.close(fake.issue, "", key="k")
    state = (await writer.get(fake.issue)).state
    fake.requests.clear()
    await writer.close(fake.issue, "why", key="l")
    await writer.transition(fake.issue, state.upper(), key="m")
    assert all(request.is_read for request in fake.requests)


@each_tracker
async def test_an_issue_is_opened_again(kind: Any) -> None:
    """A move away from a closed state opens the issue."""
    fake = kind()
    writer = fake.writer()
    await writer.close(fake.issue, "", key="k")
    again = {FakeJira: "To Do", FakeLinear: "Todo", FakeGitLab: "opened"}.get(kind, "open")
    await writer.transition(fake.issue, again, key="l")
    assert (again, False) == ((issue := await writer.get(fake.issue)).state, issue.is_closed)


@each_tracker
async def test_links_stand_in_their_order(kind: Any) -> None:
    """Each pull request once, the first first."""
    fake = kind()
    writer = fake.writer()
    urls = [f"https://github.com/octocat/hello/pull/{number}" for number in (9, 1, 5, 1)]
    for url in urls:
        await writer.link_pr(fake.issue, url, key=url)
    assert tuple(urls[:3]) == (await writer.get(fake.issue)).links


# --- marks in comments ------------------------------------------------------------------------------------------------


@each_forge
async def test_only_our_own_mark_counts(kind: Any) -> None:
    """A comment of somebody else that quotes ours is neither ours nor a link."""
    fake = kind()
    writer = fake.writer()
    await writer.comment("1", "done", key="k")
    await writer.link_pr("1", URL, key="l")
    for comment in fake.comments:
        comment["author"] = "mallory"
    assert not await writer.find_comment("1", key="k")
    assert () == (await writer.get("1")).links


@each_forge
async def test_an_author_that_is_known_is_not_asked_for(kind: Any) -> None:
    """The token of an app may not ask whose it is: then the account is told, in any letter case."""
    fake = kind()
    writer = fake.writer(author=ME.upper())
    await writer.comment("1", "done", key="k")
    assert await writer.find_comment("1", key="k")
    assert not [request for request in fake.requests if request.url.endswith("/user")]
    asking = fake.writer()
    for _ in range(3):
        assert await asking.find_comment("1", key="k")
    assert 1 == len([request for request in fake.requests if request.url.endswith("/user")])


@each_forge
@pytest.mark.parametrize("place", [0, 99, 100, 249], ids=["oldest", "99", "100", "newest"])
async def test_a_comment_is_found_on_any_page(kind: Any, place: int) -> None:
    """Of 250 comments each is found, the newest with no more than three requests."""
    fake = kind()
    writer = fake.writer(author=ME)
    await writer.comment("1", "ours", key="k")
    ours = fake.comments.pop()
    for number in range(250):
        fake.add("another") if number != place else fake.comments.append(ours | {"id": 1000 + number})
    fake.requests.clear()
    assert await writer.find_comment("1", key="k")
    assert len(fake.requests) <= (2 if place == 249 else 3)


@each_forge
async def test_links_are_read_from_all_pages(kind: Any) -> None:
    """Links that stand among 250 comments come in the order in which they were made."""
    fake = kind()
    writer = fake.writer()
    for number in range(250):
        if number % 120 == 5:
            await writer.link_pr("1", f"https://x.org/{number}", key="k")
        else:
            fake.add("another")
    assert ("https://x.org/5", "https://x.org/125", "https://x.org/245") == (await writer.get("1")).links


async def test_github_goes_to_no_address_that_an_answer_names() -> None:
    """Of a link to the last page only the number is taken, and one that is none is passed over."""
    fake = FakeGitHub()
    for _ in range(150):
        fake.add("another")
    await fake.writer(author=ME).find_comment("1", key="k")
    root = "https://api.github.com/repos/octocat/hello/issues/1/comments"
    assert [f"{root}?per_page=100&page={page}" for page in (1, 2)] == [request.url for request in fake.requests]


# --- GitHub -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "field", "comments"),
    [
        ("", "completed", 0),
        ("Completed", "completed", 0),
        ("not planned", "not_planned", 0),
        ("duplicate", "duplicate", 0),
        ("It works here", "completed", 1),
    ],
)
async def test_github_reasons(reason: str, field: str, comments: int) -> None:
    """What GitHub has a word for goes into its field."""
    fake = FakeGitHub()
    await fake.writer().close("1", reason, key="k")
    assert ("closed", field, comments) == (fake.state, fake.reason, len(fake.comments))


async def test_github_headers() -> None:
    """Each request has the token and names the version of the API."""
    fake = FakeGitHub()
    await fake.writer().get("1")
    for request in fake.requests:
        headers = request.reveal_headers()
        assert "application/vnd.github+json" == headers["Accept"]
        assert "2022-11-28" == headers["X-GitHub-Api-Version"]


@each_forge
async def test_r108_an_answer_without_an_effect(kind: Any) -> None:
    """A tracker that says yes and leaves the issue as it is has not closed it: no success."""
    fake = kind()
    reads = {FakeGitLab: {"iid": 1}}.get(kind, {"number": 1}) | {"title": "It leaks", "state": fake.start}
    fake.strike, fake.times = (lambda: answer(200, reads)), 1
    await refused(fake.writer().close("1", "", key="k"), "conflict", "still in the state")


# --- GitLab -----------------------------------------------------------------------------------------------------------


async def test_gitlab_obeys_no_command_in_a_comment() -> None:
    """A line that GitLab would obey is escaped; other slashes stay."""
    fake = FakeGitLab()
    body = "/close\n  /reopen now\na /close b\n/ 2\n//x"
    await fake.writer().comment("1", body, key="k")
    assert ("opened", ["\\/close\n  \\/reopen now\na /close b\n/ 2\n//x"]) == (fake.state, fake.texts())
    await fake.writer().close("1", "/reopen", key="l")
    assert ("closed", "\\/reopen") == (fake.state, fake.texts()[1])


async def test_gitlab_passes_over_its_own_notes() -> None:
    """Notes that GitLab itself writes in the name of the account are no comments."""
    fake = FakeGitLab()
    await fake.writer().comment("1", "done", key="k")
    fake.comments[0]["system"] = True
    assert not await fake.writer().find_comment("1", key="k")


# --- Jira -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("to", ["On Hold", "on hold", "ON HOLD", "Park", "PARK"])
async def test_r107_a_state_under_another_name(to: str) -> None:
    """A target status in any letter case, then the name of a transition."""
    fake = FakeJira()
    fake.state = "In Progress"
    await fake.writer().transition("T-1", to, key="k")
    assert "On Hold" == fake.state


async def test_r107_a_state_that_there_is_not() -> None:
    """It is never a success, and the message lists where the issue can go."""
    fake = FakeJira()
    message = await refused(fake.writer().transition("T-1", "On Hold", key="k"), "validation", "In Progress", "Done")
    assert "To Do" not in message
    assert "To Do" == fake.state


async def test_r107_a_status_comes_before_a_transition() -> None:
    """Where a transition has the name of another one's target, the target is meant."""
    fake = FakeJira()
    fake.workflow = {"To Do": [("1", "Done", "Cancelled"), ("2", "Finish", "Done")], "Done": []}
    await fake.writer().transition("T-1", "done", key="k")
    assert "Done" == fake.state


async def test_r108_jira_moves_nothing() -> None:
    """The empty answer to a transition proves nothing: the issue is read again."""
    fake = FakeJira()
    fake.obeys = False
    await refused(fake.writer().transition("T-1", "Done", key="k"), "conflict", "still in the state 'To Do'")


async def test_jira_closes_with_a_resolution() -> None:
    """A resolution that the reason names is taken; one that has to be there is ``Done`` or the first."""
    for names, reason, expected, comments in (
        (("Won't Do", "Done"), "won't do", "Won't Do", 0),
        (("Won't Do", "Done"), "", "Done", 0),
        (("Fixed", "Later"), "It was mended", "Fixed", 1),
    ):
        fake = FakeJira()
        fake.resolutions = names
        await fake.writer().close("T-1", reason, key="k")
        assert ("Done", expected, comments) == (fake.state, fake.resolution, len(fake.comments))


async def test_jira_without_a_way_out() -> None:
    """Where no transition closes the issue, the message lists where it can go."""
    fake = FakeJira()
    fake.workflow = {"To Do": [("1", "Start", "In Progress")]}
    await refused(fake.writer().close("T-1", "", key="k"), "validation", "In Progress")


async def test_jira_keeps_the_key_in_a_property() -> None:
    """The key of a comment is in a property, which no reader sees, and is found again among 250 comments."""
    fake = FakeJira()
    for number in range(125):
        fake.add(f"before {number}", properties=[])
    await fake.writer().comment("T-1", "ours", key="k")
    for number in range(124):
        fake.add(f"after {number}", author="somebody", properties=[])
    assert "ours" == fake.comments[125]["text"]
    assert await fake.writer().find_comment("T-1", key="k")
    assert not await fake.writer().find_comment("T-1", key="l")
    fake.comments[125]["author"] = "mallory"
    assert not await fake.writer().find_comment("T-1", key="k")


async def test_jira_links_have_a_global_id() -> None:
    """The same address is the same link for Jira itself, however long it is."""
    fake = FakeJira()
    url = f"https://example.org/{'x' * 2000}"
    for key in ("k", "l"):
        await fake.writer().link_pr("T-1", url, key=key)
    (id,) = fake.links
    assert len(id) <= 255
    assert (url,) == (await fake.writer().get("T-1")).links


async def test_jira_authorization() -> None:
    """With an address of an account it is HTTP Basic, without one a bearer token."""
    for options, expected in (({"email": "a@x.org"}, "Basic "), ({}, "Bearer ")):
        fake = FakeJira()
        fake.do = lambda _: answer(200, fake.issue_document() | {"transitions": []})  # noqa: B023 - called in this turn
        with pytest.raises(TrackerError):
            await fake.writer(**options).close("T-1", "", key="k")
        assert fake.requests[0].reveal_headers()["Authorization"].startswith(expected)


# --- Linear -----------------------------------------------------------------------------------------------------------


async def test_r110_two_teams_with_one_name() -> None:
    """A state is looked for in the issue's own team, whatever other teams have."""
    fake = FakeLinear()
    await fake.writer().transition("ENG-1", "done", key="k")
    assert "s-done" == fake.state
    assert {id for id, *_ in fake.other_team}.isdisjoint({fake.state})


async def test_r110_two_states_with_one_name() -> None:
    """Two states of one team that differ in letter case are told apart by it, and else the message says so."""
    fake = FakeLinear()
    fake.states = (*fake.states, ("s-upper", "DONE", "completed", 9))
    await refused(fake.writer().transition("ENG-1", "dOnE", key="k"), "validation", "more than one", "Done", "DONE")
    await fake.writer().transition("ENG-1", "DONE", key="k")
    assert "s-upper" == fake.state


async def test_linear_states_are_listed_in_their_order() -> None:
    """The message lists the team's states as the team has ordered them."""
    fake = FakeLinear()
    await refused(
        fake.writer().transition("ENG-1", "Nope", key="k"), "validation", "Backlog, Todo, In Review, Done, Canceled"
    )


@pytest.mark.parametrize(
    ("reason", "state", "comments"),
    [("", "s-done", 0), ("canceled", "s-can", 0), ("no longer wanted", "s-done", 1), ("In Review", "s-done", 1)],
)
async def test_linear_reasons(reason: str, state: str, comments: int) -> None:
    """A reason that names a state which is an end chooses it; any other is a comment."""
    fake = FakeLinear()
    await fake.writer().close("ENG-1", reason, key="k")
    assert (state, comments) == (fake.state, len(fake.comments))


async def test_linear_without_an_end() -> None:
    """A team without such a state closes nothing."""
    fake = FakeLinear()
    fake.states = fake.states[:2]
    await refused(fake.writer().close("ENG-1", "", key="k"), "validation", "Backlog, Todo")


async def test_r108_linear_moves_nothing() -> None:
    """An answer that names another state than was asked for is no success."""
    fake = FakeLinear()
    fake.obeys = False
    await refused(fake.writer().close("ENG-1", "", key="k"), "conflict", "still in the state 'Todo'")


async def test_linear_refuses_a_second_comment_by_itself() -> None:
    """A comment that is sent again with its key has one UUID, so that Linear keeps one; each key has another."""
    fake = FakeLinear()
    for key in ("k", "k", "l"):
        await fake.writer().comment("ENG-1", "done", key=key)
    assert 2 == len({comment["id"] for comment in fake.comments}) == len(fake.comments)


async def test_linear_says_why_a_comment_was_refused() -> None:
    """A refusal that is not that of a second one is told."""
    fake = FakeLinear()
    fake.strike, fake.times = (lambda: failure("Argument Validation Error", "INPUT_ERROR", "invalid input", 400)), 1
    await refused(fake.writer().comment("ENG-1", "done", key="k"), "validation", "Argument Validation Error")


async def test_linear_takes_a_uuid() -> None:
    """An issue is named by its identifier or its UUID."""
    fake = FakeLinear()
    assert "ENG-1" == (await fake.writer().get(fake.uuid)).id


async def test_linear_authorization() -> None:
    """A key stands by itself, a token of OAuth after ``Bearer``."""
    for options, prefix in (({}, "tok-"), ({"is_oauth": True}, "Bearer tok-")):
        fake = FakeLinear()
        await fake.writer(**options).get("ENG-1")
        assert fake.requests[0].reveal_headers()["Authorization"].startswith(prefix)
        assert json.loads(fake.requests[0].body)["variables"] == {"id": "ENG-1"}
