"""One catalog of frozen descriptors, used by many event loops in many threads at the same time."""

import logging
import sys
import threading
from collections.abc import Iterator
from functools import partial

import pytest

from harbor_async import Catalog
from tests.unit.anatomy import anatomy, changes
from tests.unit.reuse import TOOLS, in_threads, make_calls, serve, summary


@pytest.fixture
def catalog(caplog: pytest.LogCaptureFixture) -> Iterator[Catalog]:
    """Return a catalog that must not change, nor any tool in it."""
    caplog.set_level(logging.ERROR, "stamina")  # it tells of each retry
    catalog = Catalog(TOOLS)
    before = anatomy(TOOLS)
    yield catalog
    assert all(catalog.resolve(descriptor.name) is descriptor for descriptor in TOOLS)
    assert [] == changes(before, anatomy(TOOLS))


@pytest.fixture
def often() -> Iterator[None]:
    """Have Python change threads five hundred times as often; with a hundred of them it does little else."""
    seldom = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(seldom)


def serve_all(catalog: Catalog, backends: list[str], count: int) -> None:
    """Answer the same calls in each of the backends at once; they are answered alike, and rightly."""
    calls, answers = make_calls(count)
    begin = threading.Barrier(len(backends))
    first, *others = in_threads([partial(serve, backend, calls, catalog, begin) for backend in backends])
    assert answers == {id: summary(told) for id, told in first.items()}
    for other in others:
        assert [] == [id for id in first if first[id] != other.get(id)]
        assert len(first) == len(other)


@pytest.mark.timeout(60)
def test_asyncio_and_trio_at_once(catalog, often):
    """D-025: 10,000 calls on asyncio and the same on trio at the same time get the same answers, field by field."""
    serve_all(catalog, ["asyncio", "trio"], 10_000)


@pytest.mark.timeout(60)
def test_a_hundred_threads_at_once(catalog):
    """D-025: a hundred loops, half of them asyncio's and half trio's, answer alike at the same time."""
    serve_all(catalog, ["asyncio", "trio"] * 50, 120)
