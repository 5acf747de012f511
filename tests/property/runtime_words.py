"""What a model of a runtime is made of: kinds of tools, calls of them, batches and streams, answers."""

import math
from typing import Any

import attrs

TIMEOUT = 8.0
ATTEMPTS = 3
WAITS = (1.0, 2.0)
Key = tuple[str, str]


@attrs.frozen
class Answer:
    """What a call must come to; ``what`` is its value or its category."""

    outcome: str
    what: Any
    attempts: int = 0
    stop_reason: str | None = None
    late: bool = False
    ambiguous: bool = False


@attrs.frozen
class Kind:
    """A tool, as far as it matters.

    Attributes:
        name: Of the tool.
        body: What it does: ``"gate"`` waits for a gate in each attempt, ``"instant"`` returns, ``"nests"`` calls
            another tool.
        weight: Places that it takes.
        most: How many calls of it run at once.
        is_exclusive: Whether its calls run one at a time in each group.
        is_effect: Whether it declares an effect.
        when_cut: What it makes of a cancellation: it ``"ends"``, ``"returns"``, or is ``"shielded"``.
    """

    name: str
    body: str = "gate"
    weight: int = 1
    most: int | None = None
    is_exclusive: bool = False
    is_effect: bool = False
    when_cut: str = "ends"


KINDS = {
    kind.name: kind
    for kind in (
        Kind("works"),
        Kind("instant", body="instant"),
        Kind("writes", is_effect=True),
        Kind("stubborn", is_effect=True, when_cut="returns"),
        Kind("shields", when_cut="shielded"),
        Kind("wide", weight=2),
        Kind("narrow", most=1),
        Kind("alone", is_exclusive=True),
        Kind("nests", body="nests"),
        Kind("nests_alone", body="nests", is_exclusive=True),
    )
}
INNER = ["works", "alone", "narrow", "instant", "alone", "narrow", "writes", "unknown"]
"""What a tool that nests can call."""


@attrs.define(eq=False, repr=False)
class Owner:
    """A batch or a stream.

    Attributes:
        calls: Its calls, in the order in which they were begun.
        missing: Successes after which the rest is canceled; None: no such number.
        is_canceled: Whether all of it was.
        is_leaving: Whether its block is being left.
        is_lost: Whether its caller hung up or, for a stream, has left: then its calls end without an answer.
        source: What a stream is still to pull.
        window: How many calls a stream may have in hand.
        is_pulling: Whether the reader of a stream waits.
        got: What the reader was seen to get.
        taken: What of that it should have got by now.
        end: How the block is left, once it is: ``"closed"``, ``"canceled"`` or, after the last result, ``"ended"``.
    """

    deadline: float
    tenant: str | None
    missing: int | None = None
    calls: "list[Call]" = attrs.field(factory=list)
    is_canceled: bool = False
    is_leaving: bool = False
    is_lost: bool = False
    is_stream: bool = False
    source: list[Any] = attrs.field(factory=list)
    window: float = math.inf
    is_pulling: bool = False
    got: list[str] = attrs.field(factory=list)
    taken: list[str] = attrs.field(factory=list)
    end: str = "closed"

    def __repr__(self) -> str:
        return "stream" if self.is_stream else "batch"

    @property
    def is_closed(self) -> bool:
        return self.is_leaving and all(call.state == "done" for call in self.calls)

    @property
    def in_hand(self) -> int:
        return len(self.calls) - len(self.taken)

    def ready(self) -> list[str]:
        """Return what the reader may get next: the calls that ended first, of those at one moment any."""
        ended = [call for call in self.calls if call.state == "done" and call.id not in self.taken]
        return [call.id for call in ended if call.moment == min(other.moment for other in ended)]


@attrs.define(eq=False, repr=False)
class Call:
    """A call in the model.

    Attributes:
        state: ``"waiting"`` for its turn, ``"running"``, ``"pausing"`` before a retry, ``"done"``.
        slots: What it takes beside places.
        answer: How it ended; None where nobody is told.
        tenant: On whose behalf it is made.
        is_cut: Whether a cancellation reached it, which it has shielded itself from.
        is_unsure: Whether it was canceled at the moment at which it was out of time, so that either may be told.
        moment: When it ended, as a number that grows.
    """

    id: str
    kind: Kind
    owner: Owner
    group: str | None
    inner: tuple[str, str | None] | None = None
    parent: "Call | None" = None
    child: "Call | None" = None
    deadline: float = math.inf
    tenant: str | None = None
    weight: int = 0
    slots: tuple[tuple[Any, Key], ...] = ()
    has_ticket: bool = False
    state: str = "waiting"
    attempts: int = 0
    until: float = math.inf
    is_canceled: bool = False
    is_cut: bool = False
    answer: Answer | None = None
    is_unsure: bool = False
    moment: int = 0

    def __repr__(self) -> str:
        return f"{self.id}: {self.kind.name}, {self.state}"

    @property
    def is_held(self) -> bool:
        return self.state in {"running", "pausing"}

    def failed(self, category: str, stop_reason: str, *, ambiguous: bool = False) -> Answer:
        return Answer("failed", category, self.attempts, stop_reason, ambiguous=ambiguous)
