"""What ``bench`` has measured, and what is told of it: the words between the command and its process for a backend."""

from enum import StrEnum
from typing import Final, TypeAlias

import msgspec

from .._categories import Outcome

SYNTHETIC: Final = "synthetic"
"""The word that stands for the catalog of built-in tools."""


class Arrivals(StrEnum):
    """How the calls of an open loop follow each other."""

    CONSTANT = "constant"
    POISSON = "poisson"


class Loop(StrEnum):
    """The event loops to measure on."""

    ASYNCIO = "asyncio"
    TRIO = "trio"
    UVLOOP = "uvloop"


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """How calls are made, and for how long.

    Attributes:
        in_flight: Closed loop: calls that are always under way. Meaningless where there is a rate.
        rate: Open loop: calls a second, whatever becomes of them. None: closed loop.
        arrivals: Open loop: what lies between two calls.
        seed: Of every chance there is: a run has the same one on each backend.
        warm_up: Seconds for which calls are made before anything counts.
        duration: Seconds within which the calls that count begin. None: ``count`` says when it ends.
        count: Calls that count. None: ``duration`` says when it ends.
    """

    in_flight: int = 100
    rate: float | None = None
    arrivals: Arrivals = Arrivals.CONSTANT
    seed: int = 0
    warm_up: float = 0.0
    duration: float | None = None
    count: int | None = None


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What one process is to measure.

    Attributes:
        loop: The event loop.
        load: How calls are made.
        catalog: As the command line has it, or ``SYNTHETIC``.
        tool: The tool's name.
        arguments: The arguments of every call, as JSON.
        timeout: The deadline of each call, in seconds. None: no deadline.
        limits: Those of ``Limits`` that were given, by their names.
    """

    loop: Loop
    load: Load
    catalog: str
    tool: str
    arguments: bytes
    timeout: float | None
    limits: dict[str, int]


class Phase(StrEnum):
    """What a process is doing."""

    WARMING_UP = "warming up"
    MEASURING = "measuring"
    WAITING = "waiting"
    """No more calls are made, and those that are under way have yet to end."""


class Sample(msgspec.Struct, frozen=True, tag="sample"):
    """What happened since the sample before, or since the phase began.

    Attributes:
        phase: When it happened.
        time: Seconds since measuring began, or since warming up did.
        in_flight: Calls that were under way, on average.
        latencies: Seconds from when each call was due to its answer, as doubles. Rejected calls are left out.
        services: Seconds from when the same calls began, as doubles. Empty in a closed loop: the same as latencies.
        lags: Seconds by which timers came late, as doubles.
        ends: How often each pair of outcome and category came; the category of a success is empty.
    """

    phase: Phase
    time: float
    in_flight: float
    latencies: bytes
    services: bytes
    lags: bytes
    ends: list[tuple[Outcome, str, int]]


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """The last word of a process.

    Attributes:
        elapsed: Seconds for which calls were counted.
        cut: Calls that were under way when the measuring was ended early.
        oldest: Seconds since the first of them was due.
        cause: What ended it early; empty if nothing did, or if it was the command.
    """

    elapsed: float
    cut: int
    oldest: float
    cause: str


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """There is nothing to measure, for the user to mend.

    Attributes:
        reason: What is wrong.
    """

    reason: str


Message: TypeAlias = Sample | Ended | Refused
