"""Synchronous tools cut at every step of the loop: no thread runs on unsaid, no place is lost, no answer is missing."""

import threading
from typing import Any

import anyio
import pytest

from harbor_async import Runtime, ToolCall, ToolResult
from harbor_async.testing import Cut, cancel_sweep
from tests.unit.thread.gate import assert_free, limited, make

THREADS = 2
WAYS: list[dict[str, Any]] = [{"backend": "asyncio"}, {"backend": "asyncio", "native": True}, {"backend": "trio"}]


class Floor:
    """Plain tools, and how many threads are in them."""

    def __init__(self, timeout: float | None) -> None:
        self.live = 0
        self.peak = 0
        self._lock = threading.Lock()
        self._pause = threading.Event()
        options: dict[str, Any] = {"timeout": timeout, "attempts": 2, "idempotent": True}
        self.quick = make(self._quick, name="quick", **options)
        self.tools = [
            self.quick,
            *(make(getattr(self, f"_{name}"), name=name, **options) for name in ("fails", "gives", "nests")),
        ]
        self.runtime: Runtime | None = None

    def _work(self, seconds: float) -> None:
        with self._lock:
            self.live += 1
            self.peak = max(self.peak, self.live)
        self._pause.wait(seconds)
        with self._lock:
            self.live -= 1

    def _quick(self) -> str:
        self._work(0.0005)
        return "quick"

    def _fails(self) -> str:
        self._work(0)
        raise ConnectionError

    def _gives(self):
        self._work(0)
        return self._later()

    async def _later(self) -> str:
        await anyio.sleep(0.5)
        return "gives"

    async def _nests(self) -> str:
        assert self.runtime is not None
        return await self.runtime.call(self.quick)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("timeout", [None, 2.0], ids=["joined", "left"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(map(str, way.values())))
def test_a_cut_loses_no_place_and_no_answer(way, timeout):
    """However late it comes, a cancellation leaves as itself or comes too late; all places are free afterwards."""
    floor = Floor(timeout)
    calls = [ToolCall(tool.name, tool.name) for tool in floor.tools * 2]

    async def scenario() -> list[ToolResult]:
        async with limited(*floor.tools, threads=THREADS, max_running=6) as runtime:
            floor.runtime = runtime
            try:
                return await runtime.invoke_many(calls)
            finally:
                assert timeout is not None or 0 == floor.live
                with anyio.CancelScope(shield=True):
                    await assert_free(runtime)
                assert 0 == floor.live

    def check(cut: Cut[list[ToolResult]]) -> None:
        assert cut.canceled == (cut.value is None)
        for call, result in zip(calls, cut.value or (), strict=cut.value is not None):
            assert call.id == result.call_id
            assert (call.name != "fails" and result.value == call.name.replace("nests", "quick")) or result.error

    assert cancel_sweep(scenario, check=check, **way) > 10
    assert floor.peak <= THREADS
