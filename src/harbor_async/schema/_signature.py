"""What a callable takes and gives, seen through partials, methods, instances and wrappers."""

import collections.abc
import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any, Final, cast

import msgspec

from .._context import ToolContext
from .._json import class_of
from ..errors import InvalidToolError, UnsupportedTypeError
from ._declare import Declaration
from ._docs import Doc, read_doc
from ._hints import Names, caller_names, closure_of, globals_of, resolve, substitute, typevar_env
from ._plan import NOTHING
from ._record import RawField

_AWAITABLES: Final = (collections.abc.Awaitable, collections.abc.Coroutine)
_EMPTY: Final = inspect.Parameter.empty
_VARIADIC: Final = {
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}


class Parameter(msgspec.Struct, frozen=True, eq=False):
    """One parameter that a caller can give a value.

    Attributes:
        name: Its name in the signature.
        is_positional: Whether it can only be passed by position.
        is_keyword: Whether it can only be passed by keyword.
        is_context: Whether the tool's context goes there.
        declaration: Its type and default; None for the context.
    """

    name: str
    is_positional: bool
    is_keyword: bool
    is_context: bool
    declaration: Declaration | None


class Signature(msgspec.Struct, frozen=True, eq=False):
    """A callable, read.

    Attributes:
        name: Its own name; None if it has none.
        doc: Its docstring.
        parameters: What can be given, in order; what a partial has bound is left out.
        returns: The resolved return type, an awaitable's result in place of the awaitable; NOTHING without annotation.
        is_coroutine: Whether a call surely gives an awaitable, or that cannot be known.
        is_rest: Whether a partial has bound other parameters by keyword.
        names: Where forward references are looked up.
        python: The signature that a program's call is bound to.
    """

    name: str | None
    doc: Doc
    parameters: tuple[Parameter, ...]
    returns: Any
    is_coroutine: bool
    is_rest: bool
    names: Names
    python: inspect.Signature


def read_signature(fn: Callable[..., Any]) -> Signature:
    """Read a callable.

    Args:
        fn: A function, bound method, partial, callable instance or wrapper of these.

    Raises:
        InvalidToolError: It cannot be called, is a class or a generator function, has no signature, or takes
            parameters that a JSON object cannot give.
        UnsupportedTypeError: An annotation is missing or cannot be resolved.
    """
    if not callable(fn):
        msg = f"expected a function; got {type(fn).__name__}"
        raise InvalidToolError(msg)
    if isinstance(fn, type):
        msg = f"expected a function; got the class {fn.__name__}; describe one of its methods, or an instance"
        raise InvalidToolError(msg)
    name = _name(fn)
    try:
        python = inspect.signature(fn)
    except (TypeError, ValueError) as exc:
        msg = f"{name or 'the function'} has no signature that Python can read; wrap it in a function that has one"
        raise InvalidToolError(msg) from exc
    layers = tuple(_layers(fn))  # after inspect.signature, which refuses wrappers that go in circles
    _refuse_generators(layers, name)
    reader = _Reader.of(layers)
    doc = read_doc(_docstring(layers))
    bound = frozenset(key for layer in layers if isinstance(layer, functools.partial) for key in layer.keywords)
    visible = [param for param in python.parameters.values() if param.name not in bound]
    returns, awaits = _returns(python, reader)
    return Signature(
        name=name,
        doc=doc,
        parameters=tuple(_parameter(param, reader, doc) for param in visible),
        returns=returns,
        is_coroutine=awaits or _is_coroutine(layers),
        is_rest=bool(bound),
        names=reader.names,
        python=python,
    )


class _Reader(msgspec.Struct, frozen=True, eq=False):
    """Reads the annotations of one function.

    Attributes:
        inner: The function that was written.
        names: Where its names are looked up.
        env: What the type variables of its class stand for.
    """

    inner: Any
    names: Names
    env: dict[Any, Any]

    @classmethod
    def of(cls, layers: tuple[Any, ...]) -> "_Reader":
        """Make the reader of the innermost of ``layers``."""
        inner = layers[-1]
        env: dict[Any, Any] = {}
        for layer in layers:
            owner = layer.__self__ if isinstance(layer, types.MethodType) else layer
            if not inspect.isroutine(owner) and not isinstance(owner, functools.partial):
                args = typing.get_args(getattr(owner, "__orig_class__", None))
                env |= typevar_env(owner if isinstance(owner, type) else class_of(owner), args)
        return cls(inner, caller_names(getattr(inner, "__qualname__", ""), closure_of(inner)), env)

    def read(self, annotation: Any, where: str) -> Any:
        """Return the type that ``annotation`` means.

        Raises:
            UnsupportedTypeError: A name in it cannot be resolved.
        """
        return substitute(resolve(annotation, globals_of(self.inner), self.names, where, self.inner), self.env)


