"""Single rules of each dialect, by hand: what comes of a schema, what is lost, and what is refused."""

import pytest

from harbor_async.errors import ExportError
from harbor_async.export import Loss, anthropic, gemini, openai


def closed(properties, *required, **more):
    return {"type": "object", "properties": properties, "required": [*required], "additionalProperties": False, **more}


def exported_property(module, schema, required=True, **options):
    """Return what becomes of one property, without the object round it."""
    root = closed({"p": schema}, *(["p"] if required else []))
    return module.schema(root, **options).schema["properties"]["p"]


def test_openai_optional_becomes_nullable():
    """OpenAI strict: what may be left out is required and nullable, and says so; the loss is listed."""
    exported = openai.schema(closed({"a": {"type": "string"}, "n": {"type": "integer", "default": 1}}, "a"))
    assert (
        closed(
            {"a": {"type": "string"}, "n": {"type": ["integer", "null"], "description": "Default: 1. Null: left out."}},
            "a",
            "n",
        )
        == exported.schema
    )
    assert (
        Loss("/properties/n", "default", "default: 1"),
        Loss("/properties/n", "required", "null: left out"),
    ) == exported.losses


def test_openai_null_that_means_something():
    """OpenAI strict: where null is a value already nothing is added, and that it cannot be left out is a loss."""
    schema = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    exported = openai.schema(closed({"p": schema}))
    assert schema == exported.schema["properties"]["p"]
    assert (Loss("/properties/p", "required", ""),) == exported.losses


@pytest.mark.parametrize(
    ("schema", "nullable"),
    [
        ({"type": "string", "enum": ["a"]}, {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]}),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]},
         {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]}),
        ({"type": "array", "items": {"type": "string"}}, {"type": ["array", "null"], "items": {"type": "string"}}),
    ],
)  # fmt: skip
def test_openai_nullable_forms(schema, nullable):
    """OpenAI strict: null joins a type, an enum and a union."""
    assert {**nullable, "description": "Null: left out."} == exported_property(openai, schema, required=False)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "string", "minLength": 1}, "At least 1 character."),
        ({"type": "string", "maxLength": 3}, "At most 3 characters."),
        ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, "No item twice."),
        ({"type": "string", "format": "idn-email"}, 'Format: "idn-email".'),
        ({"type": "string", "pattern": "(?=a)b"}, "Matches the pattern (?=a)b."),
        ({"type": "string", "contentEncoding": "base64"}, 'ContentEncoding: "base64".'),
        ({"type": "string", "description": "A city", "minLength": 2}, "A city. At least 2 characters."),
    ],
)
def test_openai_moved_to_the_description(schema, text):
    """OpenAI strict: a keyword that is not known there is a sentence of the description instead."""
    done = exported_property(openai, schema)
    assert text == done["description"]
    assert {"type", "items", "description"} >= done.keys()


@pytest.mark.parametrize(
    ("schema", "path", "reason"),
    [
        ({}, "/properties/p", "a type must be named"),
        ({"type": "object"}, "/properties/p/additionalProperties", "every key of an object must be listed"),
        (
            {"type": "object", "additionalProperties": {"type": "string"}},
            "/properties/p/additionalProperties",
            "listed",
        ),
        ({"type": "object", "properties": {"x": {}}}, "/properties/p/properties/x", "a type must be named"),
        (
            {"type": "object", "properties": {"x": {"type": "string"}}, "additionalProperties": True},
            "/properties/p/additionalProperties",
            "listed",
        ),
        ({"type": "object", "patternProperties": {"a": {}}}, "/properties/p/patternProperties", "keys by pattern"),
        ({"type": "array"}, "/properties/p", "of what type its items are"),
        ({"$ref": "#/$defs/No"}, "/properties/p", "cannot be put together"),
        ({"$ref": "https://example.org/schema"}, "/properties/p", "cannot be put together"),
        ({"allOf": [{"type": "string"}, {"type": "integer"}]}, "/properties/p", "cannot be put together"),
        (False, "/properties/p", "no value is allowed"),
    ],
)
@pytest.mark.parametrize("module", [openai, anthropic])
def test_strict_refuses(module, schema, path, reason):
    """Both strict dialects refuse what they cannot say, with the JSON Pointer and the reason."""
    with pytest.raises(ExportError) as raised:
        module.schema(closed({"p": schema}, "p"), tool="t")
    (refusal, *_) = raised.value.refusals
    assert ("t", path) == (refusal.tool, refusal.path)
    assert reason in refusal.reason


