"""``derive_schema.json``: the schema of one type each."""

from collections.abc import Callable
from functools import reduce
from typing import Any

import jsonschema_rs
import pytest

from harbor_async.errors import RegistrationError, SchemaBuildError, UnsupportedTypeError
from harbor_async.schema import derive_schema
from tests.parity.go_types import TYPES, DeepBad
from tests.parity.harness import Case, Difference, Section, named, names

Path = tuple[str, ...]

NULLABLE: dict[str, list[Path]] = {
    "ptr_time": [()],
    "slice_ptr": [("items",)],
    "ptr_int": [()],
    "ptr_ptr": [()],
    "ptr_struct": [()],
    "struct_pointer_field": [("properties", "p")],
    "struct_nested": [("properties", "m", "additionalProperties")],
    "struct_embedded_ptr": [("properties", "Base")],
    "diamond": [("properties", "p")],
    **{f"depth_pointer_{depth}": [()] for depth in (31, 32, 33)},
    "ptr_big_int": [()],
}
"""Where the seed's types have a pointer, which may be null."""

INNER: Path = ("properties", "y")
DEFAULTS: dict[str, list[tuple[Path, Any]]] = {
    "slice_struct": [(("items", *INNER), "")],
    "map_struct": [(("additionalProperties", *INNER), "")],
    "ptr_struct": [(("anyOf", "0", *INNER), "")],
    "struct_simple": [(INNER, "")],
    "struct_omitempty_no_name": [(("properties", "A"), 0)],
    "struct_omitempty_second": [(("properties", "a"), 0)],
    "struct_pointer_field": [(("properties", "p"), None)],
    "struct_nested": [
        (("properties", "i", *INNER), ""),
        (("properties", "l", "items", *INNER), ""),
        (("properties", "m", "additionalProperties", "anyOf", "0", *INNER), ""),
    ],
    "struct_embedded_ptr": [(("properties", "Base"), None)],
    "diamond": [
        (("properties", "l", *INNER), ""),
        (("properties", "r", *INNER), ""),
        (("properties", "p", "anyOf", "0", *INNER), ""),
        (("properties", "p"), None),
    ],
}
"""Where a key that may be left out has a default, and which."""


def change(schema: Any, path: Path, how: Callable[[Any], Any]) -> Any:
    """Return ``schema`` with what stands at ``path`` changed."""
    if not path:
        return how(schema)
    head, *tail = path
    if isinstance(schema, list):
        return [change(item, tuple(tail), how) if str(at) == head else item for at, item in enumerate(schema)]
    return {**schema, head: change(schema[head], tuple(tail), how)}


def nullable(schema: Any, case: Case) -> Any:
    def wrap(inner: Any) -> Any:
        return {"anyOf": [inner, {"type": "null"}]}

    return reduce(lambda whole, path: change(whole, path, wrap), NULLABLE[case.name], schema)


def with_defaults(schema: Any, case: Case) -> Any:
    def show(whole: Any, place: tuple[Path, Any]) -> Any:
        return change(whole, place[0], lambda inner: inner | {"default": place[1]})

    return reduce(show, DEFAULTS[case.name], schema)


def closed(required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    """Return the schema of an object with these properties and no others."""
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required} if required else schema


INTEGER = {"type": "integer"}
TEXT = {"type": "string"}
NULL = {"type": "null"}


def shared(schema: Any, _: Case) -> Any:
    """Put ``Inner`` in ``$defs`` and refer to it."""
    inner = closed(["x"], x=INTEGER, y=TEXT | {"default": ""})

    def refer(part: Any) -> Any:
        if part == inner:
            return {"$ref": "#/$defs/Inner"}
        if isinstance(part, dict):
            return {key: refer(value) for key, value in part.items()}
        return [refer(item) for item in part] if isinstance(part, list) else part

    return refer(schema) | {"$defs": {"Inner": inner}}


