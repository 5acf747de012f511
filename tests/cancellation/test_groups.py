"""Exception groups: one leaf is that leaf, leaves of one kind are that kind, a mixture is permanent."""

import anyio
import pytest

from harbor_async import ErrorClass, ToolError
from tests.cancellation.ways import each_way, make, steal_cancellation, summary

pytestmark = pytest.mark.virtual


@each_way
async def test_a_child_that_fails_in_the_tools_own_group_is_that_error(ask):
    """One connection error out of a task group is retried as a connection error (N10)."""
    runs = []

    async def fails():
        raise ConnectionError("reset")

    async def parent():
        runs.append(1)
        async with anyio.create_task_group() as group:
            group.start_soon(fails)
            await anyio.sleep(9)

    result = await ask(make(parent))
    assert ("failed", "api_request", 3, "attempts") == summary(result)
    assert "reset" == result.error.message
    assert [1, 1, 1] == runs


@each_way
@pytest.mark.parametrize(
    ("leaves", "expected"),
    [
        ([ConnectionError("a"), ValueError("b")], ("failed", "unknown", 1, "permanent")),
        ([ConnectionError("a"), TimeoutError("b")], ("failed", "unknown", 1, "permanent")),
        ([ConnectionError("a"), ConnectionError("b")], ("failed", "api_request", 3, "attempts")),
        ([ValueError("a"), TypeError("b")], ("failed", "unknown", 1, "permanent")),
        ([ToolError("a", category="conflict")], ("failed", "conflict", 1, "permanent")),
    ],
)
@pytest.mark.parametrize("nested", [False, True])
async def test_a_group_is_what_its_leaves_agree_on(ask, leaves, expected, nested):
    """Nested groups count as their leaves; leaves that disagree make it permanent (N10)."""

    async def fails():
        await anyio.sleep(0.25)
        if nested:
            raise ExceptionGroup("g", [ExceptionGroup("h", [leaves[0]]), *leaves[1:]])
        raise ExceptionGroup("g", leaves)

    assert expected == summary(await ask(make(fails)))


@each_way
async def test_a_group_of_one_foreign_cancellation_is_one(ask):
    """A cancellation that no open scope asked for is recognised inside a group."""

    async def fails():
        raise BaseExceptionGroup("g", [await steal_cancellation()])

    assert ("failed", "canceled", 1, "canceled") == summary(await ask(make(fails)))


@each_way
async def test_a_foreign_cancellation_beside_an_error_is_permanent(ask):
    """A mixture of a foreign cancellation and an error is answered, and not retried."""

    async def fails():
        raise BaseExceptionGroup("g", [await steal_cancellation(), ConnectionError("reset")])

    result = await ask(make(fails))
    assert ("failed", "unknown", 1, "permanent") == summary(result)
    assert ErrorClass.PERMANENT == result.error.error_class


@each_way
async def test_a_group_at_the_timeout_is_a_timeout(ask):
    """What a tool's children make of their cancellation is the cause of a timeout, without the cancellations."""

    async def child(error):
        try:
            await anyio.sleep(9)
        finally:
            raise error

    async def parent():
        async with anyio.create_task_group() as group:
            group.start_soon(child, ValueError("a"))
            group.start_soon(child, KeyError("b"))

    result = await ask(make(parent, attempts=1))
    assert ("failed", "timeout", 1, "attempts") == summary(result)
    assert {ValueError, KeyError} == {type(leaf) for leaf in result.error.cause.exceptions}
