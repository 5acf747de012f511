"""Cancel sweeps, on asyncio (by scope and natively) and trio."""

import asyncio
import sys

import anyio
import pytest
from anyio.lowlevel import checkpoint

from harbor_async.testing import cancel_sweep

WAYS = [
    {"backend": "asyncio"},
    {"backend": "asyncio", "native": True},
    {"backend": "asyncio", "debug": True},
    {"backend": "trio"},
]
if sys.version_info >= (3, 12):
    WAYS += [{"backend": "asyncio", "eager": True}, {"backend": "asyncio", "eager": True, "native": True}]
way = pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(str(value) for value in way.values()))
at = pytest.mark.parametrize("at", ["step", "turn"])


@way
@at
def test_each_checkpoint_is_a_cut(way, at):
    """A line of n checkpoints has n + 1 cuts: before its start and at each; the last run goes through."""
    passed = []

    async def scenario():
        passed.append(0)
        for _ in range(5):
            await checkpoint()
            passed[-1] += 1
        return "done"

    cuts = []
    assert 6 == cancel_sweep(scenario, at=at, check=cuts.append, **way)
    assert [0, 0, 1, 2, 3, 4, 5] == passed
    assert [(index, True, True, None) for index in range(6)] == [
        (cut.index, cut.happened, cut.canceled, cut.value) for cut in cuts[:-1]
    ]
    assert (6, False, False, "done") == (cuts[-1].index, cuts[-1].happened, cuts[-1].canceled, cuts[-1].value)


@way
@at
def test_every_wait_of_every_task_is_cut(way, at):
    """A sweep over parallel sleeps cuts in each of them, before it and after it, and takes no real time."""
    seen = set()

    async def child(delay, state):
        await anyio.sleep(delay)
        state.append(delay)

    async def scenario():
        state = []
        try:
            async with anyio.create_task_group() as group:
                for delay in (1000.0, 2000.0, 3000.0):
                    group.start_soon(child, delay, state)
        finally:
            seen.add(tuple(state))

    cuts = cancel_sweep(scenario, at=at, **way)
    assert {(), (1000.0,), (1000.0, 2000.0), (1000.0, 2000.0, 3000.0)} == seen
    assert cuts >= 5


@way
@at
def test_a_cut_moves_no_time(way, at):
    """A sleep is cut before its timer (run 1 by turns), at the timer and at the wake-up, each at its own time."""
    times = []

    async def scenario():
        try:
            await anyio.sleep(1000.0)
        finally:
            times.append(anyio.current_time())

    cancel_sweep(scenario, at=at, **way)
    # By turns: the idle turn at 0, the woken one at 1000. By steps: asyncio has one for the timer, trio has not.
    zeros, rest = (2, 2) if at == "turn" else (1, 3) if way["backend"] == "asyncio" else (1, 2)
    assert [0.0] * zeros + [1000.0] * rest == times


@way
@at
def test_a_slot_that_one_cut_loses_is_found(way, at):
    """A slot that is lost only by a cancellation between two given lines is found, and a note tells the cut."""

    async def scenario():
        slots = 1
        try:
            await checkpoint()
            slots -= 1
            await checkpoint()  # a cut here loses it
            try:
                await checkpoint()
            finally:
                slots += 1
        finally:
            assert 1 == slots

    with pytest.raises(AssertionError) as info:
        cancel_sweep(scenario, at=at, **way)
    assert ["cut 2"] == [note.partition(": ")[2].partition(",")[0] for note in info.value.__notes__]


@way
def test_a_swallowed_cancellation_shows(way):
    """A scenario that returns in spite of its cancellation is told apart from one that was canceled."""

    async def scenario():
        try:
            await checkpoint()
        except anyio.get_cancelled_exc_class():
            return "swallowed"
        return "done"

    cuts = []
    cancel_sweep(scenario, check=cuts.append, **way)
    assert [(False, "swallowed"), (False, "swallowed"), (False, "done")] == [(cut.canceled, cut.value) for cut in cuts]


@pytest.mark.parametrize("native", [False, True])
def test_a_task_left_behind_is_found(native):
    """A task that outlives the scenario fails the sweep."""
    kept = []

    async def scenario():
        kept.append(asyncio.create_task(asyncio.sleep(1), name="the stray"))
        await checkpoint()

    with pytest.raises(AssertionError, match="the stray"):
        cancel_sweep(scenario, native=native)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_sweep_on_trio_repeats(seed):
    """With one seed a sweep over racing tasks does the same twice."""

    def sweep():
        log = []

        async def child(number):
            for _ in range(3):
                await checkpoint()
                log.append(number)

        async def scenario():
            log.append("begin")
            async with anyio.create_task_group() as group:
                for number in range(4):
                    group.start_soon(child, number)

        return cancel_sweep(scenario, backend="trio", seed=seed), log

    assert sweep() == sweep()


@way
def test_an_endless_scenario_is_given_up(way):
    """A scenario longer than ``limit`` ends the sweep with an error."""

    async def scenario():
        while True:
            await checkpoint()

    with pytest.raises(RuntimeError, match="limit="):
        cancel_sweep(scenario, limit=20, **way)


@pytest.mark.parametrize("options", [{"at": "tick"}, {"backend": "trio", "native": True}, {"backend": "curio"}])
def test_nonsense_is_refused(options):
    """Unknown words, and native cancellation where there is none, get a clear error."""
    with pytest.raises(ValueError, match=r"expected|alone"):
        cancel_sweep(checkpoint, **options)
