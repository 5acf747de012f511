"""One schema, said in the subset that a dialect knows.

What the dialect has no word for moves to the description, and is listed as a loss. Where that would forbid arguments
that are meant, or where the dialect takes no such schema, the schema is refused with the reason. So every argument
object that is meant can still be sent, and the tool's own decoder, which sees it next, is as strict as ever.
"""

import re
from collections.abc import Callable
from typing import Any, ClassVar, Final

from .._json import is_array, is_object, kind_of
from ..errors import ExportError, Refusal
from ._dialect import Exported, Loss, Rules
from ._look import COMBINED, Path, find_cycle, kinds, merged, pointer, resolve, takes_null, unreferenced
from ._phrase import describe, phrase

_SILENT: Final = frozenset({"$anchor", "$comment", "$defs", "$id", "$schema", "definitions", "readOnly", "writeOnly"})
_MOST: Final = 20_000
"""Schemas within one; a few references that lead to each other can ask for any number."""


def rewrite(rules: Rules, schema: dict[str, Any], tool: str = "") -> Exported:
    """Say ``schema`` in a dialect.

    Args:
        rules: What the dialect knows.
        schema: The JSON Schema 2020-12 of an argument object.
        tool: The name that a refusal carries.

    Raises:
        ExportError: It cannot be said, with every reason.
    """
    return Rewriter(rules, schema, tool).document()


