"""The decoder of one object: a fast path that says yes or no, and a slow path that says why not."""

from collections.abc import Callable
from typing import Any, Final, cast

import msgspec

from .. import _json
from .._json import DocumentError, encode, holds_keys, is_deeper
from ..errors import InvalidArgumentsError, Problem
from ._codegen import Builder, Module
from ._construct import Constructor
from ._count import Counter
from ._explain import Explainer
from ._mapping import from_mapping
from ._plan import Ref, Table, static_depth
from ._shadow import Shadows

_NO_ARGUMENTS: Final = frozenset({b"", b"null"})
_UNBOUNDED: Final = 2**62


class _DoubledKeyError(Exception):
    """A key is given more than once; where, is seen in the parse tree."""


class Decoder(msgspec.Struct, frozen=True, eq=False):
    """Decodes JSON objects into the values of one record, or into one dict.

    Attributes:
        root: The object's place in the plan.
        shadows: The msgspec types of the plan.
        wire: Decodes text to shadows; raises on anything that does not fit.
        keys: Counts the keys of a decoded document.
        build: Makes the Python values.
        depth: How deep a document that fits can nest.
    """

    root: Ref | Table
    shadows: Shadows
    wire: Callable[["bytes | str"], Any]
    keys: Callable[[Any], int]
    build: Callable[[Any], Any]
    depth: int

    def decode(self, arguments: Any, max_bytes: int, max_depth: int) -> Any:
        """Return the Python values of ``arguments``.

        Args:
            arguments: JSON text as bytes or str, a mapping of JSON values, or None for no arguments.
            max_bytes: Bound of the text's size in UTF-8.
            max_depth: Bound of the nesting; an object of scalars is one level.

        Raises:
            InvalidArgumentsError: They do not fit; it holds every problem.
        """
        # No plan of this depth lets more levels through, nor can fewer brackets nest deeper. No text has more bytes
        # than four for each character. As many keys as colons leave no room for a key that came twice.
        refusal: Exception | None = None
        try:
            if arguments.__class__ is bytes:
                if len(arguments) <= max_bytes and (
                    self.depth <= max_depth or arguments.count(b"{") + arguments.count(b"[") <= max_depth
                ):
                    shadow = self.wire(arguments)
                    keys = self.keys(shadow)
                    if keys == arguments.count(b":") or holds_keys(arguments, keys):
                        return self.build(shadow)
                    refusal = _DoubledKeyError()
                    del shadow  # a large one makes each collection of what follows slower
            elif (
                arguments.__class__ is str
                and len(arguments) * 4 <= max_bytes
                and (self.depth <= max_depth or arguments.count("{") + arguments.count("[") <= max_depth)
            ):
                shadow = self.wire(arguments)
                keys = self.keys(shadow)
                if keys == arguments.count(":") or holds_keys(arguments.encode(), keys):
                    return self.build(shadow)
                refusal = _DoubledKeyError()
                del shadow
        except Exception as exc:  # noqa: BLE001 - told apart by looking at the document, not at the exception
            refusal = exc.with_traceback(None)  # or it would hold this frame, and the frame it
        return self._careful(arguments, max_bytes, max_depth, refusal)

    def _careful(self, arguments: Any, max_bytes: int, max_depth: int, refusal: Exception | None) -> Any:
        """Decode with every guard; the same verdicts as the fast path, and the reasons.

        Args:
            arguments: As in ``decode``.
            max_bytes: As in ``decode``.
            max_depth: As in ``decode``.
            refusal: Why the fast path would not have them; None if it has not tried.
        """
        try:
            data = _to_bytes(arguments, max_bytes, max_depth)
            if data.strip(_json.WHITESPACE) in _NO_ARGUMENTS:
                data, refusal = b"{}", None
            if is_deeper(data, max_depth):
                raise DocumentError(_json.too_deep(max_depth))
            if refusal is None:
                try:
                    shadow = self.wire(data)
                    if holds_keys(data, self.keys(shadow)):
                        return self.build(shadow)
                    refusal = _DoubledKeyError()
                except Exception as exc:  # noqa: BLE001 - as above
                    refusal = exc.with_traceback(None)
            return self._explain(data, refusal)
        except DocumentError as exc:
            raise InvalidArgumentsError([exc.problem]) from exc
        except RecursionError as exc:
            raise InvalidArgumentsError([_json.too_deep()]) from exc

    def _explain(self, data: bytes, refusal: Exception) -> Any:
        explainer = Explainer(self.shadows, _json.parse(data))
        plain = explainer.explain(self.root)
        if explainer.report.problems:
            raise InvalidArgumentsError(explainer.report.problems) from None
        try:
            shadow = self.wire(encode(plain) if explainer.repaired else data)
        except Exception as exc:
            # The two paths read a document differently: still one clear answer.
            raise InvalidArgumentsError([Problem("", "value", "the document does not fit its schema")]) from exc
        if explainer.repaired:
            try:
                return self.build(shadow)
            except Exception as exc:  # noqa: BLE001 - as above
                refusal = exc.with_traceback(None)
        raise InvalidArgumentsError(Constructor(self.shadows).explain(self.root, plain, refusal)) from refusal


def _to_bytes(arguments: Any, max_bytes: int, max_depth: int) -> bytes:
    """Return the JSON text of ``arguments`` as bytes within the bound.

    Raises:
        DocumentError: Too large, too deep, or no JSON.
    """
    if arguments is None:
        return b"{}"
    if arguments.__class__ is dict or _json.is_mapping(arguments):
        return from_mapping(arguments, max_bytes, max_depth)
    if isinstance(arguments, str):
        if len(arguments) > max_bytes:
            raise DocumentError(_json.too_large(max_bytes))
        try:
            data = arguments.encode()
        except UnicodeEncodeError as exc:
            raise DocumentError(Problem("", "syntax", "the text holds a lone surrogate, which is no text")) from exc
    elif isinstance(arguments, (bytes, bytearray, memoryview)):
        data = bytes(cast("bytes", arguments))
    else:
        message = f"expected a JSON object as text, bytes or mapping, got {_json.kind_of(arguments)}"
        raise DocumentError(Problem("", "type", message))
    if len(data) > max_bytes:
        raise DocumentError(_json.too_large(max_bytes))
    return data


def compile_decoder(root: Ref | Table) -> Decoder:
    """Compile the decoder of an object: the parameters of a function, or a class or dict that stands for them all."""
    shadows = Shadows(root)
    module = Module()
    counter, builder = Counter(module, shadows), Builder(module, shadows)
    module.function("keys", "s", [f"return {counter.expression(root, 's')}"])
    if isinstance(root, Ref) and root.record.style == "arguments":
        values = "".join(f"a{index}, " for index in range(len(root.record.fields)))
        module.function("build", "s", [*builder.assignments(root.record), f"return ({values})"])
    else:
        module.function("build", "s", [f"return ({builder.expression(root, 's')},)"])
    scope = module.compile()
    depth = static_depth(root)
    return Decoder(
        root=root,
        shadows=shadows,
        wire=msgspec.json.Decoder(shadows.wire(root)).decode,
        keys=scope["keys"],
        build=scope["build"],
        depth=_UNBOUNDED if depth is None else depth,
    )
