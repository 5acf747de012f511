"""Names on the wire: what a dialect forbids in a name is written in what it allows, and read back.

::

    weather.lookup  ──OpenAI──►  weather--lookup
    wetter.köln     ──OpenAI──►  wetter--k---c3b6-ln       three dashes, UTF-8 in hex, a dash
    5a              ──Gemini──►  _5a----6c43df135a998cf7   four dashes, 64 bits of SHA-256

A name that is allowed stays as it is, but for runs of dashes that read as one of these. The way there depends on the
name alone, and not on which other tools there are: a tool that is added later cannot take the name under which a model
already knows another one.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from typing import Final

import attrs

from .._catalog import Catalog
from .._tool import Tool
from ..errors import ExportError, Refusal

_DIGITS: Final = 16
_CACHED: Final = 4096
_RUN: Final = re.compile(r"(?<!-)(?:---[0-9a-f]+-|-+)")
_HASHED: Final = re.compile(r"(?<!-)----[0-9a-f]{16}$")


@attrs.frozen
class Naming:
    """What a dialect allows in the name of a tool.

    Attributes:
        dialect: What messages call it.
        allowed: The inside of a regular expression's set of characters, all ASCII, without the dash.
        most: Most characters of a name.
        first: The set of the first character; None: as the others.
        runs: Runs of other characters that have a form of their own, and that form; the others go in hex.
    """

    dialect: str
    allowed: str
    most: int
    first: str | None = None
    runs: tuple[tuple[str, str], ...] = (("-", "-"), ("--", "--"))

    def to_wire(self, name: str) -> str:
        """Return how a tool's name is written in this dialect."""
        return _to_wire(self, name)

    def from_wire(self, name: str, catalog: Catalog | None = None) -> str:
        """Return the tool's name that ``name`` is the written form of; ``name`` itself if it is nobody's.

        Args:
            name: What a model called.
            catalog: Where a name is looked for that was cut; without it that one cannot be read back.
        """
        if _HASHED.search(name):
            return next((tool.name for tool in catalog or () if self.to_wire(tool.name) == name), name)
        plain = _RUN.sub(self._read_run, name)
        return plain if self.to_wire(plain) == name else name

    def _read_run(self, match: "re.Match[str]") -> str:
        run = match[0]
        if run.endswith("-") and run.strip("-"):
            try:
                return bytes.fromhex(run[3:-1]).decode("utf-8", "surrogatepass")
            except ValueError:
                return run
        return next((plain for plain, wire in self.runs if wire == run), run)


@lru_cache(_CACHED)
def _to_wire(naming: Naming, name: str) -> str:
    runs = dict(naming.runs)

    def write_run(match: "re.Match[str]") -> str:
        return runs.get(match[0]) or f"---{_bytes(match[0]).hex()}-"

    wire = re.sub(f"[^{naming.allowed}]+", write_run, name)
    is_begun = re.match(f"[{naming.first or naming.allowed + '-'}]", wire) is not None
    if is_begun and len(wire) <= naming.most:
        return wire
    head = wire if is_begun else f"_{wire}"
    return f"{head[: naming.most - _DIGITS - 4].rstrip('-')}----{sha256(_bytes(name)).hexdigest()[:_DIGITS]}"


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def check_names(naming: Naming, tools: Iterable[Tool]) -> None:
    """Refuse tools two of which would be written alike: it takes 64 bits of SHA-256 to meet.

    Raises:
        ExportError: There are two.
    """
    seen: dict[str, str] = {}
    for tool in tools:
        other = seen.setdefault(naming.to_wire(tool.name), tool.name)
        if other != tool.name:
            reason = f"its name would be written as that of {other!r}"
            raise ExportError(naming.dialect, [Refusal(tool.name, "", reason)])
