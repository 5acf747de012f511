"""The schema and the decoder say yes to the same documents.

The reference validator is jsonschema-rs with formats asserted. It is driven through private names of the engine on
purpose: documents are generated from the plan itself.
"""

import copy
import json
import random
import re
from collections.abc import Callable
from typing import Any

import attrs
import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from harbor_async.errors import InvalidArgumentsError
from harbor_async.schema import _plan as plan
from harbor_async.schema._function import FunctionSchema, compile_function
from tests.property.strategies import CORPUS, document, mutated, types

LIMITS = (1_000_000, 64)
EXAMPLES = 350
DOCUMENTS = 64


@attrs.frozen
class LeafException:
    """A text on which a leaf's decoder and its schema are known to differ.

    Attributes:
        label: The leaf, by its label.
        differs: Whether a text is of this kind.
        reason: Why it is left so.
    """

    label: str
    differs: Callable[[str], bool]
    reason: str


def _is_base64(text: str) -> bool:
    return re.fullmatch(r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", text) is not None


DATE_TIME = "RFC 3339 date-time text with offset, such as 2024-02-29T13:45:00Z"
TIME = "RFC 3339 time text with offset, such as 13:45:00Z"

EXCEPTIONS: tuple[LeafException, ...] = (
    LeafException(
        "base64 text",
        lambda text: not _is_base64(text),
        "contentEncoding only annotates (JSON Schema 2020-12 Validation §8.3); the decoder insists on base64",
    ),
    LeafException(
        DATE_TIME,
        lambda text: re.match(r"\d{4}-\d\d-\d\d ", text) is not None,
        "RFC 3339 §5.6 lets applications write a space for the T, and the decoder reads it",
    ),
    *(
        LeafException(
            label,
            lambda text: re.search(r"[+-]\d{4}$", text) is not None,
            "ISO 8601 lets an offset go without its colon, and the decoder reads it; RFC 3339 does not",
        )
        for label in (DATE_TIME, TIME)
    ),
    *(
        LeafException(
            label, lambda text: ":60" in text, "a leap second is valid in RFC 3339, but no time of Python can hold it"
        )
        for label in (DATE_TIME, TIME)
    ),
    *(
        LeafException(
            label, lambda text: text.startswith("0000-"), "the year 0000 is valid, but the first year of Python is 1"
        )
        for label in (DATE_TIME, "YYYY-MM-DD date text")
    ),
    LeafException(
        "ISO 8601 duration text such as P1DT2H30M",
        lambda text: re.search(r"\d{9}", text) is not None,
        "no pattern can say that the sum of all units must fit a timedelta",
    ),
)
"""Every place where schema and decoder are known to differ. There are no others: the test says so."""


def _labels(root: plan.Node) -> set[str]:
    nodes: list[plan.Node] = [root]
    for record in plan.records_below(root).values():
        nodes += [field.node for field in record.fields]
    found: set[str] = set()
    while nodes:
        node = nodes.pop()
        if isinstance(node, plan.Leaf):
            found.add(node.label)
        if not isinstance(node, plan.Ref):
            nodes.extend(node.children())
    return found


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for part in parts for text in _texts(part)]


def _is_excepted(labels: set[str], value: Any) -> bool:
    return any(
        exception.label in labels and exception.differs(text) for exception in EXCEPTIONS for text in _texts(value)
    )


def schema_of(tp: Any) -> FunctionSchema:
    """Return the engine's view of a function with one parameter ``x`` of the type, which it returns."""

    async def tool(x: Any) -> Any:
        return x

    tool.__annotations__ = {"x": tp, "return": tp}
    return compile_function(tool)


def verdict(schema: FunctionSchema, arguments: Any) -> bool:
    """Return whether the decoder takes ``arguments``; anything raised but its own error fails the test."""
    try:
        schema.decode(arguments, *LIMITS)
    except InvalidArgumentsError as exc:
        return not exc.problems  # a refusal without a reason counts as a yes, and fails
    return True


class Tally:
    """How many pairs a run has checked."""

    pairs = 0
    accepted = 0
    excepted = 0


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(types(), st.integers(0, 2**32))
def _compare(tp: Any, seed: int) -> None:
    schema = schema_of(tp)
    root = schema.decoder.root
    labels = _labels(root)
    validator = jsonschema_rs.validator_for(schema.args_schema, validate_formats=True)
    rng = random.Random(seed)
    for turn in range(DOCUMENTS):
        if turn % 4 == 0:
            inner = rng.choice(CORPUS)
            arguments: Any = {"x": inner}
        else:
            arguments = document(root, rng)
            for _ in range(turn % 4 - 1):
                arguments = mutated(copy.deepcopy(arguments), rng)
        text = json.dumps(arguments)
        by_bytes = verdict(schema, text.encode())
        assert by_bytes == verdict(schema, text), ("bytes and str", tp, text)
        if isinstance(arguments, dict):
            assert by_bytes == verdict(schema, arguments), ("bytes and dict", tp, text)
        expected = validator.is_valid(arguments)
        Tally.pairs += 1
        Tally.accepted += by_bytes
        if by_bytes != expected:
            Tally.excepted += 1
            assert _is_excepted(labels, arguments), (tp, text, f"schema {expected}", f"decoder {by_bytes}")


@pytest.mark.timeout(300)
def test_schema_and_decoder_agree() -> None:
    """Over 20,000 pairs of type and document, schema and decoder give the same verdict, as text, bytes and dict."""
    Tally.pairs = Tally.accepted = Tally.excepted = 0
    _compare()
    print(f"{Tally.pairs} pairs, {Tally.accepted} accepted, {Tally.excepted} excepted")  # noqa: T201 - pytest -s shows it
    assert Tally.pairs >= 20_000
    assert Tally.accepted >= Tally.pairs // 10
    assert Tally.excepted <= Tally.pairs // 50
