"""``python -m bench [NAME ...] [--json FILE]``: measure and print a table."""

import argparse
from pathlib import Path

from .report import heading, line, machine, write
from .suite import BENCHMARKS, run


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="What a call costs, against work by hand.")
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"of {', '.join(BENCHMARKS)}; default: all")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--quick", action="store_true", help="a few short rounds: a first impression")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in BENCHMARKS]:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")

    facts = machine()
    print(heading(facts), flush=True)
    rows = []
    for name in options.names or BENCHMARKS:
        for row in run(name, quick=options.quick):
            rows.append(row)
            print(line(row), flush=True)
    if options.json is not None:
        write(options.json, facts, rows)


if __name__ == "__main__":
    main()
