"""The schema of a type by itself."""

from typing import Any

from ._emit import emit
from ._hints import caller_names, resolve
from ._refusal import nesting_refused
from ._walk import Walker


def derive_schema(type: Any) -> dict[str, Any]:
    """Derive the JSON Schema (2020-12) of a type, as arguments of that type are checked.

    Args:
        type: Any type with a JSON form; forward references are looked up where it is called.

    Returns:
        A fresh dict: the root inlined, objects closed, ``$defs`` only for shared and recursive classes.

    Raises:
        UnsupportedTypeError: A part of it has no JSON form.
        SchemaBuildError: A constraint makes no sense, or two fields share a wire name.
    """
    names = caller_names()
    where = "the type"
    globalns = names.frames[0].f_globals if names.frames else {}
    with nesting_refused():
        return emit(Walker(names).plan(resolve(type, globalns, names, where), where))
