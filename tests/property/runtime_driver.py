"""A runtime in a loop of its own that stands still between two commands.

The loop's thread waits for a command while it holds the loop: nothing else runs there meanwhile, and no time passes.
After each command everything that can run has run.
"""

import queue
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from harbor_async import (
    Backoff,
    Catalog,
    Identity,
    Join,
    Limits,
    Runtime,
    ToolCall,
    ToolDescriptor,
    ToolPolicy,
    describe,
)
from harbor_async.testing import run_virtual, wait_all_tasks_blocked
from tests.property.runtime_words import ATTEMPTS, KINDS, TIMEOUT, WAITS, Kind

WAIT = Backoff(initial=WAITS[0], factor=WAITS[1] / WAITS[0], jitter=0)
ERRORS = {"value": ValueError, "lost": ConnectionError, "refused": ConnectionRefusedError}


class Client:
    """Whoever has opened a batch or a stream, in a task of its own.

    Attributes:
        opened: The batch or the stream.
        handles: Of the calls of a batch.
        heard: What those who wait for the handles have got, by the call's id.
        got: What the reader of a stream has got.
        end: How the block was left: ``"closed"``, ``"canceled"`` or, after the last result, ``"ended"``.
    """

    def __init__(self) -> None:
        self.opened: Any = None
        self.handles: list[Any] = []
        self.heard: dict[str, Any] = {}
        self.got: list[Any] = []
        self.end: str | None = None
        self.scope = anyio.CancelScope()
        self.steps = anyio.Semaphore(0)
        self.is_leaving = False

    def __repr__(self) -> str:
        return f"client with {[call.call.id for call in self.handles]}, {len(self.got)} read"

    async def run(self, opened: Any, step: Callable[[], Awaitable[bool]]) -> None:
        """Stay in the block of ``opened``, and do ``step`` each time that it is asked for, until that says no."""
        end = "closed"
        with self.scope:
            async with opened as self.opened:
                while not self.is_leaving:
                    await self.steps.acquire()
                    if not self.is_leaving and not await step():
                        end = "ended"
                        break
        self.end = "canceled" if self.scope.cancelled_caught else end

    async def pull(self) -> bool:
        """Read the next result of a stream; False when there is none."""
        try:
            self.got.append(await anext(self.opened))
        except StopAsyncIteration:
            return False
        return True

    async def stay(self) -> bool:
        raise AssertionError("a batch has no steps")