def recursive(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the root schema of a class that refers to itself."""
    return schema | {"$defs": {name: schema}}


def ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


CYCLES = {
    "cycle_pointer": recursive("Node", closed(["V"], V=INTEGER, Next={"anyOf": [ref("Node"), NULL], "default": None})),
    "cycle_slice": recursive("Tree", closed(["Kids"], Kids={"type": "array", "items": ref("Tree")})),
    "cycle_map": recursive("MapNode", closed(["M"], M={"type": "object", "additionalProperties": ref("MapNode")})),
    "cycle_array": recursive(
        "ArrNode",
        closed(
            ["A"],
            A={"type": "array", "items": {"anyOf": [ref("ArrNode"), NULL]}, "minItems": 2, "maxItems": 2},
        ),
    ),
    "cycle_mutual": recursive(
        "A1",
        closed(
            B={"anyOf": [closed(A={"anyOf": [ref("A1"), NULL], "default": None}), NULL], "default": None},
        ),
    ),
}
DEPTHS = {
    "depth_slice_33": reduce(lambda item, _: {"type": "array", "items": item}, range(33), TEXT),
    "depth_slice_40": reduce(lambda item, _: {"type": "array", "items": item}, range(40), TEXT),
    "depth_pointer_33": TEXT,
}
DECLARED = {
    "struct_no_tags": ["Foo", "BarBaz"],
    "struct_pointer_slice_map_any": ["s", "m", "a", "r"],
    "struct_required_sorted": ["z", "a", "m"],
}
"""The order of declaration, where it is not that of the alphabet."""

EMBEDDED = {
    "struct_embedded": closed(["id", "n"], id=TEXT, n=INTEGER),
    "struct_embedded_unexported": closed(["hidden", "n"], hidden=TEXT, n=INTEGER),
}
NAMED: dict[str, Any] = {"named_raw": {}, "named_time": {"type": "string", "format": "date-time"}}
DECIMAL = "^[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]{1,9})?$"
OWN_FORMS: dict[str, Any] = {
    "number": {"anyOf": [{"type": "string", "pattern": DECIMAL}, {"type": "number"}]},
    "marshaler": TEXT,
    "text_marshaler": TEXT,
    "net_ip": TEXT,
}


def table(number: int, answers: dict[str, Any]) -> Difference:
    """Return the difference that gives each case in ``answers`` the schema that stands there."""
    return Difference(number, named(*answers), lambda _, case: answers[case.name])


SCHEMAS = Section(
    "derive_schema",
    "cases",
    lambda case: case.expected.get("schema", "unsupported"),
    (
        table(24, dict.fromkeys(("big_int", "ptr_big_int"), INTEGER)),
        table(26, CYCLES | DEPTHS),
        table(15, EMBEDDED | {"level_enum": {"type": "integer", "enum": [0, 1]}}),
        Difference(15, named(*NULLABLE), nullable),
        Difference(37, named(*DEFAULTS), with_defaults),
        Difference(26, named(*DECLARED), lambda seed, case: seed | {"required": DECLARED[case.name]}),
        Difference(26, named("struct_nested", "diamond"), shared),
        table(38, NAMED),
        table(39, OWN_FORMS),
        table(40, {"struct_dash_comma": closed(["-"], **{"-": INTEGER})}),
        table(41, {"struct_duplicate_names": "refused"}),
        table(48, {"map_any_key": {"type": "object", "additionalProperties": TEXT}}),
    ),
)


def derive(tp: Any) -> Any:
    """Return the schema of ``tp``, or the word for its refusal."""
    try:
        return derive_schema(tp)
    except UnsupportedTypeError:
        return "unsupported"
    except SchemaBuildError:
        return "refused"


@pytest.mark.parametrize("case", SCHEMAS.cases, ids=names)
def test_a_type_has_the_schema_of_the_seed(case: Case, asserted: Callable) -> None:
    """The Python type that says the same as the Go type has its schema, or is refused where that one is."""
    numbers, expected = SCHEMAS.expect(case)
    schema = derive(TYPES[case.name])
    assert expected == schema
    if isinstance(schema, dict):
        jsonschema_rs.meta.validate(schema)
    asserted(SCHEMAS, case, numbers)


def test_properties_stand_in_the_order_of_declaration() -> None:
    """A model reads the fields in the order in which they were written; the seed sorts them."""
    assert ["z", "a", "m"] == list(derive_schema(TYPES["struct_required_sorted"])["properties"])


def test_a_refusal_names_each_field_on_the_way() -> None:
    """As in the seed, the error for a type deep inside says through which fields it is reached."""
    with pytest.raises(RegistrationError, match=r"DeepBad\.i.*DeepBadMiddle\.l.*ChannelField\.c|ChannelField\.c"):
        derive_schema(DeepBad)


def test_the_differences_cover_as_many_cases_as_agreed() -> None:
    """No difference covers more cases, or fewer, than when it was agreed on."""
    assert {0: 79, 15: 16, 24: 2, 26: 13, 37: 10, 38: 2, 39: 4, 40: 1, 41: 1, 48: 1} == SCHEMAS.counts()