class Rewriter:
    """Says one schema in a dialect.

    Attributes:
        rules: What the dialect knows.
        root: The schema.
        losses: What was lost so far.
    """

    def __init__(self, rules: Rules, root: dict[str, Any], tool: str) -> None:
        """Begin with nothing lost."""
        self.rules = rules
        self.root = root
        self.losses: list[Loss] = []
        self._refusals: list[Refusal] = []
        self._tool = tool
        self._names: dict[str, str] = {}
        self._defs: dict[str, Any] = {}
        self._above: tuple[str, ...] = ("#",)
        self._count = 0

    def document(self) -> Exported:
        """Return the whole schema.

        Raises:
            ExportError: It cannot be said.
        """
        try:
            done = self._document()
        except RecursionError:
            done = self.refuse("", "nested too deeply")
        if self._refusals:
            raise ExportError(self.rules.dialect, self._refusals)
        return Exported(done, tuple(self.losses))

    def _document(self) -> dict[str, Any]:
        recursion = self.rules.recursion
        cycle = None if recursion == "any" else find_cycle(self.root, skip_optional=recursion == "optional")
        if cycle is not None:
            return self.refuse(cycle, "recursion is allowed nowhere" if recursion == "none" else "endless recursion")
        try:
            root = unreferenced(self.root, self.root)
        except LookupError as exc:
            return self.refuse("/$ref", f"cannot be followed: {exc.args[0]!r}")
        for key in COMBINED:
            if key in root:
                self.refuse(f"/{key}", "not allowed at the root")
        done = self.schema({"type": "object", **root}, ())
        if self._defs:
            done["$defs"] = self._defs
        return done

    def schema(self, schema: Any, path: Path) -> dict[str, Any]:
        """Return ``schema``, which stands at ``path``, in the dialect."""
        self._count += 1
        if self._count > _MOST:
            self._refusals = [Refusal(self._tool, "", f"more than {_MOST} schemas, references followed")]
            return {}
        if not is_object(schema):
            return self.anything({}, path) if schema is True else self.refuse(pointer(path), "no value is allowed here")
        above = self._above
        try:
            return self._whole(schema, path)
        except LookupError as exc:
            return self.refuse(pointer(path), f"cannot be put together with what it refers to: {exc.args[0]!r}")
        finally:
            self._above = above

    def _whole(self, schema: dict[str, Any], path: Path) -> dict[str, Any]:
        rules = self.rules
        ref = schema.get("$ref")
        if isinstance(ref, str):
            if not rules.inlines and (len(schema) == 1 or ref in self._above):
                # A reference stands alone there, and one that comes back to itself cannot be replaced for ever.
                for key in schema.keys() - {"$ref"}:
                    self.lose(path, key, "")
                return {"$ref": self._reference(ref)}
            self._above = (*self._above, ref)
            schema = unreferenced(self.root, schema)
        schema = self._put_together(schema)
        named = kinds(schema)
        if named is None and not any(key in schema for key in COMBINED):
            named = _guessed(schema)
            if named is None:
                return self.anything(schema, path)
        return self.place(schema, named, path)

    def _put_together(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return ``schema`` without ``allOf``, whose members are merged into it."""
        steps = 0
        while is_array(members := schema.get("allOf")):
            schema = {key: value for key, value in schema.items() if key != "allOf"}
            for member in members:
                steps += 1
                if not is_object(member) or steps > 1000:  # noqa: PLR2004 - one that holds itself never ends
                    msg = "allOf"
                    raise LookupError(msg)
                schema = merged(schema, unreferenced(self.root, member))
        return schema

    def place(self, schema: dict[str, Any], named: frozenset[str] | None, path: Path) -> dict[str, Any]:
        """Return a schema without references, of the kinds ``named``; None: its alternatives say which."""
        out: dict[str, Any] = {}
        if named is not None:
            listed = sorted(named)
            out["type"] = schema.get("type", listed[0] if len(listed) == 1 else listed)
        return self.keywords(schema, named or frozenset(), out, path)

    def keywords(
        self, schema: dict[str, Any], named: frozenset[str], out: dict[str, Any], path: Path
    ) -> dict[str, Any]:
        """Add to ``out`` what the keywords of ``schema`` say."""
        texts: list[str] = []
        schema = _inclusive(schema, self.rules.keywords, named)
        for key, value in schema.items():
            if key == "type" or key in _SILENT:
                continue
            handler = self._HANDLERS.get(key)
            texts.append(self._keep(key, value, out, path) if handler is None else handler(self, schema, out, path))
        if "object" in named:
            self.close(schema, out, path)
        if "array" in named and self.rules.is_closed and not out.keys() & {"items", "prefixItems"}:
            self.refuse(pointer(path), "an array must say of what type its items are")
        describe(out, texts)
        return out

    def _keep(self, key: str, value: Any, out: dict[str, Any], path: Path) -> str:
        """Keep a keyword, or return what the description says instead."""
        rules = self.rules
        is_kept = key in rules.keywords
        if key == "format":
            is_kept = value in rules.formats
        elif key == "pattern" and is_kept and rules.bad_pattern is not None:
            is_kept = rules.bad_pattern.search(str(value)) is None
        elif key == "minItems" and is_kept and rules.most_min_items is not None and value > rules.most_min_items:
            out[key] = rules.most_min_items
            is_kept = False
        if not is_kept:
            return self.lose(path, key, phrase(key, value))
        out[key] = value
        return ""

    def _properties(self, schema: dict[str, Any], out: dict[str, Any], path: Path) -> str:
        required = schema.get("required", ())
        properties: dict[str, Any] = {}
        for name, below in schema["properties"].items():
            place = (*path, "properties", name)
            properties[name] = self.schema(below, place)
            if self.rules.is_total and name not in required:
                properties[name] = self._nullable(below, properties[name], place)
        out["properties"] = properties
        if self.rules.is_total:
            out["required"] = list(properties)
        elif required:
            out["required"] = list(required)
        return ""

    def _nullable(self, below: Any, done: dict[str, Any], path: Path) -> dict[str, Any]:
        """Let null stand for a key that is left out, unless it means something already."""
        if takes_null(self.root, below):
            self.lose(path, "required", "")
            return done
        if isinstance(done.get("type"), str) and not done.keys() & {"enum", "const"}:
            done["type"] = [done["type"], "null"]
        elif "anyOf" in done:
            done["anyOf"] = [*done["anyOf"], {"type": "null"}]
        else:
            about = {"description": done.pop("description")} if "description" in done else {}
            done = {"anyOf": [done, {"type": "null"}], **about}
        describe(done, [self.lose(path, "required", "null: left out")])
        return done

    def close(self, schema: dict[str, Any], out: dict[str, Any], path: Path) -> None:
        """Say which keys an object may have besides those that are listed."""
        rest = schema.get("additionalProperties", True)
        if "patternProperties" in schema:
            self.refuse(pointer((*path, "patternProperties")), "keys by pattern are not allowed")
        if self.rules.is_closed:
            self.check_listed(schema, path)
            out.setdefault("properties", {})
            if self.rules.is_total:
                out.setdefault("required", [])
            out["additionalProperties"] = False
        elif "additionalProperties" in schema:
            out["additionalProperties"] = (
                self.schema(rest, (*path, "additionalProperties")) if is_object(rest) else rest
            )

    def check_listed(self, schema: dict[str, Any], path: Path) -> None:
        """Refuse an object that has keys of any name; one that only fails to forbid more loses them."""
        rest, place = schema.get("additionalProperties"), (*path, "additionalProperties")
        if rest is True or is_object(rest) or (rest is None and "properties" not in schema):
            self.refuse(pointer(place), "every key of an object must be listed")
        elif rest is None:
            self.lose(place, "additionalProperties", "")

    def _items(self, schema: dict[str, Any], out: dict[str, Any], path: Path) -> str:
        if "prefixItems" not in schema:
            out["items"] = self.schema(schema["items"], (*path, "items"))
        return ""

    def _prefix_items(self, schema: dict[str, Any], out: dict[str, Any], path: Path) -> str:
        """Say a tuple, as an array of any of its types where the dialect knows none."""
        listed = schema["prefixItems"]
        members = [self.schema(member, (*path, "prefixItems", str(index))) for index, member in enumerate(listed)]
        rest = schema.get("items", True)
        is_known = "prefixItems" in self.rules.keywords
        if is_known:
            out["prefixItems"] = members
            if rest is False:
                out["maxItems"] = min(schema.get("maxItems", len(members)), len(members))
                return ""
        if rest is not False:
            more = self.schema(rest, (*path, "items"))
            if is_known:
                out["items"] = more
                return ""
            members.append(more)
        distinct = [member for index, member in enumerate(members) if member not in members[:index]]
        out["items"] = distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
        return "" if len(distinct) == 1 else self.lose(path, "prefixItems", phrase("prefixItems", listed))

    def _any_of(self, schema: dict[str, Any], out: dict[str, Any], path: Path) -> str:
        out["anyOf"] = [self.schema(each, (*path, "anyOf", str(i))) for i, each in enumerate(schema["anyOf"])]
        return ""

    def _one_of(self, schema: dict[str, Any], out: dict[str, Any], path: Path) -> str:
        if "anyOf" in schema:
            self.refuse(pointer((*path, "oneOf")), "not allowed beside anyOf")
        members = [self.schema(each, (*path, "oneOf", str(i))) for i, each in enumerate(schema["oneOf"])]
        key = "oneOf" if "oneOf" in self.rules.keywords else "anyOf"
        out[key] = members
        return "" if key == "oneOf" or len(members) == 1 else self.lose(path, "oneOf", phrase("oneOf", members))

    def _const(self, schema: dict[str, Any], out: dict[str, Any], path: Path) -> str:
        value = schema["const"]
        if "const" in self.rules.keywords:
            out["const"] = value
        elif self.may_list([value]):
            out["enum"] = [value]
        else:
            return self.lose(path, "const", phrase("const", value))
        return ""

    def _enum(self, schema: dict[str, Any], out: dict[str, Any], path: Path) -> str:
        values = self.listed(schema["enum"])
        if "const" in schema:
            return ""
        if not self.may_list(values):
            return self.lose(path, "enum", phrase("enum", values))
        out["enum"] = values
        return ""

    def may_list(self, values: list[Any]) -> bool:
        """Say whether an enum may hold these values."""
        return all(kind_of(value) not in {"array", "object"} for value in values)

    def listed(self, values: list[Any]) -> list[Any]:
        """Return the values that an enum lists."""
        return values

    def anything(self, schema: dict[str, Any], path: Path) -> dict[str, Any]:
        """Return a schema that names no type."""
        if self.rules.is_closed:
            return self.refuse(pointer(path), "any value: a type must be named")
        return self.keywords(schema, frozenset(), {}, path)

    def _reference(self, ref: str) -> str:
        """Return the reference to a definition, whose target is rewritten once."""
        if ref == "#":
            return ref
        if ref not in self._names:
            base = name = re.sub(r"[^A-Za-z0-9_.-]", "_", ref.rsplit("/", 1)[-1]) or "Record"
            number = 1
            while name in self._defs:
                number += 1
                name = f"{base}_{number}"
            self._names[ref] = name
            self._defs[name] = {}
            self._above = (*self._above, ref)
            self._defs[name] = self.schema(resolve(self.root, ref), tuple(ref[2:].split("/")))
        return f"#/$defs/{self._names[ref]}"

    def lose(self, path: Path, keyword: str, text: str) -> str:
        """Note a loss, and return its text."""
        self.losses.append(Loss(pointer(path), keyword, text))
        return text

    def refuse(self, path: str, reason: str) -> dict[str, Any]:
        """Note a refusal, and return a stand-in for what cannot be said."""
        self._refusals.append(Refusal(self._tool, path, reason))
        return {}

    def _nothing(self, schema: dict[str, Any], out: dict[str, Any], path: Path) -> str:  # noqa: ARG002 - as its siblings
        return ""  # said together with another keyword

    _HANDLERS: ClassVar[dict[str, Callable[[Any, dict[str, Any], dict[str, Any], Path], str]]] = {
        "additionalProperties": _nothing,
        "anyOf": _any_of,
        "const": _const,
        "enum": _enum,
        "items": _items,
        "oneOf": _one_of,
        "patternProperties": _nothing,
        "prefixItems": _prefix_items,
        "properties": _properties,
        "required": _nothing,
    }


def _guessed(schema: dict[str, Any]) -> frozenset[str] | None:
    """Return the kind of which a schema without a type speaks."""
    if schema.keys() & {"properties", "required", "additionalProperties", "patternProperties"}:
        return frozenset({"object"})
    return frozenset({"array"}) if schema.keys() & {"items", "prefixItems"} else None


def _inclusive(schema: dict[str, Any], keywords: frozenset[str], named: frozenset[str]) -> dict[str, Any]:
    """Say the exclusive bounds of an integer as inclusive ones, where a dialect has only those."""
    if named - {"null"} != frozenset({"integer"}):
        return schema
    out = dict(schema)
    for exclusive, inclusive, step in (("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1)):
        bound = out.get(exclusive)
        if isinstance(bound, int) and exclusive not in keywords and inclusive in keywords and inclusive not in out:
            out[inclusive] = bound + step
            del out[exclusive]
    return out
