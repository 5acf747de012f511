"""Types that have a JSON form because somebody said which.

The registry is one ``cattrs.Converter`` and the wire types beside it. It belongs to the process, as codecs do: a type
is registered once, at import, before a tool that uses it is described. A tool keeps the hooks that it was described
with; registering again changes only what is described later. Nothing in it belongs to a call.
"""

import threading
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from ..errors import InvalidToolError

T = TypeVar("T")
W = TypeVar("W")

if TYPE_CHECKING:
    import cattrs

_wires: Final[dict[Any, "WireForm"]] = {}
_lock: Final = threading.Lock()


@cache
def _converter() -> "cattrs.Converter":
    import cattrs  # noqa: PLC0415 - a tenth of what importing the package took, for programs that register no type

    return cattrs.Converter()


class WireForm(msgspec.Struct, frozen=True):
    """How a registered type travels.

    Attributes:
        wire: The type that it has in JSON.
        format: The schema's ``format`` keyword, or None.
    """

    wire: Any
    format: str | None


def register_type(
    type: type[T],
    *,
    wire: Any,
    structure: Callable[[Any], T],
    unstructure: Callable[[T], Any],
    format: str | None = None,
) -> None:
    """Give a class a JSON form: ``register_type(Path, wire=str, structure=Path, unstructure=str, format="path")``.

    The schema and the strict check of arguments follow from ``wire``. ``structure`` is called with a checked value of
    that type; what it raises is reported to the model as a problem of that value. Both become hooks of the one
    ``cattrs`` converter of the process.

    Args:
        type: The class, as it stands in annotations.
        wire: A type that has a JSON form already; ``Annotated`` bounds hold.
        structure: Makes an instance from a value of ``wire``.
        unstructure: Makes a value of ``wire`` from an instance.
        format: The ``format`` keyword of its schema; it only informs.

    Raises:
        InvalidToolError: ``type`` is no class, or a hook cannot be called.
    """
    if not isinstance(type, _class):
        msg = f"register_type: expected a class; got {type!r}"
        raise InvalidToolError(msg)
    for role, hook in (("structure", structure), ("unstructure", unstructure)):
        if not callable(hook):
            msg = f"register_type({type.__name__}): {role}: expected a function; got {hook!r}"
            raise InvalidToolError(msg)
    with _lock:
        converter = _converter()
        converter.register_structure_hook(type, lambda value, _: structure(value))
        converter.register_unstructure_hook(type, unstructure)
        _wires[type] = WireForm(wire, format)


_class: Final = type


def wire_form(cls: Any) -> WireForm | None:
    """Return how ``cls`` travels if it was registered itself, else None."""
    try:
        return _wires.get(cls)
    except TypeError:
        return None


def registered_base(cls: type) -> type | None:
    """Return the nearest registered class among ``cls`` and its bases, else None."""
    return next((base for base in cls.__mro__ if base in _wires), None)


def structure_hook(cls: Any) -> Callable[[Any], Any]:
    """Return the present structure hook of a registered class."""
    hook = _converter().get_structure_hook(cls)
    return lambda value: hook(value, cls)


def unstructure_hook(cls: Any) -> Callable[[Any], Any]:
    """Return the present unstructure hook of a registered class."""
    return _converter().get_unstructure_hook(cls)
