"""A call leaves nothing behind: no object that its answer does not need, and no cycle that waits for the collector."""

import gc
import weakref

import anyio
import pytest
from stamina.instrumentation import set_on_retry_hooks

from harbor_async import Backoff, Catalog, Limits, Runtime, ToolCall, ToolPolicy, describe
from harbor_async.testing import run_virtual

each_loop = pytest.mark.parametrize("backend", ["asyncio", "trio"])
POLICY = ToolPolicy(1.0, 3, Backoff(initial=0.25, jitter=0))


class TracedError(ConnectionError):
    """A weakly referenced error that carries something heavy."""

    def __init__(self, heavy):
        super().__init__("reset")
        self.heavy = heavy


class Heavy:
    pass


class Tracer:
    """Makes errors and arguments, and knows which still live."""

    def __init__(self):
        self.alive: list[weakref.ref] = []
        self.fails = 0

    def track(self, value):
        self.alive.append(weakref.ref(value))
        return value

    def left(self):
        return [type(ref()).__name__ for ref in self.alive if ref() is not None]

    async def run(self, fail: int = 0, wait: float = 0.0) -> str:
        heavy = self.track(Heavy())
        await anyio.sleep(wait)
        self.fails += 1
        if self.fails <= fail:
            raise self.track(TracedError(heavy))
        self.fails = 0
        return "value"

    async def hang(self) -> None:
        try:
            await anyio.sleep(9)
        except anyio.get_cancelled_exc_class() as exc:
            # Made here, for the frames in a traceback of trio's Cancelled are trio's to keep.
            raise self.track(TracedError(self.track(Heavy()))) from exc


SCENES = {
    "success": ("run", {}, True),
    "retried to success": ("run", {"fail": 2}, True),
    "failure": ("run", {"fail": 9}, False),
    "timeout": ("hang", {}, False),
}


@each_loop
@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("way", ["invoke", "invoke_many", "in turn", "stream", "call"])
def test_nothing_is_kept_but_what_the_answer_holds(backend, scene, way):
    """Without the collector, every argument and error of an ended call is gone, but for a failure's cause (R020)."""
    name, arguments, succeeds = SCENES[scene]

    async def main():
        tracer = Tracer()
        tools = {"run": describe(tracer.run, policy=POLICY), "hang": describe(tracer.hang, policy=POLICY)}
        limits = Limits(max_running=1 if way == "in turn" else None)
        async with Runtime(Catalog(tools.values()), limits=limits) as runtime:
            if way == "call":
                try:
                    await runtime.call(tools[name], **arguments)
                    assert succeeds
                except (ConnectionError, TimeoutError):
                    assert not succeeds
            else:
                call = ToolCall("", name, arguments)
                if way == "invoke":
                    results = [await runtime.invoke(name, arguments)]
                elif way == "invoke_many":
                    results = await runtime.invoke_many([call])
                elif way == "in turn":  # the second waits for the first
                    results = (await runtime.invoke_many([call, call]))[1:]
                else:
                    async with runtime.stream([call]) as stream:
                        results = [result async for result in stream]
                assert [succeeds] == [result.error is None for result in results]
                kept = ["Heavy", "TracedError"] if not succeeds else []
                assert kept == sorted(tracer.left())
                del results
            return tracer

    gc.collect()
    gc.disable()
    try:
        tracer = run_virtual(main, backend=backend)
        assert [] == tracer.left()
    finally:
        gc.enable()


@pytest.mark.timeout(120)
@each_loop
def test_many_failing_calls_leave_no_growth(backend):
    """After 10,000 calls, failures, retries and timeouts among them, as many objects live as after 1,000 (R020)."""

    async def main():
        tracer = Tracer()
        catalog = Catalog([describe(tracer.run, policy=POLICY), describe(tracer.hang, policy=POLICY)])
        calls = [
            *[ToolCall(str(n), "run", {"fail": 9 * (n % 10 == 0), "wait": 0.125}) for n in range(95)],
            *[ToolCall(str(n), "hang") for n in range(5)],
        ]
        counts = []
        async with Runtime(catalog, limits=Limits(max_running=20)) as runtime:
            for _ in range(10):
                for _ in range(10):
                    await runtime.invoke_many(calls)
                tracer.alive.clear()
                gc.collect()
                counts.append(len(gc.get_objects()))
        return counts

    set_on_retry_hooks([])  # the default logs each retry, and pytest keeps what is logged
    try:
        counts = run_virtual(main, backend=backend)
    finally:
        set_on_retry_hooks(None)
    assert counts[-1] - counts[0] < 100, counts
