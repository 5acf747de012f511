"""What ``import harbor_async`` costs and gives."""

import importlib
import importlib.metadata
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PUBLIC = {
    "harbor_async": (
        "Backoff Catalog CatalogFilter Delivery ErrorCategory ErrorClass EventSink EventType Failure HarborError "
        "Identity Join Limits LoadingMode Outcome Problem Repair Runtime SideEffect Statistics Tool ToolCall "
        "ToolContext ToolDescriptor ToolError ToolEvent ToolExample ToolPolicy ToolResult Transport describe "
        "describe_foreign tool"
    ),
    "harbor_async.export": "ExportError Exported Loss Refusal repair",
    "harbor_async.providers.mcp": "Endpoint RemoteServer RemoteServers Stdio StreamableHTTP",
    "harbor_async.schema": "Name derive_schema register_type",
    "harbor_async.serving.mcp": "Audio Authenticate Block Content Image MCPServer Resource ResourceLink Text",
    "harbor_async.tracker": (
        "CloseWriter CommentFinder CommentWriter ErrorCategory Issue IssueReader LinkPRWriter NAME Op ResultError "
        "TrackerArgs TrackerError TrackerResult TrackerWrite TransitionWriter args_schema tracker_write"
    ),
    "harbor_async.tracker.writers": "Change SQLiteTracker",
    "harbor_async.tracker.writers.command": "Command CommandTransport Exit ProcessTransport",
    "harbor_async.tracker.writers.http": "HTTPTransport Request Response Secret Transport",
}

ERRORS = (
    "DuplicateToolError ExportError HarborError InvalidArgumentsError InvalidExampleError InvalidOutputError "
    "InvalidToolError MissingExtraError OverloadedError RegistrationError SchemaBuildError ScopeDeniedError "
    "ToolCanceledError ToolError ToolNotFoundError ToolTimeoutError UnsupportedTypeError"
)

OPTIONAL = {
    "agents",
    "anthropic",
    "cattrs",
    "docstring_parser",
    "google",
    "hdrh",
    "httpx2",
    "jsonschema_rs",
    "mcp",
    "openai",
    "opentelemetry",
    "prometheus_client",
    "psutil",
    "pydantic_ai",
    "pygal",
    "rich",
    "sqlite3",
    "stamina",
    "structlog",
    "trio",
    "typer",
    "uvloop",
}
"""Loaded only by what needs them; asyncio is not among them, for anyio's own modules decide about it."""

WATCH = """
import json, sys

class Watch:
    asked = set()

    def find_spec(self, name, path=None, target=None):
        self.asked.add(name.partition(".")[0])

sys.meta_path.insert(0, Watch())
import harbor_async
print(json.dumps(sorted(Watch.asked | {name.partition(".")[0] for name in sys.modules})))
"""


def test_import_asks_for_no_optional_package():
    """Importing the package neither loads nor looks for an optional package, trio, or what only registration needs."""
    process = subprocess.run([sys.executable, "-c", WATCH], capture_output=True, text=True, check=True)
    asked = set(json.loads(process.stdout))
    assert set() == OPTIONAL & asked
    assert {"harbor_async", "anyio", "attrs", "msgspec"} <= asked


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names(module):
    """``__all__`` holds the names of the design's table, sorted, and each of them is there."""
    loaded = importlib.import_module(module)
    assert sorted(PUBLIC[module].split()) == sorted(loaded.__all__)
    assert [] == [name for name in loaded.__all__ if not hasattr(loaded, name)]


def test_public_errors():
    """``harbor_async.errors`` holds the exceptions of the design's table and no others."""
    errors = vars(importlib.import_module("harbor_async.errors"))
    found = {name for name, value in errors.items() if isinstance(value, type) and issubclass(value, Exception)}
    assert set(ERRORS.split()) == found


def test_version_is_that_of_the_project():
    """The installed metadata carries the version that pyproject.toml declares."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == importlib.metadata.version("harbor-async")


@pytest.mark.skipif("HARBOR_WHEEL" not in os.environ, reason="only nox -s wheel installs the wheel")
def test_the_installed_package_is_under_test():
    """In the wheel session the tests import the installed package, and not the checkout."""
    import harbor_async

    where = Path(harbor_async.__file__)
    assert where.is_relative_to(sys.prefix)
    assert "site-packages" in where.parts
