"""Whatever comes in, the answer is a value or one kind of error; whatever goes out comes back the same.

The engine is driven through its private seam, as in ``test_schema_agrees``.
"""

import json
import random
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from harbor_async.errors import InvalidArgumentsError
from harbor_async.schema._function import FunctionSchema
from tests.property.strategies import document, mutated, types
from tests.property.test_schema_agrees import LIMITS, schema_of

COMMON = settings(
    deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
INTERESTING = b'{}[]:,"\\tfn0123456789.eE+-u \n\t\r\x00\xff\xef\xbb\xbf\xa0\xc3\xa9x'


def outcome(schema: FunctionSchema, arguments: Any, limits: tuple[int, int] = LIMITS) -> Any:
    """Return the values, or the problems; any other exception fails the test."""
    try:
        return schema.decode(arguments, *limits)
    except InvalidArgumentsError as exc:
        return [(problem.path, problem.code) for problem in exc.problems] or pytest.fail("no reason given")


def bent(text: bytes, rng: random.Random) -> bytes:
    """Return ``text`` with a few bytes put in, taken out or doubled."""
    data = bytearray(text)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        match rng.randint(0, 3):
            case 0:
                data[at:at] = bytes([rng.choice(INTERESTING)])
            case 1:
                del data[at : at + rng.randint(1, 5)]
            case 2:
                end = at + rng.randint(1, 20)
                data[at:at] = data[at:end]
            case _:
                data[at : at + 1] = bytes([rng.randrange(256)])
    return bytes(data)


@pytest.mark.timeout(200)
@settings(COMMON, max_examples=150)
@given(types(), st.integers(0, 2**32), st.tuples(st.sampled_from([50, 1000]), st.sampled_from([1, 3, 64, 100_000])))
def test_bent_text_never_escapes(tp: Any, seed: int, limits: tuple[int, int]) -> None:
    """Text that was bent byte by byte gives a value or our error, the same for bytes, str and bytearray."""
    schema = schema_of(tp)
    root = schema.decoder.root
    rng = random.Random(seed)
    for _ in range(40):
        data = bent(json.dumps(document(root, rng), ensure_ascii=rng.random() < 0.5).encode(), rng)
        found = outcome(schema, data, limits)
        assert repr(found) == repr(outcome(schema, bytearray(data), limits))
        try:
            text = data.decode()
        except UnicodeDecodeError:
            assert isinstance(found, list)
        else:
            assert repr(found) == repr(outcome(schema, text, limits))


ODD: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(st.characters()),
        st.binary(max_size=4),
        st.dates(),
        st.decimals(),
        st.builds(object),
        st.just(int),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(st.one_of(st.text(st.characters(), max_size=4), st.integers(), st.none()), inner, max_size=3),
    ),
    max_leaves=8,
)


@settings(COMMON, max_examples=150)
@given(types(), st.lists(ODD, max_size=12))
def test_odd_python_values_never_escape(tp: Any, values: list[Any]) -> None:
    """Mappings that hold any Python objects, and arguments that are no mapping, give a value or our error."""
    schema = schema_of(tp)
    for value in values:
        outcome(schema, value)
        outcome(schema, {"x": value})


def doubled(value: Any, rng: random.Random, room: list[int]) -> str:
    """Return the JSON text of ``value`` with one of its keys given twice; ``room[0]`` says at which object."""
    if isinstance(value, dict):
        room[0] -= 1
        here = room[0] == 0 and bool(value)
        pairs = [f"{json.dumps(key)} : {doubled(item, rng, room)}" for key, item in value.items()]
        if here:
            key = rng.choice(sorted(value))
            pairs.insert(rng.randrange(len(pairs) + 1), f"{json.dumps(key)}:{json.dumps(value[key])}")
            room[0] = -1_000_000
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(doubled(item, rng, room) for item in value) + "]"
    return json.dumps(value)


@settings(COMMON, max_examples=200)
@given(types(), st.integers(0, 2**32))
def test_doubled_keys_are_always_seen(tp: Any, seed: int) -> None:
    """A document that fits is refused as soon as one of its keys is given twice, anywhere, and for that alone."""
    schema = schema_of(tp)
    root = schema.decoder.root
    rng = random.Random(seed)
    for _ in range(15):
        value = document(root, rng)
        if isinstance(outcome(schema, json.dumps(value)), list):
            continue
        room = [rng.randint(1, 4)]
        text = doubled(value, rng, room)
        if room[0] > -1000:
            assert not isinstance(outcome(schema, text), list)
        else:
            assert ["duplicate"] == [code for _, code in outcome(schema, text)], text


@settings(COMMON, max_examples=200)
@given(types(), st.integers(0, 2**32))
def test_results_come_back_the_same(tp: Any, seed: int) -> None:
    """What was decoded is encoded to a text that its schema takes, and that decodes to an equal value."""
    schema = schema_of(tp)
    root = schema.decoder.root
    validator = jsonschema_rs.validator_for(schema.out_schema, validate_formats=True)
    rng = random.Random(seed)
    for _ in range(20):
        arguments = document(root, rng)
        if rng.random() < 0.3:
            arguments = mutated(arguments, rng)
        values = outcome(schema, json.dumps(arguments))
        if isinstance(values, list):
            continue
        text = schema.encode(values[0], True)
        assert text == schema.encode(values[0], False)
        assert validator.is_valid(json.loads(text)), text
        assert values == outcome(schema, b'{"x":' + text + b"}"), text
