"""A simple model of a runtime: what runs, what waits, and how each call ends.

It knows no task, scope or lane: only lists, and rules that are read off the design page.

Which of several tenants is next is not predicted but looked at (``Model.seen``), and must be one that may be: that
turns go round them is tested by itself.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from tests.property.runtime_words import ATTEMPTS, KINDS, TIMEOUT, WAITS, Answer, Call, Key, Kind, Owner


@attrs.define
class Model:
    """The runtime.

    Attributes:
        places: ``max_running``.
        most_waiting: ``max_queued``.
        most_of_tenant: ``max_running_per_tenant``.
        now: The time.
        calls: All calls that have not ended, in the order in which they came.
        streams: All streams.
        moment: How many things have been done, or happened by themselves; each at one moment.
        is_tick: Whether it is time that has brought it about.
        freed: The slots that came free at this moment.
        seen: When each call was seen to begin, the first first: tasks that may run at one moment run in any order.
    """

    places: float
    most_waiting: float
    most_of_tenant: int | None
    now: float = 0.0
    moment: int = 0
    calls: list[Call] = attrs.field(factory=list)
    is_tick: bool = False
    streams: list[Owner] = attrs.field(factory=list)
    freed: set[Any] = attrs.field(factory=set)
    seen: dict[str, float] = attrs.field(factory=dict)

    # --- what is asked ------------------------------------------------------------------------------------------

    def counts(self) -> tuple[Counter[str], Counter[str]]:
        """Return how many calls run and wait, by tool."""
        running = Counter(call.kind.name for call in self.calls if call.is_held)
        waiting = Counter(call.kind.name for call in self.calls if call.state == "waiting")
        return running, waiting

    def at_gates(self) -> list[Call]:
        return [call for call in self.calls if call.state == "running" and call.kind.body == "gate"]

    # --- what is done -------------------------------------------------------------------------------------------

    def start(self, owner: Owner, id: str, name: str, group: str | None, inner: Any = None) -> None:
        """Start a call of ``owner``."""
        self._move_on()
        self._start(owner, id, name, group, inner)
        self._settle()

    def _start(self, owner: Owner, id: str, name: str, group: str | None, inner: Any = None) -> None:
        kind = KINDS.get(name)
        call = Call(id, kind or Kind(name), owner, group, inner, deadline=owner.deadline)
        owner.calls.append(call)
        call.is_canceled = owner.is_canceled
        if kind is None:
            self._end(call, Answer("failed", {"unknown": "not_found"}.get(name, "validation"), 0, "invalid"))
        else:
            self._admit(call, owner.tenant)

    def release(self, call: Call, how: str) -> None:
        """Let a call past its gate: it returns, or it fails in the way that ``how`` says."""
        self._move_on()
        if call.is_cut and self._end_cut(call, returns=how == "ok"):
            pass
        elif call.until <= self.now:
            self._time_out(call)
        elif how == "ok":
            self._end(call, Answer("succeeded", call.id, call.attempts))
        elif how == "value":
            self._end(call, call.failed("unknown", "permanent"))
        else:
            is_unknown = call.kind.is_effect and how == "lost"
            self._retry(call, "api_request", is_unknown=is_unknown)
        self._settle()

    def cancel(self, call: Call) -> None:
        """Cancel a call by its handle."""
        self._move_on()
        self._cancel(call)
        self._settle()

    def cancel_all(self, owner: Owner) -> None:
        """Cancel a batch."""
        self._move_on()
        self._cancel_all(owner)
        self._settle()

    def lose(self, owner: Owner, end: str) -> None:
        """Lose all answers that are still to come, and leave the block."""
        self._move_on()
        owner.end = end
        owner.is_lost = owner.is_leaving = True
        owner.source.clear()
        for call in owner.calls:
            self._cut(call)
        self._settle()

    def leave(self, owner: Owner) -> None:
        """Leave a block: that of a batch waits for its calls."""
        if owner.is_stream:
            self.lose(owner, "closed")
        owner.is_leaving = True

    def open_stream(self, stream: Owner) -> None:
        """Open a stream."""
        self._move_on()
        self.streams.append(stream)
        self._settle()

    def pull(self, stream: Owner) -> None:
        """Have the reader of a stream wait for the next result."""
        self._move_on()
        stream.is_pulling = True
        self._settle()

    def pass_time(self, seconds: float) -> None:
        """Let time pass."""
        end = self.now + seconds
        while (due := min((self._due(call) for call in self.calls), default=math.inf)) <= end:
            self._move_on()
            self.is_tick = True
            self.now = max(self.now, due)
            for call in [call for call in self.calls if self._due(call) <= self.now]:
                if call.state == "done":
                    continue
                if call.deadline <= self.now or call.state == "running":
                    self._cut(call)
                else:
                    self._begin(call)
            self._settle()
        self.now = end

    def _move_on(self) -> None:
        self.moment += 1
        self.is_tick = False
        self.freed.clear()

    # --- places -------------------------------------------------------------------------------------------------

    def _admit(self, call: Call, tenant: str | None) -> None:
        kind = call.kind
        call.tenant = tenant
        held = [parent for parent in _parents(call) if parent.has_ticket]
        keys: list[Key] = []
        if kind.most is not None:
            keys.append(("tool", kind.name))
        if kind.is_exclusive and call.group is not None:
            keys.append(("group", call.group))
        call.weight = 0 if held else int(min(kind.weight, self.places))
        if call.weight and tenant is not None and self.most_of_tenant is not None:
            keys.append(("tenant", tenant))
        call.slots = tuple((_owner_of(key, held), key) for key in keys)
        needs_turn = kind.most is not None or kind.is_exclusive or self._is_limited()
        call.has_ticket = needs_turn and bool(call.weight or keys)
        self.calls.append(call)
        is_bounded = not call.owner.is_stream or call.parent is not None
        # What has come free at this moment may have come free after this call has asked for it, or gone to another.
        others = self.freed.union(*(other.slots for other in self._waiting() if other is not call))
        is_early = self.seen.get(call.id) != self.now and not others.isdisjoint(call.slots)
        if self._is_free(call) and not (call.parent and is_early):
            call.state = "granted"
        elif self._would_deadlock(call, held, keys, is_early=is_early) or (
            is_bounded and len(self._waiting()) > self.most_waiting
        ):
            self._end(call, Answer("rejected", "rate_limited", 0, "rejected"))

    def _is_limited(self) -> bool:
        return self.places < math.inf or self.most_of_tenant is not None

    def _waiting(self) -> list[Call]:
        return [call for call in self.calls if call.state == "waiting"]

    def _is_free(self, call: Call) -> bool:
        others = [other for other in self._waiting() if other is not call and other.weight and self._has_room(other)]
        return self._has_room(call) and not (call.weight and others) and self._fits(call)

    def _fits(self, call: Call) -> bool:
        used = sum(other.weight for other in self.calls if other.is_held or other.state == "granted")
        return not call.weight or used + call.weight <= self.places

    def _has_room(self, call: Call) -> bool:
        return not any(self._is_full(slot) for slot in call.slots)

    def _is_full(self, slot: tuple[Any, Key]) -> bool:
        most = self.most_of_tenant if slot[1][0] == "tenant" else 1
        return most is not None and most <= sum(
            slot in other.slots for other in self.calls if other.is_held or other.state == "granted"
        )

    def _would_deadlock(self, call: Call, held: list[Call], wanted: Iterable[Key], *, is_early: bool) -> bool:
        if self._has_room(call) and not is_early:
            return False
        return any(key not in wanted and key[0] != "tenant" for parent in held for _, key in parent.slots)

    def _chosen(self) -> Call | None:
        """Return who gets what is free: first those who need no place, then those of a tenant, in call order."""
        ready = [call for call in self._waiting() if self._has_room(call)]
        nested = [call for call in ready if not call.weight]
        tenants = [nested] if nested else _by_tenant(ready)
        chosen = min((call for calls in tenants for call in self._next(calls)), key=self._turn, default=None)
        return None if chosen is None or not self._fits(chosen) else chosen

    def _next(self, calls: list[Call]) -> Iterator[Call]:
        """Yield which of ``calls`` may be next.

        The first, and one behind others which have all waited for something that has come free at this moment and that
        it does not need: it may have come free after what it needs.
        """
        for number, call in enumerate(calls):
            if all(self.freed.intersection(other.slots).difference(call.slots) for other in calls[:number]):
                yield call

    def _turn(self, call: Call) -> int:
        """Return a number that is lower for a call that was seen to begin earlier, of those that began now."""
        return [*self.seen].index(call.id) if self.seen.get(call.id) == self.now else len(self.seen)

    def _settle(self) -> None:
        """Do what follows by itself."""
        while True:
            for stream in self.streams:
                self._read(stream)
                while stream.source and stream.in_hand < stream.window:
                    self._start(stream, *stream.source.pop(0))
            late = next((call for call in self._waiting() if call.is_canceled or call.deadline <= self.now), None)
            granted = min((call for call in self.calls if call.state == "granted"), key=self._turn, default=None)
            chosen = self._chosen()
            if late is not None:
                self._cut(late)
            elif chosen is not None and (granted is None or self._turn(chosen) < len(self.seen)):
                chosen.state = "granted"
            elif granted is not None:
                self._begin(granted)
            else:
                return

    def _read(self, stream: Owner) -> None:
        ready = stream.ready()
        if not stream.is_pulling or stream.is_leaving:
            return
        if ready:
            (next_one,) = stream.got[len(stream.taken) :][:1]
            assert next_one in ready
            stream.taken.append(next_one)
            stream.is_pulling = False
        elif not stream.source and not stream.in_hand:
            stream.is_leaving = True
            stream.end = "ended"

    # --- attempts -----------------------------------------------------------------------------------------------

    def _due(self, call: Call) -> float:
        if call.is_cut:
            return math.inf
        return min(call.deadline, call.until if call.is_held else math.inf)

    def _begin(self, call: Call, *, is_first: bool = False) -> None:
        if not is_first and (call.is_canceled or call.deadline <= self.now):
            self._cut(call)
            return
        call.state = "running"
        call.attempts += 1
        call.until = math.inf if call.kind.body == "nests" else self.now + TIMEOUT
        if call.kind.body == "instant":
            self._end(call, Answer("succeeded", call.id, 1))
        elif call.kind.body == "nests":
            assert call.inner is not None
            name, group = call.inner
            kind = KINDS.get(name)
            child = call.child = Call(f"{call.id}.", kind or Kind(name), call.owner, group, parent=call)
            if kind is None:
                self._end(child, Answer("failed", "not_found", 0, "invalid"))
            else:
                self._admit(child, None)

    def _retry(self, call: Call, category: str, *, is_unknown: bool) -> None:
        if is_unknown:
            self._end(call, call.failed(category, "unsafe", ambiguous=True))
        elif call.attempts >= ATTEMPTS:
            self._end(call, call.failed(category, "attempts"))
        elif WAITS[call.attempts - 1] >= call.deadline - self.now:
            self._end(call, call.failed(category, "deadline"))
        else:
            call.state = "pausing"
            call.until = self.now + WAITS[call.attempts - 1]

    def _time_out(self, call: Call) -> None:
        call.is_cut = False
        if call.kind.when_cut == "returns":
            self._end(call, Answer("succeeded", call.id, call.attempts, late=True))
        else:
            self._retry(call, "timeout", is_unknown=call.kind.is_effect)

    def _cancel(self, call: Call) -> None:
        call.is_canceled = True
        self._cut(call)

    def _cancel_all(self, owner: Owner) -> None:
        owner.is_canceled = True
        for call in owner.calls:
            self._cancel(call)

    def _cancel_rest(self, batch: Owner) -> None:
        """Cancel a batch that has enough."""
        for call in batch.calls:
            # Of several calls that are out of time at one moment, any may be the one with which there is enough.
            due = min(self._due(each) for each in (call, call.child) if each is not None)
            call.is_unsure = self.is_tick and (call.moment == self.moment or due <= self.now)
        self._cancel_all(batch)

    def _cut(self, call: Call) -> None:
        """End a call that is canceled, lost or out of time, at once or when its shield lets it."""
        if call.state == "granted":
            call.state = "waiting"
            if self.seen.get(call.id) == self.now:  # before it was cut
                self._begin(call, is_first=True)
        if call.state == "done":
            return
        if call.state == "running" and call.kind.when_cut == "shielded":
            call.is_cut = True
        elif not self._end_cut(call, returns=call.kind.when_cut == "returns"):
            self._time_out(call)

    def _end_cut(self, call: Call, *, returns: bool) -> bool:
        """End a call whose end has come; False if that was only the timeout of an attempt."""
        in_attempt = call.state == "running"
        ambiguous = in_attempt and call.kind.is_effect
        if call.child is not None:
            self._lose_child(call.child)
        if call.owner.is_lost:
            self._end(call, None)
        elif not call.is_canceled and call.deadline > self.now:
            return False
        elif in_attempt and returns and call.kind.is_effect:
            self._end(call, Answer("succeeded", call.id, call.attempts, late=True))
        elif call.is_canceled:
            self._end(call, call.failed("canceled", "canceled", ambiguous=ambiguous))
        else:
            self._end(call, Answer("timed_out", "timeout", call.attempts, "deadline", ambiguous=ambiguous))
        return True

    def _lose_child(self, child: Call) -> None:
        if child.state != "done":
            child.state = "done"
            self.calls.remove(child)
            self.freed.update(child.slots)

    def _end(self, call: Call, answer: Answer | None) -> None:
        if call in self.calls:
            self.calls.remove(call)
            self.freed.update(call.slots)
        call.state = "done"
        call.answer = answer
        call.moment = self.moment
        if call.parent is not None:
            what = answer and [answer.outcome, answer.what, answer.attempts]
            self._end(call.parent, Answer("succeeded", what, 1))
            return
        owner = call.owner
        if owner.missing and answer is not None and answer.outcome == "succeeded":
            owner.missing -= 1
            if not owner.missing:
                self._cancel_rest(owner)


def _parents(call: Call) -> Iterable[Call]:
    while call.parent is not None:
        call = call.parent
        yield call


def _owner_of(key: Key, held: list[Call]) -> Any:
    """Return the call within which a slot is meant, if a caller has it itself; its own calls share another one."""
    return next((id(parent) for parent in held if any(key == other for _, other in parent.slots)), None)


def _by_tenant(calls: Iterable[Call]) -> list[list[Call]]:
    tenants: dict[str | None, list[Call]] = {}
    for call in calls:
        tenants.setdefault(call.tenant, []).append(call)
    return [*tenants.values()]
