"""How much one runtime takes on."""

from collections.abc import Callable
from typing import Any

import attrs

from .errors import InvalidToolError


def _count(least: int, *, optional: bool) -> "Callable[[Any, attrs.Attribute[Any], object], None]":
    def check(_: object, field: "attrs.Attribute[Any]", value: object) -> None:
        if optional and value is None:
            return
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            none = ", or None for no limit" if optional else ""
            msg = f"Limits.{field.name}: expected an int of at least {least}{none}; got {value!r}"
            raise InvalidToolError(msg)

    return check


@attrs.frozen(kw_only=True)
class Limits:
    """Bounds of one runtime.

    Attributes:
        max_running: Calls that run at once; at least 1. None: no limit. A call that a running one makes through the
            same runtime uses the place of that one.
        max_queued: Calls that wait for a place; one more is ``rejected`` / ``rate_limited``. 0: nothing waits.
            None: no limit.
        max_threads: Worker threads for synchronous tools; at least 1.
        max_arguments_bytes: Size of one call's arguments as JSON text, in bytes of UTF-8; at least 2.
        max_depth: Levels of nesting of one call's arguments; at least 1.
        max_running_per_tenant: Calls of one ``Identity.tenant`` that run at once; at least 1. None: no limit. Turns go
            round the tenants in any case.

    Raises:
        InvalidToolError: A value is out of its range or of another type.
    """

    max_running: int | None = attrs.field(default=None, validator=_count(1, optional=True))
    max_queued: int | None = attrs.field(default=None, validator=_count(0, optional=True))
    max_threads: int = attrs.field(default=40, validator=_count(1, optional=False))
    max_arguments_bytes: int = attrs.field(default=4_000_000, validator=_count(2, optional=False))
    max_depth: int = attrs.field(default=64, validator=_count(1, optional=False))
    max_running_per_tenant: int | None = attrs.field(default=None, validator=_count(1, optional=True))
