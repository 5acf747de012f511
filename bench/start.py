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
from .pair import Effort, Pair, Row, Side, measure, repeat
from .work import forecast


async def register(effort: Effort, backend: str) -> list[Row]:
    """Time a tool's registration, against msgspec's own schema and decoder of a struct that is there already."""

    def floor() -> None:
        inspect.signature(forecast)
        typing.get_type_hints(forecast)
        msgspec.json.schema(NestedStruct)
        msgspec.json.Decoder(NestedStruct)

    def ours() -> None:
        Catalog([describe(forecast)])

    pair = Pair("register a tool", "msgspec's schema and decoder", repeat(floor), repeat(ours))
    return [await measure(pair, effort)]


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

        floor, ours = interpreter("import asyncio, json"), interpreter("import asyncio, json, harbor_async")
        pair = Pair("import", "asyncio and json", floor, ours, calls=1)
        return [await measure(pair, effort.of(0.6), cpu=_children)]


def _children() -> float:
    """Return the processor time of the interpreters that have ended."""
    times = os.times()
    return times.children_user + times.children_system
