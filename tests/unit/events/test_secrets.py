"""No event holds an argument, a result or the text of an exception."""

import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import anyio
import attrs
import pytest

from harbor_async import Identity, Join, ToolCall, ToolContext, ToolError, ToolEvent
from harbor_async.errors import InvalidArgumentsError, Problem
from tests.unit.events.support import WAYS, Recorder, listen, make

pytestmark = pytest.mark.virtual
SECRET = "hunter2"


def find(value: Any, seen: set[int]) -> Iterator[str]:
    """Yield every text that can be reached from ``value``, through attributes and items, causes included."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes):
        yield value.decode(errors="replace")
    elif isinstance(value, Mapping):
        for item in value.items():
            yield from find(item, seen)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield from find(item, seen)
    elif value is not None:
        yield repr(value)
        if isinstance(value, BaseException):
            yield from find((value.args, value.__cause__, value.__context__), seen)
        if attrs.has(type(value)):
            yield from find([getattr(value, field.name) for field in attrs.fields(type(value))], seen)
        yield from find(getattr(value, "__dict__", None), seen)


def is_told(events: list[ToolEvent]) -> bool:
    """Say whether the secret, or what it looks like in another form, is anywhere in the events."""
    forms = [SECRET, base64.b64encode(SECRET.encode()).decode(), SECRET.encode().hex(), SECRET[::-1]]
    return any(form in text for event in events for text in find(event, set()) for form in forms)


@attrs.frozen
class Note:
    """An argument object."""

    text: str

    def __attrs_post_init__(self) -> None:
        if "bad" in self.text:
            raise ValueError(f"no such text: {self.text}")


async def gives(text: str) -> str:
    return text + SECRET


async def raises(text: str) -> None:
    raise ConnectionError(f"cannot send {text}") from KeyError(text)


async def raises_permanent(text: str) -> None:
    error = ValueError(text)
    error.add_note(text)
    raise error


async def raises_ours(text: str) -> None:
    raise ToolError(f"cannot send {text}", category="conflict")


async def raises_problems(text: str) -> None:
    raise InvalidArgumentsError([Problem(f"/{text}", "value", f"not {text}")])


async def raises_group(text: str) -> None:
    raise ExceptionGroup(text, [ValueError(text), ConnectionError(text)])


async def hangs(text: str) -> None:
    try:
        await anyio.sleep_forever()
    except anyio.get_cancelled_exc_class():
        raise RuntimeError(text) from None


async def breaks_its_promise(text: str) -> int:
    return text  # type: ignore[return-value]


async def takes_numbers(text: int) -> int:
    return text


async def takes_note(note: Note) -> str:
    return note.text


def thread(text: str) -> str:
    raise ConnectionError(text)


async def deny(call: ToolCall, *_: object) -> bool:
    raise ToolError(f"never {json.dumps(call.arguments)}")


async def change(*_: object) -> dict[str, Any]:
    return {"text": SECRET}


def no_group(text: str) -> str:
    raise ValueError(text)


TOOLS = [
    *(gives, raises, raises_permanent, raises_ours, raises_problems, raises_group, hangs),
    *(breaks_its_promise, takes_numbers, takes_note),
]


@pytest.mark.parametrize("ask", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("function", TOOLS, ids=lambda function: function.__name__)
async def test_no_event_tells_an_argument_or_an_error(function, ask):
    """Whatever becomes of a call with a secret argument, and whatever the tool says of it, no event holds it."""
    sink = Recorder()
    arguments = {"text": SECRET}
    if function is takes_note:
        arguments = {"note": {"text": f"bad {SECRET}"}}
    async with listen(make(function), sinks=[sink], max_running=4) as rt:
        await ask(rt, function.__name__, arguments)
        await ask(rt, function.__name__, json.dumps({**arguments, SECRET: 1}))
        await ask(rt, function.__name__, json.dumps(arguments) + SECRET)
    assert 3 == sum(event.type == "tool.invoked" for event in sink.events)
    assert not is_told(sink.events)


async def test_no_event_tells_what_is_asked_around_a_call():
    """Approvals, groups, programs and their errors are told as little."""
    sink = Recorder()
    tools = (
        make(gives, name="denied", approve=deny),
        make(raises, name="changed", approve=change),
        make(gives, name="grouped", exclusive=no_group),
        make(gives, name="rendered", render=lambda failure, arguments: f"{arguments}"),
    )
    async with listen(*tools, sinks=[sink]) as rt:
        for tool in tools:
            await rt.invoke(tool.name, {"text": SECRET}, identity=Identity("t", "u", "s"))
            with suppress(ValueError, ConnectionError):
                await rt.call(tool, SECRET)
        calls = [ToolCall(str(n), tool.name, {"text": SECRET}) for n, tool in enumerate(tools)]
        await rt.invoke_many([*calls, ToolCall("x", "rendered", {"text": 5})], atomic=True)
        await rt.invoke_many(calls, join=Join.FIRST_SUCCESS)
        await rt.drain()
        await rt.invoke_many(calls)
    assert not is_told(sink.events)


@pytest.mark.virtual(grace=0.05)
async def test_no_event_tells_the_error_of_a_thread():
    """Neither does one of a synchronous tool."""
    sink = Recorder()
    async with listen(make(thread, attempts=2), sinks=[sink]) as rt:
        await rt.invoke("thread", {"text": SECRET})
    assert 2 == sum(event.type == "tool.attempt" for event in sink.events)
    assert not is_told(sink.events)


async def test_the_search_finds_what_is_told():
    """What a tool itself says of its progress is told as it says it: the search above would find a secret."""
    sink = Recorder()

    async def talks(text: str, context: ToolContext) -> None:
        context.report_progress(1, 2, text)

    async with listen(make(talks), sinks=[sink]) as rt:
        await rt.invoke("talks", {"text": SECRET})
    assert is_told(sink.events)
