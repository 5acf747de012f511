"""Everything that an object holds, so that two looks at it can be compared field by field."""

import functools
import sys
from collections.abc import Mapping
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any, get_origin

_LEAVES = (type, ModuleType, BuiltinFunctionType)
_FIELDS: dict[type, tuple[str, ...]] = {
    FunctionType: ("__code__", "__defaults__", "__kwdefaults__", "__closure__", "__dict__"),
    MethodType: ("__self__", "__func__"),
    functools.partial: ("func", "args", "keywords"),
    CellType: ("cell_contents",),
}


def anatomy(root: Any) -> dict[str, tuple[int, str]]:
    """Return what lies below ``root``: by the path that leads there, which object it is, and the text of a leaf.

    A leaf is what has no fields: numbers and text, and the interpreter's own, as a counter or a lock, whose text tells
    its state. The functions that a schema has written for itself are followed into their globals.
    """
    found: dict[str, tuple[int, str]] = {}
    seen: set[int] = set()
    todo = [("", root)]
    while todo:  # not by recursion: a plan nests deeply
        path, item = todo.pop()
        parts = _parts(item)
        found[path] = (id(item), "" if parts else repr(item))
        if id(item) not in seen:
            seen.add(id(item))
            todo += [(path + step, part) for step, part in parts.items()]
    return found


def changes(before: dict[str, tuple[int, str]], after: dict[str, tuple[int, str]]) -> list[str]:
    """Return the paths at which two looks differ."""
    return [path for path in before | after if before.get(path) != after.get(path)]


def _parts(item: Any) -> dict[str, Any]:
    if isinstance(item, _LEAVES) or get_origin(item) is not None:
        return {}
    if isinstance(item, Mapping):
        return {f"[{key!r}]": value for key, value in item.items() if key != "__builtins__"}
    if isinstance(item, (list, tuple, set, frozenset)):
        return {f"[{number}]": value for number, value in enumerate(item)}
    names = _names(item)
    if isinstance(item, FunctionType) and item.__globals__.get("__name__") not in sys.modules:
        names += ("__globals__",)
    return {f".{name}": value for name in names if (value := getattr(item, name, None)) is not None}


def _names(item: Any) -> tuple[str, ...]:
    for kind, names in _FIELDS.items():
        if isinstance(item, kind):
            return names
    slots = [name for cls in type(item).__mro__ for name in cls.__dict__.get("__slots__", ()) if name != "__weakref__"]
    return (*getattr(item, "__dict__", ()), *slots)
