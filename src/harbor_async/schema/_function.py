"""A function as a tool sees it: its schemas, and the way from JSON to a call and back."""

import inspect
from collections.abc import Callable
from typing import Any

import attrs
import msgspec
from msgspec.structs import replace

from .._context import ToolContext
from ..errors import UnsupportedTypeError
from ._codegen import Module
from ._declare import check_wires
from ._decode import Decoder, compile_decoder
from ._emit import emit
from ._encode import compile_encoder, encode_any
from ._plan import NOTHING, Field, Record, Ref
from ._refusal import nesting_refused
from ._signature import Parameter, Signature, read_signature
from ._walk import Walker

Bound = tuple[Any, ...]
"""The values of one call, in the order of the parameters; each decode makes fresh ones."""


@attrs.frozen(eq=False)
class FunctionSchema:
    """What is known of a function. Stateless: threads, event loops and backends may share it.

    Attributes:
        name: The function's own name (the class's for a callable instance); None for a lambda.
        description: Summary and body of its docstring.
        args_schema: JSON Schema of the argument object. Read only.
        out_schema: JSON Schema of the result; None without a return annotation. Read only.
        is_coroutine: Whether calling it surely gives an awaitable, or that cannot be known before.
        wants_context: Whether a ``ToolContext`` is passed in.
        decoder: Of the argument object.
        decode: ``decoder.decode``: arguments, most bytes, most levels; raises ``InvalidArgumentsError``.
        encode: Of the result: a value, and whether one that the return annotation denies is refused; raises
            ``InvalidOutputError``.
        bind: A program's own arguments, as they are; raises ``TypeError`` when they do not fit the signature.
        call: Calls the function and returns what it returns; an exception of the function leaves as it is.
    """

    name: str | None
    description: str
    args_schema: dict[str, Any]
    out_schema: dict[str, Any] | None
    is_coroutine: bool
    wants_context: bool
    decoder: Decoder
    # Attributes and no methods: each is asked at every call, and a method that passes on costs 2 % of it.
    decode: Callable[[Any, int, int], Bound]
    encode: Callable[[Any, bool], bytes]
    bind: Callable[[tuple[Any, ...], dict[str, Any]], Bound]
    call: Callable[[Bound, ToolContext | None], Any]
    _given: tuple[Parameter, ...] = attrs.field(alias="given", repr=False)

    def fits(self, function: Callable[..., Any]) -> bool:
        """Say whether ``function`` can be called as this one is, without context; also where that cannot be told."""
        values = iter(range(len(self._given)))
        is_keyword = [param.is_keyword for param in self._given]
        first = is_keyword.index(True) if True in is_keyword else len(is_keyword)
        args = [next(values) for _ in self._given[:first]]
        kwargs = {param.name: next(values) for param in self._given[first:]}
        try:
            inspect.signature(function).bind(*args, **kwargs)
        except TypeError:
            return False
        except ValueError:  # a builtin without a signature
            return True
        return True

    def bound(self, function: Callable[..., Any]) -> Callable[[Bound], Any]:
        """Return what calls ``function`` with bound values as this one is called, without context."""
        call = caller(function, self._given)
        return lambda values: call(values, None)


class Binder(msgspec.Struct, frozen=True, eq=False):
    """Binds a program's call.

    Attributes:
        signature: The function's, without context and without what partials bound.
        fields: The parameters, each with its default.
    """

    signature: inspect.Signature
    fields: tuple[Field, ...]

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Bound:
        """Return the values in the order of the parameters; a default that a tool could change is made anew.

        Raises:
            TypeError: They do not fit the signature.
        """
        given = self.signature.bind(*args, **kwargs).arguments
        return tuple(given[field.name] if field.name in given else _absent(field) for field in self.fields)


def _absent(field: Field) -> Any:
    return field.default if field.factory is None else field.factory()


