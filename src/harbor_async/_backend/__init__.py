"""What anyio cannot say, and the native paths that a measurement has paid for.

The only package of the core that imports asyncio or trio, each when it runs. A ``Backend`` is bound to one running
event loop; a ``Runtime`` keeps one while it is entered.
"""

from typing import cast

import anyio

from ._base import Backend

__all__ = ["Backend", "current", "find_interrupt", "parts"]


def current() -> Backend:
    """Return the backend of the running event loop.

    Raises:
        anyio.NoEventLoopError: No event loop is running in this thread.
    """
    # asyncio took a third of what importing the package took, and users of one need not load the other.
    if anyio.get_cancelled_exc_class().__module__.partition(".")[0] == "trio":
        from ._trio import TrioBackend  # noqa: PLC0415 - as said

        return TrioBackend()
    from ._asyncio import AsyncioBackend  # noqa: PLC0415 - as said

    return AsyncioBackend()


def find_interrupt(error: BaseException) -> BaseException | None:
    """Return the ``KeyboardInterrupt`` or ``SystemExit`` that ``error`` is or holds, or None."""
    if isinstance(error, (KeyboardInterrupt, SystemExit)):
        return error
    return next(filter(None, map(find_interrupt, parts(error))), None)


def parts(error: BaseException | None) -> tuple[BaseException, ...]:
    """Return the exceptions that a group holds directly; nothing for any other exception."""
    return cast("BaseExceptionGroup[BaseException]", error).exceptions if isinstance(error, BaseExceptionGroup) else ()
