"""What a dialect knows, and what comes of a schema in it."""

import re
from typing import Any, Final, Literal

import attrs

from .._json import is_object
from ..errors import ExportError, InvalidToolError, Refusal
from ._look import unreferenced
from ._phrase import describe, phrase


@attrs.frozen
class Loss:
    """Something that a dialect has no word for.

    Attributes:
        path: Where in the tool's schema, as a JSON Pointer (RFC 6901); references on the way are followed.
        keyword: The keyword that is lost; ``required`` for a key that can no longer be left out.
        text: What the description says instead; ``""`` if it says nothing.
    """

    path: str
    keyword: str
    text: str


@attrs.frozen
class Exported:
    """A schema in a dialect.

    Attributes:
        schema: The schema.
        losses: What it no longer says.
    """

    schema: dict[str, Any]
    losses: tuple[Loss, ...] = ()


@attrs.frozen(kw_only=True)
class Rules:
    """What a dialect knows.

    Attributes:
        dialect: What messages call it.
        keywords: Keywords that are kept as they are.
        formats: The values of ``format`` that it knows.
        is_closed: Whether an object must list all of its keys, and every place have a type.
        is_total: Whether every key must be required: one that may be left out becomes nullable instead.
        recursion: Whether a schema may refer to itself: not at all, only by keys that may be left out, or anywhere.
        inlines: Whether a reference is replaced by what it leads to.
        most_min_items: The greatest ``minItems``; None: any.
        bad_pattern: Finds what a pattern must not hold; None: any pattern will do.
    """

    dialect: str
    keywords: frozenset[str]
    formats: frozenset[str] = frozenset()
    is_closed: bool = False
    is_total: bool = False
    recursion: Literal["none", "optional", "any"] = "any"
    inlines: bool = False
    most_min_items: int | None = None
    bad_pattern: "re.Pattern[str] | None" = None


STRICT_WORDS: Final = (True, False, "auto")


def check_word(name: str, value: object, *words: object) -> None:
    """Refuse an option that is none of ``words``.

    Raises:
        InvalidToolError: It is something else.
    """
    if not any(value is word or (isinstance(value, str) and value == word) for word in words):
        msg = f"{name}: expected {' or '.join(map(repr, words))}; got {value!r}"
        raise InvalidToolError(msg)


def flatten(dialect: str, banned: frozenset[str], schema: dict[str, Any], tool: str = "") -> Exported:
    """Move what a dialect does not take at the root to the description, and leave everything else as it is.

    Args:
        dialect: What messages call it.
        banned: The keywords that it does not take there.
        schema: The JSON Schema 2020-12 of an argument object.
        tool: The name that a refusal carries.

    Raises:
        ExportError: Without them the schema would not say which keys there are.
    """
    try:
        root = {"type": "object", **unreferenced(schema, schema)}
    except LookupError as exc:
        raise ExportError(dialect, [Refusal(tool, "/$ref", f"cannot be followed: {exc.args[0]!r}")]) from exc
    losses = tuple(Loss("", key, phrase(key, root[key], is_exact=True)) for key in root if key in banned)
    if losses and not is_object(root.get("properties")):
        raise ExportError(dialect, [Refusal(tool, f"/{loss.keyword}", "not allowed at the root") for loss in losses])
    kept = {key: value for key, value in root.items() if key not in banned}
    describe(kept, [loss.text for loss in losses])
    return Exported(kept, losses)
