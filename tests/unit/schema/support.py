"""What the tests of the schema engine share.

They drive the engine through ``compile_function``, the private seam below ``describe``: so each fact is about the
engine alone, and not about the shell and the envelope round it.
"""

from collections.abc import Callable
from typing import Any

import pytest

from harbor_async.errors import InvalidArgumentsError, InvalidOutputError, Problem
from harbor_async.schema._function import FunctionSchema, compile_function

MAX_BYTES = 100_000
MAX_DEPTH = 64


def function_of(tp: Any, returns: Any = Any) -> FunctionSchema:
    """Return the engine's view of a function with the one parameter ``x`` of type ``tp``."""

    async def tool(x: Any) -> Any:
        return x

    tool.__annotations__ = {"x": tp, "return": returns}
    return compile_function(tool)


def decode(
    fn: Callable[..., Any] | FunctionSchema, arguments: Any, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH
) -> Any:
    """Return the values that ``fn`` would be called with."""
    schema = fn if isinstance(fn, FunctionSchema) else compile_function(fn)
    return schema.decode(arguments, max_bytes, max_depth)


def decode_as(tp: Any, value_json: str) -> Any:
    """Return the Python value of a JSON text read as ``tp``."""
    (value,) = decode(function_of(tp), f'{{"x": {value_json}}}')
    return value


def problems_of(
    fn: Callable[..., Any] | FunctionSchema, arguments: Any, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH
) -> list[Problem]:
    """Return why ``arguments`` are refused."""
    with pytest.raises(InvalidArgumentsError) as caught:
        decode(fn, arguments, max_bytes, max_depth)
    assert caught.value.problems
    return list(caught.value.problems)


def faults(fn: Callable[..., Any] | FunctionSchema, arguments: Any, **limits: int) -> list[tuple[str, str]]:
    """Return pointer and code of every problem of ``arguments``."""
    return [(problem.path, problem.code) for problem in problems_of(fn, arguments, **limits)]


def faults_as(tp: Any, value_json: str) -> list[tuple[str, str]]:
    """Return pointer, below the parameter, and code of every problem of a JSON text read as ``tp``."""
    return [(path.removeprefix("/x"), code) for path, code in faults(function_of(tp), f'{{"x": {value_json}}}')]


def encode(tp: Any, value: Any, *, check: bool = True) -> str:
    """Return the JSON text of ``value`` as a result of type ``tp``."""
    return function_of(Any, tp).encode(value, check).decode()


def output_problems(tp: Any, value: Any, *, check: bool = True) -> list[Problem]:
    """Return why ``value`` is refused as a result of type ``tp``."""
    with pytest.raises(InvalidOutputError) as caught:
        function_of(Any, tp).encode(value, check)
    assert caught.value.problems
    return list(caught.value.problems)
