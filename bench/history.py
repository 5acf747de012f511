"""``python -m bench.history VERSION FILE``: note a release's ratios in ``history.jsonl``, and make its table anew.

``FILE`` is what ``python -m bench --json FILE`` has written. One line a release: version, Python, packages, ratios.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from .report import read

HISTORY: Final = Path(__file__).with_name("history.jsonl")
PAGE: Final = Path(__file__).parents[1] / "docs" / "explanation" / "history.txt"
SHOWN: Final = (
    "sequence, asyncio / by hand",
    "sequence, trio / by hand",
    "10,000 parallel, asyncio / by hand",
    "memory in flight, asyncio / by hand",
    "retried once, no wait / one good call by hand",
    "refused with 4 faults / one good call by hand",
    "register a tool / one call by hand",
    "import / anyio, attrs and msgspec",
)
"""The ratios of the table; the file has all."""


def note(path: Path, version: str, figures: Path) -> None:
    """Append a release to the history.

    Raises:
        ValueError: It is there already; a release is measured once.
    """
    releases = load(path)
    if any(release["version"] == version for release in releases):
        msg = f"{version} is in the history already"
        raise ValueError(msg)
    facts, rows = read(figures)
    release = {
        "version": version,
        "python": facts["python"],
        "processor": facts["processor"],
        "cores": facts["cores"],
        "load": facts["load"],
        "packages": facts["packages"],
        "ratios": {row.key: float(f"{row.ratio:.4g}") for row in rows},
    }
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(release, ensure_ascii=False) + "\n")


def load(path: Path) -> list[dict[str, Any]]:
    """Return the releases, the oldest first; none where there is no file."""
    if not path.exists():
        return []
    return [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]


def render(releases: Sequence[dict[str, Any]], shown: Iterable[str] = SHOWN) -> str:
    """Return the table: a line for each ratio, a column for each release; what was not measured is a dash."""
    lines = [f"{'':<48}" + "".join(f"{release['version']:>10}" for release in releases)]
    for key in shown:
        ratios = (release["ratios"].get(key) for release in releases)
        lines.append(f"{key:<48}" + "".join(f"{'–' if ratio is None else f'{ratio:.2f}':>10}" for ratio in ratios))
    lines += ["", *(f"{release['version']}: {_machine(release)}" for release in releases)]
    return "\n".join(lines) + "\n"


def _machine(release: dict[str, Any]) -> str:
    busy = "" if release["load"] is None else f", load {release['load']}"
    return f"{release['python']}, {release['cores']} cores, {release['processor']}{busy}"


def main() -> int:
    """Return the exit code: 1 if the release is in the history already."""
    parser = argparse.ArgumentParser(prog="python -m bench.history", description="Note a release's ratios.")
    parser.add_argument("version", metavar="VERSION")
    parser.add_argument("figures", metavar="FILE", type=Path, help="what python -m bench --json FILE has written")
    options = parser.parse_args()
    try:
        note(HISTORY, options.version, options.figures)
    except ValueError as exc:
        print(exc, file=sys.stderr)
        return 1
    PAGE.write_text(render(load(HISTORY)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
