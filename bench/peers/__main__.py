"""``python -m bench.peers [PEER ...]``: make the environments, measure, and write the page and its figures."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

from ..report import machine
from . import PEERS
from .page import FIGURES, PAGE, render

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = ROOT / "build" / "peers"
SHARED = ("anyio", "attrs", "pydantic")
"""What the measurement itself needs, beside the peer."""


def interpreter(name: str) -> Path:
    """Return the interpreter of a peer's environment, which is made if it is not there."""
    folder = ENVIRONMENTS / name
    python = folder / "bin" / "python"
    ready = folder / "ready"
    if not ready.exists():
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *SHARED, *PEERS[name].packages], check=True)
        ready.touch()
    return python


def measure(name: str) -> dict[str, Any]:
    """Measure one peer in its environment.

    Raises:
        subprocess.CalledProcessError: It broke; its own error has been printed.
    """
    quiet = {**os.environ, "PYTHONWARNINGS": "ignore"}
    command = [str(interpreter(name)), "-m", "bench.peers.measure", name]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=ROOT, env=quiet)
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])  # a peer may print before
    return figures


def main() -> int:
    """Return the exit code: 1 if a peer broke; the figures of the others are kept."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description="The same work through other packages.")
    parser.add_argument("names", metavar="PEER", nargs="*", help=f"of {', '.join(PEERS)}; default: all")
    parser.add_argument("--discard", action="store_true", help="delete each environment after its measurement")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in PEERS]:
        parser.error(f"no peer {', '.join(unknown)}; there are {', '.join(PEERS)}")

    figures = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {"peers": {}}
    figures["machine"] = machine()
    broken = []
    for name in options.names or PEERS:
        try:
            figures["peers"][name] = measure(name)
        except subprocess.CalledProcessError as exc:
            print(f"{name}: {exc}", file=sys.stderr)
            broken.append(name)
        if options.discard:
            shutil.rmtree(ENVIRONMENTS / name, ignore_errors=True)
        FIGURES.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        PAGE.write_text(render(figures), encoding="utf-8")
        print(f"{name}: {'broke' if name in broken else 'measured'}", flush=True)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
