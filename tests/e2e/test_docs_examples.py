"""Every code block of the documentation is a file, and every such file runs and prints what the pages show."""

import importlib.util
import inspect
import re
import sys
from pathlib import Path

import anyio
import pytest

from tests.parity.differences import DIFFERENCES
from tests.support.sdk import need

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"
PROGRAMS = sorted(EXAMPLES.glob("*.py"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


SDKS = {"use_with_anthropic": "anthropic", "use_with_gemini": "google.genai", "use_with_openai": "openai"}
"""Programs that need an SDK, which is only there in ``nox -s sdks``."""


def load(path):
    """Import a file as a module that ``sys.modules`` knows, as a program's own would be."""
    spec = importlib.util.spec_from_file_location(f"docs_example_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.timeout(60)  # one starts a server, whose imports alone take a while
@pytest.mark.filterwarnings("ignore:Async generator 'http:ResourceWarning")  # of the MCP SDK's client, on trio
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program(path, backend, capsys):
    """An example program prints on asyncio and on trio exactly what its page shows."""
    if path.stem in SDKS:
        need(SDKS[path.stem])
    main = load(path).main
    if inspect.iscoroutinefunction(main):
        anyio.run(main, backend=backend)
    else:
        main()
    assert path.with_suffix(".txt").read_text() == capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_holds_no_code_of_its_own(page):
    """A page includes its programs and their output; only the README shows a block, and that is a file of examples."""
    text = page.read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    files = [path.read_text() for path in (ROOT / "examples").glob("*.py")]
    assert [] == [block for block in blocks if page.name != "README.md" or block not in files]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_example_is_shown(path):
    """No example lies about unused: some page includes it, and its output."""
    pages = "".join(page.read_text() for page in PAGES)
    assert [f"examples/{path.name}", f"examples/{path.stem}.txt"] == [
        name for name in (f"examples/{path.name}", f"examples/{path.stem}.txt") if name in pages
    ]


def test_each_difference_is_explained():
    """The page of differences has one row for each number under which a recorded case falls."""
    page = (ROOT / "docs" / "explanation" / "differences.md").read_text()
    numbers = [int(number) for number in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)]
    assert len(set(numbers)) == len(numbers)
    assert set() == set(DIFFERENCES) - set(numbers)
