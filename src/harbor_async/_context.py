"""On whose behalf a call is made, and what a tool may know about it."""

from collections.abc import Callable, Iterable
from typing import Any

import attrs

from .errors import HarborError, InvalidToolError, words


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
    _time: Callable[[], float] | None = attrs.field(default=None, alias="time", repr=False, eq=False)

    def remaining(self) -> float:
        """Return the seconds until this attempt ends, 0 when that has passed; ``math.inf`` if never.

        Raises:
            HarborError: The context was made by hand and has no clock (``time=``).
        """
        if self._time is None:
            msg = "this context was made without a clock: ToolContext(..., time=anyio.current_time)"
            raise HarborError(msg)
        return max(0.0, self.deadline - self._time())
