"""The tables of failures in the docs, made of ``failures.json``; this file, run as a program, writes them."""

import json
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGES = HERE.parents[2] / "docs" / "reference" / "trackers"
TRACKERS = ("github", "gitlab", "jira", "linear", "gitea")
EFFECTS = {"refused": "none", "not_sent": "none", "unknown": "unknown: looked for before a repeat"}
TABLE = re.compile(r"(<!-- failures -->\n).*?(<!-- end -->)", re.DOTALL)


def table(tracker: str) -> str:
    """Return the table of one tracker: its own failures, then those of all."""
    rows = json.loads((HERE / "failures.json").read_text())
    lines = ["| what is answered | status | category | effect | wait |", "|---|---|---|---|---|"]
    lines += [line(row) for name in (tracker, "any") for row in rows if row["tracker"] == name]
    return "\n".join(lines) + "\n"


def line(row: dict[str, Any]) -> str:
    wait = f"{row['wait']} s" if "wait" in row else ""
    where = {"comment": "", "close": " (a close)", "transition": " (a move)", "link_pr": " (a link)"}[row["op"]]
    return f"| {row['what']}{where} | {row['status']} | `{row['category']}` | {EFFECTS[row['delivery']]} | {wait} |"


def filled(page: str, tracker: str) -> str:
    """Return a page with the table that belongs in it."""
    return TABLE.sub(lambda found: f"{found[1]}{table(tracker)}{found[2]}", page)


if __name__ == "__main__":
    for name in TRACKERS:
        file = PAGES / f"{name}.md"
        file.write_text(filled(file.read_text(), name))
