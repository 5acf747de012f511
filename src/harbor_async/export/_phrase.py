"""What a schema keyword says, in words for a description."""

from collections.abc import Callable, Iterable
from typing import Any, Final

from .._json import encode, is_array

_CLIP: Final = 300


def _json(value: Any) -> str:
    text = encode(value).decode()
    return text if len(text) <= _CLIP else f"{text[:_CLIP]}…"


def _list(value: Any) -> str:
    return ", ".join(map(_json, value)) if is_array(value) else _json(value)


def _count(least: str, unit: str) -> Callable[[Any], str]:
    return lambda value: f"{least} {_json(value)} {unit}{'s' * (value != 1)}"


_PHRASES: Final[dict[str, Callable[[Any], str]]] = {
    "const": lambda value: f"always {_json(value)}",
    "default": lambda value: f"default: {_json(value)}",
    "deprecated": lambda value: "deprecated" if value is True else "",
    "enum": lambda value: f"one of {_list(value)}",
    "examples": lambda value: f"for example {_list(value)}",
    "exclusiveMaximum": lambda value: f"less than {_json(value)}",
    "exclusiveMinimum": lambda value: f"more than {_json(value)}",
    "maxItems": _count("at most", "item"),
    "maxLength": _count("at most", "character"),
    "maxProperties": _count("at most", "key"),
    "maximum": lambda value: f"at most {_json(value)}",
    "minItems": _count("at least", "item"),
    "minLength": _count("at least", "character"),
    "minProperties": _count("at least", "key"),
    "minimum": lambda value: f"at least {_json(value)}",
    "multipleOf": lambda value: f"a multiple of {_json(value)}",
    "oneOf": lambda _: "exactly one of these",
    "pattern": lambda value: f"matches the pattern {value}",
    "prefixItems": lambda value: f"the items in this order: {_list(value)}",
    "uniqueItems": lambda value: "no item twice" if value is True else "",
}


def phrase(keyword: str, value: Any, *, is_exact: bool = False) -> str:
    """Return what ``keyword`` says, as ``at least 2 characters``; nothing where there is nothing to say.

    Args:
        keyword: A keyword of JSON Schema, or any other.
        value: Its value.
        is_exact: Whether to give it as JSON, and not in words.
    """
    say = None if is_exact else _PHRASES.get(keyword)
    return f"{keyword}: {_json(value)}" if say is None else say(value)


def describe(schema: dict[str, Any], texts: Iterable[str]) -> None:
    """Add ``texts`` to the description of ``schema``, a sentence each: ``The city. At least 2 characters.``."""
    sentences = [f"{text[0].upper()}{text[1:]}." for text in texts if text]
    if sentences:
        own = schema.get("description")
        if isinstance(own, str) and own:
            sentences.insert(0, f"{own}." if own[-1].isalnum() else own)
        schema["description"] = " ".join(sentences)
