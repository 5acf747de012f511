"""A schema in the subset of OpenAPI 3.0 that Gemini's ``parameters`` know.

Types are upper-case words, null is ``nullable``, an enum holds text only, nothing refers to anything, and beside
``anyOf`` nothing else may stand.
"""

from typing import Any, Final

from .._json import is_array, kind_of
from ._look import ANNOTATIONS, Path, pointer
from ._rewrite import Rewriter

_ABOUT: Final[dict[str, frozenset[str]]] = {
    "string": frozenset({"pattern", "format", "minLength", "maxLength", "contentEncoding"}),
    "number": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}),
    "array": frozenset({"items", "prefixItems", "minItems", "maxItems", "uniqueItems"}),
    "object": frozenset({"properties", "required", "additionalProperties", "minProperties", "maxProperties"}),
}


class OpenAPIRewriter(Rewriter):
    """Says one schema in OpenAPI's words."""

    def place(self, schema: dict[str, Any], named: frozenset[str] | None, path: Path) -> dict[str, Any]:
        """Return a schema without references, of the kinds ``named``; None: its alternatives say which."""
        if "anyOf" not in schema and "oneOf" not in schema:
            named = frozenset({"null"}) if named is None else named
            if len(named - {"null"}) > 1:
                return self._choice(_split(schema, named), path)
            kind = next(iter(named - {"null"}), "null")
            out: dict[str, Any] = {"type": kind.upper()}
            if "null" in named and kind != "null":
                out["nullable"] = True
            return self.keywords(schema, frozenset({kind}), out, path)
        return self._choice(schema, path)

    def _choice(self, schema: dict[str, Any], path: Path) -> dict[str, Any]:
        own = {key: value for key, value in schema.items() if key in {"anyOf", "oneOf"} or key in ANNOTATIONS}
        for key in schema.keys() - own.keys() - {"type"}:
            self.refuse(pointer((*path, key)), "not allowed beside anyOf")
        whole = self.keywords(own, frozenset(), {}, path)
        members: list[dict[str, Any]] = [
            each for member in whole.pop("anyOf") for each in member.get("anyOf", [member])
        ]
        options = [member for member in members if member != {"type": "NULL"}]
        if not options:
            return {"type": "NULL", **whole}
        first = options[0]
        if len(options) < len(members):
            first["nullable"] = True
        if "description" in whole:  # of the whole, and so before the part's own
            texts = [whole.pop("description"), first.pop("description", "")]
            first["description"] = " ".join(filter(None, texts))
        first |= {key: value for key, value in whole.items() if key not in first}
        return first if len(options) == 1 else {"anyOf": options}

    def close(self, schema: dict[str, Any], out: dict[str, Any], path: Path) -> None:
        """Refuse free keys; there is no word for closed objects."""
        if "patternProperties" in schema:
            self.refuse(pointer((*path, "patternProperties")), "keys by pattern are not allowed")
        self.check_listed(schema, path)
        if schema.get("additionalProperties") is False:
            self.lose((*path, "additionalProperties"), "additionalProperties", "")
        if path and schema.get("properties", schema.get("additionalProperties")) in ({}, False):
            self.refuse(pointer(path), "an object without keys is not allowed")
        if len(out.get("properties", ())) > 1:
            out["propertyOrdering"] = list(out["properties"])

    def may_list(self, values: list[Any]) -> bool:
        """Say whether an enum may hold these values: text only."""
        return all(isinstance(value, str) for value in values)

    def anything(self, schema: dict[str, Any], path: Path) -> dict[str, Any]:  # noqa: ARG002 - as its parent's
        """Refuse a schema that names no type."""
        return self.refuse(pointer(path), "any value: a type must be named")

    def listed(self, values: list[Any]) -> list[Any]:
        """Return the values that an enum lists: null is said by ``nullable``."""
        return [value for value in values if value is not None]


def _split(schema: dict[str, Any], named: frozenset[str]) -> dict[str, Any]:
    """Say a place of several kinds as any of them, each with the keywords that are about it."""
    members: list[dict[str, Any]] = []
    for kind in sorted(named):
        about = _ABOUT.get("number" if kind == "integer" else kind, frozenset())
        member = {"type": kind, **{key: value for key, value in schema.items() if key in about}}
        if is_array(values := schema.get("enum")) and kind != "null":
            member["enum"] = [value for value in values if kind_of(value) == kind]
        members.append(member)
    return {**{key: value for key, value in schema.items() if key in ANNOTATIONS}, "anyOf": members}
