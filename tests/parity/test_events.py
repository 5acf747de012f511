"""``events.json``: what is told around one call, in virtual time; what becomes of a broken bus; whole identities.

The seed's bus is a sink here, and the identity in its context that of the call. Its random jitter is none here, so that
a recorded range of times is its lower end.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import anyio
import attrs
import pytest

from harbor_async import Catalog, EventType, Identity, Runtime, ToolEvent, ToolPolicy, describe
from harbor_async.errors import InvalidArgumentsError, InvalidToolError, ToolNotFoundError
from tests.parity.harness import Case, Difference, Section, names
from tests.parity.test_policy_traces import BlipError

MS = 10**6
SECOND = 10**9


@attrs.frozen
class Told:
    """One event; None where the seed says nothing of it.

    Attributes:
        type: Its type, without ``tool.``.
        identity: Tenant, user, session and run of whom it tells; None: of nobody.
        at: Nanoseconds since the call began.
        attempts: Runs of the function.
        error_class: Of the failure.
        message: Of the failure.
        took: Milliseconds that the call took.
    """

    type: str
    identity: tuple[str, ...] | None
    at: int | None = None
    attempts: int | None = None
    error_class: str | None = None
    message: str | None = None
    took: int | None = None


@attrs.frozen
class Answer:
    """What comes of one call: whether it succeeded, how often the function ran, and what was told."""

    ok: bool
    runs: int
    told: tuple[Told, ...]


def lower(recorded: Any) -> int | None:
    return recorded["at_least"] if isinstance(recorded, dict) else recorded


def recorded(case: Case) -> Answer:
    """Put the recorded events in our words."""
    told = []
    for event in case.expected["events"]:
        payload = event["payload"]
        assert ("echo", "inprocess") == (payload["tool"], payload["transport"])
        told.append(
            Told(
                event["type"].removeprefix("tool."),
                tuple(event["identity"]),
                lower(event.get("at_ns")),
                payload.get("attempts"),
                payload.get("error_class", payload.get("last_class")),
                payload.get("error_message"),
                lower(payload.get("duration_ms")),
            )
        )
    return Answer(case.expected["ok"], case.expected["fn_calls"], tuple(told))


# --- what each recorded function did --------------------------------------------------------------------------------


async def fail_twice(text: str, run: int) -> str:
    if run < 3:
        raise BlipError("blip")
    return text


async def take_7_ms(text: str, run: int) -> str:
    await anyio.sleep(0.007)
    return text


async def refuse(text: str, run: int) -> str:
    raise InvalidArgumentsError([])


async def fail(text: str, run: int) -> str:
    raise BlipError("blip")


async def outlast(text: str, run: int) -> str:
    await anyio.sleep_forever()
    return text


async def mention(text: str, run: int) -> str:
    raise RuntimeError("the tool says: invalid args")


async def not_found(text: str, run: int) -> str:
    raise ToolNotFoundError("echo")


async def panic(text: str, run: int) -> str:
    raise AssertionError("boom")


async def return_none(text: str, run: int) -> Any:
    return None


async def echo(text: str, run: int) -> str:
    return text


@attrs.frozen
class Program:
    """What is known of a recorded function and its policy.

    Attributes:
        work: The function.
        error_class: Of its failures.
        takes: Nanoseconds that an attempt takes.
        settings: Of its policy, as Harbor has them.
        argument: Its name and type.
        gives: What it promises.
    """

    work: Callable[[str, int], Any] = echo
    error_class: str | None = None
    takes: int = 0
    settings: dict[str, Any] = attrs.field(factory=dict)
    argument: tuple[str, Any] = ("text", str)
    gives: Any = str


PROGRAMS = {
    "success_after_two_retries": Program(fail_twice, "transient"),
    "success_takes_7ms": Program(take_7_ms, takes=7 * MS),
    "invalid_args_from_function": Program(refuse, "permanent"),
    "exhausted_transient": Program(fail, "transient"),
    "exhausted_timeout": Program(outlast, "timeout", 50 * MS, {"timeout_ms": 50}),
    "exhausted_wrapping_invalid_args": Program(mention, "transient"),
    "not_retried_class": Program(fail, "transient", settings={"retry_on": ["timeout"]}),
    "not_found_error": Program(not_found, "permanent"),
    "panic": Program(panic, "transient"),
    "output_validation_failure": Program(return_none, "permanent", gives=list[str]),
    "decode_error_text_carries_argument_value": Program(argument=("t", datetime)),
}
RUN = "R"
"""The run of the identities that have one; which it was is not recorded."""


def identity_of(case: Case) -> Identity | None:
    given = case.input
    if not given["identity_in_context"] and not given["run_in_context"]:
        return None
    return Identity("T", "U", "S", RUN if given["run_in_context"] else None)


def told_of(identity: Identity | None) -> tuple[str, ...] | None:
    return None if identity is None else (identity.tenant, identity.user, identity.session, identity.run or "")


# --- the differences ------------------------------------------------------------------------------------------------


def failed_output(seed: Answer, case: Case) -> Answer:
    """A bad output is a failure of the tool, with its class."""
    return attrs.evolve(
        seed, told=(seed.told[0], attrs.evolve(seed.told[1], type="failed", attempts=1, error_class="permanent"))
    )


def in_full(seed: Answer, case: Case) -> Answer:
    """Each attempt and each retry is told, with true counts and classes and no message, of whomever the call is."""
    program = PROGRAMS.get(case.name, Program())
    who = told_of(identity_of(case))
    has_times = not seed.told or seed.told[0].at is not None
    told = [Told("invoked", who, 0)]
    at = 0
    for run in range(1, seed.runs + 1):
        told.append(Told("attempt", who, at, run))
        at += program.takes
        if run < seed.runs:
            told.append(Told("retry", who, at, run, program.error_class))
            at += 100 * MS * 2**run  # the seed's waits: 0.2, 0.4, 0.8 s
    last = seed.told[-1] if seed.told else Told("completed", who, 0, 1, took=0)
    if case.input["parent"] == "canceled":
        last = attrs.evolve(last, type="canceled", error_class=None)
    if last.attempts is not None:
        has_class = last.error_class is not None
        last = attrs.evolve(
            last, attempts=seed.runs, error_class=program.error_class if has_class else None, message=None
        )
    told.append(attrs.evolve(last, identity=who))
    if not has_times:
        told = [attrs.evolve(one, at=None) for one in told]
    return attrs.evolve(seed, told=tuple(told))


CASES = Section(
    "events",
    "cases",
    recorded,
    (
        Difference(6, lambda case: case.name == "output_validation_failure", failed_output),
        Difference(11, lambda case: case.expected["fn_calls"] > 0 or case.input["parent"] == "canceled", in_full),
    ),
)
BUS = Section(
    "events",
    "bus_failures",
    lambda case: case.expected,
    (Difference(11, lambda case: "panics" in case.expected, lambda *_: {"ok": True}),),
)
IDENTITIES = Section("events", "identity", lambda case: case.expected.get("is_incomplete", False))


# --- the same, run here ---------------------------------------------------------------------------------------------


class Sink:
    """A bus that keeps what is told, and then breaks if it is to."""

    def __init__(self, error: Exception | None = None) -> None:
        self.events: list[ToolEvent] = []
        self.error = error

    async def emit(self, event: ToolEvent) -> None:
        self.events.append(event)
        if self.error is not None:
            raise self.error


def say(event: ToolEvent, began: float) -> Told:
    """Put an event in the words in which the recorded ones are, leaving out what the seed leaves out."""
    has_counts = event.type not in {EventType.INVOKED, EventType.INVALID_ARGS}
    has_class = event.type in {EventType.RETRY, EventType.FAILED, EventType.POLICY_EXHAUSTED}
    return Told(
        event.type.removeprefix("tool."),
        told_of(event.identity),
        round((event.time - began) * SECOND),
        event.attempts if has_counts else None,
        event.error_class.value if has_class and event.error_class else None,
        None,
        round(event.elapsed * 1000) if event.type is EventType.COMPLETED else None,
    )


async def observe(case: Case, *, has_times: bool) -> Answer:
    """Run a case and say what was told."""
    program = PROGRAMS.get(case.name, Program())
    runs = 0

    async def work(text: Any) -> Any:
        nonlocal runs
        runs += 1
        return await program.work(text, runs)

    name, type_ = program.argument
    work.__annotations__ = {"text": type_, "return": program.gives}
    if name == "t":

        async def takes_time(t: datetime) -> str:
            return await work(t)

        tool = describe(takes_time, name="echo")
    else:
        tool = describe(work, name="echo", policy=ToolPolicy.harbor(**program.settings))
    sink = Sink()
    began = anyio.current_time()
    result = None
    async with Runtime(Catalog([tool]), sinks=[sink], random=lambda: 0.0) as runtime:
        with anyio.CancelScope() as scope:
            if case.input["parent"] == "canceled":
                scope.cancel()
            result = await runtime.invoke("echo", case.input["args"], identity=identity_of(case))
    told = [say(event, began) for event in sink.events]
    assert {("echo", "inprocess")} == {(event.tool, event.transport) for event in sink.events}
    assert "SECRET" not in repr(sink.events)
    if not has_times:
        told = [attrs.evolve(one, at=None) for one in told]
    return Answer(result is not None and result.outcome == "succeeded", runs, tuple(told))


@pytest.mark.virtual
@pytest.mark.parametrize("case", CASES.cases, ids=names)
async def test_a_call_is_told_as_recorded(case: Case, asserted: Callable) -> None:
    """The recorded events are told in their order and at their times, and with them what the seed leaves out."""
    numbers, expected = CASES.expect(case)
    assert expected == await observe(case, has_times=expected.told[0].at is not None)
    asserted(CASES, case, numbers)


@pytest.mark.virtual
@pytest.mark.parametrize("case", BUS.cases, ids=names)
async def test_a_broken_bus_breaks_no_call(case: Case, asserted: Callable) -> None:
    """A call succeeds whether the bus fails, breaks or is not there."""
    numbers, expected = BUS.expect(case)
    sinks = {
        "publish_returns_error": [Sink(ConnectionError("bus down"))],
        "publish_panics": [Sink(AssertionError("bus boom"))],
        "nil_bus": [],
    }[case.input["bus"]]

    async def work(text: str) -> str:
        return text

    async with Runtime(Catalog([describe(work, name="echo")]), sinks=sinks) as runtime:
        result = await runtime.invoke("echo", {"text": "hi"})
    assert expected == {"ok": result.outcome == "succeeded"}
    assert all(len(sink.events) == 3 for sink in sinks)
    asserted(BUS, case, numbers)


@pytest.mark.parametrize("case", IDENTITIES.cases, ids=names)
def test_an_identity_is_whole(case: Case, asserted: Callable) -> None:
    """Tenant, user and session must be said, and a run, if there is one; white space counts."""
    numbers, is_incomplete = IDENTITIES.expect(case)
    given = case.input
    try:
        identity = Identity(given["tenant"], given["user"], given["session"], given["run"])
    except InvalidToolError:
        assert is_incomplete
    else:
        assert not is_incomplete
        assert (given["tenant"], given["user"], given["session"], given["run"] or "") == told_of(identity)
    asserted(IDENTITIES, case, numbers)


def test_the_differences_cover_as_many_cases_as_agreed() -> None:
    """No difference covers more cases, or fewer, than when it was agreed on."""
    assert {0: 3, 6: 1, 11: 15} == CASES.counts()
    assert {0: 2, 11: 1} == BUS.counts()
    assert {0: 21} == IDENTITIES.counts()
