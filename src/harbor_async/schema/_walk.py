"""The one walk over a type that makes the plan."""

import collections.abc
import enum
import types
import typing
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

import attrs
import typing_extensions
from msgspec.structs import replace

from .._context import ToolContext
from ..errors import UnsupportedTypeError
from ._constraint import Marks, apply_marks, read_marks
from ._declare import Declaration, check_wires
from ._hints import QUALIFIERS, Names, class_hints, substitute, type_name, typevar_env
from ._leaf import enumeration, literal, scalar
from ._plan import NOTHING, Anything, Array, Custom, Field, Leaf, Node, Record, Ref, Row, Style, Table, Tagged
from ._record import check_init, class_descriptions, fresh, raw_fields, shown_fields, style_of
from ._refusal import advice_for
from ._registry import WireForm, structure_hook, unstructure_hook, wire_form
from ._union import join, shown_default

_DEEPEST: Final = 50
_MOST_FORMS: Final = 40
_LISTS: Final = (
    list,
    collections.abc.Sequence,
    collections.abc.MutableSequence,
    collections.abc.Collection,
)
_SETS: Final = (set, collections.abc.Set, collections.abc.MutableSet)
_DICTS: Final = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_CONTAINERS: Final = (*_LISTS, *_SETS, frozenset, tuple, *_DICTS)
_UNIONS: Final = (typing.Union, types.UnionType)
_ALIASES: Final = tuple(
    {getattr(module, "TypeAliasType", typing_extensions.TypeAliasType) for module in (typing, typing_extensions)}
)


