"""Random programs of calls that call each other, under every kind of limit at once, in virtual time.

What is left in the limiter afterwards is looked up in private places.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import attrs
import pytest
from hypothesis import given, settings, strategies as st

from harbor_async import Catalog, Identity, Limits, Runtime, ToolCall, ToolDescriptor, ToolPolicy, ToolResult, describe
from harbor_async.testing import run_virtual

TOOLS: dict[str, dict[str, Any]] = {
    "plain": {},
    "heavy": {"weight": 3},
    "single": {"max_running": 1},
    "double": {"max_running": 2, "exclusive": "g"},
    "grouped": {"exclusive": "g"},
    "chosen": {"exclusive": lambda program: program["group"]},
    "chosen_single": {"max_running": 1, "exclusive": lambda program: program["group"]},
}
BY_ARGUMENT = {"chosen", "chosen_single"}

Path = tuple[int, ...]


@attrs.frozen
class Start:
    """A call of the program's own: when it comes, from whom, and when it is given up."""

    at: int
    tenant: str | None
    ends: int | None
    is_deadline: bool
    program: dict[str, Any]


def programs() -> Any:
    """What a call does: it sleeps, and calls others, one or several at once."""

    def make(calls: Any) -> Any:
        return st.fixed_dictionaries(
            {
                "tool": st.sampled_from([*TOOLS]),
                "group": st.sampled_from(["g", "h", None]),
                "sleep": st.integers(0, 2),
                "calls": calls,
                "is_parallel": st.booleans(),
            }
        )

    return st.recursive(make(st.just([])), lambda inner: make(st.lists(inner, max_size=3)), max_leaves=6)


STARTS = st.lists(
    st.builds(
        Start,
        at=st.integers(0, 3),
        tenant=st.sampled_from([None, "x", "y"]),
        ends=st.none() | st.integers(0, 6),
        is_deadline=st.booleans(),
        program=programs(),
    ),
    min_size=2,
    max_size=8,
)
LIMITS = st.builds(
    Limits, max_running=st.sampled_from([1, 2, 4, None]), max_running_per_tenant=st.sampled_from([None, 1, 2])
)


class Monitor:
    """Counts what runs, and fails where that is too much."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.running: dict[Path, tuple[str, str | None, str | None]] = {}

    @contextmanager
    def enter(self, path: Path, tool: str, group: str | None, tenant: str | None) -> Iterator[None]:
        assert path not in self.running
        self.running[path] = (tool, group, tenant)
        self.check()
        try:
            yield
        finally:
            del self.running[path]

    def check(self) -> None:
        limits = self.limits
        top = [value for path, value in self.running.items() if len(path) == 1]
        most = limits.max_running
        if most is not None:
            assert sum(min(most, TOOLS[tool].get("weight", 1)) for tool, *_ in top) <= most
        if limits.max_running_per_tenant is not None:
            tenants = Counter(tenant for *_, tenant in top if tenant is not None)
            assert all(count <= limits.max_running_per_tenant for count in tenants.values())
        for number in (0, 1):
            for name in {value[number] for value in self.running.values()} - {None}:
                most = 1 if number else TOOLS[name].get("max_running")
                if most is not None:
                    self.check_share([path for path, value in self.running.items() if value[number] == name], most)

    def check_share(self, paths: list[Path], most: int) -> None:
        """See that no more than ``most`` have it, and that each of them lets one have it at a time from within."""
        nearest = Counter(
            next((path[:size] for size in range(len(path) - 1, 0, -1) if path[:size] in paths), ()) for path in paths
        )
        assert all(count <= (1 if path else most) for path, count in nearest.items())


async def run_program(starts: list[Start], limits: Limits) -> None:
    monitor = Monitor(limits)
    results: dict[Path, ToolResult] = {}

    async def run(program: dict[str, Any]) -> None:
        tool, path = program["tool"], tuple(program["path"])
        with monitor.enter(path, tool, group_of(program), program["tenant"]):
            await anyio.sleep(program["sleep"])
            calls = [
                ToolCall("", inner["tool"], {"program": {**inner, "path": [*path, n], "tenant": program["tenant"]}})
                for n, inner in enumerate(program["calls"])
            ]
            if program["is_parallel"]:
                answers = await runtime.invoke_many(calls)
            else:
                answers = [await runtime.invoke(call.name, call.arguments) for call in calls]
            results.update({(*path, n): answer for n, answer in enumerate(answers)})
            await anyio.sleep(program["sleep"])

    async def start(number: int, given: Start) -> None:
        await anyio.sleep(given.at)
        program = {**given.program, "path": [number], "tenant": given.tenant}
        identity = None if given.tenant is None else Identity(given.tenant, "u", "s")
        timeout = given.ends if given.is_deadline else None
        with anyio.move_on_after(None if given.is_deadline else given.ends):
            results[number,] = await runtime.invoke(
                given.program["tool"], {"program": program}, timeout=timeout, identity=identity
            )

    tools: list[ToolDescriptor[..., Any]] = [
        describe(run, name=name, policy=ToolPolicy(None, 1), **options) for name, options in TOOLS.items()
    ]
    async with Runtime(Catalog(tools), limits=limits) as runtime:
        async with anyio.create_task_group() as group:
            for number, given in enumerate(starts):
                group.start_soon(start, number, given)
        assert {} == monitor.running
        assert (0, 0) == (runtime.statistics().running, runtime.statistics().queued)
        limiter = runtime._host.limiter
        assert (0, 0, {}) == (limiter.running, limiter.queued, limiter._lanes)
        assert ([], {}) == (limiter._ready.nested, dict(limiter._ready.turns))
    check_answers(starts, results)


def group_of(program: dict[str, Any]) -> str | None:
    return program["group"] if program["tool"] in BY_ARGUMENT else TOOLS[program["tool"]].get("exclusive")


def check_answers(starts: list[Start], results: dict[Path, ToolResult]) -> None:
    """See that only those were refused whose callers have something, and that the others have run."""
    for path, result in results.items():
        if result.outcome == "rejected":
            assert "rate_limited" == result.error.category
            assert any(has_slot(starts, path[:size]) for size in range(1, len(path)))
            assert "for ever" in result.error.message
        elif result.outcome != "timed_out":
            assert "succeeded" == result.outcome
        else:
            assert starts[path[0]].is_deadline


def has_slot(starts: list[Start], path: Path) -> bool:
    """Say whether the call at ``path`` has something beside its place."""
    program = starts[path[0]].program
    for number in path[1:]:
        program = program["calls"][number]
    return "max_running" in TOOLS[program["tool"]] or group_of(program) is not None


@pytest.mark.parametrize("backend", [{}, {"backend": "trio"}], ids=["asyncio", "trio"])
@settings(max_examples=60, deadline=None)
@given(STARTS, LIMITS)
def test_every_program_ends_within_every_bound(backend: dict[str, Any], starts: list[Start], limits: Limits) -> None:
    """No bound is passed, no program waits for itself, each call is answered, and nothing is left."""
    run_virtual(run_program, starts, limits, **backend, seed=0)
