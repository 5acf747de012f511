"""Fields as a class or a function declares them, before their types are looked into."""

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from .._json import has_surrogate
from ..errors import SchemaBuildError
from ._constraint import Marks, read_marks
from ._hints import split_annotation
from ._plan import Field
from ._record import RawField

_ESCAPED: Final = re.compile(r"[\x00-\x1f\"\\]")


class Declaration(msgspec.Struct, frozen=True, eq=False):
    """A field before its type is looked into.

    Attributes:
        raw: What the class or function says.
        annotation: Its type, resolved.
        documented: Its description in a docstring, or None.
        where: The place, for messages.
    """

    raw: RawField
    annotation: Any
    documented: str | None
    where: str

    def split(self) -> tuple[Any, Marks]:
        """Return the bare type and what stands beside it."""
        bare, metadata = split_annotation(self.annotation)
        return bare, read_marks(metadata, self.where)


def check_wires(fields: Iterable[Field], where: str) -> None:
    """Refuse two fields with one name on the wire, and names that msgspec cannot write.

    Raises:
        SchemaBuildError: Two fields have the same wire name, or one holds what would have to be escaped.
    """
    seen: dict[str, str] = {}
    for field in fields:
        if _ESCAPED.search(field.wire) or has_surrogate(field.wire):
            msg = f"{where}: the wire name {field.wire!a} holds a quote, a backslash or a control character; drop it"
            raise SchemaBuildError(msg)
        if field.wire in seen:
            msg = f"{where}: {seen[field.wire]!r} and {field.name!r} both have the wire name {field.wire!r}; rename one"
            raise SchemaBuildError(msg)
        seen[field.wire] = field.name
