"""The fields of a user's class: attrs, dataclass, TypedDict, NamedTuple."""

import copy
import dataclasses
import enum
import inspect
import typing
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final, cast

import attrs
import msgspec
import typing_extensions

from .._json import class_of
from ..errors import SchemaBuildError, UnsupportedTypeError
from ._docs import read_doc
from ._hints import Names, class_hints, own
from ._name import given_name
from ._plan import NOTHING, Style

_CONTAINERS: Final = (list, dict, set, bytearray)


class RawField(msgspec.Struct, frozen=True, eq=False):
    """A field as its class declares it, its type not yet looked into."""

    name: str
    attribute: str
    annotation: Any
    is_required: bool
    default: Any = NOTHING
    factory: Callable[[], Any] | None = None
    is_keyword: bool = False
    description: str | None = None


def style_of(cls: Any) -> Style | None:
    """Return which kind of structured class ``cls`` is, or None."""
    if typing_extensions.is_typeddict(cls):
        return "typeddict"
    if not isinstance(cls, type):
        return None
    if attrs.has(cls):
        return "attrs"
    if dataclasses.is_dataclass(cls):
        return "dataclass"
    if issubclass(cls, tuple) and hasattr(cast("Any", cls), "_fields"):
        return "namedtuple"
    return None


def shown_fields(cls: Any, style: Style, names: Names, where: str, *, output: bool) -> frozenset[str]:
    """Return the names of the fields that a document shows.

    A field that ``__init__`` does not take is no argument, but part of a result. A private one, whose name begins with
    an underscore, is neither, unless its author gave it a name on the wire.

    Raises:
        UnsupportedTypeError: A private field has to be given, and no document can.
    """
    if style == "typeddict":
        return frozenset({*cls.__required_keys__, *cls.__optional_keys__})
    if style == "namedtuple":
        return frozenset(cls._fields)
    shown: set[str] = set()
    for field in fields_of(cls, style):
        if field.name.startswith("_") and not _is_named(cls, field, names):
            if field.init and not output and _is_required(field):
                advice = (
                    "it is no argument: give it a default, or a name on the wire by Annotated[..., Name()] or alias="
                )
                place = f"{where}, field {cls.__name__}.{field.name}"
                raise UnsupportedTypeError(place, "a private field without default", advice)
        elif field.init or output:
            shown.add(field.name)
    return frozenset(shown)


def _is_named(cls: Any, field: Any, names: Names) -> bool:
    """Return whether a private field was given another name than Python's rules give it."""
    alias = getattr(field, "alias", None)
    # attrs tells since 25.4 whether the alias is its own.
    if alias is not None and not getattr(field, "alias_is_default", alias == field.name.lstrip("_")):
        return True
    try:
        annotation = class_hints(cls, {field.name}, names, "")[field.name]
    except UnsupportedTypeError:
        return False  # a private field may be of any type, and need not say
    return given_name(annotation) is not None


def _is_required(field: Any) -> bool:
    """Return whether a field of an attrs class, or of a dataclass, has no default."""
    if hasattr(field, "alias"):
        return field.default is attrs.NOTHING
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def fields_of(cls: Any, style: Style) -> tuple[Any, ...]:
    """Return the field records of an attrs class or a dataclass."""
    return attrs.fields(cls) if style == "attrs" else dataclasses.fields(cls)


def raw_fields(cls: Any, style: Style, hints: dict[str, Any]) -> Iterator[RawField]:
    """Yield the fields of ``cls`` in declaration order."""
    reader = {"attrs": _attrs, "dataclass": _dataclass, "typeddict": _typeddict, "namedtuple": _namedtuple}[style]
    return reader(cls, hints)


def _attrs(cls: Any, hints: dict[str, Any]) -> Iterator[RawField]:
    # A hand-written __init__ may have defaults of its own: its defaults apply by leaving the argument out.
    code = getattr(cls.__init__, "__code__", None)
    own_init = code is None or not code.co_filename.startswith("<attrs generated")
    by_name = own_init
    for field in attrs.fields(cls):
        # Behind an argument that is left out none can be passed by position.
        by_name = by_name or (field.init and field.name not in hints)
        default, factory = field.default, None
        if isinstance(default, attrs.Factory):  # type: ignore[arg-type]  # attrs types the class as a function
            factory = None if default.takes_self else default.factory
            default = NOTHING
        elif default is attrs.NOTHING:
            default = NOTHING
        described = field.metadata.get("description")
        yield RawField(
            name=field.alias or field.name,
            attribute=field.name,
            annotation=hints.get(field.name),
            is_required=_is_required(field),
            default=NOTHING if own_init else default,
            factory=None if own_init else factory,
            is_keyword=bool(field.kw_only) or by_name,
            description=described if isinstance(described, str) else None,
        )


