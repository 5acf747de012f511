"""Results without a declared type: any Python value as plain JSON, or a clear no.

One rule for each kind of value; the same rules as for declared types, so that adding an annotation changes the check
and not the text.
"""

import base64
import datetime as dt
import enum
import functools
import uuid
from collections.abc import Hashable, Iterable, Mapping
from decimal import Decimal
from typing import Any, Final, cast

import msgspec

from .._json import (
    DocumentError,
    class_of,
    has_surrogate,
    has_too_many_digits,
    is_mapping,
    is_object,
    kind_of,
    point,
)
from ..errors import InvalidOutputError, Problem, UnsupportedTypeError
from ._hints import Names, class_hints
from ._mapping import is_exact
from ._name import given_name
from ._plan import Style
from ._record import raw_fields, shown_fields, style_of
from ._registry import registered_base, unstructure_hook

_ROOM: Final = 500
_ATOMS: Final = frozenset({str, int, float, bool, type(None)})
_SEQUENCES: Final = frozenset({list, tuple, set, frozenset})
_ADVICE: Final = "return JSON values, or a class with a JSON form"


def plain_any(value: Any) -> Any:
    """Return ``value`` as builtins that mean the same in strict JSON.

    Dates become ISO 8601 text, decimals and UUIDs their text, bytes base64, enum members their value, sets sorted
    arrays, structured classes objects under their wire names, and registered types what their hook says.

    Raises:
        InvalidOutputError: Something in it has no JSON form: NaN, an exception, a cycle, keys that are no text or
            collide, an unknown class. The problem says where.
    """
    try:
        return value if _is_plain_already(value) else _plain(value, "", ())
    except RecursionError:
        raise InvalidOutputError([Problem("", "too_deep", "the value is nested too deeply")]) from None


def plain_found(value: Any) -> Any:
    """Return what ``plain_any`` does by the walk alone, which also sees lone surrogates; errors as there."""
    return _plain(value, "", ())


def _is_plain_already(value: Any) -> bool:
    """Return whether a dict or list can be encoded as it is; but for lone surrogates, which the encoder refuses."""
    if class_of(value) not in {dict, list}:
        return False
    try:
        return is_exact(value, _ROOM, [_ROOM**3])
    except DocumentError:
        return False


def _no(path: str, message: str) -> InvalidOutputError:
    return InvalidOutputError([Problem(path, "value", message)])


def _plain(value: Any, path: str, above: tuple[int, ...]) -> Any:
    kind = class_of(value)
    if kind in _ATOMS:
        return _atom(value, path)
    if (base := registered_base(kind)) is not None:
        return _plain(_hooked(base, value, path), path, _inside(value, path, above))
    if kind is dict or is_mapping(value):
        return _mapping(value, path, _inside(value, path, above))
    if (style := style_of(kind)) is not None:
        return _object(value, style, path, _inside(value, path, above))
    if isinstance(value, (list, tuple, set, frozenset)):
        inside = _inside(value, path, above)
        items = enumerate(cast("Iterable[Any]", value))
        listed = [_plain(item, point(path, index), inside) for index, item in items]
        return listed if isinstance(value, (list, tuple)) else sorted_items(listed)
    return _scalar(value, path)


def _atom(value: Any, path: str) -> Any:
    if isinstance(value, str):
        if has_surrogate(value):
            raise _no(path, "the text holds a lone surrogate")
    elif isinstance(value, float):
        if value - value != 0.0:
            raise _no(path, "numbers must be finite")
    elif isinstance(value, int) and has_too_many_digits(value):
        raise _no(path, "the integer has too many digits")
    return value


def _inside(value: Any, path: str, above: tuple[int, ...]) -> tuple[int, ...]:
    if id(value) in above:
        raise _no(path, "the value contains itself")
    return (*above, id(value))


def _hooked(base: type, value: Any, path: str) -> Any:
    try:
        return unstructure_hook(base)(value)
    except Exception as exc:
        message = f"its registered hook raised {type(exc).__name__}"
        raise _no(path, message) from exc


def _scalar(value: Any, path: str) -> Any:
    if isinstance(value, enum.Enum):
        return _plain(value.value, path, ())
    if isinstance(value, (dt.date, dt.time, dt.timedelta)):
        return msgspec.to_builtins(_exact(value))
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise _no(path, "numbers must be finite")
        return str(value)
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(bytes(cast("bytes", value))).decode()
    if isinstance(value, str):
        return _atom(str.__str__(value), path)
    if isinstance(value, int):
        return _atom(int.__index__(value), path)
    if isinstance(value, float):
        return _atom(float.__float__(value), path)
    raise _no(path, f"{type(value).__name__} has no JSON form; {_ADVICE}")