@nesting_refused()
def compile_function(fn: Callable[..., Any], *, name: str | None = None) -> FunctionSchema:
    """Read a function once, so that calls of it need no reflection.

    Args:
        fn: A function, bound method, partial, callable instance or wrapper of these.
        name: The name to use in place of its own.

    Raises:
        UnsupportedTypeError: A parameter or the result has a type without JSON form; the message says what to write.
        InvalidToolError: It is no function that can be a tool.
        SchemaBuildError: A constraint makes no sense, two fields share a wire name, or classes nest too deeply.
    """
    signature = read_signature(fn)
    title = name or signature.name or "arguments"
    given = [param for param in signature.parameters if not param.is_context]
    walker = Walker(signature.names)
    fields = tuple(_field(walker, param) for param in given)
    record = Record(title=title, style="arguments", cls=None, fields=fields)
    check_wires(fields, title)
    walker.finish()
    root = _whole(signature, fields) or Ref(record=record)
    encode, out_schema = _result(signature)
    decoder = compile_decoder(root)
    return FunctionSchema(
        name=name or signature.name,
        description=signature.doc.text,
        args_schema=emit(root),
        out_schema=out_schema,
        is_coroutine=signature.is_coroutine,
        wants_context=len(given) < len(signature.parameters),
        decoder=decoder,
        decode=decoder.decode,
        encode=encode,
        bind=_binder(signature, fields).bind,
        call=caller(fn, signature.parameters),
        given=tuple(given),
    )


def _whole(signature: Signature, fields: tuple[Field, ...]) -> Ref | None:
    """Return the class that a lone positional-only parameter declares as the whole argument object, if it does.

    Raises:
        UnsupportedTypeError: Its type has no fields, and its name would be a key that no caller can pass by name.
    """
    if len(fields) != 1 or not fields[0].is_positional:
        return None
    node = fields[0].node
    if isinstance(node, Ref):
        return node
    if signature.is_rest:
        return None
    advice = "alone before '/' stands the class of the whole argument object; drop the '/', or take a class with fields"
    where = f"parameter {fields[0].name!r}"
    raise UnsupportedTypeError(where, "a positional-only parameter of this type", advice)


def _field(walker: Walker, param: Parameter) -> Field:
    declaration = param.declaration
    assert declaration is not None  # noqa: S101 - only the context has none
    return replace(walker.field(declaration), is_positional=param.is_positional, is_keyword=param.is_keyword)


def _result(signature: Signature) -> tuple[Callable[[Any, bool], bytes], dict[str, Any] | None]:
    if signature.returns is NOTHING:
        return _encode_any, None
    node = Walker(signature.names, output=True).plan(signature.returns, "the return value")
    return compile_encoder(node).encode, emit(node)


def _encode_any(value: Any, check: bool) -> bytes:  # noqa: ARG001, FBT001 - nothing is declared to check against
    return encode_any(value)


def _binder(signature: Signature, fields: tuple[Field, ...]) -> Binder:
    names = {param.name for param in signature.parameters if not param.is_context}
    params = [param for param in signature.python.parameters.values() if param.name in names]
    return Binder(signature.python.replace(parameters=params), fields)


def caller(fn: Callable[..., Any], parameters: tuple[Parameter, ...]) -> Callable[[Bound, ToolContext | None], Any]:
    """Return what calls ``fn`` with bound values, written out: ``fn(v[0], v[1], days=v[2], ctx=c)``."""
    module = Module()
    passed: list[str] = []
    index = 0
    by_position = True
    for param in parameters:
        value = "c" if param.is_context else f"v[{index}]"
        index += not param.is_context
        by_position = by_position and not param.is_keyword
        passed.append(value if by_position else f"{param.name}={value}")
    module.function("call", "v, c", [f"return {module.ref(fn)}({', '.join(passed)})"])
    call: Callable[[Bound, ToolContext | None], Any] = module.compile()["call"]
    return call
