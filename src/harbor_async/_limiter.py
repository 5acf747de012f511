"""Places to run in, and the turns of those that wait for one.

A call takes everything that it needs at once, or waits and holds nothing: so no two waiting calls can block each other.
Those that need the same things wait in one lane, in the order in which they came. A lane whose slot is full is parked
at that slot; the others are ready, and wait for a place. So nothing is searched when a place comes free. Both what is
parked and what is ready is taken in turn for each tenant.
"""

import math
from collections import OrderedDict
from collections.abc import Callable
from heapq import heappop, heappush, heapreplace
from itertools import count
from typing import TypeAlias

import anyio

from .errors import OverloadedError

Key: TypeAlias = tuple[str, str, int]
"""Of what a slot is: ``"tool"``, ``"tenant"`` or ``"group"``, the name, and how many may have it."""


class Slot:
    """Something beside a place that calls share: the limit of a tool or of a tenant, or an exclusive group.

    Attributes:
        key: What it is of; no two in a limiter that are in use have the same.
        room: How many more calls may have it.
        is_inner: Whether it belongs to a turn, and not to the limiter.
        users: Turns that have it or wait for it.
        parked: The lanes that wait for it; None before the first does.
    """

    __slots__ = ("is_inner", "key", "parked", "room", "users")

    def __init__(self, key: Key, room: int, *, is_inner: bool = False) -> None:
        """Open it."""
        self.key: Key = key
        self.room: int = room
        self.is_inner: bool = is_inner
        self.users: int = 0
        self.parked: Queue | None = None


class Ticket:
    """A turn.

    Attributes:
        weight: How many places it takes.
        slots: What it takes beside them.
        is_granted: Whether everything was handed over.
        on_grant: Called when it is, once nothing else is about to be; None: nobody waits.
    """

    __slots__ = ("_inner", "_limiter", "is_granted", "lane", "on_grant", "order", "slots", "weight")

    def __init__(self, limiter: "Limiter", weight: int, slots: tuple[Slot, ...]) -> None:
        """Make a turn that has not come."""
        self._limiter: Limiter | None = limiter
        self.weight: int = weight
        self.slots: tuple[Slot, ...] = slots
        self.is_granted: bool = False
        self.on_grant: Callable[[], object] | None = None
        self._inner: dict[Key, Slot] | None = None

    def is_held_in(self, limiter: "Limiter") -> bool:
        """Say whether it has come in ``limiter``, and was not given back."""
        return self._limiter is limiter and self.is_granted

    def inner(self, key: Key) -> Slot:
        """Return the slot in place of one that this turn has, for the calls that are made from within.

        They would wait for their own caller otherwise.
        """
        if self._inner is None:
            self._inner = {}
        return self._inner.setdefault(key, Slot(key, 1, is_inner=True))

    async def wait(self, _: object) -> None:
        """Wait until everything was handed over."""
        if not self.is_granted:
            called = anyio.Event()
            self.on_grant = called.set
            await called.wait()

    def leave(self) -> None:
        """Give everything back or leave the queue; nothing when that was done before."""
        limiter, self._limiter = self._limiter, None
        if limiter is not None:
            limiter.dismiss(self)

    # Set where it waits:
    lane: "Lane"
    order: int


class Lane:
    """Turns that wait for the same things.

    Attributes:
        needs: How many places, what beside them, and the tenant with whom turns are shared.
        tickets: The turns, the first first. Any of them can leave at any time.
    """

    __slots__ = ("needs", "tickets")

    def __init__(self, needs: "Needs") -> None:
        """Open an empty lane."""
        self.needs: Needs = needs
        self.tickets: OrderedDict[Ticket, None] = OrderedDict()

    @property
    def order(self) -> int:
        """When its first turn came."""
        return next(iter(self.tickets)).order


Needs: TypeAlias = tuple[int, tuple[Slot, ...], str | None]
Heap: TypeAlias = list[tuple[int, Lane]]
"""Lanes by the order of their first turn, which is unique, when they were put in: it may have left since."""


class Queue:
    """Lanes that wait for one thing.

    Attributes:
        nested: Those of calls that need no place, which come first.
        turns: The others by tenant, whose turn is next first.
    """

    __slots__ = ("nested", "turns")

    def __init__(self) -> None:
        """Open it."""
        self.nested: Heap = []
        self.turns: OrderedDict[str | None, Heap] = OrderedDict()

    def put(self, lane: Lane) -> bool:
        """Put ``lane`` in; say whether it is the next of its tenant."""
        weight, _, tenant = lane.needs
        heap = self.turns.setdefault(tenant, []) if weight else self.nested
        heappush(heap, (lane.order, lane))
        return heap[0][1] is lane


