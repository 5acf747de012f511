"""Faults where time is real: on uvloop, too, which has no virtual time."""

import anyio
import pytest

from harbor_async import Catalog, Runtime, ToolCall, ToolPolicy
from harbor_async.testing import HANG, Fault, RecordingSink, inject, scripted_tool


@pytest.mark.parametrize("timeout", [None, 60.0])
async def test_a_hang_ends_when_it_is_canceled(timeout):
    """A tool that hangs, with an end of its own or without, is ended by its handle."""
    sink = RecordingSink()
    tool = scripted_tool("hangs", [HANG], policy=ToolPolicy(timeout=timeout))
    async with Runtime(Catalog([tool]), sinks=[sink]) as runtime, runtime.batch() as batch:
        handle = batch.start(ToolCall("1", "hangs"))
        with anyio.fail_after(10.0):
            await sink.wait_for("tool.attempt")
        handle.cancel()
    assert "canceled" == (await handle.result()).error.category


async def test_a_swallowed_cancel_is_told_of():
    """A tool that ignores its timeout for a while ends by itself, late, and the runtime has told of it."""
    sink = RecordingSink()
    tool = inject(scripted_tool("stubborn", ["done"]), [Fault(delay=0.1, swallow=True)])
    async with Runtime(Catalog([tool]), sinks=[sink]) as runtime:
        result = await runtime.invoke("stubborn", timeout=0.02)
    assert ("timed_out", "timeout", 1) == (result.outcome, result.error.category, result.attempts)
    assert 0.09 <= result.elapsed
    assert 1 == len(sink.select("tool.cancel_ignored"))
