"""Private fields stay private: no argument, no result and no schema shows them."""

import dataclasses
from typing import Annotated, Any, Final, NotRequired, TypedDict

import attrs
import pytest

from harbor_async.errors import UnsupportedTypeError
from harbor_async.schema import Name, derive_schema
from harbor_async.schema._function import compile_function
from tests.unit.schema.support import decode_as, encode, faults_as


class Handle:
    """No JSON form: nobody looks into the type of a private field."""


@attrs.define
class Account:
    """Private fields between public ones, with constants, factories and no type."""

    name: str
    _balance: int = 10
    _log: list[Handle] = attrs.field(factory=list)
    _later: "Unknown" = None  # noqa: F821 - nobody looks
    currency: str = "EUR"
    _total: int = attrs.field(init=False, default=0)


@dataclasses.dataclass
class Session:
    """The same for a dataclass."""

    user: str
    _state: int = 3
    _seen: list[Handle] = dataclasses.field(default_factory=list)
    theme: str = "dark"


@attrs.define
class Shown:
    """Private fields that their author named for the wire."""

    _a: int = attrs.field(alias="alpha")
    _b: Annotated[int, Name("beta")] = 0
    _c: Final[Annotated[int, Name("gamma")]] = 0
    _d: int = attrs.field(default=0, alias="_d")
    _e: Annotated[int, Name("epsilon")] = attrs.field(init=False, default=5)


@dataclasses.dataclass
class ShownData:
    """A dataclass with a named private field."""

    _state: Annotated[int, Name("state")]


@pytest.mark.parametrize(("cls", "names"), [(Account, ["name", "currency"]), (Session, ["user", "theme"])])
def test_private_fields_are_not_arguments(cls: Any, names: list[str]) -> None:
    """A private field with a default is unknown to a caller, and its type is not looked into."""
    assert names == list(derive_schema(cls)["properties"])
    first, second = names
    made = decode_as(cls, f'{{"{first}":"x","{second}":"y"}}')
    assert ("x", "y") == (getattr(made, first), getattr(made, second))
    for key in ("balance", "_balance", "log", "_state", "state", "total", "later"):
        assert [(f"/{key}", "unknown")] == faults_as(cls, f'{{"{first}":"x","{key}":1}}')


def test_defaults_of_private_fields_apply() -> None:
    """A private field gets the default of its class; those behind it do not slip into its place."""
    account = decode_as(Account, '{"name":"n","currency":"NOK"}')
    assert Account("n", currency="NOK") == account
    assert Session("u", theme="light") == decode_as(Session, '{"user":"u","theme":"light"}')


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Account("n", 7), '{"name":"n","currency":"EUR"}'),
        (Session("u", 7), '{"user":"u","theme":"dark"}'),
        (Shown(1), '{"alpha":1,"beta":0,"gamma":0,"_d":0,"epsilon":5}'),
        (ShownData(4), '{"state":4}'),
    ],
)
def test_results_do_not_tell_private_fields(value: Any, text: str, check: bool) -> None:
    """A result shows the same fields with a declared type, without one, and unchecked."""
    assert text == encode(type(value), value, check=check)
    assert text == encode(Any, value, check=check)
    assert text == encode(str, value, check=False)


def test_named_private_fields_are_arguments() -> None:
    """A name on the wire, or an alias that is not attrs' own, makes a private field public."""
    assert ["alpha", "beta", "gamma", "_d"] == list(derive_schema(Shown)["properties"])
    assert Shown(1, 2, 3, 4) == decode_as(Shown, '{"alpha":1,"beta":2,"gamma":3,"_d":4}')
    assert ShownData(4) == decode_as(ShownData, '{"state":4}')


@attrs.define
class Demanding:
    """Cannot be made without its private field."""

    _key: int


@dataclasses.dataclass
class DemandingData:
    """Cannot be made without its private field."""

    _key: int


@pytest.mark.parametrize("cls", [Demanding, DemandingData])
def test_private_field_without_default(cls: Any) -> None:
    """A private field that must be given is refused where arguments are declared, and hidden in results."""
    with pytest.raises(UnsupportedTypeError, match=rf"field {cls.__name__}._key.*give it a default"):
        derive_schema(list[cls])
    assert "{}" == encode(cls, cls(1))


def test_parameters_and_keys_keep_their_names() -> None:
    """A parameter and the key of a TypedDict are no fields of an object: an underscore hides nothing."""

    class Keys(TypedDict):
        _a: int
        _b: NotRequired[int]

    async def tool(_x: int, _y: str = "") -> None: ...

    assert {"_a", "_b"} == derive_schema(Keys)["properties"].keys()
    assert '{"_a":1}' == encode(Keys, {"_a": 1})
    assert ["_x", "_y"] == list(compile_function(tool).args_schema["properties"])


def test_hand_written_init() -> None:
    """An __init__ of the author's own need not take a private field."""

    @attrs.define(init=False)
    class Made:
        a: int
        _b: int = 0

        def __init__(self, a: int) -> None:
            self.__attrs_init__(a, 7)

    made = decode_as(Made, '{"a":1}')
    assert (1, 7) == (made.a, made._b)
