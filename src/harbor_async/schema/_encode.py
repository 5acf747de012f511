"""The encoder of one result type, and the check that the text fits it."""

from collections.abc import Callable
from typing import Any

import msgspec

from .. import _json
from .._json import encode
from ..errors import InvalidOutputError, Problem
from ._codegen import Module
from ._explain import Explainer
from ._generic import is_finite, plain_any, plain_found
from ._plan import Anything, Leaf, Node, records_below
from ._shadow import Shadows
from ._unbuild import Unbuilder


class Encoder(msgspec.Struct, frozen=True, eq=False):
    """Encodes the results of one declared type.

    Attributes:
        root: The plan of the type.
        shadows: The msgspec types of the plan.
        unbuild: Makes what msgspec may encode.
        wire: Decodes the text again; raises on anything that does not fit the type.
        has_null: Whether ``null`` fits anywhere: a NaN could hide behind it.
    """

    root: Node
    shadows: Shadows
    unbuild: Callable[[Any], Any]
    wire: Callable[[bytes], Any]
    has_null: bool

    def encode(self, value: Any, check: bool) -> bytes:  # noqa: FBT001 - the hot path; a keyword costs 30 ns
        """Return ``value`` as JSON text.

        Args:
            value: What the function returned.
            check: Whether a value that its type denies is refused; if not, it is encoded as what it is.

        Raises:
            InvalidOutputError: It has no JSON form, or ``check`` found that it does not fit its type.
        """
        # Unchecked it is tried all the same: what does not fit would be encoded by rules of msgspec that are not ours,
        # which leak what a class does not declare, and write NaN as null.
        try:
            plain = self.unbuild(value)
            data = encode(plain)
            self.wire(data)
            if not (self.has_null and b"null" in data) or is_finite(plain):
                return data
        except Exception:  # noqa: BLE001, S110 - reading the user's object may raise anything; the careful path says what
            pass
        return self._careful(value, check=check)

    def _careful(self, value: Any, *, check: bool) -> bytes:
        data = encode_any(value)
        if not check:
            return data
        try:
            explainer = Explainer(self.shadows, _json.parse(data))
            plain = explainer.explain(self.root)
        except (_json.DocumentError, RecursionError) as exc:
            raise InvalidOutputError([_json.too_deep()]) from exc
        if explainer.report.problems:
            raise InvalidOutputError(explainer.report.problems)
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
        except ValueError:  # a surrogate, or too many digits; the walk says where
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
        shadows=shadows,
        unbuild=module.compile()["unbuild_root"],
        wire=msgspec.json.Decoder(shadows.wire(root)).decode,
        has_null=_has_null(root),
    )


def _has_null(root: Node) -> bool:
    nodes: list[Node] = [root]
    for record in records_below(root).values():
        nodes += [field.node for field in record.fields]
    seen: set[int] = set()
    while nodes:
        node = nodes.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Anything) or (isinstance(node, Leaf) and "null" in node.accepts):
            return True
        nodes.extend(node.children())
    return False
