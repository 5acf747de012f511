"""Runs the command line as a user does: as a process."""

import json
import subprocess
import sys
from pathlib import Path

CATALOG = Path(__file__).with_name("cli_catalog.py")
COMMAND = [sys.executable, "-m", "harbor_async.cli"]


def run(*arguments, **options):
    """Run ``harbor-async`` and return the finished process; text unless ``input`` is bytes."""
    is_text = not isinstance(options.get("input"), bytes)
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=is_text, timeout=60, check=False, **options)


def results(text):
    """Return the results of a run by their ids."""
    return {record["id"]: record for record in map(json.loads, text.splitlines())}


def ends(text):
    """Return id, outcome and category of each result."""
    return {id: (record["outcome"], record.get("error", {}).get("category")) for id, record in results(text).items()}
