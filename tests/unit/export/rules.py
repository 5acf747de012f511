"""What each dialect demands, written out: ``check_*`` return what is wrong with a list of tools, as text.

Written from the providers' documents, not from our code, and with none of its helpers.
"""

import re

JSON_TYPES = {"string", "number", "integer", "boolean", "object", "array", "null"}
STRICT_OPENAI = {
    "type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const", "$ref", "$defs",
    "description", "title", "pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "minItems", "maxItems",
}  # fmt: skip
OPENAI_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
STRICT_ANTHROPIC = {
    "type", "properties", "required", "additionalProperties", "items", "anyOf", "allOf", "enum", "const", "$ref",
    "$defs", "description", "title", "pattern", "format", "default", "minItems",
}  # fmt: skip
GEMINI_SCHEMA = {
    "type", "format", "title", "description", "nullable", "default", "items", "minItems", "maxItems", "enum",
    "properties", "propertyOrdering", "required", "minProperties", "maxProperties", "minimum", "maximum", "minLength",
    "maxLength", "pattern", "example", "anyOf",
}  # fmt: skip
GEMINI_JSON = {
    "$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "enum", "items", "prefixItems",
    "minItems", "maxItems", "minimum", "maximum", "anyOf", "oneOf", "properties", "additionalProperties", "required",
    "propertyOrdering",
}  # fmt: skip


def walk(schema, where="#"):
    """Yield each schema within ``schema`` and where it stands."""
    yield where, schema
    if not isinstance(schema, dict):
        return
    for key in ("items", "additionalProperties", "not", "contains", "propertyNames"):
        if isinstance(schema.get(key), dict):
            yield from walk(schema[key], f"{where}/{key}")
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for index, below in enumerate(schema.get(key, ())):
            yield from walk(below, f"{where}/{key}/{index}")
    for key in ("properties", "$defs", "patternProperties"):
        for name, below in schema.get(key, {}).items():
            yield from walk(below, f"{where}/{key}/{name}")


def is_recursive(schema):
    """Say whether a definition leads back to itself."""
    defs = schema.get("$defs", {})
    leads = {
        name: {each["$ref"].rsplit("/", 1)[-1] for _, each in walk(body) if isinstance(each, dict) and "$ref" in each}
        for name, body in defs.items()
    }
    for name, first in leads.items():
        reached, todo = set(), set(first)
        while todo:
            step = todo.pop()
            if step == name:
                return True
            if step not in reached:
                reached.add(step)
                todo |= leads.get(step, set())
    return False


def check_names(names, pattern):
    faults = [f"name {name}" for name in names if not re.fullmatch(pattern, name)]
    return faults + ["names twice"] * (len(set(names)) != len(names))


def closed(where, schema):
    if "object" in types(schema):
        if schema.get("additionalProperties") is not False:
            yield f"{where}: open object"
        if not isinstance(schema.get("properties"), dict):
            yield f"{where}: object without properties"


def types(schema):
    kind = schema.get("type", [])
    return [kind] if isinstance(kind, str) else kind


def check_openai(functions):
    """Check the ``function`` parts of a request's tools."""
    faults = check_names([function["name"] for function in functions], "[A-Za-z0-9_-]{1,64}")
    for function in functions:
        schema = function["parameters"]
        banned = {"oneOf", "anyOf", "allOf", "enum", "const", "not", "$ref"} & schema.keys()
        found = [f"at the root: {word}" for word in sorted(banned)] + ["no object"] * (schema.get("type") != "object")
        if function["strict"]:
            found += check_openai_strict(schema)
        faults += [f"{function['name']} {fault}" for fault in found]
    return faults


def check_openai_strict(schema):
    faults, properties, enums, letters = [], 0, 0, 0
    for where, each in walk(schema):
        faults += [f"{where}: {key}" for key in each.keys() - STRICT_OPENAI]
        if "$ref" in each:
            faults += [f"{where}: beside $ref"] * (len(each) > 1)
            faults += [f"{where}: dangling"] * (
                each["$ref"] != "#" and each["$ref"].removeprefix("#/$defs/") not in schema.get("$defs", {})
            )
        elif "anyOf" not in each:
            faults += [f"{where}: no type"] * (not types(each) or not set(types(each)) <= JSON_TYPES)
        faults += closed(where, each)
        names = each.get("properties", {})
        faults += [f"{where}: required"] * ("object" in types(each) and list(names) != each.get("required"))
        faults += [f"{where}: array without items"] * ("array" in types(each) and "items" not in each)
        faults += [f"{where}: format"] * ("format" in each and each["format"] not in OPENAI_FORMATS)
        faults += [f"{where}: lookaround"] * bool(re.search(r"\(\?<?[=!]", each.get("pattern", "")))
        properties += len(names)
        enums += len(each.get("enum", ()))
        letters += sum(map(len, [*names, *each.get("$defs", {})])) + sum(len(str(v)) for v in each.get("enum", ()))
    limits = [properties > 5000, enums > 1000, letters > 120_000, levels(schema, schema) > 10]
    return faults + ["over a limit"] * any(limits)