@attrs.define(eq=False)
class Walker:
    """Makes the plans of one tool; a class met twice is one record.

    Attributes:
        names: Where forward references are looked up.
        output: Whether the plan is for results: then fields that ``__init__`` does not take are shown too.
    """

    names: Names = attrs.field(factory=Names)
    output: bool = False
    _records: dict[Any, Record] = attrs.field(factory=dict[Any, Record], init=False)
    _declared: dict[int, list[Declaration]] = attrs.field(factory=dict[int, list[Declaration]], init=False)
    _pending: list[Record] = attrs.field(factory=list[Record], init=False)
    _open: list[Any] = attrs.field(factory=list[Any], init=False)
    _forms: Counter[Any] = attrs.field(factory=Counter[Any], init=False)
    _depth: int = attrs.field(default=0, init=False)

    def plan(self, tp: Any, where: str) -> Node:
        """Return the finished plan of ``tp``; arguments and errors as ``walk``."""
        node = self.walk(tp, where)
        self.finish()
        return node

    def finish(self) -> None:
        """Fill in the fields of every record met so far; classes may be recursive, so this comes last.

        Raises:
            UnsupportedTypeError: As ``walk``.
            SchemaBuildError: As ``walk``.
        """
        while self._pending:
            record = self._pending.pop()
            record.fields = tuple(self.field(declared) for declared in self._declared[id(record)])
            check_wires(record.fields, record.title)
            if record.tag is not None:
                tag = record.tag.wire
                record.tag = next(field for field in record.fields if field.wire == tag)
                record.fields = tuple(field for field in record.fields if field.wire != tag)

    def walk(self, tp: Any, where: str) -> Node:
        """Return the plan of ``tp``.

        Args:
            tp: A resolved type.
            where: The place, for messages: ``parameter 'x'``.

        Raises:
            UnsupportedTypeError: Something in it has no JSON form; the message says where and what to write instead.
            SchemaBuildError: Its parts are fine, but do not go together.
        """
        if self._depth > _DEEPEST:
            raise UnsupportedTypeError(where, f"a type nested over {_DEEPEST} levels", "put a class between")
        self._depth += 1
        try:
            return self._walk(tp, where)
        finally:
            self._depth -= 1

    def _walk(self, tp: Any, where: str) -> Node:
        if (form := wire_form(tp)) is not None:
            return self._custom(tp, form, where)
        if (leaf := scalar(tp)) is not None:
            return leaf
        if tp is Any or tp is typing_extensions.Any:
            return Anything()
        origin = typing.get_origin(tp)
        if origin is not None and origin is not tp:  # Generic is its own origin
            return self._subscripted(tp, origin, typing.get_args(tp), where)
        if isinstance(tp, typing.NewType):
            return self.walk(tp.__supertype__, where)
        if isinstance(tp, _ALIASES):
            return self._alias(tp, (), where)
        if isinstance(tp, typing.TypeVar):
            return self._type_variable(tp, where)
        if isinstance(tp, type) and issubclass(tp, enum.Enum):
            return enumeration(tp, where)
        if tp is not ToolContext and (style := style_of(tp)) is not None:
            return self._record_of(tp, tp, (), style, where)
        if any(tp is bare for bare in _CONTAINERS):
            return self._bare(tp)
        raise UnsupportedTypeError(where, type_name(tp), advice_for(tp))

    def _subscripted(self, tp: Any, origin: Any, args: tuple[Any, ...], where: str) -> Node:
        if not args and (origin is not tuple or tp is typing.Tuple):  # noqa: UP006 - asks for the bare alias
            return self.walk(origin, where)
        if origin is typing.Annotated:
            marks = read_marks(tp.__metadata__, where)
            return apply_marks(self.walk(tp.__origin__, where), marks, where)
        if origin in _UNIONS:
            return self._union(args, where)
        if origin in {typing.Literal, typing_extensions.Literal}:
            return literal(args, where)
        if origin in _CONTAINERS:
            return self._container(origin, args, where)
        if origin in QUALIFIERS:
            return self.walk(args[0], where)
        if isinstance(origin, _ALIASES):
            return self._alias(origin, args, where)
        if (style := style_of(origin)) is not None:
            return self._record_of(tp, origin, args, style, where)
        raise UnsupportedTypeError(where, type_name(tp), advice_for(origin))

    def _container(self, origin: Any, args: tuple[Any, ...], where: str) -> Node:
        if origin in _LISTS:
            return Array(item=self.walk(args[0], where), make=list)
        if origin is tuple:
            return self._tuple(args, where)
        if origin in _DICTS:
            return self._dict(args, where)
        return self._set(args[0], frozenset if origin is frozenset else set, where)

    def _bare(self, tp: Any) -> Node:
        if tp in _DICTS:
            return Table(key=_text_leaf(), value=Anything())
        make = tp if tp in {tuple, frozenset} else set if tp in _SETS else list
        return Array(item=Anything(), make=make)

    def _custom(self, tp: Any, form: WireForm, where: str) -> Node:
        with self._opened(tp, "its wire type leads back to it; take one that has a form without it", where):
            inner = self.walk(form.wire, f"{where}, wire type of {type_name(tp)}")
        if form.format is not None:
            inner = replace(inner, notes={"format": form.format, **inner.notes})
        return Custom(
            cls=tp,
            inner=inner,
            structure=structure_hook(tp),
            unstructure=unstructure_hook(tp),
        )

    def _alias(self, alias: Any, args: tuple[Any, ...], where: str) -> Node:
        with self._opened(alias, "an alias cannot contain itself; write a class, or Any", where):
            env = dict(zip(getattr(alias, "__type_params__", ()), args, strict=False))
            return self.walk(substitute(alias.__value__, env), where)

    @contextmanager
    def _opened(self, name: Any, advice: str, where: str) -> Generator[None]:
        """Look into what ``name`` stands for, unless that is being done already."""
        if any(name is known for known in self._open):
            raise UnsupportedTypeError(where, type_name(name), advice)
        self._open.append(name)
        try:
            yield
        finally:
            self._open.pop()

    def _type_variable(self, var: typing.TypeVar, where: str) -> Node:
        if var.__constraints__:
            return self._union(var.__constraints__, where)
        return Anything() if var.__bound__ is None else self.walk(var.__bound__, where)

    def _union(self, args: tuple[Any, ...], where: str) -> Node:
        literals: list[Any] = []
        rest: list[Any] = []
        for arg in args:
            shown = arg.__value__ if isinstance(arg, _ALIASES) else arg
            values = typing.get_args(shown) if typing.get_origin(shown) is typing.Literal else None
            if values is None:
                rest.append(arg)
            else:
                literals.extend(values)
        members = [literal(tuple(literals), where)] if literals else []
        return join([*members, *(self.walk(arg, where) for arg in rest)], self._tagged, where)

    def _set(self, item: Any, make: type, where: str) -> Node:
        node = self.walk(item, where)
        if not is_hashable(node):
            name = f"{make.__name__}[{type_name(item)}]"
            raise UnsupportedTypeError(where, name, "its items cannot be hashed; use a list, or items that are frozen")
        return Array(item=node, make=make)

    def _tuple(self, args: tuple[Any, ...], where: str) -> Node:
        if len(args) == 2 and args[1] is Ellipsis:  # noqa: PLR2004 - tuple[T, ...]
            return Array(item=self.walk(args[0], where), make=tuple)
        if any(typing.get_origin(arg) is typing_extensions.Unpack for arg in args):
            raise UnsupportedTypeError(
                where, f"tuple[{', '.join(map(type_name, args))}]", "use tuple[T, ...] or a list"
            )
        return Row(items=tuple(self.walk(arg, where) for arg in args))

    def _dict(self, args: tuple[Any, ...], where: str) -> Node:
        key = self.walk(args[0], where)
        if isinstance(key, Anything):
            key = _text_leaf()
        if not isinstance(key, Leaf) or key.accepts != frozenset({"string"}) or not _is_text(key):
            name = f"dict[{type_name(args[0])}, {type_name(args[1])}]"
            raise UnsupportedTypeError(where, name, "JSON keys are text; use dict[str, ...] or a list of records")
        return Table(key=key, value=self.walk(args[1], where))

    def _record_of(self, tp: Any, cls: Any, args: tuple[Any, ...], style: Style, where: str) -> Node:
        if (known := self._records.get(tp)) is not None:
            return Ref(record=known)
        self._forms[cls] += 1
        if self._forms[cls] > _MOST_FORMS:
            advice = "a generic class that holds a larger form of itself has no end; fix its type parameter"
            raise UnsupportedTypeError(where.partition(", field")[0], cls.__name__, advice)
        title = cls.__name__ if not args else f"{cls.__name__}[{', '.join(map(type_name, args))}]"
        record = Record(title=title, style=style, cls=cls)
        shown = shown_fields(cls, style, self.names, where, output=self.output)
        if not self.output:
            check_init(cls, style, shown, f"{where}, class {cls.__name__}")
        hints = class_hints(cls, shown, self.names, where)
        env = typevar_env(cls, args)
        described = class_descriptions(cls)
        self._declared[id(record)] = [
            Declaration(
                raw,
                substitute(raw.annotation, env),
                described.get(raw.attribute),
                f"{where}, field {cls.__name__}.{raw.attribute}",
            )
            for raw in raw_fields(cls, style, hints)
            if raw.attribute in hints
        ]
        self._records[tp] = record
        self._pending.append(record)
        return Ref(record=record)

    def field(self, declared: Declaration) -> Field:
        """Return the field that a class or a function declares.

        Raises:
            UnsupportedTypeError: As ``walk``.
            SchemaBuildError: As ``walk``.
        """
        raw, where = declared.raw, declared.where
        annotation, marks = declared.split()
        node = apply_marks(self.walk(annotation, where), Marks(marks.bounds, {}, None), where)
        notes = dict(marks.notes)
        description = notes.get("description") or raw.description or declared.documented
        if description:
            notes["description"] = description
        default, factory = raw.default, raw.factory
        if default is not NOTHING and (shown := shown_default(node, default)) is not NOTHING:
            notes["default"] = shown
        if default is not NOTHING and (copier := fresh(default)) is not None:
            default, factory = NOTHING, copier
        return Field(
            wire=marks.name or raw.name,
            name=raw.name,
            attribute=raw.attribute,
            node=node,
            is_required=raw.is_required,
            default=default,
            factory=factory,
            is_keyword=raw.is_keyword,
            notes=notes,
        )

    def _tags(self, ref: Ref) -> dict[str, Any]:
        """Return the single value of every field of a record that has only one."""
        found: dict[str, Any] = {}
        for declared in self._declared[id(ref.record)]:
            annotation, marks = declared.split()
            values = typing.get_args(annotation) if typing.get_origin(annotation) is typing.Literal else ()
            if len(values) == 1:
                value = values[0].value if isinstance(values[0], enum.Enum) else values[0]
                if isinstance(value, (str, int)) and not isinstance(value, bool):
                    found[marks.name or declared.raw.name] = value
        return found

    def _tagged(self, refs: list[Ref], where: str) -> Tagged:
        """Return the union of records, told apart by the first field that has one value, another in each."""
        tags = [self._tags(ref) for ref in refs]
        for wire in tags[0]:
            values = [found.get(wire) for found in tags]
            if None not in values and len(set(map(type, values))) == 1 and len(set(values)) == len(refs):
                return Tagged(tag=wire, members=tuple(self._variant(ref, wire) for ref in refs))
        names = " | ".join(ref.record.title for ref in refs)
        advice = 'give each class a Literal field of the same name and its own value, such as kind: Literal["a"]'
        raise UnsupportedTypeError(where, names, advice)

    def _variant(self, ref: Ref, tag: str) -> Ref:
        """Return a record as it stands in a union: the tag is always there."""
        key = (id(ref.record), tag)
        record = self._records.get(key)
        if record is None:
            mark = Field(wire=tag, name="", attribute="", node=Anything())
            record = self._records[key] = replace(ref.record, fields=(), tag=mark)
            self._declared[id(record)] = self._declared[id(ref.record)]
            self._pending.append(record)
        return replace(ref, record=record)


def _text_leaf() -> Leaf:
    leaf = scalar(str)
    assert leaf is not None  # noqa: S101 - str is in the table
    return leaf


def _is_text(key: Leaf) -> bool:
    """Whether a key leaf is plain text, listed texts or a text enum; not a date, say."""
    return key.choices is not None or (key.build is None and key.wire is str)


def is_hashable(node: Node) -> bool:
    """Return whether the Python values of ``node`` can stand in a set."""
    if isinstance(node, (Ref, Custom)):
        cls = node.record.cls if isinstance(node, Ref) else node.cls
        return getattr(cls, "__hash__", None) is not None and not typing_extensions.is_typeddict(cls)
    if isinstance(node, (Anything, Table)) or (isinstance(node, Array) and node.make not in {tuple, frozenset}):
        return False
    return all(map(is_hashable, node.children()))
