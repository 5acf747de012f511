"""Annotations become types here, wherever their names were defined.

A name is looked up in the function's globals and closure first. Only if it is not there are the locals of the calling
frames asked, the frame of the function that encloses the definition before all others: that is where a class local
to a function lives. What is found nowhere is refused by name.
"""

import inspect
import sys
import types
import typing
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, cast

import attrs
import msgspec
import typing_extensions

from ..errors import UnsupportedTypeError

QUALIFIERS: Final = (typing.Final, typing.Required, typing.NotRequired, typing_extensions.ReadOnly)
_PACKAGE: Final = __name__.partition(".")[0]
_ADVICE: Final = "define it at module level, or before the tool in an enclosing function, and import it at run time"


class Names(msgspec.Struct, frozen=True, eq=False):
    """Where the names of annotations are looked up, beyond the module that holds them.

    Attributes:
        own: The closure of the function, say: asked together with its globals.
        frames: Calling frames, nearest kin first: their locals are asked when all else has failed.
        inner: The class that is read: a class in its body is asked for after the frames.
    """

    own: Mapping[str, Any] = msgspec.field(default_factory=dict[str, Any])
    frames: tuple[types.FrameType, ...] = ()
    inner: type | None = None

    def beyond(self, globalns: Mapping[str, Any]) -> dict[str, Any]:
        """Return every name that ``globalns`` does not have itself."""
        # Of a class body, classes only: a field may have the name of a type, and its default as value.
        body: Mapping[str, Any] = {} if self.inner is None else vars(self.inner)
        found = {name: value for name, value in body.items() if isinstance(value, type)}
        for frame in reversed(self.frames):
            found.update(frame.f_locals)
        return {name: value for name, value in found.items() if name not in globalns} | dict(self.own)


def caller_names(qualname: str = "", own: Mapping[str, Any] | None = None) -> Names:
    """Return the names that the callers of this package can see.

    Args:
        qualname: The ``__qualname__`` of the function; its enclosing functions come before other frames.
        own: Names that come before all frames.
    """
    enclosing = qualname.rpartition(".<locals>.")[0]
    kin: list[types.FrameType] = []
    others: list[types.FrameType] = []
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] != _PACKAGE:
            outer = frame.f_code.co_qualname
            (kin if enclosing == outer or enclosing.startswith(f"{outer}.<locals>.") else others).append(frame)
        frame = frame.f_back
    return Names(own or {}, (*kin, *others))


def closure_of(function: Any) -> dict[str, Any]:
    """Return the names that ``function`` closes over and that are bound by now."""
    code: types.CodeType | None = getattr(function, "__code__", None)
    found: dict[str, Any] = {}
    for name, cell in zip(code.co_freevars if code else (), getattr(function, "__closure__", None) or (), strict=False):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return found


def resolve(annotation: Any, globalns: dict[str, Any], names: Names, where: str, owner: Any = None) -> Any:
    """Return what ``annotation`` means, with strings and forward references in it evaluated.

    Args:
        annotation: As it stands in ``__annotations__``.
        globalns: The globals of the module that holds it.
        names: Where else to look.
        where: The place, for the message.
        owner: The class or function that it annotates; its type parameters are in scope.

    Raises:
        UnsupportedTypeError: A name cannot be found, or evaluating raises.
    """
    shown = annotation
    try:
        if isinstance(annotation, str):
            # A class may say ClassVar or Required, which get_type_hints only lets pass in a reference made for a class.
            annotation = typing.ForwardRef(annotation, is_argument=False, is_class=isinstance(owner, type))
        holder: Any = types.SimpleNamespace(__annotations__={"it": annotation})
        # Of a class's own type parameter and a global of its name, Python 3.12 and 3.13 take the global.
        params = {param.__name__: param for param in getattr(owner, "__type_params__", ())}
        try:
            return typing.get_type_hints(holder, globalns, {**names.own, **params}, include_extras=True)["it"]
        except NameError:
            found = {**names.beyond(globalns), **params}
            return typing.get_type_hints(holder, globalns, found, include_extras=True)["it"]
    except NameError as exc:
        raise UnsupportedTypeError(where, _shown(shown), f"the name {exc.name!r} cannot be found; {_ADVICE}") from exc
    except Exception as exc:
        advice = f"evaluating it raised {type(exc).__name__}: {exc}"
        raise UnsupportedTypeError(where, _shown(shown), advice) from exc


