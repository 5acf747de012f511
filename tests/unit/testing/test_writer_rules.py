"""Each rule of ``WriterConformance`` fails on a writer that breaks it, and says what is wrong."""

from unittest import SkipTest

import anyio
import attrs
import pytest
from anyio.lowlevel import checkpoint

from harbor_async.testing import WriterConformance
from harbor_async.tracker import Issue, TrackerError


@attrs.define(slots=False)
class Right:
    """One issue in memory."""

    state: str = "open"
    links: tuple[str, ...] = ()
    comments: list[str] = attrs.field(factory=list)

    async def check(self, id):
        await checkpoint()
        if id != "T-1":
            raise TrackerError("missing, or no permission", category="not_found", delivery="refused")

    async def comment(self, id, body, *, key):
        await self.check(id)
        self.comments.append(key)

    async def transition(self, id, to_state, *, key):
        await self.check(id)
        if to_state not in {"open", "done", "closed"}:
            raise TrackerError("expected Open, Done or Closed", category="validation", delivery="refused")
        self.state = to_state

    async def link_pr(self, id, pr_url, *, key):
        await self.check(id)
        self.links = (*(link for link in self.links if link != pr_url), pr_url)

    async def close(self, id, reason, *, key):
        await self.transition(id, "closed", key=key)

    async def find_comment(self, id, *, key):
        await self.check(id)
        return key in self.comments

    async def get(self, id):
        await self.check(id)
        return Issue(id, "It leaks", self.state, self.state == "closed", self.links)


class Nothing:
    pass


class Plain(Right):
    def close(self, id, reason, *, key):
        return self.transition(id, "closed", key=key)


class Keyless(Right):
    async def link_pr(self, id, pr_url):
        pass


class FindsByName(Right):
    async def find_comment(self, id, *, name):
        return False


class Talks(Right):
    async def comment(self, id, body, *, key):
        await super().comment(id, body, key=key)
        return len(self.comments)


class Promises(Right):
    async def close(self, id, reason, *, key):
        await self.check(id)


class Forgets(Right):
    async def comment(self, id, body, *, key):
        await self.check(id)


class ClosesOnce(Right):
    async def close(self, id, reason, *, key):
        if self.state == "closed" and key == "close-2":
            raise TrackerError("already closed", category="conflict")
        await super().close(id, reason, key=key)


class LinksTwice(Right):
    async def link_pr(self, id, pr_url, *, key):
        await self.check(id)
        self.links += (pr_url,)


class UniqueKeys(Right):
    async def comment(self, id, body, *, key):
        if key in self.comments:
            raise TrackerError("UNIQUE constraint failed", category="conflict")
        await super().comment(id, body, key=key)


class AnyIssue(Right):
    async def check(self, id):
        await checkpoint()


class KeyErrors(Right):
    async def check(self, id):
        {"T-1": 0}[id]


class Unauthorized(Right):
    async def check(self, id):
        if id != "T-1":
            raise TrackerError("no", category="auth_failed")


class MakesIssues(Right):
    async def get(self, id):
        return Issue(id, "", self.state, self.state == "closed", self.links)


class AnyState(Right):
    async def transition(self, id, to_state, *, key):
        await self.check(id)
        self.state = to_state


class KeepsStatesToItself(Right):
    async def transition(self, id, to_state, *, key):
        await self.check(id)
        if to_state not in {"open", "done", "closed"}:
            raise TrackerError("no such state", category="validation")
        self.state = to_state


class OtherId(Right):
    async def get(self, id):
        return attrs.evolve(await super().get(id), id="10001")


class ReadsClosed(Right):
    async def get(self, id):
        return attrs.evolve(await super().get(id), is_closed=True)


class FindsAny(Right):
    async def find_comment(self, id, *, key):
        return bool(self.comments)


class FindsBefore(Right):
    async def find_comment(self, id, *, key):
        return True


class FindsNever(Right):
    async def find_comment(self, id, *, key):
        return False


class LosesUpdates(Right):
    async def link_pr(self, id, pr_url, *, key):
        links = self.links
        await self.check(id)
        self.links = (*(link for link in links if link != pr_url), pr_url)


class OneAtATime(Right):
    is_busy = False

    async def comment(self, id, body, *, key):
        if self.is_busy:
            raise RuntimeError("busy")
        self.is_busy = True
        await super().comment(id, body, key=key)
        self.is_busy = False


class Translates(Right):
    async def comment(self, id, body, *, key):
        try:
            await super().comment(id, body, key=key)
        except anyio.get_cancelled_exc_class() as exc:
            raise TrackerError("interrupted") from exc


