"""Descriptions out of docstrings: Google, NumPy and Sphinx style."""

import inspect
from typing import Any, Final

import msgspec

_ATTRIBUTE_FIRST: Final = {"attribute", "ivar", "var", "cvar"}


class Doc(msgspec.Struct, frozen=True):
    """What a docstring says.

    Attributes:
        text: Summary and body, without the sections.
        params: The description of each parameter or attribute that it describes.
    """

    text: str
    params: dict[str, str]


def read_doc(doc: str | None, *, of_class: bool = False) -> Doc:
    """Read a docstring.

    Args:
        doc: As it stands in ``__doc__``.
        of_class: Whether an attribute's description wins over a parameter's of the same name.
    """
    if not doc or not doc.strip():
        return Doc("", {})
    clean = inspect.cleandoc(doc)
    if "\n" not in clean and not clean.startswith(":"):
        return Doc(clean, {})
    # 40 ms to import: only for a docstring that may have sections.
    import docstring_parser  # noqa: PLC0415 - see above

    try:
        parsed = docstring_parser.parse(clean)
    except docstring_parser.ParseError:
        return Doc(clean, {})
    params: dict[str, str] = {}
    for meta in parsed.meta:
        name = _param_name(meta)
        text = inspect.cleandoc(meta.description or "").strip()
        if not name or not text:
            continue
        wins = (meta.args[0] in _ATTRIBUTE_FIRST) == of_class
        if wins or name not in params:
            params[name] = text
    body = "\n\n".join(part.strip() for part in (parsed.short_description, parsed.long_description) if part)
    return Doc(body, params)


def _param_name(meta: Any) -> str:
    kind = meta.args[0] if meta.args else ""
    if kind in _ATTRIBUTE_FIRST and len(meta.args) > 1:
        name = getattr(meta, "arg_name", None) or meta.args[-1]
    else:
        name = getattr(meta, "arg_name", None) or ""
    return str(name).lstrip("*").strip()
