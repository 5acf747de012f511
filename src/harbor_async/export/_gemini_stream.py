"""Joining the calls of a Gemini stream whose arguments come in pieces.

::

    {"name": "lookup", "willContinue": true}
    {"partialArgs": [{"jsonPath": "$.city", "stringValue": "Os", "willContinue": true}], "willContinue": true}
    {"partialArgs": [{"jsonPath": "$.city", "stringValue": "lo"}], "willContinue": true}
    {}

A piece belongs to the call before it as long as that one says that it goes on. Source: the reference of
``FunctionCall`` and ``PartialArg``; paths are those of RFC 9535 that lead to one place.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs

from .._json import encode, is_array, is_mapping, is_object
from . import _read

_PATH: Final = re.compile(r"""\$(?:\.[^.\[\]'"]+|\[\d+\]|\['[^'\\]*'\]|\["[^"\\]*"\])+""")
_STEP: Final = re.compile(r"""\.([^.\[\]'"]+)|\[(\d+)\]|\['([^'\\]*)'\]|\["([^"\\]*)"\]""")


@attrs.define
class Joined:
    """A call, as far as it has come.

    Attributes:
        id: Its id, if it has one.
        name: What is called.
        arguments: What stands in ``args``, or came of the pieces; of a call that broke off, text that is cut.
    """

    id: Any
    name: Any
    arguments: Any


def join(calls: Iterable[Any]) -> Iterator[Joined]:
    """Yield each call of a message or of a stream, with its pieces put together."""
    current: Joined | None = None
    for call in calls:
        if current is None:
            current = Joined(_read.get(call, "id"), _read.get(call, "name"), _read.get(call, "args"))
        pieces = _read.items(_read.get(call, "partial_args", "partialArgs"))
        if pieces:
            arguments = dict(current.arguments) if is_mapping(current.arguments) else {}
            for piece in pieces:
                _add(arguments, piece)
            current.arguments = arguments
        if not _read.get(call, "will_continue", "willContinue"):
            yield current
            current = None
    if current is not None:  # the stream broke off: what came is not what was meant
        current.arguments = encode(current.arguments or {})[:-1]
        yield current


def _add(arguments: dict[str, Any], piece: Any) -> None:
    """Put a piece in its place; under its path as it came, which the decoder refuses, if that leads nowhere."""
    path = _read.text(_read.get(piece, "json_path", "jsonPath"))
    text = _read.get(piece, "string_value", "stringValue")
    value = _read.get(piece, "bool_value", "boolValue", "number_value", "numberValue") if text is None else text
    steps = [name or other or quoted or int(index) for name, index, other, quoted in _STEP.findall(path)]
    if _PATH.fullmatch(path) is None or not _put(arguments, steps, value, is_more=text is not None):
        arguments[path] = value


def _put(place: Any, steps: list[str | int], value: Any, *, is_more: bool) -> bool:
    """Return whether ``value`` could be put where ``steps`` lead; more text is added to what is there."""
    for number, step in enumerate(steps):
        is_last = number == len(steps) - 1
        begun: Any = None if is_last else [] if isinstance(steps[number + 1], int) else {}
        if is_object(place) and isinstance(step, str):
            below = place.setdefault(step, begun)
        elif is_array(place) and isinstance(step, int) and step <= len(place):
            if step == len(place):
                place.append(begun)
            below = place[step]
        else:
            return False
        if is_last:
            here: Any = place
            here[step] = below + value if is_more and isinstance(below, str) else value
        place = below
    return True