class Swallows(Right):
    async def link_pr(self, id, pr_url, *, key):
        try:
            await super().link_pr(id, pr_url, key=key)
        except anyio.get_cancelled_exc_class():
            return


WRONG = {
    "test_it_is_a_writer": [
        (Nothing, "InvalidToolError was raised: expected a writer"),
        (Plain, "close is not an async function"),
        (Keyless, r"link_pr cannot be called as link_pr\(id, text, key=...\)"),
        (FindsByName, "find_comment cannot be called"),
    ],
    "test_a_write_has_happened_when_it_returns": [
        (Talks, "comment returned a int"),
        (Promises, "close has returned, and its effect is not there"),
        (Forgets, "comment has returned, and its effect is not there"),
    ],
    "test_what_is_done_already_is_a_success": [
        (ClosesOnce, "close a second time: TrackerError was raised: already closed"),
        (LinksTwice, "linked twice stands 2 times"),
    ],
    "test_a_repeat_is_a_success": [(UniqueKeys, "comment again with the same key: TrackerError")],
    "test_an_issue_that_is_missing_is_not_found": [
        (AnyIssue, "comment on a missing issue: expected TrackerError; nothing"),
        (KeyErrors, "comment on a missing issue: expected TrackerError; KeyError"),
        (Unauthorized, "expected the category not_found; got auth_failed"),
        (MakesIssues, "get on a missing issue: expected TrackerError; nothing"),
    ],
    "test_a_state_that_is_missing_is_invalid": [
        (AnyState, "transition to 'no such state': expected TrackerError; nothing"),
        (KeepsStatesToItself, "must name the states that can be had, 'done' among them"),
    ],
    "test_an_issue_is_read": [
        (OtherId, r"get\('T-1'\) gave the issue '10001'"),
        (ReadsClosed, "read as a closed one"),
        (lambda: Right(state="done"), "not moved is read as 'done'"),
        (lambda: Right(links=("https://example.org/pull/1",)), "a link that it has not"),
    ],
    "test_a_comment_is_found_by_its_key": [
        (FindsBefore, "before it was written"),
        (FindsAny, "another key than its own"),
        (FindsNever, "not found by its key"),
    ],
    "test_writes_at_once_are_all_done": [
        (LosesUpdates, "9 of the writes"),
        (OneAtATime, "many writes at once: RuntimeError was raised: busy"),
    ],
    "test_a_cancellation_leaves": [
        (Translates, "comment, canceled after 0 turns of the event loop: TrackerError was raised: interrupted"),
        (Swallows, "link_pr, canceled after 0 turns of the event loop, has returned, and its effect is not there"),
    ],
}


def suite(make):
    return type("Suite", (WriterConformance,), {"make": lambda self: make()})()


@pytest.mark.virtual
@pytest.mark.parametrize(
    ("rule", "wrong", "message"),
    [
        pytest.param(rule, *case, id=f"{rule}-{case[0].__name__}-{number}")
        for rule, cases in WRONG.items()
        for number, case in enumerate(cases)
    ],
)
async def test_a_rule_fails_on_what_breaks_it(rule, wrong, message):
    """A writer that breaks a rule fails its test, with a message that says what was expected."""
    with pytest.raises(AssertionError, match=message):
        await getattr(suite(wrong), rule)()


@pytest.mark.virtual
@pytest.mark.parametrize("rule", WRONG)
async def test_a_right_one_passes(rule):
    """The writer that the wrong ones are made from passes every rule."""
    await getattr(suite(Right), rule)()


class OnlyCloses:
    """A writer that cannot look."""

    async def close(self, id, reason, *, key):
        await checkpoint()
        if id != "T-1":
            raise TrackerError("missing", category="not_found")


@pytest.mark.virtual
@pytest.mark.parametrize("rule", WRONG)
async def test_what_a_writer_lacks_is_skipped(rule):
    """A writer that can only close passes what is about closing, and the rest is skipped, not passed."""
    skipped = {"state_that_is_missing", "issue_is_read", "found_by_its_key", "at_once"}
    if any(words in rule for words in skipped):
        with pytest.raises(SkipTest, match="this writer"):
            await getattr(suite(OnlyCloses), rule)()
    else:
        await getattr(suite(OnlyCloses), rule)()


def test_each_rule_has_a_writer_that_breaks_it():
    """No rule is without a writer above on which it fails."""
    assert {name for name in dir(WriterConformance) if name.startswith("test_")} == set(WRONG)
