"""``Catalog.subscribe``: who keeps a copy of what a catalog holds hears when it is old."""

import pytest

from harbor_async import Catalog, describe
from harbor_async.errors import DuplicateToolError, ToolNotFoundError


async def look(word: str) -> str:
    """Look."""
    return word


def test_each_change_is_told_once_it_can_be_seen():
    """A listener is called after ``register``, ``register_func`` and ``replace``, and sees the change."""
    catalog = Catalog()
    seen = []
    catalog.subscribe(lambda: seen.append([tool.name for tool in catalog.list()]))
    catalog.register(describe(look, name="b"))
    catalog.register_func("a", look)
    catalog.replace([describe(look, name="a")])
    assert [["b"], ["a", "b"], ["a", "b"]] == seen


def test_what_is_refused_is_not_told():
    """A change that raises has not happened."""
    catalog = Catalog([describe(look)])
    seen = []
    catalog.subscribe(lambda: seen.append(1))
    with pytest.raises(DuplicateToolError):
        catalog.register(describe(look))
    with pytest.raises(ToolNotFoundError):
        catalog.replace([describe(look, name="other")])
    assert [] == seen


def test_each_subscription_ends_by_itself():
    """One listener may be there twice; ending one, once or twice, leaves the other."""
    catalog, seen = Catalog(), []
    first = catalog.subscribe(lambda: seen.append(1))
    catalog.subscribe(lambda: seen.append(2))
    first()
    first()
    catalog.register(describe(look))
    assert [2] == seen
