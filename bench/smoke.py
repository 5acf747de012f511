"""``python -m bench.smoke``: fail when a ratio is far above the one in ``baseline.json``.

Far is half as much again, and a benchmark gets several tries, each in a new process: this is to catch a call that has
become twice as dear, on any machine, and never a busy neighbour. After a change that is meant, baseline and page are
made anew on a quiet machine:
``python -m bench --json bench/baseline.json > docs/explanation/performance.txt``.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from .pair import Row
from .report import heading, line, machine, read
from .suite import BENCHMARKS, run

BASELINE: Final = Path(__file__).with_name("baseline.json")
LONG: Final = {"memory-trio", "parallel-trio", "parallel-uvloop", "sequence-uvloop", "scale", "limit", "tracker-writes"}
"""Left out: each takes as long as all the others, or, on uvloop, tells of a package that need not be there."""
NAMES: Final = [name for name in BENCHMARKS if name not in LONG]
SLACK: Final = 1.5
TRIES: Final = 4


def judge(
    names: Iterable[str],
    measure: Callable[[str], list[Row]],
    baseline: Mapping[str, float],
    tell: Callable[[str], None],
) -> list[str]:
    """Measure each benchmark until no ratio of it is far out, and return what stayed so to the last try.

    Args:
        names: The benchmarks.
        measure: Measures one.
        baseline: The ratio to expect, by ``Row.key``.
        tell: Takes the lines of the table.
    """
    failures: list[str] = []
    for name in names:
        best: dict[str, Row] = {}
        far: list[Row] = []
        for _ in range(TRIES):
            for row in measure(name):
                if row.key not in best or row.ratio < best[row.key].ratio:
                    best[row.key] = row
            far = [row for row in best.values() if row.ratio > baseline.get(row.key, 0.0) * SLACK]
            if all(row.key not in baseline for row in far):
                break
        for row in best.values():
            tell(line(row))
        for row in far:
            expected = f"expected about {baseline[row.key]:.2f}" if row.key in baseline else "no baseline"
            failures.append(f"{row.key}: {row.ratio:.2f}, {expected}")
    return failures


def main() -> int:
    """Return the exit code: 1 if a ratio is far out."""
    baseline = {row.key: row.ratio for row in read(BASELINE)[1]}
    print(heading(machine()), flush=True)
    failures = judge(NAMES, lambda name: run(name, quick=True), baseline, lambda text: print(text, flush=True))
    for failure in failures:
        print(f"FAILED {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