class Driver:
    """Runs a runtime in a thread of its own, in virtual time.

    Attributes:
        runtime: The runtime.
        gates: Where the calls wait that wait at a gate, by id.
        seen: When each call began, the first first.
        ended: How often each function has ended that has begun.
    """

    runtime: Runtime

    def __init__(self, backend: str, limits: Limits) -> None:
        self.gates: dict[str, tuple[anyio.Event, list[str]]] = {}
        self.seen: dict[str, float] = {}
        self.live: set[str] = set()
        self._limits = limits
        self._commands: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, args=[backend])
        self._thread.start()
        self._wait()

    def do(self, command: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        """Run ``command`` in the loop, and all that follows from it; return what it returned."""
        self._commands.put((command, args))
        return self._wait()

    def stop(self) -> None:
        """End the loop: nothing may be left in it but clients."""
        self._commands.put(None)
        self._thread.join()
        self._wait()

    def _wait(self) -> Any:
        answer, error = self._answers.get(timeout=15)
        if error is not None:
            raise error
        return answer

    def _run(self, backend: Any) -> None:
        try:
            run_virtual(self._serve, backend=backend, seed=0)
        except BaseException as exc:  # noqa: BLE001 - raised in the thread of the test
            self._answers.put((None, exc))
        else:
            self._answers.put((None, None))

    async def _serve(self) -> None:
        tools = [_describe(kind, getattr(self, f"_{kind.body}")) for kind in KINDS.values()]
        async with (
            Runtime(Catalog(tools), limits=self._limits) as self.runtime,
            anyio.create_task_group() as self._group,
        ):
            self._answers.put((None, None))
            while (given := self._commands.get()) is not None:
                command, args = given
                answer = await command(*args)
                await wait_all_tasks_blocked()
                self._answers.put((answer, None))
            self._group.cancel_scope.cancel()

    # --- the tools ----------------------------------------------------------------------------------------------

    def _begin(self, id: str) -> None:
        self.seen.setdefault(id, anyio.current_time())
        assert id not in self.live
        self.live.add(id)

    async def _instant(self, id: str, group: str | None = None, inner: list[str | None] | None = None) -> str:
        self._begin(id)
        self.live.remove(id)
        return id

    async def _nests(self, id: str, group: str | None = None, inner: list[str | None] | None = None) -> list[Any]:
        assert inner is not None
        self._begin(id)
        try:
            result = await self.runtime.invoke(str(inner[0]), {"id": f"{id}.", "group": inner[1]})
        finally:
            self.live.remove(id)
        return [result.outcome.value, result.error.category.value if result.error else result.value, result.attempts]

    async def _gate(self, id: str, group: str | None = None, inner: list[str | None] | None = None) -> str:
        self._begin(id)
        event, how = self.gates[id] = anyio.Event(), []
        try:
            await event.wait()
        finally:
            del self.gates[id]
            self.live.remove(id)
        if how[0] in ERRORS:
            raise ERRORS[how[0]]
        return id

    # --- commands -----------------------------------------------------------------------------------------------

    async def open_batch(self, timeout: float | None, tenant: str | None, successes: int | None) -> Client:
        client = Client()
        join = Join.ALL if successes is None else Join.at_least(successes)
        batch = self.runtime.batch(timeout=timeout, identity=_identity(tenant), join=join)
        self._group.start_soon(client.run, batch, client.stay)
        return client

    async def open_stream(self, calls: list[ToolCall], timeout: float | None, tenant: str | None) -> Client:
        client = Client()
        stream = self.runtime.stream(calls, timeout=timeout, identity=_identity(tenant))
        self._group.start_soon(client.run, stream, client.pull)
        return client

    async def start(self, client: Client, call: ToolCall) -> None:
        async def listen() -> None:
            client.heard[call.id] = await handle.result()

        handle = client.opened.start(call)
        client.handles.append(handle)
        self._group.start_soon(listen)

    async def release(self, id: str, how: str) -> None:
        event, told = self.gates[id]
        told.append(how)
        event.set()

    async def cancel(self, canceled: Any) -> None:
        canceled.cancel()

    async def pull(self, client: Client) -> None:
        client.steps.release()

    async def leave(self, client: Client) -> None:
        client.is_leaving = True
        client.steps.release()

    async def hang_up(self, client: Client) -> None:
        client.scope.cancel()

    async def pass_time(self, seconds: float) -> None:
        await anyio.sleep(seconds)


def _identity(tenant: str | None) -> Identity | None:
    return None if tenant is None else Identity(tenant, "user", "session")


def _describe(kind: Kind, body: Callable[..., Awaitable[Any]]) -> ToolDescriptor[..., Any]:
    async def stubborn(id: str, group: str | None = None, inner: list[str | None] | None = None) -> Any:
        try:
            return await body(id, group, inner)
        except anyio.get_cancelled_exc_class():
            return id

    async def shielded(id: str, group: str | None = None, inner: list[str | None] | None = None) -> Any:
        with anyio.CancelScope(shield=True):
            return await body(id, group, inner)

    nests = kind.body == "nests"
    options: dict[str, Any] = {
        "policy": ToolPolicy(timeout=None, attempts=1) if nests else ToolPolicy(TIMEOUT, ATTEMPTS, WAIT),
        "weight": kind.weight,
        "max_running": kind.most,
    }
    if kind.is_exclusive:
        options["exclusive"] = lambda id, group=None, inner=None: group
    if kind.is_effect:
        options["side_effect"] = "write"
    function = {"ends": body, "returns": stubborn, "shielded": shielded}[kind.when_cut]
    return describe(function, name=kind.name, **options)
