"""``invoke.json``: two tools called with argument texts, and functions that fail."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, NoReturn, NotRequired, TypedDict

import anyio
import attrs
import pytest
from msgspec import Meta

from harbor_async import ToolPolicy, describe
from harbor_async.errors import InvalidArgumentsError
from tests.parity.answers import Answer, arguments, ask, exact, recorded, took_as_long
from tests.parity.harness import Case, Difference, Section, names

# --- argument_cases ---------------------------------------------------------------------------------------------------


class Part(TypedDict):
    x: int
    y: NotRequired[str]


class Rich(TypedDict):
    """The seed's ``rich`` type; what Go leaves out of its output when it is zero is a key that may be missing."""

    s: str
    i: NotRequired[int]
    i8: NotRequired[Annotated[int, Meta(ge=-128, le=127)]]
    u: NotRequired[Annotated[int, Meta(ge=0)]]
    f: NotRequired[float]
    f32: NotRequired[Annotated[float, Meta(ge=-3.4028234663852886e38, le=3.4028234663852886e38)]]
    b: NotRequired[bool]
    l: NotRequired[list[str]]  # noqa: E741 - the seed's own name
    m: NotRequired[dict[str, int]]
    p: NotRequired[int]
    t: NotRequired[datetime]
    d: NotRequired[int]
    y: NotRequired[bytes]
    r: NotRequired[Any]
    a: NotRequired[Any]
    n: NotRequired[Part]
    arr: NotRequired[Annotated[list[int], Meta(min_length=2, max_length=2)]]
    k: NotRequired[dict[str, Part]]


class Echo(TypedDict):
    echo: str


def make_tools(seen: list[Any]) -> dict[str, Any]:
    """Return the two functions of the seed; they note in ``seen`` what they are given."""

    async def echo(text: str) -> Echo:
        seen.append({"text": text})
        return {"echo": text}

    async def rich(args: Rich, /) -> Rich:
        seen.append(None)
        return args

    return {"echo{text:string required}->{echo:string}": echo, "rich": rich}


def validated(case: Case) -> Answer:
    """Return what the seed answers to the same arguments when it does check them."""
    (twin,) = (other for other in ARGUMENTS.cases if other.name == case.name.replace("no_validation", "default"))
    return recorded(twin)


def accepted(value: dict[str, Any]) -> Callable[[Answer, Case], Answer]:
    """Make the answer of a ``rich`` tool that takes its arguments, and returns them as ``value``."""
    return lambda *_: Answer("value", 1, None, exact(value))


def refused(*paths: str) -> Callable[[Answer, Case], Answer]:
    return lambda *_: Answer("invalid_args", paths=paths)


def of(*arguments_of: str) -> Callable[[Case], bool]:
    """Return the condition that a case sends one of these arguments, under either policy."""
    return lambda case: case.name.rpartition("/")[0] in arguments_of


ARGUMENTS = Section(
    "invoke",
    "argument_cases",
    recorded,
    (
        Difference(
            23,
            lambda case: attrs.evolve(recorded(case), paths=None) != attrs.evolve(validated(case), paths=None),
            lambda _, case: validated(case),
        ),
        Difference(8, of("echo/13"), refused("/text")),
        Difference(8, of("rich/28"), refused("/m/k")),
        Difference(22, of("echo/24"), refused("/text")),
        Difference(22, of("echo/25"), refused("")),
        Difference(24, of("rich/02"), accepted({"s": "x", "i": 1})),
        Difference(24, of("rich/04"), accepted({"s": "x", "i": 1000})),
        Difference(24, of("rich/09"), accepted({"s": "x", "i": 2**63})),
        Difference(24, of("rich/47"), accepted({"s": "x", "a": 12345678901234567890})),
        Difference(42, of("rich/22"), accepted({"s": "x", "l": []})),
        Difference(42, of("rich/48"), accepted({"s": "x", "a": None})),
        Difference(43, of("rich/46"), accepted({"s": "x", "a": {"z": 1, "b": [None]}})),
        Difference(44, of("rich/34"), accepted({"s": "x", "t": "2024-01-02T03:04:05.123457+02:00"})),
    ),
)
POLICIES = {"default": ToolPolicy.harbor(), "no_validation": ToolPolicy.harbor(validate="BOTH")}


@pytest.mark.virtual
@pytest.mark.parametrize("case", ARGUMENTS.cases, ids=names)
async def test_arguments_are_taken_or_refused_as_in_the_seed(case: Case, asserted: Callable) -> None:
    """A text of arguments reaches the function, or does not, as recorded; so do the places of its faults."""
    seen: list[Any] = []
    tool = describe(make_tools(seen)[case.input["tool"]], policy=POLICIES[case.input["policy"]])
    numbers, expected = ARGUMENTS.expect(case)
    began = anyio.current_time()
    assert expected == await ask(tool, arguments(case), seen, like=expected)
    assert took_as_long(case, anyio.current_time() - began)
    asserted(ARGUMENTS, case, numbers)


# --- function_outcomes ------------------------------------------------------------------------------------------------

OUTCOMES = Section("invoke", "function_outcomes", recorded)


def boom() -> NoReturn:
    msg = "boom"
    raise RuntimeError(msg)


def panic() -> NoReturn:
    msg = "boom"
    raise AssertionError(msg)


def write_to_nothing() -> None:
    nothing: Any = None
    nothing["key"] = 1


def refuse() -> NoReturn:
    raise InvalidArgumentsError([])


ENDS: dict[str, Callable[[], None]] = {
    "error_plain": boom,
    "error_with_value": boom,  # there is no such thing as a value beside an exception
    "panic": panic,
    "panic_nil_map": write_to_nothing,
    "invalid_args_from_fn": refuse,
}


@pytest.mark.virtual
@pytest.mark.parametrize("case", OUTCOMES.cases, ids=names)
async def test_functions_that_fail_are_repeated_as_in_the_seed(case: Case, asserted: Callable) -> None:
    """Under the seed's default policy a failing function runs as often as recorded, in as much time."""
    seen: list[Any] = []

    async def echo(text: str) -> Echo:
        seen.append({"text": text})
        ENDS[case.name]()
        return {"echo": text}

    tool = describe(echo, policy=ToolPolicy.harbor())
    numbers, expected = OUTCOMES.expect(case)
    began = anyio.current_time()
    assert expected == await ask(tool, arguments(case), seen, like=expected)
    assert took_as_long(case, anyio.current_time() - began)
    asserted(OUTCOMES, case, numbers)


@pytest.mark.parametrize(
    ("section", "counts"),
    [(ARGUMENTS, {0: 140, 8: 4, 22: 4, 23: 26, 24: 8, 42: 4, 43: 2, 44: 2}), (OUTCOMES, {0: 5})],
    ids=lambda value: getattr(value, "key", None),
)
def test_the_differences_cover_as_many_cases_as_agreed(section: Section, counts: dict[int, int]) -> None:
    """No difference covers more cases, or fewer, than when it was agreed on."""
    assert counts == section.counts()
