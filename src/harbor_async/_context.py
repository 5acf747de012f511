"""On whose behalf a call is made, and what a tool may know about it."""

import logging
import math
from collections.abc import Awaitable, Iterable, MutableMapping
from typing import Any, Final, ParamSpec, Protocol, TypeVar

import attrs

from .errors import HarborError, InvalidToolError, clip, words

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

_LOG: Final = logging.getLogger("harbor_async.tool")


class _CallLog(logging.LoggerAdapter[logging.Logger]):
    """A logger that adds what is known of a call, and keeps what is given with a record, as Python 3.13 can."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        kwargs["extra"] = {**(self.extra or {}), **(kwargs.get("extra") or {})}
        return msg, kwargs


class Callee(Protocol[P, R_co]):
    """A tool that ``ToolContext.call`` can call: a ``ToolDescriptor``."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Awaitable[R_co]:
        """Call its bare function."""
        ...


class Link(Protocol):
    """What ties a context to the call that it tells of."""

    @property
    def key(self) -> str:
        """The idempotency key of the call."""
        ...

    def time(self) -> float:
        """Return the time on the event loop's clock, in seconds; from any thread."""
        ...

    def report(self, done: float, total: float | None, message: str) -> None:
        """Tell of progress; from any thread."""
        ...

    async def call(self, tool: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call ``tool`` from within the call."""
        ...


def _scopes(scopes: Iterable[str]) -> frozenset[str]:
    return frozenset(words("Identity.scopes", scopes))


def _name(_: object, field: "attrs.Attribute[Any]", value: Any) -> None:
    if not (isinstance(value, str) and value) and not (value is None and field.default is None):
        msg = f"Identity.{field.name}: expected text that is not empty; got {value!r}"
        raise InvalidToolError(msg)


@attrs.frozen
class Identity:
    """On whose behalf a call is made.

    Attributes:
        tenant: Whose data it is.
        user: Who asks.
        session: In which conversation.
        run: In which run of an agent; None: not known.
        scopes: What was granted; a tool is called only when all of its own scopes are in here.

    Raises:
        InvalidToolError: A value is empty or of another type.
    """

    tenant: str = attrs.field(validator=_name)
    user: str = attrs.field(validator=_name)
    session: str = attrs.field(validator=_name)
    run: str | None = attrs.field(default=None, validator=_name)
    scopes: frozenset[str] = attrs.field(default=frozenset(), converter=_scopes, kw_only=True)


@attrs.frozen
class ToolContext:
    """The call that a tool serves. A parameter annotated with it is filled in and is no part of the schema.

    Attributes:
        call_id: The id of the call, as its sender wrote it.
        tool: The tool's name in the catalog.
        attempt: Which run of the function this is, from 1.
        deadline: When this attempt ends, in seconds on the event loop's clock (``anyio.current_time()``);
            ``math.inf`` if never.
        identity: On whose behalf the call is made; None: the program's own.
    """

    call_id: str
    tool: str
    attempt: int
    deadline: float
    identity: Identity | None = None
    _link: Link | None = attrs.field(default=None, alias="link", repr=False, eq=False)

    def remaining(self) -> float:
        """Return the seconds until this attempt ends, 0 when that has passed; ``math.inf`` if never.

        Raises:
            HarborError: The context was made by hand.
        """
        return max(0.0, self.deadline - self._linked().time())

    @property
    def idempotency_key(self) -> str:
        """A text of 32 letters and digits that names this call for the other side: the same in each of its attempts.

        Raises:
            HarborError: The context was made by hand.
        """
        return self._linked().key

    @property
    def logger(self) -> logging.LoggerAdapter[logging.Logger]:
        """The logger ``harbor_async.tool``, whose records carry ``tool``, ``call_id`` and ``attempt`` besides."""
        extra = {"tool": self.tool, "call_id": self.call_id, "attempt": self.attempt}
        return _CallLog(_LOG, extra)

    def report_progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Tell those who listen to the runtime how far the work is; from any thread.

        What comes after the end of the attempt is lost.

        Args:
            done: How much is done.
            total: How much there is to do, in the same unit. None: not known.
            message: A few words for people; at most 2,000 characters of it are kept.

        Raises:
            TypeError: A number is none, or the message no text.
            ValueError: A number is not finite, or too large for a float.
        """
        for number in (done,) if total is None else (done, total):
            try:
                is_finite = math.isfinite(number)
            except OverflowError:
                is_finite = False
            if not is_finite:
                msg = "report_progress: expected numbers that are finite and fit a float"
                raise ValueError(msg)
        if not isinstance(message, str):
            msg = f"report_progress: expected a message of text; got {type(message).__name__}"
            raise TypeError(msg)
        if self._link is not None:
            self._link.report(done, total, clip(message))

    async def call(self, tool: Callee[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call another tool from within this one, on behalf of the same identity, as ``Runtime.call`` does.

        It uses the place of this call, and ends with it. From a synchronous tool: ``anyio.from_thread.run``.

        Raises:
            HarborError: The context was made by hand.
            Exception: As ``Runtime.call``.
        """
        result: R = await self._linked().call(tool, args, kwargs)
        return result

    def _linked(self) -> Link:
        if self._link is None:
            msg = "this context was made by hand and belongs to no call; in a test, invoke the tool"
            raise HarborError(msg)
        return self._link
