"""What is paid once: the import, and the registration of a tool."""

import inspect
import os
import subprocess
import sys
import tempfile
import typing

import msgspec

from harbor_async import Catalog, describe

from .codec import NestedStruct
from .hand import sequence_by_hand
from .pair import Effort, Pair, Row, Side, measure, repeat
from .work import forecast

UNWANTED = {"trio", "prometheus_client", "structlog", "typer", "rich", "httpx2", "mcp"}
"""What the import of the package must not load."""


async def register(effort: Effort, backend: str) -> list[Row]:
    """Time a tool's registration, against msgspec's own schema and decoder of a struct that is there already."""

    def floor() -> None:
        inspect.signature(forecast)
        typing.get_type_hints(forecast)
        msgspec.json.schema(NestedStruct)
        msgspec.json.Decoder(NestedStruct)

    def ours() -> None:
        Catalog([describe(forecast)])

    return [
        await measure(Pair("register a tool", against, side, repeat(ours), target=target), effort)
        for against, side, target in (
            ("one call by hand", sequence_by_hand, 50.0),
            ("msgspec's schema and decoder", repeat(floor), None),
        )
    ]


async def import_package(effort: Effort, backend: str) -> list[Row]:
    """Time a new interpreter that imports the package, against one that imports what the work by hand needs."""
    with tempfile.TemporaryDirectory() as cache:
        # Compiled files of its own, so that it makes no difference whether the environment keeps any.
        env = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
        env.pop("PYTHONDONTWRITEBYTECODE", None)

        def interpreter(program: str) -> Side:
            def run() -> None:
                subprocess.run([sys.executable, "-c", program], check=True, env=env)

            return repeat(run)

        ours = interpreter(f"import harbor_async, sys; assert not {UNWANTED} & sys.modules.keys()")
        return [
            await measure(Pair("import", against, interpreter(program), ours, 1, target), effort.of(0.6), cpu=_children)
            for against, program, target in (
                ("anyio, attrs and msgspec", "import anyio, attrs, msgspec", 1.5),
                ("asyncio and json", "import asyncio, json", None),
            )
        ]


def _children() -> float:
    """Return the processor time of the interpreters that have ended."""
    times = os.times()
    return times.children_user + times.children_system
