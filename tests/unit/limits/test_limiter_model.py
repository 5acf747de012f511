"""The limiter against a simple model that searches where the limiter must not.

It is driven through its private names on purpose: its steps are synchronous, so that every order of them can be tried,
and what is left in it afterwards can be seen.
"""

from typing import Any

import attrs
import pytest
from hypothesis import given, settings, strategies as st

from harbor_async._limiter import Limiter, Ticket
from harbor_async.errors import OverloadedError

PLACES = 4
SLOTS = (("group", "a", 1), ("group", "b", 1), ("tool", "c", 2))


@attrs.frozen
class Step:
    """What happens: a call comes, or one of those that are here leaves."""

    weight: int
    slots: tuple[int, ...]
    tenant: str | None
    leaves: int | None


@attrs.define(eq=False)
class Turn:
    """One call, as the model sees it."""

    weight: int
    slots: tuple[int, ...]
    tenant: str | None
    ticket: Ticket
    is_running: bool = False


def steps(tenants: list[str | None]) -> Any:
    slots = st.sampled_from([(), (), (0,), (0, 2), (1,), (2,), (0, 1, 2)])
    step = st.builds(
        Step,
        weight=st.sampled_from([0, 1, 1, 1, 2, PLACES, PLACES + 3]),
        slots=slots,
        tenant=st.sampled_from(tenants),
        leaves=st.none() | st.integers(0, 12),
    )
    return st.lists(step, min_size=30, max_size=60)


class Model:
    """What the limiter must do, by search."""

    def __init__(self, max_queued: int | None = None) -> None:
        self.limiter = Limiter(PLACES, max_queued)
        self.turns: list[Turn] = []

    def take(self, step: Step) -> None:
        """Do a step in the limiter."""
        if step.leaves is not None and self.turns:
            turn = self.turns.pop(step.leaves % len(self.turns))
            turn.ticket.leave()
            turn.ticket.leave()  # nothing more
        elif step.weight or step.slots:
            slots = tuple([self.limiter.slot(SLOTS[number]) for number in step.slots])
            ticket = self.limiter.join(step.weight, slots, step.tenant)
            self.turns.append(Turn(min(step.weight, PLACES), step.slots, step.tenant, ticket))

    @property
    def running(self) -> list[Turn]:
        return [turn for turn in self.turns if turn.ticket.is_granted]

    @property
    def waiting(self) -> list[Turn]:
        return [turn for turn in self.turns if not turn.ticket.is_granted]

    def check_bounds(self) -> None:
        """See that no more is taken than there is, and that the limiter counts right."""
        taken = sum(turn.weight for turn in self.running)
        assert taken <= PLACES
        assert (taken, len(self.waiting)) == (self.limiter.running, self.limiter.queued)
        for number, (_, _, most) in enumerate(SLOTS):
            assert sum(number in turn.slots for turn in self.running) <= most

    def fits(self, turn: Turn, running: list[Turn]) -> bool:
        return turn.weight <= PLACES - sum(other.weight for other in running)

    def has_room(self, turn: Turn, running: list[Turn]) -> bool:
        return all(sum(number in other.slots for other in running) < SLOTS[number][2] for number in turn.slots)

    def end(self) -> None:
        """Let all go, and see that nothing is left."""
        while self.turns:
            self.turns.pop(0).ticket.leave()
            self.check_bounds()
        limiter = self.limiter
        assert (0, 0) == (limiter.running, limiter.queued)
        assert ({}, []) == (dict(limiter._lanes), [*limiter._slots.items()])
        assert ([], {}) == (limiter._ready.nested, dict(limiter._ready.turns))


@settings(max_examples=120, deadline=None)
@given(steps([None]))
def test_turns_of_one_tenant_come_in_order(program: list[Step]) -> None:
    """Who needs no place comes first, then the oldest whose slots have room; where its places lack, all wait."""
    model = Model()
    running: list[Turn] = []
    for step in program:
        model.take(step)
        running = follow(model, running)
        assert {id(turn) for turn in running} == {id(turn) for turn in model.running}
        model.check_bounds()
    running.clear()
    model.end()