def test_all_refusals_at_once():
    """A schema is refused with every reason that there is."""
    with pytest.raises(ExportError, match=r"at /properties/a.*at /properties/b") as raised:
        openai.schema(closed({"a": {}, "b": {}}))
    assert ["/properties/a", "/properties/b"] == [refusal.path for refusal in raised.value.refusals]


def test_open_object_with_keys_is_closed():
    """A strict object that only fails to forbid more keys has those that it lists; the others are a loss."""
    exported = openai.schema(closed({"p": {"type": "object", "properties": {"x": {"type": "string"}}}}, "p"))
    assert exported.schema["properties"]["p"]["additionalProperties"] is False
    assert Loss("/properties/p/additionalProperties", "additionalProperties", "") in exported.losses


def test_no_arguments():
    """A tool that takes none, as others describe it, takes none in every dialect."""
    schema = {"type": "object", "properties": {}}
    empty = {**schema, "additionalProperties": False}
    assert {**empty, "required": []} == openai.schema(schema).schema
    assert empty == anthropic.schema(schema).schema
    assert {"type": "OBJECT", "properties": {}} == gemini.schema(schema, field="parameters").schema
    assert schema == gemini.schema(schema).schema == openai.schema(schema, strict=False).schema


@pytest.mark.parametrize("schema", [{"type": "object", "properties": {}}, closed({})])
def test_gemini_parameters_object_without_keys(schema):
    """Gemini's ``parameters``: an object without keys is refused below the root."""
    with pytest.raises(ExportError, match="at /properties/p: an object without keys"):
        gemini.schema(closed({"p": schema}), field="parameters")


def test_all_of_is_put_together():
    """The parts of ``allOf`` become one object where they speak of different things."""
    part = {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}
    other = {"properties": {"y": {"type": "string"}}, "required": ["y"], "additionalProperties": False}
    schema = {"allOf": [{"$ref": "#/$defs/Part"}, other], "description": "Both."}
    exported = openai.schema(closed({"p": schema}, "p", **{"$defs": {"Part": part}}))
    done = exported.schema["properties"]["p"]
    assert {"x", "y"} == set(done["properties"]) == set(done["required"])
    assert "Both." == done["description"]


def test_one_of_becomes_any_of():
    """Strict dialects know ``anyOf`` only; that it is exactly one is said."""
    done = exported_property(openai, {"oneOf": [{"type": "string"}, {"type": "integer"}]})
    assert {"anyOf": [{"type": "string"}, {"type": "integer"}], "description": "Exactly one of these."} == done


def test_tuple():
    """A tuple becomes an array of any of its types, and its order is said; of one type nothing is lost."""
    pair = {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False,
            "minItems": 2, "maxItems": 2}  # fmt: skip
    done = exported_property(openai, pair)
    assert {"anyOf": [{"type": "integer"}, {"type": "string"}]} == done["items"]
    assert (2, 2) == (done["minItems"], done["maxItems"])
    assert 'The items in this order: {"type":"integer"}, {"type":"string"}.' == done["description"]
    twins = {**pair, "prefixItems": [{"type": "integer"}, {"type": "integer"}]}
    assert {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2} == exported_property(
        openai, twins
    )


def test_reference_with_words_of_its_own():
    """A reference stands alone in a strict dialect: with a description it is replaced by what it leads to."""
    defs = {"$defs": {"Place": closed({"city": {"type": "string"}}, "city")}}
    root = closed({"a": {"$ref": "#/$defs/Place"}, "b": {"$ref": "#/$defs/Place", "description": "There."}}, "a", "b")
    done = openai.schema({**root, **defs}).schema
    assert {"$ref": "#/$defs/Place"} == done["properties"]["a"]
    assert {**defs["$defs"]["Place"], "description": "There."} == done["properties"]["b"]


def test_recursion_with_words_of_its_own():
    """A reference that comes back to itself is not replaced for ever: its own words are lost."""
    knot = closed({"next": {"$ref": "#/$defs/Knot", "description": "The next."}}, "next")
    root = closed({"p": {"$ref": "#/$defs/Knot"}}, "p", **{"$defs": {"Knot": knot}})
    exported = openai.schema(root)
    assert {"$ref": "#/$defs/Knot"} == exported.schema["$defs"]["Knot"]["properties"]["next"]
    assert Loss("/$defs/Knot/properties/next", "description", "") in exported.losses


