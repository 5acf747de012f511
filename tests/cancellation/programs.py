"""Random tools: programs of waits, scopes, groups and errors, and what can be seen of running them.

Times lie on grids that never meet (whole seconds for sleeps, other binary fractions for each kind of scope), so that no
two timers are due at once: which of two equal timers runs first is nobody's promise.
"""

import itertools
from collections.abc import Callable
from typing import Any, TypeAlias

import anyio
import attrs
from anyio.lowlevel import checkpoint
from hypothesis import strategies as st

from harbor_async import Backoff, Catalog, Runtime, ToolCall, ToolPolicy, describe
from harbor_async.testing import block

Step: TypeAlias = "tuple[Any, ...]"
Program: TypeAlias = "list[Step]"
ERRORS: dict[str, Callable[[], BaseException]] = {
    "value": lambda: ValueError("value"),
    "connection": lambda: ConnectionError("connection"),
    "timeout": lambda: TimeoutError("own"),
    "group": lambda: ExceptionGroup("group", [ConnectionError("leaf")]),
    "exit": lambda: SystemExit("exit"),
    "generator": GeneratorExit,
}

sleeps = st.integers(1, 4).map(float)
scopes = st.integers(0, 4).map(lambda n: n + 0.125)
limits = st.integers(0, 4).map(lambda n: n + 0.25)
fails = st.integers(0, 4).map(lambda n: n + 0.0625)


def _steps(programs: st.SearchStrategy[Program]) -> st.SearchStrategy[Step]:
    return st.one_of(
        st.tuples(st.just("scope"), st.none() | scopes, st.booleans(), programs),
        st.tuples(st.sampled_from(["fail_after", "move_on_after"]), fails, programs),
        st.tuples(st.just("group"), st.lists(programs, min_size=1, max_size=2), programs),
        st.tuples(st.just("swallow"), programs),
        st.tuples(st.just("convert"), programs),
        st.tuples(st.just("finally"), programs, sleeps),
    )


_simple: st.SearchStrategy[Step] = st.one_of(
    st.tuples(st.just("sleep"), sleeps),
    st.tuples(st.just("sleep"), sleeps),
    st.just(("checkpoint",)),
    st.tuples(st.just("cancel"), st.integers(0, 2)),
    st.tuples(st.just("move deadline"), st.integers(0, 2), fails),
    st.just(("deadline",)),
    st.tuples(st.just("block"), sleeps),
    st.tuples(st.just("raise"), st.sampled_from(sorted(ERRORS))),
)
_programs: st.SearchStrategy[Program] = st.recursive(
    st.lists(_simple, max_size=3),
    lambda inner: st.lists(_simple | _steps(inner), min_size=1, max_size=4),
    max_leaves=12,
)


@attrs.frozen
class Plan:
    """One tool, and what is done to its call.

    Attributes:
        program: What the tool does.
        timeout: Of an attempt.
        deadline: Of the call.
        effect: Whether it declares an effect.
        outer: How and when the caller is canceled: by ``"deadline"``, ``"scope"`` or ``"native"``.
        way: How the call is asked for.
    """

    program: Program
    timeout: float | None
    deadline: float | None
    effect: bool
    outer: tuple[str, float] | None
    way: str


def plans(*kinds: str) -> st.SearchStrategy[Plan]:
    """Make plans whose callers are canceled in one of ``kinds``."""
    outer = st.tuples(st.sampled_from(kinds), st.integers(0, 7).map(lambda n: n + 0.5))
    return st.builds(
        Plan,
        _programs,
        st.none() | limits | limits,
        st.none() | st.integers(1, 8).map(lambda n: n + 0.03125),
        st.booleans(),
        st.none() | outer,
        st.sampled_from(["invoke", "invoke_many"]),
    )


