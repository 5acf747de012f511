"""The benchmarks, each in a process of its own: ``python -m bench.suite NAME`` measures one and prints its rows.

A process of its own, since an interpreter that has run on asyncio has specialised our code to it, and runs it otherwise
on trio afterwards; and since a second try is then a new try.
"""

import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import anyio
import attrs

from .calls import parallel, sequence
from .codec import decode, encode
from .faults import faults
from .memory import in_flight
from .pair import FULL, QUICK, Effort, Row
from .scale import limit, scale, waiting
from .start import import_package, register
from .tracker import tool, writes

Benchmark = Callable[[Effort, str], Awaitable[list[Row]]]

BENCHMARKS: Final[dict[str, tuple[Benchmark, str]]] = {
    "sequence-asyncio": (sequence, "asyncio"),
    "sequence-trio": (sequence, "trio"),
    "sequence-uvloop": (sequence, "uvloop"),
    "parallel-asyncio": (parallel, "asyncio"),
    "parallel-trio": (parallel, "trio"),
    "parallel-uvloop": (parallel, "uvloop"),
    "scale": (scale, "asyncio"),
    "limit": (limit, "asyncio"),
    "waiting": (waiting, "asyncio"),
    "memory-asyncio": (in_flight, "asyncio"),
    "memory-trio": (in_flight, "trio"),
    "faults": (faults, "asyncio"),
    "decode": (decode, "asyncio"),
    "encode": (encode, "asyncio"),
    "register": (register, "asyncio"),
    "import": (import_package, "asyncio"),
    "tracker": (tool, "asyncio"),
    "tracker-writes": (writes, "asyncio"),
}
_QUICK: Final = "--quick"


def run(name: str, *, quick: bool = False) -> list[Row]:
    """Measure one benchmark in a process of its own.

    Raises:
        subprocess.CalledProcessError: It broke; its own error has been printed.
    """
    command = [sys.executable, "-m", "bench.suite", name, *([_QUICK] if quick else [])]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=Path(__file__).parents[1])
    return [Row(**row) for row in json.loads(done.stdout)]


def main(name: str, *options: str) -> None:
    """Measure one benchmark in this process."""
    benchmark, backend = BENCHMARKS[name]
    effort = QUICK if _QUICK in options else FULL
    loop = {"backend_options": {"use_uvloop": True}} if backend == "uvloop" else {"backend": backend}
    rows = anyio.run(benchmark, effort, backend, **loop)
    print(json.dumps([{key: _rounded(value) for key, value in attrs.asdict(row).items()} for row in rows]))


def _rounded(value: object) -> object:
    """Return a number with the four digits that it is worth."""
    return float(f"{value:.4g}") if isinstance(value, float) else value


if __name__ == "__main__":
    main(*sys.argv[1:])