def levels(root, schema, above=()):
    """Return how deep objects nest, references followed until they come back."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return 0 if name in above or name == "#" else levels(root, root["$defs"][name], (*above, name))
    below = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    below += [schema["items"]] if isinstance(schema.get("items"), dict) else []
    return max((levels(root, each, above) for each in below), default=0) + ("properties" in schema)


def check_anthropic(tools):
    """Check the tools of a request, and what the strict ones take together."""
    faults = check_names([tool["name"] for tool in tools], "[A-Za-z0-9_-]{1,64}")
    strict = [tool for tool in tools if tool.get("strict")]
    optional = unions = 0
    for tool in tools:
        schema = tool["input_schema"]
        banned = {"oneOf", "anyOf", "allOf"} & schema.keys()
        faults += [f"{tool['name']} root {word}" for word in banned]
        faults += [f"{tool['name']} no object"] * (schema.get("type") != "object")
    for tool in strict:
        schema = tool["input_schema"]
        found = ["recursive"] * is_recursive(schema)
        for where, each in walk(schema):
            found += [f"{where}: {key}" for key in each.keys() - STRICT_ANTHROPIC]
            found += [f"{where}: beside $ref"] * ("$ref" in each and len(each) > 1)
            found += [f"{where}: no type"] * ("type" not in each and "anyOf" not in each and "$ref" not in each)
            found += closed(where, each)
            found += [f"{where}: minItems"] * (each.get("minItems", 0) not in {0, 1})
            found += [f"{where}: format"] * ("format" in each and each["format"] not in OPENAI_FORMATS | {"uri"})
            found += [f"{where}: pattern"] * bool(re.search(r"\(\?<?[=!]|\\[1-9bB]", each.get("pattern", "")))
            for name, below in each.get("properties", {}).items():
                optional += name not in each.get("required", ())
                unions += "anyOf" in below or isinstance(below.get("type"), list)
        faults += [f"{tool['name']} {fault}" for fault in found]
    return faults + ["over a limit"] * (len(strict) > 20 or optional > 24 or unions > 16)


def check_gemini(declarations):
    """Check the declarations of a request, in either field."""
    faults = check_names([each["name"] for each in declarations], "[A-Za-z_][A-Za-z0-9_.:-]{0,63}")
    for each in declarations:
        assert not {"parameters", "parametersJsonSchema"} <= each.keys()
        found = []
        if "parameters" in each:
            found += check_gemini_schema(each["parameters"])
        if "parametersJsonSchema" in each:
            found += check_gemini_json(each["parametersJsonSchema"])
        faults += [f"{each['name']} {fault}" for fault in found]
    return faults


def check_gemini_schema(schema):
    faults = ["no object"] * (schema.get("type") != "OBJECT")
    for where, each in walk(schema):
        faults += [f"{where}: {key}" for key in each.keys() - GEMINI_SCHEMA]
        if "anyOf" in each:
            faults += [f"{where}: beside anyOf"] * (len(each) > 1)
        else:
            faults += [f"{where}: type"] * (each.get("type") not in {kind.upper() for kind in JSON_TYPES})
        faults += [f"{where}: enum"] * (not all(isinstance(value, str) for value in each.get("enum", ())))
        faults += [f"{where}: array without items"] * (each.get("type") == "ARRAY" and "items" not in each)
        faults += [f"{where}: empty object"] * (each.get("type") == "OBJECT" and not each.get("properties"))
        faults += [f"{where}: format"] * (each.get("type") == "STRING" and each.get("format", "enum") not in
                                          {"enum", "date-time"})  # fmt: skip
        faults += [f"{where}: required"] * (not set(each.get("required", ())) <= set(each.get("properties", ())))
    return faults


def check_gemini_json(schema):
    faults = ["no object"] * (schema.get("type") != "object")
    for where, each in walk(schema):
        faults += [f"{where}: {key}" for key in each.keys() - GEMINI_JSON]
        faults += [f"{where}: beside $ref"] * ("$ref" in each and not all(key[0] == "$" for key in each))
        kinds = {type(value) for value in each.get("enum", ())}
        faults += [f"{where}: enum"] * (not kinds <= {str, int, float})
    return faults


def check_mcp(tools):
    """Check the tools of a ``tools/list`` answer."""
    faults = check_names([tool["name"] for tool in tools], "[A-Za-z0-9_.-]{1,128}")
    for tool in tools:
        faults += [f"{tool['name']} no object"] * (tool["inputSchema"].get("type") != "object")
        faults += [f"{tool['name']} {key}" for key in tool.keys() - {"name", "description", "inputSchema",
                                                                     "outputSchema", "annotations"}]  # fmt: skip
    return faults
