"""Reading a JSON Schema 2020-12: references, and what may stand at a place."""

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

from .._json import is_array, is_object, kind_of, point

ANNOTATIONS: Final = frozenset({"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"})
COMBINED: Final = ("anyOf", "oneOf", "allOf")
_ONE: Final = ("additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then")
_MANY: Final = (*COMBINED, "prefixItems")
_NAMED: Final = ("$defs", "dependentSchemas", "patternProperties", "properties")

Path: TypeAlias = tuple[str, ...]
"""The steps that lead to a place in a schema."""


def resolve(root: Any, ref: str) -> Any:
    """Return what a reference within ``root`` leads to.

    Raises:
        LookupError: It leads elsewhere or nowhere.
    """
    if ref != "#" and not ref.startswith("#/"):
        raise LookupError(ref)
    place: Any = root
    for token in ref[2:].split("/") if ref != "#" else ():
        key = unquote(token).replace("~1", "/").replace("~0", "~")
        if is_array(place) and key.isdecimal():
            place = place[int(key)]
        elif is_object(place):
            place = place[key]
        else:
            raise LookupError(ref)
    return place


def subschemas(schema: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the schemas directly within ``schema``, each with the steps that lead there."""
    if not is_object(schema):
        return
    for key in _ONE:
        if key in schema:
            yield (key,), schema[key]
    for key in _MANY:
        if is_array(members := schema.get(key)):
            yield from (((key, str(index)), member) for index, member in enumerate(members))
    for key in _NAMED:
        if is_object(members := schema.get(key)):
            yield from (((key, name), member) for name, member in members.items())


def alternatives(root: Any, schemas: Iterable[Any]) -> list[dict[str, Any]]:
    """Return every schema that says something of a place at which one of ``schemas`` holds, references followed."""
    found: dict[int, dict[str, Any]] = {}
    todo = list(schemas)
    while todo:
        schema: Any = todo.pop(0)
        schema = {} if schema is True else schema
        if not is_object(schema) or id(schema) in found:
            continue
        found[id(schema)] = schema
        if isinstance(ref := schema.get("$ref"), str):
            todo.append(_followed(root, ref))
        for key in COMBINED:
            if is_array(members := schema.get(key)):
                todo += members
    return list(found.values())


def _followed(root: Any, ref: str) -> Any:
    try:
        return resolve(root, ref)
    except (LookupError, TypeError):
        return None


def kinds(schema: dict[str, Any]) -> frozenset[str] | None:
    """Return the JSON kinds that ``schema`` itself names, by ``type``, ``const`` or ``enum``; None: it names none."""
    named = schema.get("type")
    if isinstance(named, str):
        return frozenset({named})
    if is_array(named):
        return frozenset(named)
    if "const" in schema:
        return frozenset({kind_of(schema["const"])})
    if is_array(values := schema.get("enum")):
        return frozenset(map(kind_of, values))
    return None


def is_combined(schema: dict[str, Any]) -> bool:
    """Say whether ``schema`` leaves it to others what may stand there."""
    return "$ref" in schema or any(key in schema for key in COMBINED)


def takes_null(root: Any, schema: Any) -> bool:
    """Say whether null may stand where ``schema`` holds. What cannot be told counts as yes."""
    if not is_object(schema):
        return schema is not False
    return _takes_null(root, schema, frozenset())


def _takes_null(root: Any, schema: Any, above: frozenset[str]) -> bool:
    if not is_object(schema):
        return schema is not False
    named = kinds(schema)
    if named is not None and "null" not in named:
        return False
    if is_array(values := schema.get("enum")) and None not in values:
        return False
    ref = schema.get("$ref")
    if isinstance(ref, str) and ref not in above:
        target = _followed(root, ref)
        if target is not None and not _takes_null(root, target, above | {ref}):
            return False
    for key in ("anyOf", "oneOf"):
        if is_array(members := schema.get(key)) and not any(_takes_null(root, each, above) for each in members):
            return False
    members = schema.get("allOf")
    return not is_array(members) or all(_takes_null(root, each, above) for each in members)


def find_cycle(root: Any, *, skip_optional: bool = False) -> str | None:
    """Return the place of a reference by which a schema comes back to itself; None if there is none.

    Args:
        root: The schema.
        skip_optional: Whether what stands below a key that may be left out does not count.
    """
    done: set[str] = set()

    def visit(ref: str, above: tuple[str, ...]) -> str | None:
        for place, target in _references(root, ref, skip_optional=skip_optional):
            if target in (*above, ref):
                return place
            if target not in done and (found := visit(target, (*above, ref))) is not None:
                return found
        done.add(ref)
        return None

    return visit("#", ())


def _references(root: Any, ref: str, *, skip_optional: bool) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    try:
        todo = [(ref[1:], resolve(root, ref))]
    except (LookupError, TypeError):
        return found
    while todo:
        path, schema = todo.pop()
        if not is_object(schema):
            continue
        if isinstance(target := schema.get("$ref"), str):
            found.append((path, target))
        required = schema.get("required", ())
        for steps, below in subschemas(schema):
            is_optional = steps[0] == "properties" and steps[1] not in required
            if steps[0] != "$defs" and not (skip_optional and is_optional):
                todo.append((pointer(steps, path), below))
    return found


def pointer(steps: Path, start: str = "") -> str:
    for step in steps:
        start = point(start, step)
    return start


def unreferenced(root: Any, schema: dict[str, Any]) -> dict[str, Any]:
    """Return ``schema`` with the target of its own reference in that one's place.

    Raises:
        LookupError: The reference leads nowhere, or to itself.
    """
    seen: set[str] = set()
    while isinstance(ref := schema.get("$ref"), str):
        target = resolve(root, ref)
        if ref in seen or not is_object(target):
            raise LookupError(ref)
        seen.add(ref)
        schema = merged({key: value for key, value in schema.items() if key != "$ref"}, target)
    return schema


def merged(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Return what holds when both hold; of annotations the first one's.

    Raises:
        LookupError: Both say something of one thing, and what both say together has no such simple form.
    """
    both = {**second, **first}
    for key in first.keys() & second.keys() - ANNOTATIONS:
        mine, other = first[key], second[key]
        if mine == other:
            continue
        if key == "required":
            both[key] = [*mine, *(name for name in other if name not in mine)]
        elif key in {"properties", "$defs"} and not mine.keys() & other.keys():
            both[key] = {**mine, **other}
        else:
            raise LookupError(key)
    return both