def _shown(annotation: Any) -> str:
    return repr(annotation) if isinstance(annotation, str) else type_name(annotation)


def class_hints(cls: Any, wanted: Collection[str], names: Names, where: str) -> dict[str, Any]:
    """Return the resolved annotations of the ``wanted`` fields, each in the module of the class that wrote it.

    Raises:
        UnsupportedTypeError: A name cannot be found, or a field has no annotation; the field is named.
    """
    hints: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        module = sys.modules.get(base.__module__)
        globalns: dict[str, Any] = vars(module) if module else {}
        # A class may name itself before its module, or its function, knows it.
        scope = Names({**names.own, base.__name__: base}, names.frames, base)
        for name, annotation in _own_annotations(base).items():
            if name in wanted:
                place = f"{where}, field {cls.__name__}.{name}"
                hints[name] = resolve(annotation, globalns, scope, place, base)
    for name in wanted:
        if name not in hints:
            place = f"{where}, field {cls.__name__}.{name}"
            raise UnsupportedTypeError(place, "a field without annotation", "annotate it; Any takes any JSON value")
    return hints


def split_annotation(annotation: Any) -> tuple[Any, list[Any]]:
    """Return a bare type and the metadata that stands beside it, qualifiers such as Final and Required dropped."""
    metadata: list[Any] = []
    while (origin := typing.get_origin(annotation)) in (*QUALIFIERS, typing.Annotated):
        if origin is typing.Annotated:
            metadata[:0] = annotation.__metadata__
            annotation = annotation.__origin__
        else:
            annotation = typing.get_args(annotation)[0]
    return annotation, metadata


def _own_annotations(cls: Any) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if "__attrs_attrs__" in vars(cls):
        # attr.ib(type=...) annotates without an annotation.
        given = {
            field.name: field.type for field in attrs.fields(cls) if field.type is not None and not field.inherited
        }
    if sys.version_info >= (3, 14):
        import annotationlib  # noqa: PLC0415 - only Python 3.14 has it

        return given | annotationlib.get_annotations(cls, format=annotationlib.Format.FORWARDREF)
    return given | inspect.get_annotations(cls)


def type_name(tp: Any) -> str:
    """Return ``tp`` as its author may have written it."""
    if isinstance(tp, type) and not typing.get_args(tp):
        return tp.__qualname__.rpartition(".<locals>.")[2]
    return str(tp).replace("typing.", "")


def substitute(tp: Any, env: Mapping[Any, Any]) -> Any:
    """Return ``tp`` with the type variables of ``env`` filled in."""
    if isinstance(tp, typing.TypeVar):
        return env.get(tp, tp)
    params = getattr(tp, "__parameters__", ())
    if not params or isinstance(tp, type) or not any(param in env for param in params):
        return tp
    return tp[tuple(env.get(param, param) for param in params)]


def own(cls: Any, attribute: str) -> Any:
    """Return an attribute of ``cls`` itself, not of its bases; None if it has none."""
    return cast("dict[str, Any]", vars(cls)).get(attribute)


def typevar_env(cls: Any, args: tuple[Any, ...]) -> dict[Any, Any]:
    """Return what each type variable of ``cls`` and of its generic bases stands for in ``cls[args]``."""
    env: dict[Any, Any] = dict(zip(getattr(cls, "__parameters__", ()), args, strict=False))
    for klass in getattr(cls, "__mro__", (cls,)):
        for base in own(klass, "__orig_bases__") or ():
            origin = typing.get_origin(base)
            if origin in {None, typing.Generic, typing.Protocol}:
                continue
            for param, arg in zip(getattr(origin, "__parameters__", ()), typing.get_args(base), strict=False):
                env.setdefault(param, substitute(arg, env))
    return env


def globals_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the globals that ``function`` was written among."""
    found: dict[str, Any] | None = getattr(function, "__globals__", None)
    if found is not None:
        return found
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    return vars(module) if module else {}
