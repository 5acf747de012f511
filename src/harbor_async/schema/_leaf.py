"""The types without parts: how each is written in JSON and what reads it."""

import datetime as dt
import enum
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, Final

import msgspec

from .._json import class_of, has_surrogate
from ..errors import UnsupportedTypeError
from ._plan import Leaf

_UUID: Final = "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$"
_DECIMAL: Final = "^[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]{1,9})?$"
_DURATION: Final = "^[+-]?P(?=.)([0-9]{1,9}D)?(T(?=.)([0-9]{1,9}H)?([0-9]{1,9}M)?([0-9]{1,9}([.][0-9]{1,9})?S)?)?$"
_DATE_TIME: Final = "RFC 3339 date-time text with offset, such as 2024-02-29T13:45:00Z"
_TIME: Final = "RFC 3339 time text with offset, such as 13:45:00Z"
_INT64: Final = 2**63


def _text(pattern: str) -> Any:
    return Annotated[str, msgspec.Meta(pattern=pattern.removesuffix("$") + r"\Z")]


def read_uuid(text: str) -> uuid.UUID:
    """Read the dashed form of a UUID."""
    return uuid.UUID(text)


def read_duration(text: str) -> dt.timedelta:
    """Read an ISO 8601 duration of days and smaller units.

    Raises:
        ValueError: It is longer than a ``timedelta`` can be.
    """
    try:
        return msgspec.convert(text, dt.timedelta)
    except (msgspec.ValidationError, OverflowError) as exc:
        msg = "the duration is out of range"
        raise ValueError(msg) from exc


def read_decimal(value: "str | float") -> Decimal:
    """Read a decimal from its text, exactly, or from a JSON number as its shortest text says it."""
    return Decimal(value) if isinstance(value, (str, int)) else Decimal(repr(value))


def write_decimal(value: Decimal) -> str:
    """Write a finite decimal.

    Raises:
        ValueError: It is NaN or infinite.
        TypeError: It is no decimal.
    """
    if not isinstance(value, Decimal):
        msg = "expected a Decimal"
        raise TypeError(msg)
    if not value.is_finite():
        msg = "decimals must be finite"
        raise ValueError(msg)
    return str(value)


def scalar(tp: Any) -> Leaf | None:
    """Return a fresh leaf for one of the types with a form of their own, else None."""
    try:
        make = _SCALARS.get(tp)
    except TypeError:
        return None
    return make() if make is not None else None


def _simple(kind: str, wire: Any, *python: type, also: str = "") -> Callable[[], Leaf]:
    accepts = frozenset({kind, also} if also else {kind})
    label = "null" if kind == "null" else kind
    return lambda: Leaf(accepts=accepts, wire=wire, schema={"type": kind}, python=python, label=label)


def _format(name: str, wire: Any, python: type, label: str) -> Callable[[], Leaf]:
    schema = {"type": "string", "format": name}
    return lambda: Leaf(accepts=frozenset({"string"}), wire=wire, schema=dict(schema), python=(python,), label=label)


_SCALARS: Final[dict[Any, Callable[[], Leaf]]] = {
    str: _simple("string", str, str),
    int: _simple("integer", int, int),
    float: _simple("number", float, float, also="integer"),
    bool: _simple("boolean", bool, bool),
    None: _simple("null", None, type(None)),
    type(None): _simple("null", None, type(None)),
    bytes: lambda: Leaf(
        accepts=frozenset({"string"}),
        wire=bytes,
        schema={"type": "string", "contentEncoding": "base64"},
        python=(bytes,),
        label="base64 text",
    ),
    dt.datetime: _format(
        "date-time",
        Annotated[dt.datetime, msgspec.Meta(tz=True)],
        dt.datetime,
        _DATE_TIME,
    ),
    dt.date: _format("date", dt.date, dt.date, "YYYY-MM-DD date text"),
    dt.time: _format("time", Annotated[dt.time, msgspec.Meta(tz=True)], dt.time, _TIME),
    dt.timedelta: lambda: Leaf(
        accepts=frozenset({"string"}),
        wire=_text(_DURATION),
        schema={"type": "string", "pattern": _DURATION},
        python=(str,),
        build=read_duration,
        label="ISO 8601 duration text such as P1DT2H30M",
    ),
    uuid.UUID: lambda: Leaf(
        accepts=frozenset({"string"}),
        wire=_text(_UUID),
        schema={"type": "string", "format": "uuid", "pattern": _UUID},
        python=(str,),
        build=read_uuid,
        label="UUID text",
    ),
    Decimal: lambda: Leaf(
        accepts=frozenset({"string", "number", "integer"}),
        wire=_text(_DECIMAL) | int | float,
        schema={"anyOf": [{"type": "string", "pattern": _DECIMAL}, {"type": "number"}]},
        python=(str, int, float),
        build=read_decimal,
        unbuild=write_decimal,
        label="decimal number or its text",
    ),
}


