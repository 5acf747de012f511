"""How large the schema of a strict tool may be for OpenAI. Source: the guide to structured outputs, as of 2026."""

from collections.abc import Iterator
from typing import Any, Final

from ..errors import Refusal
from ._look import pointer, subschemas

_MOST_PROPERTIES: Final = 5_000
_MOST_LEVELS: Final = 10
_MOST_ENUM_VALUES: Final = 1_000
_MOST_CHARACTERS: Final = 120_000
_LONG_ENUM: Final = 250
_MOST_LONG_ENUM_CHARACTERS: Final = 15_000


def over_limit(schema: dict[str, Any], tool: str) -> Iterator[Refusal]:
    """Yield each limit that the schema of a strict tool breaks.

    Names and values are counted once each where they stand: a definition counts once, however often it is used.
    """
    properties = enum_values = characters = 0
    todo: list[tuple[str, Any]] = [("", schema)]
    while todo:
        path, here = todo.pop()
        named = [*here.get("properties", ()), *here.get("$defs", ())]
        values = [*here.get("enum", ()), *([here["const"]] if "const" in here else ())]
        properties += len(here.get("properties", ()))
        enum_values += len(here.get("enum", ()))
        characters += sum(map(len, named)) + sum(len(str(value)) for value in values)
        size = sum(len(value) for value in values if isinstance(value, str))
        if len(values) > _LONG_ENUM and size > _MOST_LONG_ENUM_CHARACTERS:
            yield Refusal(
                tool,
                path,
                f"an enum of more than {_LONG_ENUM} values has more than {_MOST_LONG_ENUM_CHARACTERS} characters",
            )
        todo += [(pointer(steps, path), below) for steps, below in subschemas(here) if isinstance(below, dict)]
    for count, most, what in (
        (properties, _MOST_PROPERTIES, "properties"),
        (_levels(schema), _MOST_LEVELS, "levels of objects"),
        (enum_values, _MOST_ENUM_VALUES, "values of enums"),
        (characters, _MOST_CHARACTERS, "characters of names and values"),
    ):
        if count > most:
            yield Refusal(tool, "", f"{count} {what}; at most {most} are allowed")


def _levels(root: dict[str, Any]) -> int:
    """Return how many objects stand within each other, each definition followed once."""
    known: dict[str, int] = {}

    def depth(schema: Any, above: frozenset[str]) -> int:
        ref = schema.get("$ref")
        if isinstance(ref, str):
            if ref in above or ref == "#":
                return 0
            if ref not in known:
                known[ref] = depth(root["$defs"][ref.rsplit("/", 1)[-1]], above | {ref})
            return known[ref]
        below = [
            depth(each, above) for steps, each in subschemas(schema) if steps[0] != "$defs" and isinstance(each, dict)
        ]
        return max(below, default=0) + ("properties" in schema)

    return depth(root, frozenset())
