"""The page of the peers' figures."""

from pathlib import Path
from typing import Any, Final

from . import PEERS

FIGURES: Final = Path(__file__).with_name("figures.json")
PAGE: Final = Path(__file__).parents[2] / "docs" / "explanation" / "peers.md"

HEAD: Final = """\
# What a call costs elsewhere

The same work, once by hand and once through other packages that call tools: the JSON text of the arguments comes in, an
async function runs, the JSON text of its result goes out. Each package has an environment and a process of its own; the
floor, `json.loads` + `await fn(**args)` + `json.dumps` written by hand, takes turns with it in that same process, on
asyncio's plain loop. The last answer of each round, and the first of a batch, is compared with the right one. The
figures are ratios of processor time to that floor, which hears less of other load on the machine than the wall clock
does; the memory is in kB a call while 1,000 are in flight (`tracemalloc`).

None of these figures includes an attempt timeout, retries or a check of the output. What this package costs with all of
them is told under [What a call costs](performance.md), against the same floor.

"""
TAIL: Final = """
A column is empty where the package is too slow for a batch of that size to be worth the wait. smolagents is not among
them: it runs plain functions only, each in a thread, which is other work.

To make this page anew, in a checkout; it installs one package after the other under `build/peers`:

```console
$ python -m bench.peers
$ python -m bench.peers mcp fastmcp --discard
```
"""
COLUMNS: Final = ("sequence", "1,000 parallel", "10,000 parallel")


def render(figures: dict[str, Any]) -> str:
    """Return the page: the machine, and a line for each peer that was measured, the cheapest first."""
    facts, peers = figures["machine"], figures["peers"]
    lines = [
        f"{facts['python']}, {facts['system']}, {facts['cores']} cores, {facts['processor']}, load {facts['load']}.",
        "",
        "| path | checks the arguments | one call after the other | 1,000 parallel | 10,000 parallel | kB a call |",
        "|---|---|---|---|---|---|",
        *(_line(name, peers[name]) for name in sorted(peers, key=lambda name: _ratios(peers[name])["sequence"])),
    ]
    if missing := [name for name in PEERS if name not in peers]:
        lines += ["", f"Not measured on that machine: {', '.join(missing)}."]
    return HEAD + "\n".join(lines) + "\n" + TAIL


def _ratios(figures: dict[str, Any]) -> dict[str, float]:
    return {row["name"]: row["cpu"] for row in figures["rows"]}


def _line(name: str, figures: dict[str, Any]) -> str:
    peer, ratios = PEERS[name], _ratios(figures)
    (memory,) = (row["ours"] for row in figures["rows"] if row["name"] == "memory in flight")
    cells = [
        f"{name} {figures['versions'][peer.packages[0]]} `{peer.path}`",
        "yes" if peer.validates else "no",
        *(f"{_digits(ratios[column])}" if column in ratios else "" for column in COLUMNS),
        f"{memory / 1e3:.1f}",
    ]
    return f"| {' | '.join(cells)} |"


def _digits(ratio: float) -> str:
    return f"{ratio:.1f}" if ratio < 10 else f"{ratio:.0f}"
