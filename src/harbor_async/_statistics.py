"""What a runtime has in hand."""

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

import attrs

from ._call import Call, Host


@attrs.frozen
class Statistics:
    """What a runtime has in hand at one moment.

    Attributes:
        running: Calls that run, those included which wait between two attempts.
        queued: Calls that were taken and wait: for an approval, a place or a thread.
        threads: Worker threads that are taken.
        background: Those of them that nobody waits for any more, and that cannot be stopped.
        dropped_events: Events that a sink did not get since it was too slow, over all sinks.
        running_by_tool: ``running`` by the tool's name; no tool with none.
        queued_by_tool: ``queued`` likewise.
    """

    running: int
    queued: int
    threads: int
    background: int
    dropped_events: int
    running_by_tool: Mapping[str, int]
    queued_by_tool: Mapping[str, int]


def count(host: Host) -> Statistics:
    """Count what ``host`` has in hand."""
    counts: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for call in host.in_flight:
        counts[_waits(call)][call.function.name] += 1
    running, queued = counts
    return Statistics(
        running=running.total(),
        queued=queued.total(),
        threads=0 if host.threads is None else host.threads.running,
        background=host.background,
        dropped_events=0 if host.outlets is None else host.outlets.dropped,
        running_by_tool=MappingProxyType(dict(running)),
        queued_by_tool=MappingProxyType(dict(queued)),
    )


def _waits(call: Call) -> bool:
    waits_for_approval = call.bound is None and not call.attempts
    return waits_for_approval or any(
        ticket is not None and not ticket.is_granted for ticket in (call.ticket, call.thread)
    )
