"""The MCP client where its package is missing."""

import importlib
import sys

import pytest

from harbor_async.errors import MissingExtraError


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch):
    """Importing the client without ``mcp`` says what to install."""
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.delitem(sys.modules, "harbor_async.providers.mcp", raising=False)
    with pytest.raises(MissingExtraError, match=r"harbor-async\[mcp\]"):
        importlib.import_module("harbor_async.providers.mcp")
