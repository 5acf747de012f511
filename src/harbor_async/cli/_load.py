"""Finds the catalog that the user names."""

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from .._catalog import Catalog
from .._descriptor import ToolDescriptor
from ..errors import ToolNotFoundError
from ._usage import UsageError, one_line

DEFAULT_ATTRIBUTE = "catalog"


def load_catalog(spec: str) -> Catalog:
    """Import what ``spec`` names: ``module:attribute``, or the path of a Python file with ``:attribute``.

    What the module prints while it is imported goes to standard error: standard output is for results.

    Args:
        spec: The attribute may be dotted, and is ``catalog`` if there is none. A module is looked up in the working
            directory first; a file finds its neighbours, as with ``python file.py``.

    Raises:
        UsageError: There is no such file, module or attribute, the import raised, or it is no catalog.
    """
    found, module, attribute = _load("catalog", spec, DEFAULT_ATTRIBUTE)
    if not isinstance(found, Catalog):
        msg = f"catalog {spec!r}: {attribute} is of type {type(found).__name__}, not a Catalog; {_catalogs(module)}"
        raise UsageError(msg)
    return found


def load_function(option: str, spec: str) -> Callable[..., Any]:
    """Import a function, as ``load_catalog`` does a catalog; the attribute must be given.

    Args:
        option: What the user calls it, for messages.
        spec: ``module:attribute``, or the path of a Python file with ``:attribute``.

    Raises:
        UsageError: There is no such file, module or attribute, the import raised, or it cannot be called.
    """
    found, _, attribute = _load(option, spec, "")
    if not callable(found):
        msg = f"{option} {spec!r}: {attribute} is of type {type(found).__name__}, and no function"
        raise UsageError(msg)
    return cast("Callable[..., Any]", found)


def _load(what: str, spec: str, default: str) -> tuple[Any, ModuleType, str]:
    """Return what ``spec`` names, its module, and the name in it; ``what`` is what the user calls it."""
    source, attribute = _split(spec, default)
    with redirect_stdout(sys.stderr):
        named = f"{what} {spec!r}"
        module = _load_file(named, Path(source)) if _is_path(source) else _load_module(named, source)
        found: Any = module
        try:
            for name in attribute.split("."):
                found = getattr(found, name)
        except AttributeError:
            msg = f"{named}: {source} has no attribute {attribute!r}; {_catalogs(module)}"
            raise UsageError(msg) from None
    return found, module, attribute


def find_tool(catalog: Catalog, name: str) -> "ToolDescriptor[..., Any]":
    """Return the tool of this name.

    Raises:
        UsageError: There is none.
    """
    try:
        return catalog.resolve(name)
    except ToolNotFoundError as exc:
        near = get_close_matches(name, [tool.name for tool in catalog.list()], 1)
        hint = f"did you mean {near[0]!r}?" if near else "'harbor-async tools' lists what there is"
        msg = f"{exc}; {hint}"
        raise UsageError(msg) from None


def _split(spec: str, default: str) -> tuple[str, str]:
    source, colon, attribute = spec.rpartition(":")
    if colon and all(name.isidentifier() for name in attribute.split(".")):
        return source, attribute
    return spec, default  # no attribute; any other colon belongs to the path


def _is_path(source: str) -> bool:
    return source.endswith(".py") or any(mark in source for mark in (os.sep, os.altsep) if mark)


def _load_file(named: str, path: Path) -> ModuleType:
    if not path.is_file():
        msg = f"{named}: there is no file {str(path)!r}"
        raise UsageError(msg)
    # A name of its own, so that a file named like an installed module does not take that one's place.
    name = f"_harbor_catalog_{path.stem}"
    found = importlib.util.spec_from_file_location(name, path)
    if found is None or found.loader is None:
        msg = f"{named}: {str(path)!r} is no Python file (its name must end in .py)"
        raise UsageError(msg)
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        found.loader.exec_module(module)
    except (Exception, SystemExit) as exc:
        raise _import_error(named, exc) from exc
    return module


def _load_module(named: str, name: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        msg = f"{named}: expected module:attribute, or the path of a Python file with :attribute"
        raise UsageError(msg)
    sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as exc:
        if isinstance(exc, ModuleNotFoundError) and f"{name}.".startswith(f"{exc.name}."):
            msg = f"{named}: there is no module {exc.name!r}, in the working directory or installed"
            raise UsageError(msg) from None
        raise _import_error(named, exc) from exc


def _import_error(named: str, error: BaseException) -> UsageError:
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = "" if isinstance(error, SyntaxError) else f" ({Path(last.filename).name}, line {last.lineno})"
    return UsageError(f"{named}: importing it raised {one_line(error)}{where}")


def _catalogs(module: ModuleType) -> str:
    names = sorted(name for name, value in vars(module).items() if isinstance(value, Catalog))
    return f"its catalogs: {', '.join(names)}" if names else "it holds no Catalog"
