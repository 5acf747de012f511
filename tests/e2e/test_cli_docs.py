"""The commands and the program that the README and the pages show."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.cli import COMMAND, run

ROOT = Path(__file__).parents[2]
# Needs a network, or runs until it is stopped. Tests of their own: the README's program below, serve in test_mcp_serve.
SETTING_UP = r"pip|make|python3 -m venv|\.venv/|harbor-async serve"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SESSIONS = {
    page: commands
    for page in PAGES
    if "harbor-async"
    in (commands := "\n".join(re.findall(rf"^\$ (?!{SETTING_UP})(.*)$", page.read_text(), re.MULTILINE)))
}


@pytest.mark.skipif(sys.platform == "win32", reason="the pages show a POSIX shell")
@pytest.mark.timeout(120)  # a page has up to nine commands, and each is a new interpreter
@pytest.mark.parametrize("page", SESSIONS, ids=lambda page: page.stem)
def test_commands_of_a_page_run(page, tmp_path):
    """Each command of a page does its work in a copy of the repository's examples."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    command = " ".join(f"'{word}'" for word in COMMAND)
    for line in SESSIONS[page].splitlines():
        script = f'harbor-async() {{ {command} "$@"; }}\n{line}'
        done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode in {0, 1}, done.stderr
        assert "harbor-async:" not in done.stderr
        assert done.stdout


def test_pages_show_commands():
    """The README and the how-to are among the pages whose commands run."""
    assert {"README", "run-a-file-of-calls"} <= {page.stem for page in SESSIONS}


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_demo_gives_the_table_of_the_page(backend, tmp_path):
    """The demo's file gives the table that the how-to page shows, on both event loops."""
    output = tmp_path / "results.jsonl"
    arguments = ("examples/catalog.py:catalog", "examples/calls.jsonl", "-o", output, "--backend", backend)
    done = run("run", *arguments, cwd=ROOT)
    page = (ROOT / "docs" / "how-to" / "run-a-file-of-calls.md").read_text()
    table = page.partition("```text\n")[2].partition("```")[0]
    assert table == done.stdout[: len(table)]
    assert 1 == done.returncode


def test_readme_shows_what_its_program_prints():
    """The README's program is examples/quickstart.py, and below it stands what that prints."""
    program = ROOT / "examples" / "quickstart.py"
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    readme = (ROOT / "README.md").read_text()
    assert f"```python\n{program.read_text()}```\n\n```text\n{done.stdout}```\n" in readme
