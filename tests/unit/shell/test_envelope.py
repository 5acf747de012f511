"""Failures that are hard to put in an envelope."""

import msgspec
import pytest

from harbor_async import Catalog, Outcome, Runtime, ToolCall, ToolError, ToolPolicy, describe
from tests.cancellation.ways import WAYS

each_way = pytest.mark.parametrize("ask", WAYS, ids=lambda way: way.__name__)


async def envelope(ask, error):
    async def fails():
        raise error

    return await ask(describe(fails, policy=ToolPolicy(attempts=1)))


@each_way
async def test_an_error_is_an_answer_with_its_words(ask):
    """A tool that raises is ``failed`` with its message (R053)."""
    result = await envelope(ask, LookupError("no such city"))
    assert {"outcome": "failed", "error": {"category": "unknown", "message": "no such city"}} == result.to_wire()
    assert '{"outcome":"failed","error":{"category":"unknown","message":"no such city"}}' == result.content


@each_way
@pytest.mark.parametrize("kind", [StopIteration, StopAsyncIteration])
async def test_the_end_of_an_iteration_is_a_failure(ask, kind):
    """``StopIteration`` and ``StopAsyncIteration`` are no values and no ends of ours (N23)."""
    result = await envelope(ask, kind("x"))
    assert ("failed", "unknown", None) == (result.outcome, result.error.category, result.value)


@each_way
async def test_an_end_of_an_iteration_before_the_function_runs_is_a_failure(ask):
    """A function that raises it when called, before there is anything to await, fails the same way."""
    from collections.abc import Awaitable

    def fails() -> Awaitable[int]:
        raise StopIteration("x")

    result = await ask(describe(fails, policy=ToolPolicy(attempts=1)))
    assert ("failed", "unknown", 1) == (result.outcome, result.error.category, result.attempts)


class HostileError(Exception):
    def __str__(self):
        raise RuntimeError("no text")

    __repr__ = __str__


@each_way
@pytest.mark.parametrize(
    ("error", "message"),
    [
        (HostileError(), "HostileError"),
        (ValueError(), "ValueError"),
        (ValueError("  \n"), "ValueError"),
        (KeyError("city"), "KeyError: 'city'"),
        (ToolError(), "ToolError"),
        (ToolError("words"), "words"),
        (ExceptionGroup("group", [ValueError("leaf")]), "leaf"),
        (ValueError("x" * 10_000_000), "x" * 2000 + "… (9998000 more characters)"),
        (ValueError("\ud800 lone"), "\\ud800 lone"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_every_error_has_a_text(ask, error, message):
    """A ``__str__`` that raises, no words, ten megabytes of them: always a text of bounded length (N32)."""
    assert message == (await envelope(ask, error)).error.message


async def test_a_lone_surrogate_in_a_message_makes_valid_json():
    """What goes back to the model can be encoded, whatever the tool's words (N32)."""
    result = await envelope(WAYS[0], ValueError("\ud800 lone"))
    assert "\\ud800 lone" == msgspec.json.decode(result.content.encode())["error"]["message"]


@each_way
async def test_a_kept_failure_keeps_no_traceback(ask):
    """The cause is the exception itself, without frames; so are its causes and contexts."""

    async def fails():
        try:
            raise KeyError("inner")
        except KeyError as exc:
            raise ExceptionGroup("g", [ValueError("outer")]) from exc

    error = (await ask(describe(fails, policy=ToolPolicy(attempts=2)))).error.cause
    todo = [error]
    while todo:
        exc = todo.pop()
        if exc is not None:
            assert exc.__traceback__ is None
            todo += [exc.__cause__, exc.__context__, *getattr(exc, "exceptions", ())]


async def test_every_answer_names_its_call_and_its_tool():
    """Also those that never reached a tool."""
    async with Runtime(Catalog([])) as runtime:
        (result,) = await runtime.invoke_many([ToolCall("seven", "nobody")])
    assert ("seven", "nobody", Outcome.FAILED, 0, "invalid") == (
        result.call_id,
        result.tool,
        result.outcome,
        result.attempts,
        result.stop_reason,
    )