def _dataclass(cls: Any, hints: dict[str, Any]) -> Iterator[RawField]:
    own_init = not cls.__dataclass_params__.init
    by_name = own_init
    for field in dataclasses.fields(cls):
        by_name = by_name or (field.init and field.name not in hints)
        has_factory = field.default_factory is not dataclasses.MISSING
        has_default = field.default is not dataclasses.MISSING
        described = field.metadata.get("description")
        yield RawField(
            name=field.name,
            attribute=field.name,
            annotation=hints.get(field.name),
            is_required=_is_required(field),
            default=field.default if has_default and not own_init else NOTHING,
            factory=field.default_factory if has_factory and not own_init else None,  # type: ignore[arg-type]  # MISSING ruled out
            is_keyword=bool(field.kw_only) or by_name,
            description=described if isinstance(described, str) else None,
        )


def _typeddict(cls: Any, hints: dict[str, Any]) -> Iterator[RawField]:
    required: frozenset[str] = cls.__required_keys__
    for name, annotation in hints.items():
        wrapped, is_required = annotation, name in required
        while (origin := typing.get_origin(wrapped)) is not None and _is_qualifier(origin):
            if _names(origin, "Required", "NotRequired"):
                is_required = _names(origin, "Required")
            wrapped = typing.get_args(wrapped)[0]
        yield RawField(name=name, attribute=name, annotation=wrapped, is_required=is_required)


def _is_qualifier(origin: Any) -> bool:
    return _names(origin, "Required", "NotRequired", "ReadOnly")


def _names(origin: Any, *names: str) -> bool:
    return any(
        origin is getattr(module, name, origin is None) for module in (typing, typing_extensions) for name in names
    )


def _namedtuple(cls: Any, hints: dict[str, Any]) -> Iterator[RawField]:
    for name in cls._fields:
        default = cls._field_defaults.get(name, NOTHING)
        yield RawField(
            name=name,
            attribute=name,
            annotation=hints[name],
            is_required=default is NOTHING,
            default=default,
        )


def check_init(cls: Any, style: Style, shown: Collection[str], where: str) -> None:
    """Refuse a class whose ``__init__`` cannot be called with the fields that a document shows.

    Raises:
        SchemaBuildError: It asks for an argument that is no field, or does not take a field: every call would fail.
    """
    if style not in {"attrs", "dataclass"}:
        return
    taken = (field for field in fields_of(cls, style) if field.init and field.name in shown)
    names = {field.alias if style == "attrs" else field.name for field in taken}
    try:
        params = inspect.signature(cls).parameters.values()
    except (TypeError, ValueError):
        return
    takes_any = any(param.kind is param.VAR_KEYWORD for param in params)
    needed = {p.name for p in params if p.default is p.empty and p.kind not in {p.VAR_KEYWORD, p.VAR_POSITIONAL}}
    strange = sorted(needed - names) or sorted(set() if takes_any else names - {param.name for param in params})
    if strange:
        msg = f"{where}: fields and __init__ disagree about {', '.join(map(repr, strange))}; make them the same"
        raise SchemaBuildError(msg)


def class_descriptions(cls: Any) -> dict[str, str]:
    """Return what the docstrings of ``cls`` and its bases say of each field; the nearest class wins."""
    found: dict[str, str] = {}
    for base in reversed(getattr(cls, "__mro__", (cls,))):
        doc = own(base, "__doc__")
        if base is not object and isinstance(doc, str) and base.__module__ not in {"builtins", "typing"}:
            found.update(read_doc(doc, of_class=True).params)
    return found


def fresh(default: Any) -> Callable[[], Any] | None:
    """Return what makes a fresh copy of a default that a tool could change; None if it can be shared.

    Builtin containers, and instances of attrs classes and dataclasses, are copied deeply. Any other object is passed as
    it is: it may be a sentinel, whose identity matters.
    """
    kind = class_of(default)
    if kind in _CONTAINERS and not default:
        return kind
    is_structured = attrs.has(kind) or dataclasses.is_dataclass(kind)
    if isinstance(default, _CONTAINERS) or is_structured or (isinstance(default, tuple) and not _is_flat(default)):
        original: Any = cast("Any", default)
        return lambda: copy.deepcopy(original)
    return None


def _is_flat(values: Any) -> bool:
    return all(isinstance(value, (str, int, float, bytes, type(None), enum.Enum)) for value in values)
