"""How names are written on the wire: as they are where that is allowed, and else in a way that can be read back."""

import re

import pytest
from hypothesis import given, settings, strategies as st

import harbor_async as ha
from harbor_async.errors import ExportError
from harbor_async.export import anthropic, gemini, mcp, openai

DIALECTS = {
    openai: "[A-Za-z0-9_-]{1,64}",
    anthropic: "[A-Za-z0-9_-]{1,64}",
    gemini: "[A-Za-z_][A-Za-z0-9_.:-]{0,63}",
    mcp: "[A-Za-z0-9_.-]{1,128}",
}
NAMES = st.text(min_size=1, max_size=140) | st.text("ab5-._:é", min_size=1, max_size=12)
each_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.__name__.rsplit(".", 1)[-1])


def catalog_of(*names):
    async def nothing() -> None:
        """Do nothing."""

    return ha.Catalog(ha.describe(nothing, name=name) for name in names)


@pytest.mark.parametrize(
    ("dialect", "name", "wire"),
    [
        (openai, "weather", "weather"),
        (openai, "weather.lookup", "weather--lookup"),
        (openai, "weather--lookup", "weather---2d2d-lookup"),
        (openai, "a-b_C9", "a-b_C9"),
        (openai, "wetter.köln", "wetter--k---c3b6-ln"),
        (openai, "a..b", "a---2e2e-b"),
        (anthropic, "weather.lookup", "weather--lookup"),
        (gemini, "weather.lookup", "weather.lookup"),
        (gemini, "ns:weather", "ns:weather"),
        (gemini, "a--b", "a--b"),
        (mcp, "weather.lookup", "weather.lookup"),
        (mcp, "a b", "a---20-b"),
        (mcp, "a---b", "a---2d2d2d-b"),
    ],
)
def test_written(dialect, name, wire):
    """A name is written by the rule that the module of names states, and read back without a catalog."""
    assert wire == dialect.to_wire(name)
    assert name == dialect.from_wire(wire)


def test_cut():
    """A name that is too long is cut, with 64 bits of its SHA-256 (sha256sum says so, too); a catalog reads it back."""
    name = "x" * 80
    wire = openai.to_wire(name)
    assert "x" * 44 + "----" + "d929cdeea7e6a0f4" == wire
    assert wire == openai.from_wire(wire)
    assert name == openai.from_wire(wire, catalog_of("other", name))


def test_first_sign():
    """A name whose first sign Gemini does not take is written with another one, and a hash."""
    wire = gemini.to_wire("5.days")
    assert re.fullmatch("_5.days----[0-9a-f]{16}", wire)
    assert "5.days" == gemini.from_wire(wire, catalog_of("5.days"))


@each_dialect
@settings(max_examples=100, deadline=None)
@given(NAMES)
def test_allowed_and_read_back(dialect, name):
    """Whatever its name, a tool is written as the dialect allows, and found again in its catalog."""
    wire = dialect.to_wire(name)
    assert re.fullmatch(DIALECTS[dialect], wire)
    assert name == dialect.from_wire(wire, catalog_of(name))


@each_dialect
@settings(max_examples=150, deadline=None)
@given(NAMES, NAMES)
def test_no_collision(dialect, one, other):
    """No two names are written alike, also where one imitates how another is written."""
    names = {one, other, dialect.to_wire(one), dialect.to_wire(other), dialect.to_wire(dialect.to_wire(one))}
    assert len(names) == len({dialect.to_wire(name) for name in names})


@each_dialect
def test_a_later_tool_takes_no_name(dialect):
    """The way a name is written does not depend on which other tools there are."""
    alone = dialect.to_wire("weather.lookup")
    both = catalog_of("weather.lookup", "weather--lookup", "weather_lookup")
    assert "weather.lookup" == dialect.from_wire(alone, both)
    assert 3 == len({dialect.to_wire(tool.name) for tool in both})


@each_dialect
@pytest.mark.parametrize("name", ["", "---zz-", "a----0123456789abcdef", "a---c3-b", "no such"])
def test_nobody(dialect, name):
    """What is no written form of a name, or of no tool here, stays as the model wrote it."""
    assert name == dialect.from_wire(name, catalog_of("other"))


def test_names_that_meet(monkeypatch):
    """Two names that are written alike are refused, should it ever come to that."""
    from harbor_async.export import _names  # only by another hash can that be shown

    class Same:
        def hexdigest(self):
            return "0" * 64

    monkeypatch.setattr(_names, "sha256", lambda _: Same())
    _names._to_wire.cache_clear()
    try:
        with pytest.raises(ExportError, match="its name would be written as that of"):
            openai.tools(catalog_of("x" * 80, "x" * 81))
    finally:
        _names._to_wire.cache_clear()
