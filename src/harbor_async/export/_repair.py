"""Arguments that a model has wrapped once too often, unwrapped by explicit rules."""

import re
from collections.abc import Iterator
from functools import partial
from typing import Any, Final, TypeAlias

import attrs

from .._descriptor import ToolDescriptor
from .._json import (
    BadNumber,
    DocumentError,
    Doubled,
    encode,
    is_array,
    is_deeper,
    is_mapping,
    is_object,
    kind_of,
    parse,
    point,
    too_large,
)
from .._results import Arguments, Repair
from ..errors import InvalidArgumentsError
from ._decode import below_item, below_key
from ._look import alternatives, is_combined, kinds

_FENCE: Final = re.compile(r"```(?:json|JSON)?[ \t]*\r?\n(.*)\n[ \t]*```", re.DOTALL)
_BEGINNINGS: Final = ("{", "[", "`")
_MOST_BYTES: Final = 1_000_000
_MOST_LEVELS: Final = 64

_Place: TypeAlias = tuple[str | int, ...]


@attrs.frozen
class _Candidate:
    """A string that may have been meant as the JSON that it holds."""

    place: _Place
    parsed: Any
    repairs: tuple[Repair, ...]


def repair(tool: ToolDescriptor[..., Any], arguments: Arguments) -> tuple[Arguments, tuple[Repair, ...]]:
    r"""Unwrap arguments that a model has sent as text of JSON: ``Runtime(catalog, repair=repair)``.

    The rules, by the word that ``Repair.rule`` has:

    - ``json_string``: a string where the schema wants an object or an array, which is the JSON of one that validates
      there as a whole: ``{"files": "[1, 2]"}``. Never for a parameter that takes text alone, and no numbers or words.
    - ``code_fence``: the text of the arguments, or such a string, is one Markdown code block and nothing else.
    - ``empty_string``: ``""``, a JSON string without a sign, for no arguments.

    What is cut off, has text round it or commas too many stays as it is, for the decoder to say what is wrong. So does
    what is larger than a million bytes.

    Args:
        tool: Whose schema and decoder are asked.
        arguments: As they came.

    Returns:
        The arguments, the same object if there was nothing to repair, and what was repaired.
    """
    try:
        return _repaired(tool, arguments)
    except (DocumentError, RecursionError, TypeError, UnicodeError):  # no JSON that could be unwrapped
        return arguments, ()


def _repaired(tool: ToolDescriptor[..., Any], arguments: Arguments) -> tuple[Arguments, tuple[Repair, ...]]:
    repairs: tuple[Repair, ...] = ()
    value: Any = arguments
    if not is_mapping(arguments):
        value, repairs = _unwrapped(arguments.decode() if isinstance(arguments, bytes) else str(arguments), "")
        if value == "":
            return "{}", (*repairs, Repair("", "empty_string"))
        if isinstance(value, str):
            value, more = _unwrapped(value, "")
            if not is_object(value) or _faults(tool, value):
                return arguments, ()
            return encode(value), (*repairs, Repair("", "json_string"), *more)
        if not is_object(value):
            return arguments, ()
    schema = tool.tool.args_schema
    taken = list(_find(schema, [schema], value, ()))
    whole = value
    while taken:
        whole = value
        for each in taken:
            whole = _put(whole, each.place, each.parsed)
        faults = _faults(tool, whole)
        good = [each for each in taken if not any(map(partial(_is_below, _pointer(each.place)), faults))]
        if good == taken:
            break
        taken, whole = good, value
    repairs += tuple(repair for each in taken for repair in each.repairs)
    if not repairs:
        return arguments, ()
    return whole if is_mapping(arguments) else encode(whole), repairs


def _unwrapped(text: str, path: str) -> tuple[Any, tuple[Repair, ...]]:
    """Return what a text of JSON holds, without the one code block that it may be.

    Raises:
        DocumentError: It is no JSON that we would look into.
        TypeError: It holds a key twice, or a number that is out of range.
    """
    fence = _FENCE.fullmatch(text.strip())
    data = (text if fence is None else fence[1]).encode()
    if len(data) > _MOST_BYTES or is_deeper(data, _MOST_LEVELS):
        raise DocumentError(too_large(_MOST_BYTES))
    value = parse(data).value
    if _is_odd(value):
        msg = "a key came twice, or a number is out of range"
        raise TypeError(msg)
    return value, () if fence is None else (Repair(path, "code_fence"),)


def _is_odd(value: Any) -> bool:
    if isinstance(value, (Doubled, BadNumber)):
        return True
    parts = value.values() if is_object(value) else value if is_array(value) else ()
    return any(map(_is_odd, parts))


def _find(root: Any, schemas: list[Any], value: Any, place: _Place) -> Iterator[_Candidate]:
    """Yield each string that stands where an object or an array is wanted, and holds one."""
    found = alternatives(root, schemas)
    if is_mapping(value):
        for key, item in value.items():
            yield from _find(root, below_key(found, value, key), item, (*place, key))
    elif is_array(value):
        for index, item in enumerate(value):
            yield from _find(root, below_item(found, index), item, (*place, index))
    elif isinstance(value, str) and value.lstrip()[:1] in _BEGINNINGS:
        wanted = _wanted(found)
        path = _pointer(place)
        try:
            parsed, repairs = _unwrapped(value, path) if wanted else (None, ())
        except (DocumentError, RecursionError, TypeError, UnicodeError):
            return
        if kind_of(parsed) in wanted:
            yield _Candidate(place, parsed, (Repair(path, "json_string"), *repairs))


def _wanted(found: list[dict[str, Any]]) -> frozenset[str]:
    """Return which of object and array the schemas of a place name; none where anything may stand."""
    named = [kinds(schema) for schema in found if not is_combined(schema)]
    if None in named:
        return frozenset()
    return frozenset({"object", "array"}).intersection(*[frozenset[str]().union(*(each or () for each in named))])


def _put(value: Any, place: _Place, new: Any) -> Any:
    """Return a copy of ``value`` with ``new`` at ``place``."""
    if not place:
        return new
    copy: Any = list(value) if is_array(value) else dict(value)
    copy[place[0]] = _put(copy[place[0]], place[1:], new)
    return copy


def _faults(tool: ToolDescriptor[..., Any], value: Any) -> list[str]:
    """Return the paths of what the tool's decoder finds wrong."""
    try:
        tool.decode(encode(value))
    except InvalidArgumentsError as exc:
        return [problem.path for problem in exc.problems]
    return []


def _pointer(place: _Place) -> str:
    path = ""
    for step in place:
        path = point(path, step)
    return path


def _is_below(path: str, fault: str) -> bool:
    return fault == path or fault.startswith(f"{path}/")