def follow(model: Model, running: list[Turn]) -> list[Turn]:
    """Return who must run now of those that are here, given who ran before."""
    running = [turn for turn in running if turn in model.turns]
    while (turn := next_turn(model, running)) is not None:
        running.append(turn)
    return running


def next_turn(model: Model, running: list[Turn]) -> Turn | None:
    ready = [turn for turn in model.turns if turn not in running and model.has_room(turn, running)]
    turn = next((turn for turn in ready if not turn.weight), None) or next(iter(ready), None)
    return turn if turn is not None and model.fits(turn, running) else None


@settings(max_examples=120, deadline=None)
@given(steps([None, "x", "y", "z"]))
def test_turns_of_many_tenants_keep_every_bound(program: list[Step]) -> None:
    """Nothing is over a bound, nobody waits who could run, and those who need the same come in order."""
    model = Model()
    before: list[Turn] = []
    for step in program:
        before = model.running
        model.take(step)
        model.check_bounds()
        check_waits(model)
        check_order(model, before)
    before.clear()
    model.end()


def check_waits(model: Model) -> None:
    """See that nobody waits who could run: only one that needs more places than are free holds up others."""
    ready = [turn for turn in model.waiting if model.has_room(turn, model.running)]
    assert all(turn.weight for turn in ready)
    assert not ready or not all(model.fits(turn, model.running) for turn in ready)


def check_order(model: Model, before: list[Turn]) -> None:
    """See that of those who need the same the oldest have been let in."""

    def needs(turn: Turn) -> Any:
        return turn.weight, turn.slots, turn.tenant

    for turn in model.running:
        if turn not in before:
            same = [other for other in model.turns if needs(other) == needs(turn)]
            assert all(other.ticket.is_granted for other in same[: same.index(turn)])


@settings(max_examples=40, deadline=None)
@given(steps([None, "x"]), st.integers(0, 3))
def test_no_more_wait_than_may(program: list[Step], most: int) -> None:
    """One that would wait where as many wait as may is sent away, and leaves nothing behind."""
    model = Model(max_queued=most)
    for step in program:
        waiting = len(model.waiting)
        try:
            model.take(step)
        except OverloadedError:
            assert most == waiting
        model.check_bounds()
        assert len(model.waiting) <= most
    model.end()


@pytest.mark.parametrize("slots", [(), (0,), (0, 2)], ids=["place", "group", "group and tool"])
def test_the_last_one_comes_when_all_before_it_have_left(slots: tuple[int, ...]) -> None:
    """Of a thousand that wait for the same all but the last give up, and it has its turn when the first ends."""
    model = Model()
    for _ in range(1_001):
        model.take(Step(PLACES, slots, None, None))
    assert 1_000 == model.limiter.queued
    while len(model.turns) > 2:
        model.turns.pop(1).ticket.leave()
    assert [True, False] == [turn.ticket.is_granted for turn in model.turns]
    model.turns.pop(0).ticket.leave()
    assert [True] == [turn.ticket.is_granted for turn in model.turns]
    model.end()


def test_one_that_loses_its_group_does_not_keep_the_other_from_those_behind() -> None:
    """A heavy call was next for a group; when another group that it needs is taken, the first goes to who waits."""
    model = Model()
    for step in (
        Step(3, (), None, None),
        holder := Step(1, (0,), None, None),
        Step(2, (0, 1), None, None),
        Step(1, (0,), None, None),
    ):
        model.take(step)
    assert holder.slots == model.turns[1].slots
    model.take(Step(0, (), None, leaves=1))  # who has the group leaves: the heavy call is next, and needs a place more
    assert [True, False, False] == [turn.ticket.is_granted for turn in model.turns]
    model.take(Step(0, (1,), None, None))
    assert [True, False, True, True] == [turn.ticket.is_granted for turn in model.turns]
    model.end()