class Runner:
    """Runs programs and notes what they see; the notes of each task stand by themselves."""

    def __init__(self) -> None:
        self.notes: dict[str, list[Any]] = {}
        self.has_waited = False
        self._attempt = itertools.count(1)

    async def tool(self) -> str:
        self._path = f"attempt {next(self._attempt)}"
        self.has_waited = False
        return await self._body(self._path)

    async def _body(self, path: str) -> str:
        await self.run(self.program, path, [])
        self.note(path, "returned")
        return "value"

    program: Program = []

    def note(self, path: str, *what: Any) -> None:
        self.notes.setdefault(path, []).append((anyio.current_time(), *what))

    async def wait(self, path: str, seconds: float | None) -> None:
        try:
            await (checkpoint() if seconds is None else anyio.sleep(seconds))
        except BaseException as exc:
            self.note(path, "woken by", kind(exc))
            raise
        finally:
            self.has_waited = True
        self.note(path, "woke")

    async def run(self, program: Program, path: str, open_scopes: list[anyio.CancelScope]) -> None:
        for number, step in enumerate(program):
            await getattr(self, "do_" + step[0].replace(" ", "_"))(f"{path}.{number}", open_scopes, *step[1:])

    async def do_sleep(self, path, open_scopes, seconds):
        await self.wait(path, seconds)

    async def do_checkpoint(self, path, open_scopes):
        await self.wait(path, None)

    async def do_block(self, path, open_scopes, seconds):
        if self.has_waited:  # see test_fast_path for a loop that is blocked before the first wait
            block(seconds)

    async def do_deadline(self, path, open_scopes):
        if self.has_waited:  # see test_fast_path for a deadline that is read before the first wait
            self.note(path, "deadline", anyio.current_effective_deadline())

    async def do_cancel(self, path, open_scopes, depth):
        if depth < len(open_scopes):
            open_scopes[-1 - depth].cancel()

    async def do_move_deadline(self, path, open_scopes, depth, seconds):
        if depth < len(open_scopes):
            open_scopes[-1 - depth].deadline = anyio.current_time() + seconds

    async def do_raise(self, path, open_scopes, name):
        # An interrupt in a task that the tool itself has spawned ends asyncio's loop, past everybody.
        error = ERRORS["value" if name == "exit" and "/" in path else name]()
        raise error

    async def do_scope(self, path, open_scopes, seconds, shield, body):
        deadline = float("inf") if seconds is None else anyio.current_time() + seconds
        with anyio.CancelScope(deadline=deadline, shield=shield) as scope:
            await self.run(body, path, [*open_scopes, scope])
        self.note(path, "left", scope.cancel_called, scope.cancelled_caught)

    async def do_move_on_after(self, path, open_scopes, seconds, body):
        with anyio.move_on_after(seconds) as scope:
            await self.run(body, path, [*open_scopes, scope])
        self.note(path, "left", scope.cancel_called, scope.cancelled_caught)

    async def do_fail_after(self, path, open_scopes, seconds, body):
        with anyio.fail_after(seconds) as scope:
            await self.run(body, path, [*open_scopes, scope])
        self.note(path, "left", scope.cancel_called, scope.cancelled_caught)

    async def do_group(self, path, open_scopes, children, body):
        async with anyio.create_task_group() as group:
            for number, child in enumerate(children):
                group.start_soon(self.run, child, f"{path}/{number}", [group.cancel_scope])
            await self.run(body, path, [*open_scopes, group.cancel_scope])
        self.has_waited = True
        self.note(path, "closed")

    async def do_swallow(self, path, open_scopes, body):
        try:
            await self.run(body, path, open_scopes)
        except (Exception, anyio.get_cancelled_exc_class()) as exc:  # noqa: BLE001 - a tool that swallows
            self.note(path, "swallowed", kind(exc))

    async def do_convert(self, path, open_scopes, body):
        try:
            await self.run(body, path, open_scopes)
        except (Exception, anyio.get_cancelled_exc_class()) as exc:
            raise ConnectionError("converted") from exc

    async def do_finally(self, path, open_scopes, body, seconds):
        try:
            await self.run(body, path, open_scopes)
        finally:
            with anyio.CancelScope(shield=True):
                await self.wait(path, seconds)


def kind(error: BaseException | None) -> Any:
    """Return what an exception is; of a group, what its leaves are."""
    if isinstance(error, BaseExceptionGroup):
        return sorted(map(repr, map(kind, error.exceptions)))
    return "canceled" if isinstance(error, anyio.get_cancelled_exc_class()) else type(error).__name__


async def observe(plan: Plan, *, steps_first: bool | None) -> dict[str, Any]:
    """Run a plan, and return all that can be seen of it.

    Args:
        plan: What is run.
        steps_first: Whether the function is stepped to its first wait before it gets its scope. Not public, for it must
            make no difference; None leaves it as it is.
    """
    runner = Runner()
    runner.program = plan.program
    policy = ToolPolicy(plan.timeout, 2, Backoff(initial=0.015625, jitter=0))
    options = {"side_effect": "write"} if plan.effect else {}
    runtime = Runtime(Catalog([describe(runner.tool, name="tool", policy=policy, **options)]))
    seen: dict[str, Any] = {}

    async def ask() -> None:
        async with runtime:
            if steps_first is not None:
                runtime._host.backend.steps_first = steps_first
            try:
                if plan.way == "invoke":
                    result = await runtime.invoke("tool", timeout=plan.deadline)
                else:
                    (result,) = await runtime.invoke_many([ToolCall("", "tool")], timeout=plan.deadline)
                seen["result"] = repr(result)
                seen["cause"] = kind(result.error and result.error.cause)
            except BaseException as exc:
                seen["left"] = kind(exc)
                if not isinstance(exc, SystemExit):
                    raise
            finally:
                seen["end"] = anyio.current_time()

    await caller(plan.outer, ask, seen)
    seen["notes"] = runner.notes
    return seen


async def caller(outer: tuple[str, float] | None, ask: Callable[[], Any], seen: dict[str, Any]) -> None:
    """Call ``ask``, canceled as ``outer`` says."""
    how, at = outer or ("never", 0.0)
    if how == "native":
        import asyncio

        task = asyncio.create_task(ask())
        timer = asyncio.get_running_loop().call_at(at, task.cancel)
        await asyncio.wait([task])
        timer.cancel()
        seen["caller"] = task.cancelled() or kind(task.exception())
        return
    with anyio.CancelScope() as scope:
        if how == "deadline":
            scope.deadline = at
        async with anyio.create_task_group() as group:

            async def cut() -> None:
                await anyio.sleep(at)
                scope.cancel()

            if how == "scope":
                group.start_soon(cut)
            await ask()
            group.cancel_scope.cancel()
    seen["caller"] = scope.cancelled_caught