def enumeration(cls: "type[enum.Enum]", where: str) -> Leaf:
    """Return the leaf of an enum class: its values, in the order of their declaration.

    Raises:
        UnsupportedTypeError: Flags, and enums whose values are not all text or all integers.
    """
    values = tuple(member.value for member in cls)
    name = cls.__qualname__
    if issubclass(cls, enum.Flag):
        raise UnsupportedTypeError(where, name, "write a set of a plain enum in place of flags")
    if not values:
        raise UnsupportedTypeError(where, name, "an enum without members has no value; add one")
    if not (all(type(value) is str or isinstance(value, str) for value in values) or all(map(_is_int, values))):
        raise UnsupportedTypeError(where, name, "give every member a text, or every member an int, as its value")
    plain = tuple(map(_base, values))
    if issubclass(cls, (str, int)) and tuple(map(_base, cls)) != plain:
        raise UnsupportedTypeError(where, name, "a member is one text or number and has another as its value; drop one")
    _check_sayable(plain, where, name)
    members = dict(zip(plain, cls, strict=True))
    has_missing = cls._missing_.__func__ is not enum.Enum._missing_.__func__  # type: ignore[attr-defined]  # typeshed sees no method in it
    leaf = choice(plain, members if has_missing or plain != values else None)
    if leaf.build is None:
        leaf.wire, leaf.python = cls, (cls,)
    return leaf


def literal(values: tuple[Any, ...], where: str) -> Leaf:
    """Return the leaf of ``Literal[values]``.

    Raises:
        UnsupportedTypeError: A value that is no text, int, bool, None or enum member of these.
    """
    plain: list[Any] = []
    members: dict[Any, Any] = {}
    for value in values:
        wire = value.value if isinstance(value, enum.Enum) else value
        if wire is not None and type(wire) not in {str, int, bool}:
            raise UnsupportedTypeError(where, f"Literal[{value!r}]", "use text, integers, booleans or None")
        key = (class_of(wire), wire)
        if key not in members:
            plain.append(wire)
            members[key] = value
    _check_sayable(tuple(plain), where, "Literal")
    special = any(isinstance(value, enum.Enum) for value in values)
    if any(isinstance(wire, bool) for wire in plain):
        return _literal_with_bools(tuple(plain), members)
    return choice(tuple(plain), {wire: members[type(wire), wire] for wire in plain} if special else None)


def _literal_with_bools(plain: tuple[Any, ...], members: dict[Any, Any]) -> Leaf:
    rest = tuple(wire for wire in plain if not isinstance(wire, bool))
    leaf = choice(plain, None)
    leaf.wire = bool | _literal_type(rest) if rest else bool

    def read(wire: Any) -> Any:
        try:
            return members[type(wire), wire]
        except KeyError:
            raise ValueError(expected_one_of(plain)) from None

    leaf.build = read
    return leaf


def _literal_type(values: tuple[Any, ...]) -> Any:
    from typing import Literal  # noqa: PLC0415 - subscripted with a tuple made at run time, which checkers cannot read

    return Literal[values]


def choice(values: tuple[Any, ...], members: "dict[Any, Any] | None") -> Leaf:
    """Return a leaf of listed values; ``members`` maps each to the Python value, None if they are the same."""
    kinds = {_kind(value) for value in values}
    types = [kind for kind in ("string", "integer", "boolean", "null") if kind in kinds]
    ordered = sorted(types, key=[_kind(value) for value in values].index)
    return Leaf(
        accepts=frozenset(kinds),
        wire=_literal_type(values),
        schema={"type": ordered[0] if len(ordered) == 1 else ordered, "enum": list(values)},
        python=tuple(set[type[Any]](map(type, values))),
        build=members.__getitem__ if members else None,
        choices=values,
        label=expected_one_of(values).removeprefix("expected "),
    )


def expected_one_of(values: tuple[Any, ...]) -> str:
    """Return the sentence that lists ``values`` as JSON would write them."""
    listing = ", ".join(msgspec.json.encode(value).decode() for value in values[:50])
    more = f" and {len(values) - 50} more" if len(values) > 50 else ""  # noqa: PLR2004 - the same bound as above
    return f"expected one of {listing}{more}" if len(values) > 1 else f"expected {listing}"


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    return "boolean" if isinstance(value, bool) else "integer" if isinstance(value, int) else "string"


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _base(value: Any) -> Any:
    """Return a text or an int as the builtin that it is of."""
    return str.__str__(value) if isinstance(value, str) else int.__index__(value)


def _check_sayable(values: tuple[Any, ...], where: str, name: str) -> None:
    if any(_is_int(value) and not -_INT64 <= value < _INT64 for value in values):
        raise UnsupportedTypeError(where, name, "listed integers must fit 64 bits; use text")
    if any(isinstance(value, str) and has_surrogate(value) for value in values):
        raise UnsupportedTypeError(where, name, "half of a surrogate pair is no text; drop it")
