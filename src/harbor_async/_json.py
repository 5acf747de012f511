"""Strict JSON: what ``json`` and ``msgspec`` leave open is closed here.

A document is measured (size, depth) before anything recursive touches it; its parse tree keeps what a plain dict
forgets: which keys came twice, and which numbers no ``int`` or ``float`` can hold.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeGuard, cast

import msgspec

from .errors import Problem, clip

WHITESPACE: Final = b" \t\r\n"
MAX_PROBLEMS: Final = 100
_KEY_LIMIT: Final = 80
# A string without its end reaches to the end of the text. Were it no match, each quote in it would be tried in vain:
# 20 KB of it took 3.5 s.
_STRINGS: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_ATOMS: Final = frozenset({str, int, bool, type(None)})
_BRACKETS: Final = re.compile(rb"[\[{\]}]")

encode: Final = msgspec.json.Encoder().encode
"""Encode builtins. Never hand it a user's class: it would sort the keys and leak undeclared attributes."""


class_of: Final = cast("Callable[[Any], type[Any]]", type)
"""``type``, for type checkers that call the class of an Any unknown."""


class Object(dict[str, Any]):
    """A parsed object that remembers which keys came more than once."""

    __slots__ = ("duplicates",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        """Keep the last value of each key and the names of the repeated ones."""
        super().__init__(pairs)
        seen: set[str] = set()
        repeated: dict[str, None] = {}
        if len(self) != len(pairs):
            for key, _ in pairs:
                if key in seen:
                    repeated[key] = None
                seen.add(key)
        self.duplicates: tuple[str, ...] = tuple(repeated)


class BadNumber:
    """Stands in a parse tree for a number that no ``int`` or ``float`` can hold."""


class DocumentError(Exception):
    """A text is no document that we would look into.

    Attributes:
        problem: Why.
    """

    def __init__(self, problem: Problem) -> None:
        """Carry ``problem``."""
        super().__init__(problem.message)
        self.problem = problem


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Return whether ``value`` is a list."""
    return isinstance(value, list)


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Return whether ``value`` is a dict; where this is asked its keys are text."""
    return isinstance(value, dict)


def is_mapping(value: object) -> TypeGuard[Mapping[Any, Any]]:
    """Return whether ``value`` is a mapping with keys of any type."""
    return isinstance(value, Mapping)


def show(key: str) -> str:
    """Return ``key`` for a message: printable, quoted, and of bounded length."""
    return ascii(clip(key, _KEY_LIMIT))


def point(path: str, key: "str | int") -> str:
    """Return the JSON Pointer (RFC 6901 §3) ``path`` extended by ``key``, which is cut if it is absurdly long."""
    if isinstance(key, int):
        return f"{path}/{key}"
    token = clip(key, _KEY_LIMIT)
    if not token.isprintable():
        token = token.encode("utf-8", "backslashreplace").decode()
    return f"{path}/{token.replace('~', '~0').replace('/', '~1')}"


def kind_of(value: object) -> str:
    """Return the JSON name of ``value``'s kind."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, (float, BadNumber)):
        return "number"
    if isinstance(value, str):
        return "string"
    if isinstance(value, (list, tuple)):
        return "array"
    return "object" if isinstance(value, Mapping) else type(value).__name__


def has_surrogate(text: str) -> bool:
    """Return whether ``text`` holds half of a surrogate pair, which no UTF-8 can say."""
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def holds_keys(data: bytes, keys: int) -> bool:
    """Return whether the valid document ``data`` holds exactly ``keys`` keys, so that none of them can have come twice.

    A key is as many as the colons outside strings. They are first bounded from above, which nearly always settles it:
    the colon of a key follows a quote or white space. Only else are the strings cut out, at about ten times the cost.
    """
    bound = data.count(b'":') + data.count(b" :") + data.count(b"\n:") + data.count(b"\t:") + data.count(b"\r:")
    return keys == bound or keys == _STRINGS.sub(b"", data).count(b":")


def is_deeper(data: bytes, limit: int) -> bool:
    """Return whether ``data`` nests arrays and objects more than ``limit`` levels deep. Linear, and not recursive."""
    if data.count(b"[") + data.count(b"{") <= limit:
        return False
    depth = 0
    for match in _BRACKETS.finditer(_STRINGS.sub(b"", data)):
        depth += 1 if match[0] in b"[{" else -1
        if depth > limit:
            return True
    return False


def too_large(limit: int) -> Problem:
    """Return the problem of a document over ``limit`` bytes."""
    return Problem("", "too_large", f"the arguments are larger than {limit} bytes of JSON")


def too_deep(limit: "int | None" = None) -> Problem:
    """Return the problem of a document that nests deeper than ``limit``."""
    bound = "" if limit is None else f": more than {limit} levels"
    return Problem("", "too_deep", f"arrays and objects are nested too deeply{bound}")


def _constant(word: str) -> Any:
    raise DocumentError(Problem("", "syntax", f"{word} is not JSON; numbers must be finite"))


def _integer(digits: str) -> "int | BadNumber":
    try:
        return int(digits)
    except ValueError:
        return BadNumber()


def _real(digits: str) -> "float | BadNumber":
    number = float(digits)
    return BadNumber() if number in {float("inf"), float("-inf")} else number


_parser: Final = json.JSONDecoder(
    object_pairs_hook=Object, parse_constant=_constant, parse_int=_integer, parse_float=_real
)


def parse(data: bytes) -> Any:
    """Parse one document, whose depth is already known to be bounded.

    Args:
        data: UTF-8 text of one JSON value; JSON white space round it is allowed and nothing else is.

    Returns:
        Builtins, with ``Object`` for objects and ``BadNumber`` for numbers out of range.

    Raises:
        DocumentError: The text is not UTF-8, begins with a byte order mark, is not JSON, or nests too deeply.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as exc:
        problem = Problem("", "syntax", f"the text is not UTF-8 (byte {exc.start})")
        raise DocumentError(problem) from exc
    if text.startswith("\ufeff"):
        raise DocumentError(Problem("", "syntax", "the text begins with a byte order mark; send plain JSON"))
    try:
        value, end = _parser.raw_decode(text, len(text) - len(text.lstrip(" \t\r\n")))
    except json.JSONDecodeError as exc:
        problem = Problem("", "syntax", f"not valid JSON: {exc.msg} (character {exc.pos})")
        raise DocumentError(problem) from exc
    except RecursionError as exc:
        raise DocumentError(too_deep()) from exc
    if text[end:].strip(" \t\r\n"):
        raise DocumentError(Problem("", "syntax", f"not valid JSON: text after the document (character {end})"))
    return value


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
        if class_of(value) is dict and is_exact(value, max_depth, [max_bytes]):
            data = encode(value)
        else:
            data = encode(_plain(value, max_depth, [max_bytes]))
    except (_Foreign, UnicodeEncodeError) as exc:
        raise DocumentError(_find_foreign(value, "") or Problem("", "value", "no JSON value")) from exc
    except RecursionError as exc:
        raise DocumentError(too_deep()) from exc
    except DocumentError:
        raise
    except Exception as exc:  # a mapping of somebody else's may raise anything when it is read
        message = f"reading the mapping raised {type(exc).__name__}"
        raise DocumentError(Problem("", "value", message)) from exc
    if len(data) > max_bytes:
        raise DocumentError(too_large(max_bytes))
    return data


def is_exact(value: object, room: int, budget: list[int]) -> bool:
    """Return whether a dict or list holds exact builtins only: it can be encoded without a copy, three times faster.

    Args:
        value: A dict or list.
        room: The levels of nesting left.
        budget: The bytes left, in a list of one; it is used up.

    Raises:
        DocumentError: It is nested deeper than ``room``, or its containers alone are larger than ``budget``.
    """
    _enter(value, room, budget)
    items = cast("Iterable[Any]", value)
    if is_object(value):
        for key in value:
            if type(key) is not str:
                return False
        items = value.values()
    for item in items:
        kind = class_of(item)
        if kind is str or kind in _ATOMS:
            continue
        if kind is float:
            if item - item != 0.0:
                return False
        elif (kind is not dict and kind is not list) or not is_exact(item, room - 1, budget):
            return False
    return True


def _plain(value: Any, room: int, budget: list[int]) -> Any:
    """Return ``value`` as exact builtins; ``room`` is the nesting left, ``budget[0]`` the bytes left."""
    kind = class_of(value)
    if kind is str:
        budget[0] -= len(value)
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
            budget[0] -= len(name)
            out[name] = _plain(item, room - 1, budget)
        return out
    return _from_subclass(value, budget)


def _enter(value: Any, room: int, budget: list[int]) -> None:
    if room <= 0:
        raise DocumentError(too_deep())
    budget[0] -= len(value)
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


def _find_foreign(value: Any, path: str) -> "Problem | None":
    """Return the first thing in ``value`` that JSON cannot say. Its depth is known to be bounded."""
    if is_mapping(value):
        for key, item in value.items():
            if not isinstance(key, str):
                return Problem(path, "type", f"expected string keys, got a key of type {type(key).__name__}")
            if has_surrogate(key):
                return Problem(path, "value", "a key holds a lone surrogate, which is no text")
            if found := _find_foreign(item, point(path, key)):
                return found
        return None
    if is_array(value):
        found_items = (_find_foreign(item, point(path, index)) for index, item in enumerate(value))
        return next(filter(None, found_items), None)
    if isinstance(value, str):
        is_bad = has_surrogate(value)
        return Problem(path, "value", "the text holds a lone surrogate, which is no text") if is_bad else None
    if isinstance(value, float):
        return Problem(path, "value", "numbers must be finite") if value - value != 0.0 else None
    if value is None or isinstance(value, int):
        return None
    return Problem(path, "type", f"expected a JSON value, got {type(value).__name__}")