class Limiter:
    """At most ``max_running`` places, given in the order in which calls come, and in turn to each tenant.

    Where a call needs more places than are free, those behind it wait, too, or it could wait for ever. One that waits
    for a slot lets others pass.

    Attributes:
        running: Places that are taken.
        queued: Turns that are waited for.
    """

    def __init__(self, max_running: int | None, max_queued: int | None = None) -> None:
        """Open all places. Made inside the event loop that uses it."""
        self._max_running = math.inf if max_running is None else max_running
        self._max_queued = math.inf if max_queued is None else max_queued
        self.running: int = 0
        self.queued: int = 0
        self._order = count()
        self._slots: dict[Key, Slot] = {}
        self._lanes: dict[Needs, Lane] = {}
        self._ready = Queue()

    def slot(self, key: Key) -> Slot:
        """Return the slot of ``key``: a new one, if nobody has it or waits for it."""
        return self._slots.get(key) or Slot(key, key[2])

    def is_free(self, weight: int = 1, slots: tuple[Slot, ...] = ()) -> bool:
        """Say whether a turn would come at once."""
        if weight and (self._ready.turns or self.running + weight > self._max_running):
            return False
        return not slots or _full(slots) is None

    def join(
        self, weight: int = 1, slots: tuple[Slot, ...] = (), tenant: str | None = None, *, is_bounded: bool = True
    ) -> Ticket:
        """Take everything, if it is free and nobody waits for it, or a turn in the queue.

        Args:
            weight: Places; more than there are means all. 0 for a call that is made from within one that has some.
            slots: What is needed beside them, each of this limiter or of a ticket of it.
            tenant: With whom turns are shared.
            is_bounded: Whether ``max_queued`` holds.

        Raises:
            OverloadedError: ``max_queued`` calls wait already.
        """
        if weight > 1:
            weight = int(min(weight, self._max_running))
        ticket = Ticket(self, weight, slots)
        if self.is_free(weight, slots):
            self.running += weight
            for slot in slots:
                if not slot.users and not slot.is_inner:
                    self._slots[slot.key] = slot
                slot.users += 1
                slot.room -= 1
            ticket.is_granted = True
            if self._ready.turns:  # one that was ready may have lost its slot, and no longer holds up the others
                self._call_next()
            return ticket
        if is_bounded and self.queued >= self._max_queued:
            msg = f"{self.queued} calls wait for their turn, which is the limit (max_queued); try again later"
            raise OverloadedError(msg)
        self.queued += 1
        for slot in slots:
            if not slot.users and not slot.is_inner:
                self._slots[slot.key] = slot
            slot.users += 1
        needs = (weight, slots, tenant)
        lane = self._lanes.get(needs)
        is_new = lane is None
        if lane is None:
            lane = self._lanes[needs] = Lane(needs)
        ticket.lane = lane
        ticket.order = next(self._order)
        lane.tickets[ticket] = None
        if is_new:
            self._place(lane)
        return ticket

    def dismiss(self, ticket: Ticket) -> None:
        """Take back what ``ticket`` has, for those that wait, or take it out of the queue."""
        if ticket.is_granted:
            self.running -= ticket.weight
            for slot in ticket.slots:
                slot.room += 1
        else:
            self.queued -= 1
            del ticket.lane.tickets[ticket]
        if self._lanes:
            for slot in ticket.slots:
                self._wake(slot)
            self._call_next()
        for slot in ticket.slots:
            slot.users -= 1
            if not slot.users and not slot.is_inner:
                del self._slots[slot.key]

    def _take(self, ticket: Ticket) -> None:
        self.running += ticket.weight
        for slot in ticket.slots:
            slot.room -= 1
        ticket.is_granted = True

    def _call_next(self) -> None:
        """Hand over what is free."""
        granted: list[Ticket] = []
        while (heap := self._next()) is not None:
            lane = heappop(heap)[1]
            self.queued -= 1
            ticket = lane.tickets.popitem(last=False)[0]
            self._take(ticket)
            granted.append(ticket)
            if lane.tickets:
                self._place(lane)
            else:
                del self._lanes[lane.needs]
        for ticket in granted:  # not before: who is called may come back here
            if ticket.on_grant is not None:
                ticket.on_grant()

    def _next(self) -> Heap | None:
        """Return the heap whose first lane is next and finds all free: first of calls that need no place."""
        ready = self._ready
        while self._runnable(ready.nested) is None:
            turn = next(iter(ready.turns.items()), None)
            if turn is None:
                return None
            tenant, heap = turn
            lane = self._runnable(heap)
            if ready.nested:
                continue  # woken just now
            if lane is None:
                del ready.turns[tenant]
            elif self.running + lane.needs[0] > self._max_running:
                return None
            else:
                ready.turns.move_to_end(tenant)
                return heap
        return ready.nested

    def _runnable(self, heap: Heap) -> Lane | None:
        """Return the first lane of ``heap`` whose slots have room; park those before it."""
        while (lane := self._first(heap)) is not None:
            slots = lane.needs[1]
            if not slots or _full(slots) is None:
                return lane
            heappop(heap)
            self._place(lane)
            for slot in slots:  # which others were not told of, since this lane was to have it
                self._wake(slot)
        return None

    def _first(self, heap: Heap) -> Lane | None:
        """Return the first lane of ``heap``; close those in which nobody waits any more."""
        while heap:
            order, lane = heap[0]
            if not lane.tickets:
                heappop(heap)
                del self._lanes[lane.needs]
            elif lane.order != order:
                heapreplace(heap, (lane.order, lane))
            else:
                return lane
        return None

    def _wake(self, slot: Slot) -> None:
        """Make as many lanes ready as ``slot`` has room for.

        One that waits behind others of its tenant does not count: its turn may be far off.
        """
        room = slot.room
        while room > 0 and slot.parked is not None and (lane := self._unpark(slot.parked)) is not None:
            room -= self._place(lane)

    def _unpark(self, parked: Queue) -> Lane | None:
        """Take out the lane whose turn is next."""
        if self._first(parked.nested) is not None:
            return heappop(parked.nested)[1]
        while parked.turns:
            tenant, heap = parked.turns.popitem(last=False)
            if self._first(heap) is not None:
                lane = heappop(heap)[1]
                if heap:
                    parked.turns[tenant] = heap
                return lane
        return None

    def _place(self, lane: Lane) -> bool:
        """Park a lane, or make it ready; say whether it is ready and the next of its tenant."""
        full = _full(lane.needs[1])
        if full is None:
            return self._ready.put(lane)
        if full.parked is None:
            full.parked = Queue()
        full.parked.put(lane)
        return False


def _full(slots: tuple[Slot, ...]) -> Slot | None:
    for slot in slots:
        if not slot.room:
            return slot
    return None
