"""Tools that do what a script says."""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from threading import Lock
from typing import Any, ParamSpec, TypeVar, Unpack

import attrs
import msgspec

from .. import _json
from .._call import Call
from .._declaration import ToolOptions, describe
from .._descriptor import ToolDescriptor
from ..errors import InvalidArgumentsError, InvalidToolError, Problem
from ._fault import AnyFault, Fault, is_error, play, to_fault

P = ParamSpec("P")
R = TypeVar("R")


@attrs.frozen(eq=False)
class _Disturbed(ToolDescriptor[P, R]):
    """A tool round whose runs something goes wrong.

    Attributes:
        inner: The tool.
        take: Gives what goes wrong in the attempt of this number.
    """

    inner: ToolDescriptor[P, R] = attrs.field(kw_only=True, repr=False)
    take: Callable[[int], Fault] = attrs.field(kw_only=True, repr=False)

    def start(self, call: Call) -> Awaitable[R]:
        return play(self.take(call.attempts), partial(self.inner.start, call))


def inject(tool: ToolDescriptor[P, R], faults: Iterable[AnyFault]) -> ToolDescriptor[P, R]:
    """Return a tool that is ``tool`` in everything, but that things go wrong in its attempts.

    ::

        catalog.replace([inject(search, [ConnectionResetError, HANG])])  # in the first attempt, and in the second

    Args:
        tool: The tool. Its schemas, policy and limits stay; a call as the bare function is not disturbed.
        faults: A list: what goes wrong in the first attempt of each call, in the second and so on; after its end
            nothing does. An iterator, as ``chance`` gives one: each run takes the next, whatever call it belongs to.

    Raises:
        InvalidToolError: ``tool`` is no tool, or an item of the list is no fault.
    """
    if not isinstance(tool, ToolDescriptor):
        msg = f"inject: expected a tool descriptor, as @tool and describe() make them; got {type(tool).__name__}"
        raise InvalidToolError(msg)
    take = _by_run(faults, to_fault, None) if isinstance(faults, Iterator) else _by_attempt([*faults, None], to_fault)
    return _disturb(tool, take)


def scripted_tool(name: str, script: Iterable[Any], /, **options: Unpack[ToolOptions]) -> ToolDescriptor[..., Any]:
    """Return a tool that takes any arguments, and does what a script says.

    ::

        flaky = scripted_tool("search", [ConnectionResetError, Fault(delay=2.0, value="found")])

    Args:
        name: Its name.
        script: Each item is a value to return, an exception or a class of exceptions to raise, or a ``Fault``. A list:
            what happens in the first attempt of each call, in the second and so on; its last item counts for all that
            follow. An iterator: each run takes the next item, whatever call it belongs to; after its end it raises
            ``LookupError``.
        **options: What else is to be said of the tool, as for ``describe``.

    Raises:
        InvalidToolError: The list is empty or no list, or an option makes no sense.
    """
    options["name"] = name
    described = describe(_answer_nothing, **options)
    plain = attrs.evolve(
        described,
        tool=attrs.evolve(described.tool, args_schema=msgspec.json.encode({"type": "object"})),
        schema=attrs.evolve(described.schema, decode=_check_object, bind=_bind_anything),
    )
    if isinstance(script, Iterator):
        return _disturb(plain, _by_run(script, _to_step, LookupError(f"the script of tool {name!r} has ended")))
    steps: list[Any] = [] if isinstance(script, (str, bytes)) else list(script)
    if not steps:
        msg = f"tool {name!r}: expected a script, a list of what is returned or raised; got {script!r}"
        raise InvalidToolError(msg)
    return _disturb(plain, _by_attempt(steps, _to_step))


async def _answer_nothing() -> Any:
    """Do what a script says."""


def _to_step(item: object) -> Fault:
    return to_fault(item) if isinstance(item, Fault) or is_error(item) else Fault(value=item)


def _disturb(tool: ToolDescriptor[P, R], take: Callable[[int], Fault]) -> ToolDescriptor[P, R]:
    fields = {field.name: getattr(tool, field.name) for field in attrs.fields(ToolDescriptor) if field.init}
    return _Disturbed(**fields, inner=tool, take=take)


def _by_attempt(items: list[Any], convert: Callable[[object], Fault]) -> Callable[[int], Fault]:
    faults = [convert(item) for item in items]
    return lambda attempt: faults[min(attempt, len(faults)) - 1]


def _by_run(items: Iterator[Any], convert: Callable[[object], Fault], end: object) -> Callable[[int], Fault]:
    lock = Lock()  # event loops in several threads may share a tool, and no two threads may be in one generator

    def take(_: int) -> Fault:
        with lock:
            item = next(items, end)
        return convert(item)

    return take


def _bind_anything(_: tuple[Any, ...], __: dict[str, Any]) -> tuple[Any, ...]:
    return ()


def _check_object(arguments: Any, max_bytes: int, max_depth: int) -> tuple[Any, ...]:
    """Refuse what is no JSON object; in the place of a decoder."""
    if arguments is None or _json.is_mapping(arguments):
        return ()
    if not isinstance(arguments, (str, bytes)):
        raise InvalidArgumentsError([_no_object(arguments)])
    data = arguments.encode(errors="surrogatepass") if isinstance(arguments, str) else arguments
    if len(data) > max_bytes:
        raise InvalidArgumentsError([_json.too_large(max_bytes)])
    if _json.is_deeper(data, max_depth):
        raise InvalidArgumentsError([_json.too_deep(max_depth)])
    if data.strip(_json.WHITESPACE) not in {b"", b"null"}:
        try:
            value = _json.parse(data).value
        except _json.DocumentError as exc:
            raise InvalidArgumentsError([exc.problem]) from exc
        if not _json.is_object(value):
            raise InvalidArgumentsError([_no_object(value)])
    return ()


def _no_object(value: object) -> Problem:
    return Problem("", "type", f"expected object, got {_json.kind_of(value)}")
