"""Each rule of ``SinkConformance`` fails on a sink that breaks it, and says what is wrong."""

import asyncio
import time
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import pytest

from harbor_async.testing import SinkConformance, wait_all_tasks_blocked


class Right:
    """Writes each event to a stream that somebody reads."""

    def __init__(self, stream):
        self.stream = stream

    async def emit(self, event):
        await self.stream.send(event)


class Plain:
    def emit(self, event):
        pass


class Talks(Plain):
    async def emit(self, event):
        return event


class NeedsIdentity(Plain):
    async def emit(self, event):
        await anyio.lowlevel.checkpoint()
        str(event.identity.tenant)


class KnowsFour(Plain):
    async def emit(self, event):
        {"tool.invoked": 0, "tool.completed": 1, "tool.failed": 2, "tool.attempt": 3}[event.type]


class Hangs(Plain):
    async def emit(self, event):
        await anyio.sleep_forever()


class Blocks(Plain):
    async def emit(self, event):
        await anyio.lowlevel.checkpoint()
        time.sleep(0.02)  # noqa: ASYNC251 - the fault


class Translates(Plain):
    async def emit(self, event):
        try:
            await anyio.lowlevel.checkpoint()
        except anyio.get_cancelled_exc_class() as exc:
            raise ConnectionError("interrupted") from exc


class Spawns(Plain):
    end = None

    async def emit(self, event):
        Spawns.end = end = anyio.Event()
        if anyio.get_cancelled_exc_class() is asyncio.CancelledError:
            Spawns.stray = asyncio.create_task(end.wait(), name="stray")
        else:
            import trio

            trio.lowlevel.spawn_system_task(end.wait, name="stray")


class NeedsOutcome(Plain):
    async def emit(self, event):
        if event.call_id == "canceled":
            raise RuntimeError("unknown call")


WRONG = {
    "test_emit_is_async": [(Plain, "returned a NoneType, which cannot be awaited"), (Talks, "gave a ToolEvent")],
    "test_every_event_is_taken": [
        (NeedsIdentity, "tool.invoked with no field but the needed ones: AttributeError"),
        (KnowsFour, "tool.retry with no field but the needed ones: KeyError"),
        (Hangs, "took more than 1 s"),
    ],
    "test_the_loop_is_not_blocked": [(Blocks, "kept the event loop for 0.0")],
    "test_a_cancellation_leaves": [(Translates, "ConnectionError was raised: interrupted")],
    "test_no_task_is_left": [(Spawns, "left tasks behind: .*stray")],
    "test_a_runtime_has_nothing_to_report": [(NeedsOutcome, "the runtime logged: event sink .* failed")],
}


def suite(make):
    return type("Suite", (SinkConformance,), {"make": make})()


@pytest.mark.virtual
@pytest.mark.blocks_loop
@pytest.mark.parametrize(
    ("rule", "wrong", "message"),
    [pytest.param(rule, *case, id=f"{rule}-{case[0].__name__}") for rule, cases in WRONG.items() for case in cases],
)
async def test_a_rule_fails_on_what_breaks_it(rule, wrong, message):
    """A sink that breaks a rule fails its test, with a message that says what was expected."""
    with pytest.raises(AssertionError, match=message):
        await getattr(suite(lambda self: wrong()), rule)()
    if wrong is Spawns:  # or the guard of our own tests finds it, too
        Spawns.end.set()
        await wait_all_tasks_blocked()


@pytest.mark.parametrize("rule", WRONG)
async def test_what_needs_opening_is_opened(rule):
    """A sink that lives in an async context manager, and waits at each event, passes every rule."""

    @asynccontextmanager
    async def make(self):
        sender, receiver = anyio.create_memory_object_stream()
        async with receiver, anyio.create_task_group() as group:
            group.start_soon(read, receiver)
            async with sender:
                yield Right(sender)

    async def read(receiver):
        async for _ in receiver:
            pass

    await getattr(suite(make), rule)()


async def test_a_failure_is_not_wrapped_by_the_task_group_of_a_sink():
    """A sink that lives in a task group fails a rule as any other does."""

    @asynccontextmanager
    async def make(self):
        async with anyio.create_task_group():
            yield Talks()

    with pytest.raises(AssertionError, match="gave a ToolEvent"):
        await suite(make).test_emit_is_async()


def test_each_rule_has_a_sink_that_breaks_it():
    """No rule is without a sink above on which it fails."""
    assert {name for name in dir(SinkConformance) if name.startswith("test_")} == set(WRONG)