def test_reference_by_another_place():
    """A reference to another place than ``$defs`` leads to a definition afterwards."""
    root = closed({"a": closed({"x": {"type": "string"}}, "x"), "b": {"$ref": "#/properties/a"}}, "a", "b")
    done = openai.schema(root).schema
    assert {"$ref": "#/$defs/a"} == done["properties"]["b"]
    assert closed({"x": {"type": "string"}}, "x") == done["$defs"]["a"]


def test_hostile_references():
    """References that ask for 2^40 schemas are refused, not followed."""
    defs = {f"D{n}": closed({"a": {"$ref": f"#/$defs/D{n + 1}", "title": "a"},
                             "b": {"$ref": f"#/$defs/D{n + 1}", "title": "b"}}, "a", "b")
            for n in range(40)}  # fmt: skip
    defs["D40"] = closed({"x": {"type": "string"}}, "x")
    root = closed({"p": {"$ref": "#/$defs/D0"}}, "p", **{"$defs": defs})
    for convert in (openai.schema, anthropic.schema, lambda s: gemini.schema(s, field="parameters"), gemini.schema):
        with pytest.raises(ExportError, match="more than 20000 schemas"):
            convert(root)


@pytest.mark.parametrize("ref", [{"allOf": [{"$ref": "#/$defs/A"}]}, {"$ref": "#/$defs/A"}])
def test_endless_references(ref):
    """A definition that is nothing but itself is refused."""
    root = closed({"p": {"$ref": "#/$defs/A", "title": "x"}}, "p", **{"$defs": {"A": ref}})
    for convert in (openai.schema, anthropic.schema, gemini.schema, lambda s: gemini.schema(s, field="parameters")):
        with pytest.raises(ExportError):
            convert(root)


@pytest.mark.parametrize(
    ("count", "schema", "what"),
    [
        (5001, closed({f"p{n}": {"type": "string"} for n in range(5001)}), "5001 properties; at most 5000"),
        (1001, closed({"p": {"type": "integer", "enum": [*range(1001)]}}, "p"), "1001 values of enums; at most 1000"),
        (120_001, closed({"p" * 120_001: {"type": "string"}}), "120001 characters of names and values; at most 120000"),
        (251, closed({"p": {"type": "string", "enum": [f"{n:060}" for n in range(251)]}}, "p"),
         "more than 250 values has more than 15000 characters"),
    ],
)  # fmt: skip
def test_openai_limits(count, schema, what):
    """OpenAI strict: a schema over a limit is refused with the count and the limit."""
    with pytest.raises(ExportError, match=what):
        openai.schema(schema)
    openai.schema(schema, strict=False)


def test_openai_levels():
    """OpenAI strict: ten levels of objects pass, eleven do not."""
    schema = {"type": "string"}
    for _ in range(10):
        schema = closed({"p": schema}, "p")
    openai.schema(schema)
    with pytest.raises(ExportError, match="11 levels of objects; at most 10"):
        openai.schema(closed({"p": schema}, "p"))


@pytest.mark.parametrize(
    ("module", "word"), [(openai, "oneOf"), (openai, "not"), (openai, "enum"), (anthropic, "anyOf")]
)
def test_nothing_combined_at_the_root(module, word):
    """Not strict: a combination at the root goes to the description, everything else stays as it is."""
    value = {"required": ["z"]} if word == "not" else [{"required": ["a"]}]
    schema = {"type": "object", "properties": {"a": {"type": "string", "minLength": 2}}, word: value}
    exported = module.schema(schema, strict=False)
    assert schema["properties"] == exported.schema["properties"]
    assert word not in exported.schema
    assert exported.schema["description"].startswith(f"{word[0].upper()}{word[1:]}: ")
    assert [word] == [loss.keyword for loss in exported.losses]


@pytest.mark.parametrize("module", [openai, anthropic])
def test_root_that_is_only_a_union(module):
    """Not strict: a root whose keys stand in a union alone is refused, since nothing would be left."""
    with pytest.raises(ExportError, match="at /anyOf: not allowed at the root"):
        module.schema({"anyOf": [closed({"a": {"type": "string"}})]}, strict=False)


def test_anthropic_bounds():
    """Anthropic strict: bounds go to the description, and ``minItems`` stays as far as it may."""
    schema = {"type": "array", "items": {"type": "integer", "minimum": 1}, "minItems": 3, "maxItems": 5}
    assert {
        "type": "array",
        "items": {"type": "integer", "description": "At least 1."},
        "minItems": 1,
        "description": "At least 3 items. At most 5 items.",
    } == exported_property(anthropic, schema)


