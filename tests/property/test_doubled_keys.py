"""Keys that come twice are seen by counting colons. Here the count is held against a parser that keeps every pair.

The engine is driven through its private seam, as in ``test_schema_agrees``.
"""

import json
import random
from typing import Any, TypedDict

import attrs
from hypothesis import given, settings, strategies as st

from harbor_async.errors import InvalidArgumentsError
from harbor_async.schema._function import FunctionSchema
from tests.property.test_schema_agrees import schema_of

KEYS = st.text(st.sampled_from('":\\ \n\t\r,{}[]ab\u00e9\U0001f600/'), max_size=3)
TREES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), KEYS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: ("array", items)),
        st.lists(st.tuples(KEYS, inner), max_size=4).map(lambda pairs: ("object", pairs)),
    ),
    max_leaves=12,
)
"""JSON values whose objects are lists of pairs, so that a key may come twice."""


class Loose(TypedDict, total=False):
    """Optional keys with text that is made of colons and quotes."""

    a: Any
    b: "dict[str, Any]"
    x: "list[dict[str, str]]"


@attrs.frozen
class Strict:
    """A class below the root."""

    a: str
    b: "Strict | None" = None


ANY, LOOSE, TABLES, STRICT = map(schema_of, (Any, list[Loose], dict[str, dict[str, Any]], Strict))


def written(value: Any, rng: random.Random) -> str:
    """Return a JSON text of a tree, with white space anywhere and any letter escaped."""

    def space() -> str:
        return rng.choice(["", "", "", " ", "\n", "\t", "\r", " \r\n\t"])

    def text(value: str) -> str:
        plain = json.dumps(value, ensure_ascii=rng.random() < 0.5)[1:-1]
        if rng.random() < 0.3:
            plain = "".join(rf"\u{ord(char):04x}" if ord(char) < 0x10000 else char for char in value)
        return f'"{plain}"'

    match value:
        case ("array", items):
            inner = f"{space()},{space()}".join(written(item, rng) for item in items)
            return f"[{space()}{inner}{space()}]"
        case ("object", pairs):
            inner = ",".join(
                f"{space()}{text(key)}{space()}:{space()}{written(item, rng)}{space()}" for key, item in pairs
            )
            return f"{{{inner or space()}}}"
        case str():
            return text(value)
        case _:
            return json.dumps(value)


def has_doubled_key(text: str) -> bool:
    """Return whether any object of ``text`` holds a key twice, as Python's own parser sees it."""
    found: list[bool] = []
    json.loads(text, object_pairs_hook=lambda pairs: found.append(len(dict(pairs)) < len(pairs)))
    return any(found)


def codes(schema: FunctionSchema, arguments: Any) -> set[str]:
    """Return the codes of the problems of ``arguments``; none if they are taken."""
    try:
        schema.decode(arguments, 1_000_000, 100)
    except InvalidArgumentsError as exc:
        return {problem.code for problem in exc.problems}
    return set()


@settings(max_examples=400, deadline=None)
@given(TREES, st.integers(0, 2**32))
def test_any_document(tree: Any, seed: int) -> None:
    """A document of any shape is refused exactly if one of its objects, at any depth, holds a key twice."""
    rng = random.Random(seed)
    for _ in range(10):
        text = f'{rng.choice(["", " "])}{{"x"{rng.choice(["", " "])}:{written(tree, rng)}}}'
        expected = {"duplicate"} if has_doubled_key(text) else set()
        assert expected == codes(ANY, text)
        assert expected == codes(ANY, text.encode())


@settings(max_examples=200, deadline=None)
@given(TREES, st.integers(0, 2**32))
def test_typed_documents(tree: Any, seed: int) -> None:
    """Whatever the type asks, a doubled key is named exactly if there is one."""
    rng = random.Random(seed)
    for shape in (tree, ("array", [tree]), ("object", [("a", tree)]), ("array", [("object", [("a", tree)])])):
        text = f'{{"x":{written(shape, rng)}}}'
        for schema in (LOOSE, TABLES, STRICT):
            found = codes(schema, text)
            if has_doubled_key(text):
                assert "duplicate" in found or "type" in found
            else:
                assert "duplicate" not in found
            assert found == codes(schema, text.encode())
