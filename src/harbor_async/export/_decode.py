"""What a dialect makes of arguments, undone by the tool's own schema."""

from collections.abc import Mapping
from typing import Any, cast

from .._catalog import Catalog
from .._json import DocumentError, Doubled, encode, is_array, is_mapping, is_object, parse
from .._results import Arguments
from .._tool import Tool
from ..errors import ToolNotFoundError
from ._look import alternatives, is_combined, kinds, takes_null


def find(catalog: Catalog | None, name: str) -> Tool | None:
    """Return the tool of this name; None if there is none."""
    try:
        return None if catalog is None else catalog.resolve(name).tool
    except ToolNotFoundError:
        return None


def drop_nulls(tool: Tool, arguments: Arguments) -> Arguments:
    """Leave out each key that may be left out and whose null can mean nothing else.

    Text that is no plain JSON object stays as it is: the decoder will say what is wrong with it.
    """
    if is_mapping(arguments):
        return cast("Mapping[str, Any]", _Undoing(tool.args_schema, nulls=True).value([tool.args_schema], arguments))
    data = arguments.encode("utf-8", "surrogatepass") if isinstance(arguments, str) else cast("bytes", arguments)
    if b"null" not in data:
        return arguments
    try:
        parsed = parse(data).value
        schema = tool.args_schema
        value = _Undoing(schema, nulls=True).value([schema], parsed)
        return arguments if value == parsed else encode(value)
    except (DocumentError, RecursionError, TypeError, UnicodeEncodeError):  # two of them of what no builtin can say
        return arguments


def restore_integers(tool: Tool, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Make ints of the whole floats that stand where the schema wants an integer and no other number."""
    schema = tool.args_schema
    try:
        return cast("Mapping[str, Any]", _Undoing(schema, nulls=False).value([schema], arguments))
    except RecursionError:
        return arguments


class _Undoing:
    def __init__(self, root: Any, *, nulls: bool) -> None:
        self._root = root
        self._nulls = nulls

    def value(self, schemas: list[Any], value: Any) -> Any:
        """Return ``value``, of which one of ``schemas`` is to hold, as the decoder is to see it."""
        if is_mapping(value):
            return self._object(alternatives(self._root, schemas), cast("Mapping[str, Any]", value))
        if is_array(value):
            found = alternatives(self._root, schemas)
            return [self.value(below_item(found, index), item) for index, item in enumerate(value)]
        if not self._nulls and isinstance(value, float) and value.is_integer():
            named = [kinds(schema) for schema in alternatives(self._root, schemas) if not is_combined(schema)]
            said = frozenset[str]().union(*(kind for kind in named if kind is not None))
            return int(value) if None not in named and "integer" in said and "number" not in said else value
        return value

    def _object(self, found: list[dict[str, Any]], value: Mapping[str, Any]) -> dict[str, Any]:
        if isinstance(value, Doubled):
            msg = "a key came twice"
            raise TypeError(msg)
        fitting = _fitting(found, value)
        out: dict[str, Any] = {}
        for key, item in value.items():
            holders = [schema for schema in fitting if key in schema["properties"]]
            if self._nulls and item is None and holders and all(self._is_absent(schema, key) for schema in holders):
                continue
            out[key] = self.value(below_key(found, value, key), item)
        return out

    def _is_absent(self, schema: dict[str, Any], key: str) -> bool:
        """Say whether a null for ``key`` can only mean that it is left out."""
        return key not in schema.get("required", ()) and not takes_null(self._root, schema["properties"][key])


def _fitting(found: list[dict[str, Any]], value: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the objects that ``value`` may be: of a union those whose constants, or else whose keys, are there."""
    objects = [schema for schema in found if is_object(schema.get("properties"))]
    if len(objects) > 1:
        objects = [schema for schema in objects if _has_constants(schema["properties"], value)] or objects
    if len(objects) > 1:
        objects = [schema for schema in objects if value.keys() <= schema["properties"].keys()] or objects
    return objects


def _has_constants(properties: dict[str, Any], value: Mapping[str, Any]) -> bool:
    return all(
        value.get(key, schema["const"]) == schema["const"]
        for key, schema in properties.items()
        if is_object(schema) and "const" in schema
    )


def below_key(found: list[dict[str, Any]], value: Mapping[str, Any], key: str) -> list[Any]:
    """Return the schemas of what stands under ``key`` in an object of which ``found`` say something."""
    below = [schema["properties"][key] for schema in _fitting(found, value) if key in schema["properties"]]
    return below or [schema["additionalProperties"] for schema in found if "additionalProperties" in schema]


def below_item(found: list[dict[str, Any]], index: int) -> list[Any]:
    """Return the schemas of an item of an array of which ``found`` say something."""
    below: list[Any] = []
    for schema in found:
        first = schema.get("prefixItems", ())
        if index < len(first):
            below.append(first[index])
        elif "items" in schema:
            below.append(schema["items"])
    return below