def _layers(fn: Any) -> Iterator[Any]:
    """Yield ``fn`` and what it wraps, down to the function that does the work."""
    while True:
        yield fn
        inner: Any
        if isinstance(fn, functools.partial):
            inner = fn.func
        elif isinstance(fn, (types.MethodType, staticmethod, classmethod)):
            inner = cast("Any", fn).__func__
        elif "__wrapped__" in getattr(fn, "__dict__", ()):
            inner = fn.__wrapped__
        elif inspect.isroutine(fn):
            return
        else:
            inner = inspect.getattr_static(class_of(fn), "__call__")
            if isinstance(inner, types.WrapperDescriptorType):
                return
        fn = inner


def _name(fn: Any) -> str | None:
    while isinstance(fn, functools.partial):
        fn = fn.func
    name = getattr(fn, "__name__", None)
    if name == "__call__":
        fn, name = getattr(fn, "__self__", fn), None
    if not isinstance(name, str):
        name = type(fn).__name__
    return None if name == "<lambda>" else name


def _docstring(layers: tuple[Any, ...]) -> str | None:
    """Return the docstring of the outermost function, else that of the class of an instance."""
    for layer in layers:
        if inspect.isroutine(layer) and layer.__doc__:
            return str(layer.__doc__)
    for layer in layers:
        if not inspect.isroutine(layer) and not isinstance(layer, functools.partial):
            own = class_of(layer).__doc__
            return own if isinstance(own, str) else None
    return None


def _refuse_generators(layers: tuple[Any, ...], name: str | None) -> None:
    for layer in layers:
        if inspect.isgeneratorfunction(layer) or inspect.isasyncgenfunction(layer):
            kind = "an async generator" if inspect.isasyncgenfunction(layer) else "a generator"
            msg = f"{name or 'the function'} is {kind}; return a list instead, or report progress while it runs"
            raise InvalidToolError(msg)


def _is_coroutine(layers: tuple[Any, ...]) -> bool:
    return getattr(layers[-1], "__name__", "") == "<lambda>" or any(map(inspect.iscoroutinefunction, layers))


def _parameter(param: inspect.Parameter, reader: _Reader, doc: Doc) -> Parameter:
    where = f"parameter {param.name!r}"
    if param.kind in _VARIADIC:
        stars = _VARIADIC[param.kind]
        advice = "a JSON object cannot give it; declare each parameter, or take a list or dict"
        msg = f"parameter '{stars}{param.name}': {advice}"
        raise InvalidToolError(msg)
    if param.annotation is _EMPTY:
        raise UnsupportedTypeError(where, "a parameter without annotation", "annotate it; Any takes any JSON value")
    tp = reader.read(param.annotation, where)
    is_context = _is_context(tp)
    default = NOTHING if param.default is _EMPTY else param.default
    raw = RawField(
        name=param.name,
        attribute=param.name,
        annotation=tp,
        is_required=default is NOTHING,
        default=default,
    )
    return Parameter(
        name=param.name,
        is_positional=param.kind is inspect.Parameter.POSITIONAL_ONLY,
        is_keyword=param.kind is inspect.Parameter.KEYWORD_ONLY,
        is_context=is_context,
        declaration=None if is_context else Declaration(raw, tp, doc.params.get(param.name), where),
    )


def _bare(tp: Any) -> Any:
    return typing.get_args(tp)[0] if typing.get_origin(tp) is typing.Annotated else tp


def _is_context(tp: Any) -> bool:
    bare = _bare(tp)
    options = typing.get_args(bare) if typing.get_origin(bare) in (typing.Union, types.UnionType) else (bare,)
    return ToolContext in options and all(option in (ToolContext, type(None)) for option in options)


def _returns(python: inspect.Signature, reader: _Reader) -> tuple[Any, bool]:
    if python.return_annotation is inspect.Signature.empty:
        return NOTHING, False
    tp = reader.read(python.return_annotation, "the return value")
    awaits = False
    while (origin := typing.get_origin(tp)) in _AWAITABLES:
        awaits = True
        args = typing.get_args(tp)
        tp = (args[-1] if args else Any) if origin else tp
    if tp in _AWAITABLES:
        return NOTHING, True
    return tp, awaits
