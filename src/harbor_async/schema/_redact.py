"""What an exception of a user's class may say to a model: its own words, without the value that it was about."""

import datetime as dt
import re
import sys
import uuid
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final, cast

from .._json import Path, is_mapping
from ..errors import clip
from ._report import Report
from ._sets import AlikeError

_MESSAGE_LIMIT: Final = 500
_NODES: Final = 1000
_WORK: Final = 4_000_000
_SHORT: Final = 4
_MARK: Final = "<value>"
_SCALARS: Final = (str, int, float, bytes, dt.date, dt.time, dt.timedelta, Decimal, uuid.UUID)
_QUOTED: Final = re.compile(r"(: |\bgot |[(=\[])([^\s:,=()\[\]]{1,3})(?=$|[ ,)\]])")
_CONTAINERS: Final = (dict, list, tuple, set, frozenset)
_STEP: Final = re.compile(r"\.([^.\[]+)|\[([^\]]*)\]")


def describe(report: Report, exc: Exception, path: Path, source: Any, made: Any) -> None:
    """Note what ``exc`` says about the value at ``path``, without quoting the value.

    Args:
        report: Where it is noted.
        exc: What a user's class or hook raised.
        path: The way to the value.
        source: The value as builtins. What stands in it is cut out of the text.
        made: What was made of it, as far as that went: dates, say. So is what stands in that.
    """
    if isinstance(exc, AlikeError):
        report.add(path, "value", str(exc))
        return
    cattrs = sys.modules.get("cattrs")  # where nobody has loaded it, none of its errors can come
    if cattrs is not None and isinstance(exc, cattrs.BaseValidationError):
        for line in cattrs.transform_error(exc):
            text, _, where = line.rpartition(" @ ")
            report.add(_below(path, where), "value", _redacted(text, source, made) or _withheld(exc))
        return
    report.add(path, "value", _redacted(_text_of(exc), source, made) or _withheld(exc))


def _withheld(exc: Exception) -> str:
    return f"refused: {type(exc).__name__}"


def _text_of(exc: Exception) -> str:
    """Return the words of an exception; none of a ``KeyError``, whose text is the key."""
    if isinstance(exc, KeyError):
        return ""
    try:
        # Validators of attrs pass the attribute and the value behind the text.
        if type(exc).__str__ is BaseException.__str__ and exc.args and isinstance(exc.args[0], str):
            return exc.args[0]
        return str(exc)
    except Exception:  # noqa: BLE001 - a broken __str__ must not hide the problem
        return ""


def _below(path: Path, where: str) -> Path:
    """Return ``path`` extended by cattrs' ``$.a[0]``."""
    for step in _STEP.finditer(where.removeprefix("$")):
        path = (path, (step[1] or step[2]).strip("'\""))
    return path


def _redacted(text: str, *values: Any) -> str:
    """Cut values out of a text: long ones anywhere, short ones where validators quote them.

    Returns:
        The rest; nothing if that is all, or if the values are too many to look for each.
    """
    forms: set[str] = set()
    if not all(_collect(value, forms) for value in values) or len(forms) * len(text) > _WORK:
        return ""
    for form in sorted(forms, key=len, reverse=True):
        if len(form) >= _SHORT:
            text = text.replace(form, _MARK)
    text = _QUOTED.sub(lambda found: found[1] + _MARK if found[2] in forms else found[0], text)
    text = text.removesuffix(f": {_MARK}")
    return "" if text == _MARK else clip(text, _MESSAGE_LIMIT)


def _collect(value: Any, forms: set[str]) -> bool:
    """Add the texts of ``value`` and its parts to ``forms``; return whether they were few enough to look at all."""
    nodes = [value]
    for node in nodes:  # grows while it is read
        if len(nodes) > _NODES:
            return False
        if isinstance(node, _CONTAINERS):
            nodes.extend(_parts(node))
        elif isinstance(node, _SCALARS) and not isinstance(node, bool):
            forms.update(form for form in (str(node), repr(node)) if form)
    # Validators quote one field, hooks and __init__ the whole.
    wholes = [value, *_parts(value)] if is_mapping(value) else [value]
    forms.update(map(repr, filter(_is_filled, wholes)))
    return True


def _is_filled(value: Any) -> bool:
    return isinstance(value, _CONTAINERS) and bool(cast("Any", value))


def _parts(container: Any) -> Iterable[Any]:
    return container.values() if is_mapping(container) else container
