"""The test modules that the pages show, and suites that fail, under pytest with anyio's plugin and nothing of ours."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHOWN = ROOT / "tests" / "e2e" / "shown"
BROKEN = """
import pytest
from harbor_async.testing import CatalogConformance, SinkConformance, WriterConformance

pytestmark = pytest.mark.anyio

class Grumpy:
    async def emit(self, event):
        if event.late:
            raise RuntimeError("late")

class TestGrumpy(SinkConformance):
    def make(self):
        return Grumpy()

class Closer:
    async def close(self, id, reason, *, key):
        pass

class TestCloser(WriterConformance):
    def make(self):
        return Closer()

class TestForgotten(CatalogConformance):
    pass
"""


MISSING = "test_an_issue_that_is_missing_is_not_found"


@pytest.mark.timeout(60)  # another pytest, perhaps on a loaded machine
def test_modules_run_in_plain_pytest(tmp_path):
    """The pages' modules pass on both event loops; a broken sink fails one rule; what a writer lacks is skipped."""
    for path in SHOWN.glob("*.py"):
        shutil.copy(path, tmp_path / path.name.replace("check_", "test_"))
    (tmp_path / "test_broken.py").write_text(BROKEN)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -q -rA -p anyio.pytest_plugin -p no:cacheprovider\n")
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest"]
    run = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    found = re.findall(r"^(PASSED|FAILED|ERROR) test_(\w+)\.py::([\w:]+)(?:\[(\w+)\])?", run.stdout, re.MULTILINE)
    for backend in ("asyncio", "trio"):
        ends = [(end, module, test) for end, module, test, where in found if where == backend]
        assert 6 == sum(end == "PASSED" and module == "counter" for end, module, _ in ends)
        assert 7 == sum(end == "PASSED" and module == "backend" for end, module, _ in ends)
        assert {("broken", "TestGrumpy::test_every_event_is_taken"), ("broken", f"TestCloser::{MISSING}")} == {
            (module, test) for end, module, test in ends if end != "PASSED"
        }
    assert "tool.invoked with every field: RuntimeError was raised: late" in run.stdout
    assert {"moves no issues", "reads no issues", "finds no comments", "adds nothing to an issue"} == set(
        re.findall(r"^SKIPPED \[2\] .*: this writer (.*)$", run.stdout, re.MULTILINE)
    )
    forgotten = {end for end, _, test, _ in found if test.startswith("TestForgotten::")}
    assert {"FAILED"} == forgotten  # and not passed over
    assert "NotImplementedError: a suite needs a method make()" in run.stdout


@pytest.mark.parametrize("path", sorted(SHOWN.glob("*.py")), ids=lambda path: path.stem)
def test_each_module_is_shown(path):
    """No module lies about unused: some page includes it."""
    pages = "".join(page.read_text() for page in (ROOT / "docs").rglob("*.md"))
    assert f"tests/e2e/shown/{path.name}" in pages


def test_readme_shows_what_its_faults_print():
    """The README's program on faults is examples/faults.py, and below it stands what that prints."""
    program = ROOT / "examples" / "faults.py"
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert f"```python\n{program.read_text()}```\n\n```text\n{done.stdout}```\n" in (ROOT / "README.md").read_text()
