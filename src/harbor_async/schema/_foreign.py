"""A function whose schemas are not read off its types: somebody else has written them."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from .._json import is_object
from ..errors import InvalidArgumentsError, InvalidOutputError, InvalidToolError, Problem
from ._decode import compile_decoder
from ._encode import encode_any
from ._function import Bound, FunctionSchema, caller
from ._leaf import scalar
from ._plan import Anything, Leaf, Table
from ._signature import read_signature

Check: TypeAlias = Callable[[Any], list[Problem]]
"""Returns every problem of a JSON value, as builtins; none when it fits."""

_MOST_BYTES: Final = 2**62
_MOST_LEVELS: Final = 500


def compile_foreign(
    fn: Callable[..., Any],
    *,
    name: str | None,
    args_schema: dict[str, Any],
    check_args: Check,
    out_schema: dict[str, Any] | None,
    check_out: Check | None,
) -> FunctionSchema:
    """Read a function that takes its whole argument object as one dict.

    The object is read as strictly as any other; whether it fits is asked of ``check_args``.

    Args:
        fn: A function of one parameter, and perhaps a ``ToolContext``.
        name: The name to use in place of its own.
        args_schema: What a model is shown.
        check_args: Finds what is wrong with an argument object.
        out_schema: What a model is shown of the result; None: nothing.
        check_out: Finds what is wrong with a result; None: nothing ever is.

    Raises:
        InvalidToolError: The function takes other parameters, or cannot be a tool.
        UnsupportedTypeError: A parameter has no annotation, or one that cannot be resolved.
    """
    signature = read_signature(fn)
    given = [param for param in signature.parameters if not param.is_context]
    if len(given) != 1 or given[0].is_keyword:
        who = name or signature.name or "the function"
        msg = f"{who}: expected a function of one positional parameter, the dict of all arguments; got {len(given)}"
        raise InvalidToolError(msg)
    key = scalar(str)
    assert isinstance(key, Leaf)  # noqa: S101 - text has a form
    decoder = compile_decoder(Table(key=key, value=Anything()))

    def decode(arguments: Any, max_bytes: int, max_depth: int) -> Bound:
        try:
            bound: Bound = decoder.decode(arguments, max_bytes, max_depth)
        except InvalidArgumentsError as exc:
            raise InvalidArgumentsError([*exc.problems, *_more(exc.problems, arguments, check_args)]) from exc
        if problems := check_args(bound[0]):
            raise InvalidArgumentsError(problems)
        return bound

    def bind(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Bound:
        if len(args) > 1 or (args and (kwargs or not isinstance(args[0], Mapping))):
            msg = f"{name or signature.name}: expected each argument by its name, or all of them as one mapping"
            raise TypeError(msg)
        return decode(args[0] if args else kwargs, _MOST_BYTES, _MOST_LEVELS)

    def encode(value: Any, check: bool) -> bytes:  # noqa: FBT001 - as ``Encoder.encode``
        data = encode_any(value)
        if check and check_out is not None and (problems := check_out(msgspec.json.decode(data))):
            raise InvalidOutputError(problems)
        return data

    return FunctionSchema(
        name=name or signature.name,
        description=signature.doc.text,
        args_schema=args_schema,
        out_schema=out_schema,
        is_coroutine=signature.is_coroutine,
        wants_context=len(given) < len(signature.parameters),
        decoder=decoder,
        decode=decode,
        encode=encode,
        bind=bind,
        call=caller(fn, signature.parameters),
        given=tuple(given),
    )


def _more(found: tuple[Problem, ...], arguments: Any, check: Check) -> list[Problem]:
    """Return what else is wrong with a document that was refused for keys which came twice, their last values taken."""
    if not isinstance(arguments, (str, bytes)) or {problem.code for problem in found} != {"duplicate"}:
        return []
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return []
    if not is_object(value):
        return []
    told = {problem.path for problem in found}
    return [problem for problem in check(value) if problem.path not in told]
