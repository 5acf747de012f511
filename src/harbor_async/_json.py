"""Strict JSON: what ``json`` and ``msgspec`` leave open is closed here.

A document is measured (size, depth) before anything recursive touches it; its parse tree keeps what a plain dict
forgets: which keys came twice, and which numbers no ``int`` or ``float`` can hold.

Every step is linear in the text, with small factors: four megabytes made to be slow must not stop a loop for seconds.
"""

import json
import re
from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import Any, Final, TypeAlias, TypeGuard, cast

import msgspec

from .errors import Problem, clip

OUT_OF_RANGE: Final = "the number is out of range"
WHITESPACE: Final = b" \t\r\n"
_KEY_LIMIT: Final = 80
# A string without its end reaches to the end of the text. Were it no match, each quote in it would be tried in vain:
# 20 KB of it took 3.5 s.
_STRINGS: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
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


class Document(msgspec.Struct, frozen=True):
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
    text = ""
    while path is not None:
        path, key = path
        text = point("", key) + text
    return text


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


def count_any(value: Any) -> int:
    """Return how many keys a tree of builtins holds."""
    count = 0
    todo = [value]
    for item in todo:  # grows while it is read
        kind = class_of(item)
        if kind is dict:
            count += len(item)
            todo.extend(item.values())
        elif kind is list:
            todo.extend(item)
    return count


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
    bound = "" if limit is None else f": more than {limit} level{'s' * (limit != 1)}"
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
        plain = msgspec.json.decode(data)
        if holds_keys(data, count_any(plain)):
            return Document(plain, is_clean=True)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        pass  # what is wrong with it is found below
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