@pytest.mark.parametrize("pattern", [r"(a)\1", r"(?!a)b", r"\bword"])
def test_anthropic_patterns(pattern):
    """Anthropic strict: back references, lookaround and word bounds go to the description."""
    assert "pattern" not in exported_property(anthropic, {"type": "string", "pattern": pattern})
    assert "pattern" in exported_property(anthropic, {"type": "string", "pattern": r"^\d+$"})


def test_anthropic_room():
    """Anthropic strict: keys that may be left out and keys of several types are counted through the whole schema."""
    inner = closed({"u": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "o": {"type": "string"}}, "u")
    schema = closed({"p": {"$ref": "#/$defs/I"}, "q": {"$ref": "#/$defs/I"}, "r": {"type": ["string", "integer"]}},
                    "p", "q", **{"$defs": {"I": inner}})  # fmt: skip
    assert anthropic.Room(tools=1, optional=2, unions=2) == anthropic.room(anthropic.schema(schema).schema)


@pytest.mark.parametrize(
    ("schema", "done"),
    [
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": "STRING", "nullable": True}),
        ({"type": ["integer", "null"]}, {"type": "INTEGER", "nullable": True}),
        ({"type": "integer", "exclusiveMinimum": 0}, {"type": "INTEGER", "minimum": 1}),
        ({"type": "integer", "exclusiveMaximum": 9}, {"type": "INTEGER", "maximum": 8}),
        ({"type": "number", "exclusiveMinimum": 0}, {"type": "NUMBER", "description": "More than 0."}),
        ({"type": "string", "const": "x"}, {"type": "STRING", "enum": ["x"]}),
        ({"type": "integer", "enum": [1, 2]}, {"type": "INTEGER", "description": "One of 1, 2."}),
        ({"type": ["string", "null"], "enum": ["a", None]}, {"type": "STRING", "nullable": True, "enum": ["a"]}),
        ({"type": "integer", "multipleOf": 2}, {"type": "INTEGER", "description": "A multiple of 2."}),
        ({"type": "null"}, {"type": "NULL"}),
        (
            {"type": ["string", "integer"], "minLength": 1, "minimum": 0, "description": "D."},
            {"anyOf": [{"type": "INTEGER", "minimum": 0, "description": "D."}, {"type": "STRING", "minLength": 1}]},
        ),
    ],
)
def test_gemini_parameters(schema, done):
    """Gemini's ``parameters``: each word of JSON Schema as OpenAPI has it."""
    assert done == exported_property(gemini, schema, field="parameters")


def test_gemini_parameters_inline():
    """Gemini's ``parameters``: a definition stands wherever it is referred to."""
    root = closed({"a": {"$ref": "#/$defs/I"}, "b": {"$ref": "#/$defs/I"}}, "a", **{"$defs": {"I": {"type": "string"}}})
    done = gemini.schema(root, field="parameters").schema
    assert {"a": {"type": "STRING"}, "b": {"type": "STRING"}} == done["properties"]
    assert "$defs" not in done


def test_gemini_json_schema_recursion():
    """Gemini's ``parametersJsonSchema``: recursion passes by keys that may be left out, not by required ones."""
    knot = {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/K"}, {"type": "null"}]}}}
    root = closed({"p": {"$ref": "#/$defs/K"}}, "p", **{"$defs": {"K": knot}})
    assert {"$ref": "#/$defs/K"} == gemini.schema(root).schema["properties"]["p"]
    with pytest.raises(ExportError, match="endless recursion"):
        gemini.schema({**root, "$defs": {"K": {**knot, "required": ["next"]}}})


@pytest.mark.parametrize(
    ("schema", "done"),
    [
        ({}, {}),
        ({"type": "object", "additionalProperties": {"type": "string"}},) * 2,
        ({"type": "string", "const": "x"}, {"type": "string", "enum": ["x"]}),
        ({"type": "string", "minLength": 1}, {"type": "string", "description": "At least 1 character."}),
        (
            {"type": "array", "prefixItems": [{"type": "string"}], "items": False, "minItems": 1, "maxItems": 1},
            {"type": "array", "prefixItems": [{"type": "string"}], "minItems": 1, "maxItems": 1},
        ),
    ],
)
def test_gemini_json_schema(schema, done):
    """Gemini's ``parametersJsonSchema``: what is on its list stays, the rest is described."""
    assert done == exported_property(gemini, schema)
