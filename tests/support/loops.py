"""Options of ``run_virtual`` for every kind of event loop that this Python has."""

import sys
from typing import Any

ASYNCIO: list[dict[str, Any]] = [{}, {"debug": True}]
if sys.version_info >= (3, 12):
    ASYNCIO.append({"eager": True})
ALL: list[dict[str, Any]] = [*ASYNCIO, {"backend": "trio"}]
