"""Arguments that come as a mapping: they become the text that they stand for, and get its very verdict."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from .._json import (
    OUT_OF_RANGE,
    DocumentError,
    Path,
    class_of,
    encode,
    has_surrogate,
    has_too_many_digits,
    is_array,
    is_mapping,
    is_object,
    pointer,
    too_deep,
    too_large,
)
from ..errors import Problem

_ATOMS: Final = frozenset({int, bool, type(None)})


class _Foreign(Exception):  # noqa: N818 - private signal, never leaves this module
    """A mapping holds what no JSON text can; the slow look says what."""


def from_mapping(value: Mapping[Any, Any], max_bytes: int, max_depth: int) -> bytes:
    """Encode a mapping of JSON values, so that it gets the very verdict of the same document as text.

    Args:
        value: A mapping of what ``json.loads`` would give; nested mappings and subclasses of builtins are taken too.
        max_bytes: Bound of the encoded size; the walk stops soon after it is passed, shared references or not.
        max_depth: Bound of the nesting, so a cycle is too deep.

    Returns:
        Its JSON text.

    Raises:
        DocumentError: It is too large or too deep, or holds what JSON cannot say.
    """
    try:
        try:
            is_plain = class_of(value) is dict and is_exact(value, max_depth, [max_bytes])
            data = encode(value if is_plain else _plain(value, max_depth, [max_bytes]))
        except (_Foreign, ValueError) as exc:  # a surrogate, or more digits than Python writes
            raise DocumentError(_find_foreign(value, None) or _unreadable(exc)) from exc
    except RecursionError as exc:
        raise DocumentError(too_deep()) from exc
    except DocumentError:
        raise
    except Exception as exc:  # a mapping of somebody else's may raise anything when it is read
        raise DocumentError(_unreadable(exc)) from exc
    if len(data) > max_bytes:
        raise DocumentError(too_large(max_bytes))
    return data


def _unreadable(exc: Exception) -> Problem:
    return Problem("", "value", f"reading the mapping raised {type(exc).__name__}")


def is_exact(value: object, room: int, budget: list[int]) -> bool:
    """Return whether a dict or list holds exact builtins only: it can be encoded without a copy, three times faster.

    Args:
        value: A dict or list.
        room: The levels of nesting left.
        budget: The bytes left, in a list of one; it is used up.

    Raises:
        DocumentError: It is nested deeper than ``room``, or its containers and texts are larger than ``budget``.
    """
    _enter(value, room, budget)
    items = cast("Iterable[Any]", value)
    size = 0
    if is_object(value):
        for key in value:
            if type(key) is not str:
                return False
            size += len(key)
        items = value.values()
    for item in items:
        kind = class_of(item)
        if kind is str:
            size += len(item)
        elif kind in _ATOMS:
            continue
        elif kind is float:
            if item - item != 0.0:
                return False
        elif (kind is not dict and kind is not list) or not is_exact(item, room - 1, budget):
            return False
    _spend(size, budget)
    return True


def _plain(value: Any, room: int, budget: list[int]) -> Any:
    """Return ``value`` as exact builtins; ``room`` is the nesting left, ``budget[0]`` the bytes left."""
    kind = class_of(value)
    if kind is str:
        _spend(len(value), budget)
        return value
    if kind is int or kind is bool or value is None:
        return value
    if kind is float:
        if value - value != 0.0:
            raise _Foreign
        return value
    # list before Mapping: asking an abstract class costs ten times as much.
    if is_array(value):
        _enter(value, room, budget)
        return [_plain(item, room - 1, budget) for item in value]
    if kind is dict or is_mapping(value):
        _enter(value, room, budget)
        out: dict[str, Any] = {}
        for key, item in value.items():
            name = key if type(key) is str else _text_key(key)
            _spend(len(name), budget)
            out[name] = _plain(item, room - 1, budget)
        return out
    return _from_subclass(value, budget)


def _enter(value: Any, room: int, budget: list[int]) -> None:
    if room <= 0:
        raise DocumentError(too_deep())
    _spend(len(value), budget)


def _spend(size: int, budget: list[int]) -> None:
    budget[0] -= size
    if budget[0] < 0:
        raise DocumentError(Problem("", "too_large", "the arguments are too large"))


def _text_key(key: object) -> str:
    if isinstance(key, str):
        return str.__str__(key)
    raise _Foreign


def _from_subclass(value: Any, budget: list[int]) -> Any:
    """Return a subclass of str, int or float (an enum member, say) as its base."""
    if isinstance(value, str):
        return _plain(str.__str__(value), 1, budget)
    if isinstance(value, int):
        return int.__index__(value)
    if isinstance(value, float):
        return _plain(float.__float__(value), 1, budget)
    raise _Foreign


def _find_foreign(value: Any, path: Path) -> "Problem | None":
    """Return the first thing in ``value`` that JSON cannot say. Its depth is known to be bounded."""
    if is_mapping(value):
        for key, item in value.items():
            if not isinstance(key, str):
                message = f"expected string keys, got a key of type {type(key).__name__}"
                return Problem(pointer(path), "type", message)
            if has_surrogate(key):
                return Problem(pointer(path), "value", "a key holds a lone surrogate, which is no text")
            if found := _find_foreign(item, (path, key)):
                return found
        return None
    if is_array(value):
        found_items = (_find_foreign(item, (path, index)) for index, item in enumerate(value))
        return next(filter(None, found_items), None)
    if isinstance(value, str):
        is_bad = has_surrogate(value)
        return Problem(pointer(path), "value", "the text holds a lone surrogate, which is no text") if is_bad else None
    if isinstance(value, float):
        return Problem(pointer(path), "value", "numbers must be finite") if value - value != 0.0 else None
    if isinstance(value, int):
        return Problem(pointer(path), "value", OUT_OF_RANGE) if has_too_many_digits(value) else None
    if value is None:
        return None
    return Problem(pointer(path), "type", f"expected a JSON value, got {type(value).__name__}")
