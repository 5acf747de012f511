"""The suites in a user's own test module, under pytest with anyio's plugin and nothing of ours."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SHOWN = Path(__file__).parents[3] / "docs" / "examples" / "suites" / "test_counter.py"
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


@pytest.mark.timeout(60)  # another pytest, perhaps on a loaded machine
def test_a_suite_runs_in_plain_pytest(tmp_path):
    """The page's module passes on both event loops; a broken sink fails one rule; what a writer lacks is skipped."""
    (tmp_path / "test_counter.py").write_text(SHOWN.read_text())
    (tmp_path / "test_broken.py").write_text(BROKEN)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -q -rA -p anyio.pytest_plugin -p no:cacheprovider\n")
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest"]
    run = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    ends = re.findall(r"^(PASSED|FAILED|ERROR) test_\w+\.py::(\w+)::(\w+)\[(asyncio|trio)\]", run.stdout, re.MULTILINE)
    for backend in ("asyncio", "trio"):
        failed = {(suite, rule) for end, suite, rule, where in ends if where == backend and end != "PASSED"}
        assert {("TestGrumpy", "test_every_event_is_taken"), ("TestCloser", MISSING)} == failed
        assert 6 == sum(suite == "TestEventCounter" and where == backend for _, suite, _, where in ends)
    assert "tool.invoked with every field: RuntimeError was raised: late" in run.stdout
    assert {"moves no issues", "reads no issues", "finds no comments", "adds nothing to an issue"} == set(
        re.findall(r"^SKIPPED \[2\] .*: this writer (.*)$", run.stdout, re.MULTILINE)
    )
    forgotten = set(re.findall(r"^(\w+) test_broken.py::TestForgotten::", run.stdout, re.MULTILINE))
    assert {"FAILED"} == forgotten  # and not passed over
    assert "NotImplementedError: a suite needs a method make()" in run.stdout


MISSING = "test_an_issue_that_is_missing_is_not_found"
