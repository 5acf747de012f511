"""Reported faults of streaming: generators, events and their order."""

from collections.abc import AsyncIterator

import pytest
from anyio.lowlevel import checkpoint

from harbor_async import Catalog, describe, tool
from harbor_async.errors import InvalidToolError
from tests.conformance.support import invoke, make


async def test_r087_an_async_generator():
    """An async generator function is refused when it is declared, with its name and what to do instead."""

    async def pages(count: int) -> AsyncIterator[str]:
        for page in range(count):
            yield str(page)

    async def page_list(count: int) -> list[str]:
        await checkpoint()
        return [str(page) for page in range(count)]

    declare = [describe, make, tool, tool(name="other"), lambda function: Catalog([]).register_func("pages", function)]
    for declared in declare:
        with pytest.raises(InvalidToolError, match=r"'?pages'? is an async generator") as caught:
            declared(pages)
        assert "return a list" in str(caught.value)
        assert "report progress" in str(caught.value)
    assert ["0", "1"] == (await invoke(make(page_list), {"count": 2})).value
