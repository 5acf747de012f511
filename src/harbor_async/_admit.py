"""Whether a call may begin, and what it needs to run."""

from typing import TypeAlias

import attrs

from ._answer import refusal
from ._call import Call
from ._categories import Delivery, Outcome
from ._events import EventType
from ._limiter import Key, Limiter, Slot, Ticket
from ._trouble import Trouble, raised
from .errors import OverloadedError, ScopeDeniedError

Held: TypeAlias = tuple[tuple[Call, Ticket], ...]


def check(call: Call) -> Trouble | None:
    """Tell of a call that has begun; refuse it where the runtime closes or the identity lacks scopes."""
    if call.host.outlets is not None:
        call.tell(EventType.INVOKED)
    if call.host.is_closing and not _is_nested(call):
        return refusal(OverloadedError("the runtime is draining and takes no more calls"), "rejected", _REJECTED)
    identity = call.identity
    if identity is not None and not call.function.tool.scopes <= identity.scopes:
        denied = ScopeDeniedError(call.function.name, call.function.tool.scopes - identity.scopes)
        return refusal(denied, "rejected", _REJECTED)
    return None


_REJECTED = Outcome.REJECTED


def _is_nested(call: Call) -> bool:
    """Say whether a call is made from within one that is in flight.

    The running code is within a call, or within what approves it, if the scope is round it in which that waits, or if
    the call has begun and has none: then it has not waited yet, so that nothing else can run.
    """
    calls = call.host.in_flight
    return any(caller in calls for caller in call.callers()) or call.backend.is_within(
        None if call.crew is None else call.crew.place,
        [other.scope for other in calls if other.attempts or other.scope is not None],
    )


def needs_turn(call: Call) -> bool:
    """Say whether a call needs more than to be run."""
    return call.host.has_places or call.function.is_limited


def admit(call: Call) -> Trouble | None:
    """Give a call its turn, in the order in which calls come; refuse it when the queue is full.

    A call that is made from within another one uses what that has: it would wait for something that may never come
    free while its caller waits for it. Where it needs something else, and would wait for it while a caller of it has
    what others may wait for, it is refused: the two could wait for each other for ever.

    Args:
        call: The call, whose arguments are decoded. With a ticket it must be run in ``run_in_turn``.
    """
    limiter = call.host.limiter
    if limiter is None:
        return None
    try:
        keys = _keys(call) if call.function.is_limited else []
    except Exception as exc:  # noqa: BLE001 - a user's function gives the group
        trouble = raised(call, exc)
        trouble.failure = attrs.evolve(trouble.failure, delivery=Delivery.NOT_SENT, ambiguous=False)
        trouble.stop_reason = "permanent"
        return trouble
    held = () if call.parent is None else _held(call, limiter)
    weight = 0 if held else call.function.weight
    tenant = None if call.identity is None else call.identity.tenant
    most = call.host.limits.max_running_per_tenant
    if weight and tenant is not None and most is not None:
        keys.append(("tenant", tenant, most))
    slots = tuple([_slot(limiter, key, held) for key in keys])
    if not weight and not slots:
        return None
    if slots and call.parent is not None and not limiter.is_free(weight, slots):
        blocked = _blocked(call, limiter, slots, held)
        if blocked is not None:
            return refusal(OverloadedError(blocked), "rejected", _REJECTED)
    try:
        call.ticket = limiter.join(weight, slots, tenant, is_bounded=call.is_bounded)
    except OverloadedError as exc:
        return refusal(exc, "rejected", _REJECTED)
    return None


def _keys(call: Call) -> list[Key]:
    """Return of what a call needs a slot wherever it is made."""
    function = call.function
    keys: list[Key] = []
    if function.max_running is not None:
        keys.append(("tool", function.name, function.max_running))
    group = function.find_group(call)
    if group is not None:
        keys.append(("group", group, 1))
    return keys


def _held(call: Call, limiter: Limiter) -> Held:
    """Return what the callers of a call have in ``limiter``, the nearest first."""
    tickets = ((caller, caller.ticket) for caller in call.callers())
    return tuple([(caller, ticket) for caller, ticket in tickets if ticket is not None and ticket.is_held_in(limiter)])


def _slot(limiter: Limiter, key: Key, held: Held) -> Slot:
    for _, ticket in held:
        if any(slot.key == key for slot in ticket.slots):
            return ticket.inner(key)
    return limiter.slot(key)


def _blocked(call: Call, limiter: Limiter, slots: tuple[Slot, ...], held: Held) -> str | None:
    """Say why a call must not wait for ``slots``; None where it may, or has not to.

    It may wait for what calls have that are made from within the nearest caller with something that others may wait
    for. For let some such callers wait for each other, and take the one of them that had its turn last: what it waits
    for is had by one that had its turn later still.
    """
    full = [slot for slot in slots if not slot.room]
    if not full:
        return None
    for caller, ticket in held:
        has = next((slot.key for slot in ticket.slots if slot.key[0] != "tenant"), None)
        if has is not None:
            wanted = next((slot.key for slot in full if not _is_within(caller, limiter, slot)), None)
            if wanted is not None:
                return _deadlock(call, wanted, caller, _label(has))
            break
    for caller in call.callers():
        if caller.is_in_thread and caller.host is call.host:
            return _deadlock(call, full[0].key, caller, "a worker thread")
    return None


def _is_within(caller: Call, limiter: Limiter, slot: Slot) -> bool:
    """Say whether all calls that have ``slot`` are made from within ``caller``."""
    return all(
        caller in other.callers()
        for other in caller.host.in_flight
        if other.ticket is not None and other.ticket.is_held_in(limiter) and slot in other.ticket.slots
    )


def _deadlock(call: Call, full: Key, caller: Call, has: str) -> str:
    return (
        f"{call.function.name!r} would wait for {_label(full)}, while {caller.function.name!r}, which called it, has "
        f"{has}: each could wait for the other for ever"
    )


def _label(key: Key) -> str:
    kind, name, _ = key
    return f"the exclusive group {name!r}" if kind == "group" else f"the limit of the {kind} {name!r}"
