"""What an adapter holds, and which extra it needs."""

import importlib
import sys

import pytest

from harbor_async.errors import MissingExtraError
from tests.unit.adapters.support import framework

NAMES = {
    "langchain": ["RuntimeTool", "describe_tool", "tools"],
    "openai_agents": ["tools"],
    "pydantic_ai": ["RuntimeToolset", "describe_toolset"],
}
ADAPTERS = {"langchain": "langchain_core", "openai_agents": "agents", "pydantic_ai": "pydantic_ai"}


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_extra_is_named(adapter, monkeypatch):
    """Where a framework is missing, its adapter cannot be imported, and the error names the extra."""
    for name in [name for name in sys.modules if f"{name}.".startswith((f"{ADAPTERS[adapter]}.", "pydantic."))]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, ADAPTERS[adapter], None)
    monkeypatch.delitem(sys.modules, f"harbor_async.adapters.{adapter}", raising=False)
    with pytest.raises(MissingExtraError) as raised:
        importlib.import_module(f"harbor_async.adapters.{adapter}")
    assert adapter.replace("_", "-") == raised.value.extra


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_public_names(adapter):
    """``__all__`` holds the names that the documentation tells, and each of them is there."""
    framework(ADAPTERS[adapter])
    loaded = importlib.import_module(f"harbor_async.adapters.{adapter}")
    assert NAMES[adapter] == loaded.__all__
    assert [] == [name for name in loaded.__all__ if not hasattr(loaded, name)]
