"""What a tracker's writer must do."""

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, ClassVar, Final

import anyio
import attrs
from anyio.lowlevel import checkpoint

from .._categories import ErrorCategory
from ..tracker import Op, TrackerError, tracker_write
from ._rules import MAKE, expect, no_error, opened, require, skip_unless

Write = Callable[[str, str], Awaitable[Any]]
"""Does one operation on the issue of this id, with this key."""
_TURNS: Final = 3


@attrs.frozen
class _Subject:
    """A writer that is checked, and what is known of its tracker."""

    writer: Any
    state: str
    url: str

    def can(self, *names: str) -> bool:
        return all(callable(getattr(self.writer, name, None)) for name in names)

    def writes(self) -> dict[Op, Write]:
        """Return what it can do."""
        writer, url, state = self.writer, self.url, self.state
        known: dict[Op, Write] = {
            Op.COMMENT: lambda id, key: writer.comment(id, "a comment", key=key),
            Op.TRANSITION: lambda id, key: writer.transition(id, state, key=key),
            Op.LINK_PR: lambda id, key: writer.link_pr(id, url, key=key),
            Op.CLOSE: lambda id, key: writer.close(id, "", key=key),
        }
        return {op: write for op, write in known.items() if self.can(op.value)}

    def look(self, op: Op) -> Callable[[str, str], Awaitable[bool]] | None:
        """Return what says whether an operation has happened; None where the writer cannot tell."""
        if op is Op.COMMENT:
            return (lambda id, key: self.writer.find_comment(id, key=key)) if self.can("find_comment") else None
        return (lambda id, _: self._is_done(op, id)) if self.can("get") else None

    async def _is_done(self, op: Op, id: str) -> bool:
        issue = await self.writer.get(id)
        if op is Op.TRANSITION:
            return bool(issue.state == self.state)
        return self.url in issue.links if op is Op.LINK_PR else bool(issue.is_closed)


