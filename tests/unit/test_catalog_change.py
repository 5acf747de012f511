"""Tools taken out of a catalog and put in, in one step."""

import pytest

import harbor_async as ha
from harbor_async.errors import DuplicateToolError, InvalidToolError, ToolNotFoundError


def make(name: str) -> ha.ToolDescriptor[..., str]:
    async def function() -> str:
        return name

    return ha.describe(function, name=name)


def names(catalog: ha.Catalog) -> list[str]:
    return [tool.name for tool in catalog.list()]


def test_a_change_is_seen_as_a_whole():
    """Old tools go and new ones come, one under a name that was removed; listeners hear of it once."""
    old, new = make("b"), make("b")
    catalog = ha.Catalog([make("a"), old, make("c")])
    heard: list[list[str]] = []
    catalog.subscribe(lambda: heard.append(names(catalog)))
    catalog.change(remove=["b", "c"], add=[new, make("d")])
    assert [["a", "b", "d"]] == heard
    assert new is catalog.resolve("b")


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"remove": ["a", "x"]}, ToolNotFoundError),
        ({"remove": ["a"], "add": [make("b")]}, DuplicateToolError),
        ({"add": [make("d"), make("d")]}, DuplicateToolError),
        ({"remove": ["a"], "add": [1]}, InvalidToolError),
        ({"remove": "a"}, InvalidToolError),
    ],
)
def test_a_change_that_cannot_be_made_changes_nothing(change: dict, error: type[Exception]):
    """An unknown name, a name that is taken or comes twice: the catalog is as it was."""
    catalog = ha.Catalog([make("a"), make("b")])
    with pytest.raises(error):
        catalog.change(**change)
    assert ["a", "b"] == names(catalog)
