"""Strict JSON: what ``json`` and ``msgspec`` leave open is closed here.

A document is measured (size, depth) before anything recursive touches it; its parse tree keeps what a plain dict
forgets: which keys came twice, and which numbers no ``int`` or ``float`` can hold.

Every step is linear in the text, with small factors: four megabytes made to be slow must not stop a loop for seconds.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from typing import Any, Final, TypeAlias, TypeGuard, cast

import attrs
import msgspec

from .errors import Problem, clip

OUT_OF_RANGE: Final = "the number is out of range"
WHITESPACE: Final = b" \t\r\n"
_KEY_LIMIT: Final = 80
# A string without its end reaches to the end of the text. Were it no match, each quote in it would be tried in vain:
# 20 KB of it took 3.5 s.
_STRINGS: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_ATOMS: Final = frozenset({int, bool, type(None)})
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_NO_BRACKETS: Final = bytes(byte for byte in range(256) if byte not in b"[{]}")
_LEVELS: Final = tuple(1 if byte in b"[{" else -1 for byte in range(256))

encode: Final = msgspec.json.Encoder().encode
"""Encode builtins. Never hand it a user's class: it would sort the keys and leak undeclared attributes."""


class_of: Final = cast("Callable[[Any], type[Any]]", type)
"""``type``, for type checkers that call the class of an Any unknown."""


Path: TypeAlias = "tuple[Path, str | int] | None"
"""The way to a value, innermost step last, None at the root. It becomes a JSON Pointer only where there is something to
say: writing one for each of a million items takes seconds."""


class Doubled(dict[str, Any]):
    """A parsed object some of whose keys came more than once; each has its last value."""

    __slots__ = ("duplicates",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        """Keep the last value of each key and the names of the repeated ones."""
        super().__init__(pairs)
        seen: set[str] = set()
        repeated: dict[str, None] = {}
        for key, _ in pairs:
            if key in seen:
                repeated[key] = None
            seen.add(key)
        self.duplicates: tuple[str, ...] = tuple(repeated)


class BadNumber:
    """Stands in a parse tree for a number that no ``int`` or ``float`` can hold."""


_KINDS: Final[dict[type, str]] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    BadNumber: "number",
    str: "string",
    list: "array",
    tuple: "array",
    dict: "object",
    Doubled: "object",
}


@attrs.frozen
class Document:
    """A parsed text.

    Attributes:
        value: Builtins, with ``Doubled`` for an object with repeated keys and ``BadNumber`` for a number out of range.
        is_clean: Whether there is surely nothing in it that plain builtins cannot say: neither of these two, nor half
            of a surrogate pair.
    """

    value: Any
    is_clean: bool


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


def pointer(path: Path) -> str:
    """Return ``path`` as a JSON Pointer."""
    steps: list[str] = []
    while path is not None:
        path, key = path
        steps.append(point("", key))
    return "".join(reversed(steps))


def kind_of(value: object) -> str:
    """Return the JSON name of ``value``'s kind; the name of its class if it has none."""
    kind = _KINDS.get(type(value))
    if kind is not None:
        return kind
    for base in (bool, int, float, str, list, tuple):
        if isinstance(value, base):
            return _KINDS[base]
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


def has_too_many_digits(value: int) -> bool:
    """Return whether Python would not write ``value`` out: ``sys.set_int_max_str_digits`` bounds that."""
    try:
        int.__repr__(value)
    except ValueError:
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
    brackets = _STRINGS.sub(b"", data).translate(None, _NO_BRACKETS)
    return max(accumulate(map(_LEVELS.__getitem__, brackets)), default=0) > limit


def too_large(limit: int) -> Problem:
    """Return the problem of a document over ``limit`` bytes."""
    return Problem("", "too_large", f"the arguments are larger than {limit} bytes of JSON")


def too_deep(limit: "int | None" = None) -> Problem:
    """Return the problem of a document that nests deeper than ``limit``."""
    bound = "" if limit is None else f": more than {limit} levels"
    return Problem("", "too_deep", f"arrays and objects are nested too deeply{bound}")


def _constant(word: str) -> Any:
    raise DocumentError(Problem("", "syntax", f"{word} is not JSON; numbers must be finite"))


class _Reader:
    """What the parser calls for each object and number; notes whether it met a bad one."""

    def __init__(self) -> None:
        self.is_clean = True

    def object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        plain = dict(pairs)
        if len(plain) == len(pairs):
            return plain
        self.is_clean = False
        return Doubled(pairs)

    def integer(self, digits: str) -> "int | BadNumber":
        try:
            return int(digits)
        except ValueError:
            return self._bad()

    def real(self, digits: str) -> "float | BadNumber":
        number = float(digits)
        return number if number - number == 0.0 else self._bad()

    def _bad(self) -> BadNumber:
        self.is_clean = False
        return BadNumber()


def parse(data: bytes) -> Document:
    """Parse one document, whose depth is already known to be bounded.

    Args:
        data: UTF-8 text of one JSON value; JSON white space round it is allowed and nothing else is.

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
    reader = _Reader()
    parser = json.JSONDecoder(
        object_pairs_hook=reader.object, parse_constant=_constant, parse_int=reader.integer, parse_float=reader.real
    )
    try:
        value, end = parser.raw_decode(text, len(text) - len(text.lstrip(" \t\r\n")))
    except json.JSONDecodeError as exc:
        problem = Problem("", "syntax", f"not valid JSON: {exc.msg} (character {exc.pos})")
        raise DocumentError(problem) from exc
    except RecursionError as exc:
        raise DocumentError(too_deep()) from exc
    if text[end:].strip(" \t\r\n"):
        raise DocumentError(Problem("", "syntax", f"not valid JSON: text after the document (character {end})"))
    return Document(value, is_clean=reader.is_clean and _SURROGATE.search(data) is None)


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
