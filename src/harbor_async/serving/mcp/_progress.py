"""A call's progress on its way to whoever made the call."""

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

import anyio
from mcp.server.session import ServerSession

from ..._call import Progress
from ..._results import ToolResult

_MOST_WAITING: Final = 100
"""Reports that wait for a client that reads slowly; of more than these the oldest are dropped."""


async def invoke_with_progress(
    session: ServerSession, invoke: "Callable[[Progress], Awaitable[ToolResult]]"
) -> ToolResult:
    """Return what ``invoke(on_progress)`` gives, when all reports of it that were kept have been sent.

    No report may follow the answer, and none may be less than one before, as those of a further attempt are: these
    are dropped. Source: the specification of 2026-07-28, basic/utilities/progress.
    """
    waiting: deque[tuple[float, float | None, str]] = deque(maxlen=_MOST_WAITING)
    news = anyio.Event()
    is_ended = False

    def hear(done: float, total: float | None, message: str) -> None:
        waiting.append((done, total, message))
        news.set()

    async def send() -> None:
        nonlocal news
        sent: float | None = None
        while waiting or not is_ended:
            if not waiting:
                news = anyio.Event()
                await news.wait()
                continue
            done, total, message = waiting.popleft()
            if sent is None or done > sent:
                sent = done
                await session.report_progress(done, total, message or None)

    async with anyio.create_task_group() as sending:
        sending.start_soon(send)
        result = await invoke(hear)
        is_ended = True
        news.set()
    return result  # pyright: ignore[reportPossiblyUnboundVariable] - the group swallows nothing
