"""The encoder of one result type, and the check that the text fits it."""

from collections.abc import Callable
from typing import Any

import attrs
import msgspec

from .. import _json
from .._json import encode
from ..errors import InvalidOutputError, Problem
from ._codegen import Module
from ._explain import Explainer
from ._generic import plain_any, plain_found, require_finite
from ._plan import Anything, Leaf, Node, records_below
from ._shadow import Shadows
from ._unbuild import Unbuilder


@attrs.frozen(eq=False)
class Encoder:
    """Encodes the results of one declared type.

    Attributes:
        root: The plan of the type.
        unbuild: Makes what msgspec may encode.
        wire: Decodes the text again; raises on anything that does not fit the type.
        has_floats: Whether a NaN could hide in it as ``null``.
    """

    root: Node
    unbuild: Callable[[Any], Any]
    wire: Callable[[bytes], Any]
    has_floats: bool

    def encode(self, value: Any, check: bool) -> bytes:  # noqa: FBT001 - the hot path; a keyword costs 30 ns
        """Return ``value`` as JSON text.

        Args:
            value: What the function returned.
            check: Whether a value that its type denies is refused; if not, it is encoded as what it is.

        Raises:
            InvalidOutputError: It has no JSON form, or ``check`` found that it does not fit its type.
        """
        try:
            plain = self.unbuild(value)
            data = encode(plain)
            if self.has_floats and b"null" in data:
                require_finite(plain)
            if check:
                self.wire(data)
        except Exception:  # noqa: BLE001 - reading the user's object may raise anything; the careful path says what it was
            return self._careful(value, check=check)
        return data

    def _careful(self, value: Any, *, check: bool) -> bytes:
        data = encode_any(value)
        if not check:
            return data
        explainer = Explainer()
        try:
            plain = explainer.explain(self.root, _json.parse(data))
        except RecursionError as exc:
            raise InvalidOutputError([_json.too_deep()]) from exc
        if explainer.problems:
            raise InvalidOutputError(explainer.problems)
        data = encode(plain)
        try:
            self.wire(data)
        except (msgspec.MsgspecError, RecursionError) as exc:
            raise InvalidOutputError([Problem("", "value", "the result does not fit its schema")]) from exc
        return data


def encode_any(value: Any) -> bytes:
    """Return a value of any type as strict JSON.

    Raises:
        InvalidOutputError: It has no JSON form.
    """
    try:
        try:
            return encode(plain_any(value))
        except UnicodeEncodeError:
            return encode(plain_found(value))
    except RecursionError as exc:
        raise InvalidOutputError([_json.too_deep()]) from exc


def compile_encoder(root: Node) -> Encoder:
    """Compile the encoder of a declared result type."""
    shadows = Shadows(root)
    module = Module()
    expression = Unbuilder(module).expression(root, "o")
    module.function("unbuild_root", "o", [f"return {expression}"])
    return Encoder(
        root=root,
        unbuild=module.compile()["unbuild_root"],
        wire=msgspec.json.Decoder(shadows.wire(root)).decode,
        has_floats=_has_floats(root),
    )


def _has_floats(root: Node) -> bool:
    nodes: list[Node] = [root]
    for record in records_below(root).values():
        nodes += [field.node for field in record.fields]
    seen: set[int] = set()
    while nodes:
        node = nodes.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Anything) or (isinstance(node, Leaf) and "number" in node.accepts):
            return True
        nodes.extend(node.children())
    return False