def _exact(value: dt.date | dt.time | dt.timedelta) -> Any:
    """Return a date, time or duration as the standard class: msgspec takes no subclasses."""
    if isinstance(value, dt.timedelta):
        return dt.timedelta(value.days, value.seconds, value.microseconds)
    base = next(tp for tp in (dt.datetime, dt.date, dt.time) if isinstance(value, tp))
    return value if type(value) is base else base.fromisoformat(value.isoformat())


def _mapping(value: Mapping[Any, Any], path: str, above: tuple[int, ...]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, item in value.items():
        name = _key(key, path)
        if name in out:
            raise _no(point(path, name), "two keys of the dict have the same text")
        out[name] = _plain(item, point(path, name), above)
    return out


def _key(key: Any, path: str) -> str:
    if type(key) is not str:
        word = key.value if isinstance(key, enum.Enum) else key
        if not isinstance(word, str):
            raise _no(path, f"expected text keys, got a key of type {type(key).__name__}")
        key = str.__str__(word)
    if has_surrogate(key):
        raise _no(path, "a key holds a lone surrogate")
    return str(key)


def _object(value: Any, style: Style, path: str, above: tuple[int, ...]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for attribute, wire in wire_names(cast("Hashable", class_of(value)), style):
        try:
            item = getattr(value, attribute)
        except Exception as exc:
            message = f"reading it raised {type(exc).__name__}"
            raise _no(point(path, wire), message) from exc
        out[wire] = _plain(item, point(path, wire), above)
    return out


@functools.lru_cache(maxsize=512)
def wire_names(cls: Any, style: Style) -> tuple[tuple[str, str], ...]:
    """Return attribute and wire name of each field that a result of ``cls`` shows, in declaration order.

    A pure function of the class; the cache only saves time.
    """
    shown = shown_fields(cls, style, Names(), "the result", output=True)
    try:
        hints = class_hints(cls, shown, Names(), "the result")
    except UnsupportedTypeError:
        # A result without a declared type needs no annotation that can be read: its fields keep their own names.
        hints = dict.fromkeys(shown)
    fields = raw_fields(cls, style, hints)
    return tuple((f.attribute, given_name(f.annotation) or f.name) for f in fields if f.attribute in shown)


def plain_table(value: Any) -> dict[str, Any]:
    """Return a dict whose keys are all text, itself if they are.

    Raises:
        TypeError: It is no mapping, or a key is no text or comes twice.
    """
    if is_object(value) and type(value) is dict and all(type(key) is str for key in value):
        return value
    if not is_mapping(value):
        msg = f"expected a dict, got {kind_of(value)}"
        raise TypeError(msg)
    out = {_key(key, ""): item for key, item in value.items()}
    if len(out) != len(value):
        msg = "two keys of the dict have the same text"
        raise TypeError(msg)
    return out


def listed(value: Any) -> Any:
    """Return a list or tuple, itself.

    Raises:
        TypeError: It is something else that can be iterated: a dict, a generator, which would be gone afterwards.
    """
    if not isinstance(value, (list, tuple)):
        msg = f"expected a list or tuple, got {kind_of(value)}"
        raise TypeError(msg)
    return cast("Any", value)


def collected(value: Any) -> Any:
    """Return a set or frozenset, itself.

    Raises:
        TypeError: It is something else.
    """
    if not isinstance(value, (set, frozenset)):
        msg = f"expected a set, got {kind_of(value)}"
        raise TypeError(msg)
    return cast("Any", value)


def sorted_items(items: Iterable[Any]) -> list[Any]:
    """Return the items of a set in an order that does not depend on hashes: their own, or that of their JSON text."""
    listed = list(items)
    try:
        return sorted(listed)
    except TypeError:
        return sorted(listed, key=_text_of)


def _text_of(item: Any) -> bytes:
    return msgspec.json.encode(item, order="deterministic")


def is_finite(value: Any) -> bool:
    """Return whether an encodable value holds no NaN and no infinity, which msgspec would write as ``null``."""
    todo = [value]
    for item in todo:  # grows while it is read
        kind = class_of(item)
        if kind is float:
            if item - item != 0.0:
                return False
        elif kind is dict:
            todo.extend(item.values())
        elif kind in _SEQUENCES:
            todo.extend(item)
    return True
