"""Reading a provider's messages: plain dicts and the objects of its SDK alike."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

import msgspec

from .._json import class_of, is_mapping

_ITEMS: Final = (list, tuple)


def get(message: Any, *names: str) -> Any:
    """Return the first of the keys or attributes ``names`` that is there and not None; else None."""
    for name in names:
        value = message.get(name) if is_mapping(message) else getattr(message, name, None)
        if value is not None:
            return value
    return None


def items(value: Any) -> list[Any]:
    """Return the items of a list, or of any other iterable that is no text and no mapping; else nothing."""
    if isinstance(value, _ITEMS):
        return list(cast("Iterable[Any]", value))
    return []


def text(value: Any) -> str:
    """Return ``value`` if it is text, and else nothing."""
    return value if isinstance(value, str) else ""


def arguments(value: Any) -> Any:
    """Return the arguments of a call as ``ToolCall`` takes them, from what stands in a message.

    What can be no arguments becomes JSON of it: the decoder then says what it expected instead.
    """
    if value is None:
        return ""
    if isinstance(value, (str, bytes, Mapping)):
        return cast("Any", value)
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return msgspec.json.encode(class_of(value).__name__)
