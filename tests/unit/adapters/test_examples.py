"""The examples of agents run within their frameworks, and print what their pages show."""

import runpy
import sys
from pathlib import Path

import anyio
import pytest

from tests.unit.adapters.support import framework

DOCS = Path(__file__).parents[3] / "docs"
PROGRAMS = {"langchain_graph": "langgraph", "openai_agent": "agents", "pydantic_agent": "pydantic_ai"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, capsys, monkeypatch):
    """An example prints on asyncio, on which its framework runs, exactly what its page shows."""
    framework(PROGRAMS[name])
    monkeypatch.setattr(sys, "argv", [name])
    anyio.run(runpy.run_path(str(DOCS / "examples" / "agents" / f"{name}.py"))["main"])
    assert (DOCS / "examples" / "agents" / f"{name}.txt").read_text() == capsys.readouterr().out


def test_each_program_is_shown():
    """Every example of an agent is run here, and some page includes it and its output."""
    programs = sorted((DOCS / "examples" / "agents").glob("*.py"))
    assert sorted(PROGRAMS) == [path.stem for path in programs]
    pages = "".join(page.read_text() for page in (DOCS / "how-to").glob("use-with-*.md"))
    files = [f"agents/{path.stem}{ending}" for path in programs for ending in (".py", ".txt")]
    assert [] == [name for name in files if name not in pages]