class WriterConformance:
    """Checks a tracker's writer, in pytest with anyio's plugin. What a writer lacks is skipped.

    ::

        pytestmark = pytest.mark.anyio


        class TestMyTracker(WriterConformance):
            state = "In Review"

            @asynccontextmanager
            async def make(self):
                async with MyTracker(...) as tracker:
                    await tracker.add("T-1", "It leaks")
                    yield tracker

    Attributes:
        issue: The id of an issue that is open, and not in ``state``.
        state: A state to which it can be moved from there, and in which it can be closed.
        missing: An id that no issue has.
        missing_state: What is no state.
        url: What can be linked as a pull request.
    """

    issue: ClassVar[str] = "T-1"
    state: ClassVar[str] = "done"
    missing: ClassVar[str] = "T-404"
    missing_state: ClassVar[str] = "no such state"
    url: ClassVar[str] = "https://example.org/pull/1"

    def make(self) -> object:
        """Return a writer to a fresh tracker that has ``issue``, or an async context manager that gives one."""
        raise NotImplementedError(MAKE)

    @asynccontextmanager
    async def _subject(self) -> AsyncGenerator[_Subject]:
        async with opened(self.make()) as writer:
            yield _Subject(writer, self.state, self.url)

    async def test_it_is_a_writer(self) -> None:
        """Have one of the four methods at least, and each of them async and with the arguments that it is given."""
        async with self._subject() as subject:
            with no_error("tracker_write(writer)"):
                tracker_write(subject.writer)
            for name in (*(op.value for op in Op), "find_comment", "get"):
                if subject.can(name):
                    _check_method(name, getattr(subject.writer, name))

    async def test_a_write_has_happened_when_it_returns(self) -> None:
        """Return nothing, and only once the effect is there."""
        async with self._subject() as subject:
            for op, write in subject.writes().items():
                with no_error(op.value):
                    result = await write(self.issue, op.value)
                require(result is None, f"{op.value} returned a {type(result).__name__}; nobody reads it")
                look = subject.look(op)
                if look is not None:
                    require(await look(self.issue, op.value), f"{op.value} has returned, and its effect is not there")

    async def test_what_is_done_already_is_a_success(self) -> None:
        """Close what is closed, move to where it is and link what is linked, each with another key, and do nothing."""
        async with self._subject() as subject:
            for op, write in subject.writes().items():
                await write(self.issue, f"{op.value}-1")
                with no_error(f"{op.value} a second time"):
                    await write(self.issue, f"{op.value}-2")
            if subject.can("link_pr", "get"):
                links = list((await subject.writer.get(self.issue)).links)
                require(links.count(self.url) == 1, f"a URL that was linked twice stands {links.count(self.url)} times")

    async def test_a_repeat_is_a_success(self) -> None:
        """Answer the same write with the same key as the first time: it is sent again when an answer was lost."""
        async with self._subject() as subject:
            for op, write in subject.writes().items():
                await write(self.issue, op.value)
                with no_error(f"{op.value} again with the same key"):
                    await write(self.issue, op.value)

    async def test_an_issue_that_is_missing_is_not_found(self) -> None:
        """Say ``not_found`` of an issue that is not there, whatever is to be done with it."""
        async with self._subject() as subject:
            asked: dict[str, Callable[[], Awaitable[Any]]] = {
                op.value: partial(write, self.missing, "key") for op, write in subject.writes().items()
            }
            if subject.can("get"):
                asked["get"] = partial(subject.writer.get, self.missing)
            for name, ask in asked.items():
                await _refused(f"{name} on a missing issue", ask, ErrorCategory.NOT_FOUND)

    async def test_a_state_that_is_missing_is_invalid(self) -> None:
        """Say ``validation`` of a state that there is not, and name those that can be had."""
        async with self._subject() as subject:
            skip_unless(subject.can("transition"), "this writer moves no issues")
            what = f"transition to {self.missing_state!r}"
            message = await _refused(
                what,
                partial(subject.writer.transition, self.issue, self.missing_state, key="key"),
                ErrorCategory.VALIDATION,
            )
            names = self.state.casefold() in message.casefold()
            require(names, f"{what}: the message must name the states that can be had, {self.state!r} among them")

    async def test_an_issue_is_read(self) -> None:
        """Give the issue that was asked for, and its state as it is."""
        async with self._subject() as subject:
            skip_unless(subject.can("get"), "this writer reads no issues")
            issue = await subject.writer.get(self.issue)
            require(issue.id == self.issue, f"get({self.issue!r}) gave the issue {issue.id!r}")
            require(not issue.is_closed, "an open issue is read as a closed one")
            require(issue.state != self.state, f"an issue that was not moved is read as {self.state!r}")
            require(self.url not in issue.links, "an issue is read with a link that it has not")

    async def test_a_comment_is_found_by_its_key(self) -> None:
        """Find a comment by the key that it was written with, and by no other."""
        async with self._subject() as subject:
            skip_unless(subject.can("comment", "find_comment"), "this writer finds no comments")
            find = subject.writer.find_comment
            require(not await find(self.issue, key="one"), "a comment is found before it was written")
            await subject.writer.comment(self.issue, "a comment", key="one")
            require(await find(self.issue, key="one"), "a comment is not found by its key")
            require(not await find(self.issue, key="two"), "a comment is found by another key than its own")

    async def test_writes_at_once_are_all_done(self) -> None:
        """Keep every write of many at once on one issue."""
        async with self._subject() as subject:
            skip_unless(subject.can("comment") or subject.can("link_pr"), "this writer adds nothing to an issue")
            keys = [f"key-{number}" for number in range(10)]
            with no_error("many writes at once"):
                async with anyio.create_task_group() as group:
                    for key in keys:
                        if subject.can("comment"):
                            group.start_soon(_comment, subject.writer, self.issue, key)
                        if subject.can("link_pr"):
                            group.start_soon(_link, subject.writer, self.issue, self.url, key)
            lost = 0
            if subject.can("comment", "find_comment"):
                lost += sum([not await subject.writer.find_comment(self.issue, key=key) for key in keys])
            if subject.can("link_pr", "get"):
                links = (await subject.writer.get(self.issue)).links
                lost += sum(self.url + key not in links for key in keys)
            require(not lost, f"{lost} of the writes that were made at once are not there")

    async def test_a_cancellation_leaves(self) -> None:
        """End when canceled, by the cancellation or with the effect, and make no other exception of it."""
        for turns in range(_TURNS):
            async with self._subject() as subject:
                for op, write in subject.writes().items():
                    what = f"{op.value}, canceled after {turns} turns of the event loop"
                    with no_error(what):
                        has_returned = await _cut(write, self.issue, op.value, turns)
                    look = subject.look(op)
                    if has_returned and look is not None:
                        require(await look(self.issue, op.value), f"{what}, has returned, and its effect is not there")


def _check_method(name: str, method: Any) -> None:
    require(inspect.iscoroutinefunction(method), f"{name} is not an async function")
    given: dict[str, tuple[str, ...]] = {"get": ("id",), "find_comment": ("id",)}
    arguments = given.get(name, ("id", "text"))
    keys: dict[str, str] = {} if name == "get" else {"key": "key"}
    try:
        inspect.signature(method).bind(*arguments, **keys)
    except TypeError as exc:
        shown = ", ".join([*arguments, *(f"{key}=..." for key in keys)])
        msg = f"{name} cannot be called as {name}({shown}): {exc}"
        raise AssertionError(msg) from exc


async def _refused(what: str, ask: Callable[[], Awaitable[Any]], category: ErrorCategory) -> str:
    with expect(TrackerError, what) as errors:
        await ask()
    error: Any = errors[0]
    require(error.category is category, f"{what}: expected the category {category.value}; got {error.category}")
    return str(error)


async def _comment(writer: Any, id: str, key: str) -> None:
    await writer.comment(id, "a comment", key=key)


async def _link(writer: Any, id: str, url: str, key: str) -> None:
    await writer.link_pr(id, url + key, key=f"link-{key}")  # no two calls have one key


async def _cut(write: Write, id: str, key: str, turns: int) -> bool:
    """Cancel a write after some turns of the event loop; say whether it returned all the same."""
    has_returned = False
    async with anyio.create_task_group() as group:

        async def run() -> None:
            nonlocal has_returned
            await write(id, key)
            has_returned = True

        group.start_soon(run)
        for _ in range(turns):
            await checkpoint()
        group.cancel_scope.cancel()
    return has_returned
