"""What to write instead of a type that has no JSON form."""

import collections
import collections.abc
import re
import types
import typing
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final, cast

from .._context import ToolContext
from ..errors import SchemaBuildError

_CONTEXT: Final = "it is filled in where a parameter of its own is annotated so, and is no part of a document"
_ITERATORS: Final = (
    collections.abc.Iterable,
    collections.abc.Iterator,
    collections.abc.Generator,
    collections.abc.AsyncIterable,
    collections.abc.AsyncIterator,
    collections.abc.AsyncGenerator,
)
_REGISTER: Final = (
    "write an attrs class, a dataclass, a TypedDict or a NamedTuple, or give it a form with register_type()"
)
_ADVICE: Final[tuple[tuple[tuple[Any, ...], str], ...]] = (
    (
        (cast("Any", collections.abc.Callable), types.FunctionType),
        "a function cannot travel; take a name and look it up",
    ),
    ((collections.abc.Coroutine, collections.abc.Awaitable), "await it first and return the value"),
    (_ITERATORS, "use list[...] for a finished sequence"),
    ((ToolContext,), _CONTEXT),
    ((object,), "use Any for any JSON value"),
    ((types.ModuleType,), "a module cannot travel; take its name"),
    ((type,), "a class cannot travel; take its name, or a Literal of names"),
    ((collections.deque,), "use list[...]"),
    ((bytearray, memoryview), "use bytes"),
    ((complex,), "use a tuple of two floats"),
    ((re.Pattern, re.Match), "take the pattern as str"),
    (
        (collections.defaultdict, collections.OrderedDict, collections.Counter, collections.ChainMap),
        "use dict[str, ...]",
    ),
)


@contextmanager
def nesting_refused() -> Generator[None]:
    """Refuse types that nest so deep that reading them exhausts the stack.

    Raises:
        SchemaBuildError: They do.
    """
    try:
        yield
    except RecursionError as exc:
        msg = "the classes are nested too deeply: each holds the next, over a hundred times; flatten them"
        raise SchemaBuildError(msg) from exc


def advice_for(tp: Any) -> str:
    """Return what to write in place of ``tp``."""
    for types_, advice in _ADVICE:
        if any(tp is known for known in types_):
            return advice
    if isinstance(tp, (str, typing.ForwardRef)):
        return "a name inside it could not be resolved; an alias cannot contain itself: write a class, or Any"
    return _REGISTER
