"""The judge of a schema that is not ours: jsonschema-rs, in our words."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from .._json import Path, is_object, kind_of, pointer, show, too_deep
from ..errors import InvalidOutputError, MissingExtraError, Problem, SchemaBuildError
from ._encode import encode_any
from ._foreign import Check
from ._leaf import expected_one_of

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

_MOST: Final = 100
"""Problems that are told; nobody would read more."""

_MASK: Final = "the value"
"""What stands in a message for the value that it is about."""
_LISTED: Final = 50


def compile_judge(what: str, schema: object) -> tuple[dict[str, Any], Check]:
    """Return a copy of a schema, and what checks a JSON value against it.

    Raises:
        SchemaBuildError: It is no schema.
        MissingExtraError: jsonschema-rs is missing.
    """
    try:
        from jsonschema_rs import ValidationError, validator_for  # noqa: PLC0415 - an extra that few tools need
    except ImportError as exc:
        feature = "a tool with a schema of its own"
        raise MissingExtraError(feature, "schema") from exc
    if not isinstance(schema, Mapping):
        msg = f"{what}: expected a JSON Schema, as a mapping; got {type(schema).__name__}"
        raise SchemaBuildError(msg)
    try:
        copy = cast("dict[str, Any]", msgspec.json.decode(encode_any(dict(cast("Mapping[str, Any]", schema)))))
        validator = validator_for(copy, mask=_MASK, offline=True, validate_formats=False)
    except ValidationError as exc:
        place = pointer(_path(exc.instance_path))
        msg = f"{what}{place and f', at {place}'}: {exc.message}"
        raise SchemaBuildError(msg) from exc
    except (InvalidOutputError, ValueError, RecursionError) as exc:
        msg = f"{what}: no JSON Schema: {exc}"
        raise SchemaBuildError(msg) from exc

    def check(value: Any) -> list[Problem]:
        try:
            if validator.is_valid(value):
                return []
            problems = list(islice(_Explainer(copy).all(validator.iter_errors(value)), _MOST + 1))
        except (ValueError, RecursionError):  # the validator goes no deeper
            return [too_deep()]
        if len(problems) > _MOST:
            problems[_MOST] = Problem("", "value", f"and more; only the first {_MOST} problems are told")
        return problems

    return copy, check


def _path(steps: "Iterable[str | int]") -> Path:
    path: Path = None
    for step in steps:
        path = (path, step)
    return path


class _Explainer:
    """Says the errors of the validator in our words, where a model is helped by them."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema

    def all(self, errors: "Iterable[ValidationError]") -> Iterator[Problem]:
        """Yield the problems of all ``errors``."""
        for error in errors:
            yield from self._problems(error)

    def _problems(self, error: "ValidationError") -> Iterator[Problem]:
        kind: Any = error.kind
        path = _path(error.instance_path)
        match kind.name:
            case "required":
                yield Problem(pointer((path, kind.property)), "missing", f"the key {show(kind.property)} is required")
            case "additionalProperties" | "unevaluatedProperties":
                for key in kind.unexpected:
                    yield Problem(pointer((path, key)), "unknown", f"unknown key{self._known(error)}")
            case "propertyNames":
                key = str(kind.error.instance)
                yield Problem(pointer((path, key)), "unknown", "unknown key: its name is not allowed")
            case "falseSchema":
                yield Problem(pointer(path), "unknown", "nothing is allowed here")
            case "const":
                yield Problem(pointer(path), "value", expected_one_of((kind.expected_value,)))
            case "enum":
                yield Problem(pointer(path), "value", expected_one_of(tuple(kind.options)))
            case "type":
                yield _wrong_type(path, kind.types, error)
            case "anyOf" | "oneOf" if not hasattr(kind, "context") or not all(kind.context):
                yield Problem(pointer(path), "value", error.message)  # fits more than one
            case "anyOf" | "oneOf":
                yield from self._branches(error, path, kind.context)
            case _:
                yield Problem(pointer(path), "value", error.message)

    def _known(self, error: "ValidationError") -> str:
        """Return the list of known keys, for a message; nothing where the schema does not say it in one place."""
        node: Any = self._schema
        for step in error.schema_path[:-1]:
            if not is_object(node) or step not in node:
                return ""
            node = node[str(step)]
        known = list(node.get("properties", ())) if is_object(node) and "patternProperties" not in node else []
        more = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
        return f"; known keys: {', '.join(known[:_LISTED])}{more}" if known else ""

    def _branches(
        self, error: "ValidationError", path: Path, branches: "list[list[ValidationError]]"
    ) -> Iterator[Problem]:
        """Yield what is wrong in the one branch that was meant, if that can be told: by its type, else by its tag."""
        depth = len(error.instance_path)
        meant = [branch for branch in branches if not _denials(branch, depth, "type")]
        if not meant:
            types = [name for branch in branches for sub in _denials(branch, depth, "type") for name in _types(sub)]
            yield _wrong_type(path, list(dict.fromkeys(types)), error)
            return
        tags = [_denials(branch, depth + 1, "const") for branch in meant]
        tagged = [branch for branch, denied in zip(meant, tags, strict=True) if not denied]
        places = {pointer(_path(sub.instance_path)) for denied in tags for sub in denied}
        if len(meant) == 1 or len(tagged) == 1:
            yield from self.all((tagged or meant)[0])
        elif not tagged and len(places) == 1:
            choices = tuple(cast("Any", sub.kind).expected_value for denied in tags for sub in denied)
            yield Problem(places.pop(), "value", expected_one_of(choices))
        else:
            yield Problem(pointer(path), "value", error.message)


def _wrong_type(path: Path, types: list[str], error: "ValidationError") -> Problem:
    return Problem(pointer(path), "type", f"expected {' or '.join(types)}, got {kind_of(error.instance)}")


def _denials(branch: "list[ValidationError]", depth: int, *keywords: str) -> "list[ValidationError]":
    return [error for error in branch if len(error.instance_path) == depth and error.kind.name in keywords]


def _types(error: "ValidationError") -> list[str]:
    return cast("list[str]", cast("Any", error.kind).types)
