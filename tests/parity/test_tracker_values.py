"""``trackerwrite_schema.json``, ``result_retryable.json`` and ``result_roundtrip.json``: what needs no call.

What the recorded cases do not say is tested at the end: unknown fields, fresh copies.
"""

from collections.abc import Callable
from typing import Any

import attrs
import msgspec
import pytest

from harbor_async import Outcome
from harbor_async.tracker import NAME, Op, ResultError, TrackerResult, args_schema, tracker_write
from tests.parity.answers import parse
from tests.parity.harness import Case, Difference, Section, named, names
from tests.parity.tracker import make_writer

# --- trackerwrite_schema ----------------------------------------------------------------------------------------------


def narrowed(answer: dict[str, Any], case: Case) -> dict[str, Any]:
    """Return the answer with what the writer cannot do left out of the schema."""
    can = {"close": True, "link_pr": False, **case.input["writer"]}
    fields = {"comment": "body", "transition": "toState", "close": "reason", "link_pr": "prURL"}
    schema = msgspec.json.decode(msgspec.json.encode(answer["params_schema"]))
    schema["properties"]["op"]["enum"] = [op for op in schema["properties"]["op"]["enum"] if can[op]]
    for op, field in fields.items():
        if not can[op]:
            del schema["properties"][field]
    return {"name": answer["name"], "params_schema": schema}


SCHEMA = Section(
    "trackerwrite_schema",
    "cases",
    lambda case: {name: value for name, value in case.expected.items() if name not in {"bytes", "string"}},
    (
        Difference(17, lambda case: case.name.startswith("info/close"), narrowed),
        Difference(49, named("info/nil_tool"), lambda *_: {"error": "InvalidToolError"}),
    ),
)


def about(case: Case, *, all_ops: bool = False) -> dict[str, Any]:
    """Return name and schema of the tool of the writer that a case names."""
    tool = tracker_write(make_writer(case), all_ops=all_ops).tool
    return {"name": tool.name, "params_schema": tool.args_schema}


def ask_schema(case: Case) -> dict[str, Any]:
    given = case.input
    if "op" in given or "outcome" in given:
        kind, word = (Op, given["op"]) if "op" in given else (Outcome, given["outcome"])
        return {"valid": word in set(kind)}
    if case.name == "schema":
        return {"schema": args_schema()}
    if case.name == "schema_is_fresh_copy":
        first = args_schema()
        first["properties"]["id"].clear()
        first["required"].clear()
        return {"second_unchanged": args_schema() == SCHEMA.cases[0].expected["schema"]}
    if "writer" in given:
        return about(case)
    try:
        tracker_write(None if given.get("tool") == "nil" else make_writer(case))  # no context has a part in it
    except ValueError as exc:
        return {"error": type(exc).__name__}
    return {"error": None}


@pytest.mark.parametrize("case", SCHEMA.cases, ids=names)
def test_words_and_schemas_are_those_of_the_seed(case: Case, asserted: Callable) -> None:
    """The operations, the outcomes and the schema that a model sees are those recorded, narrowed to the writer."""
    numbers, expected = SCHEMA.expect(case)
    assert expected == ask_schema(case)
    asserted(SCHEMA, case, numbers)


@pytest.mark.parametrize("case", [case for case in SCHEMA.cases if case.name.startswith("info/close")], ids=names)
def test_with_all_ops_the_schema_does_not_depend_on_the_writer(case: Case) -> None:
    """Asked for all operations, the tool shows the very schema of the seed, whatever the writer can do."""
    assert case.expected == about(case, all_ops=True)


def test_the_schema_is_written_in_the_order_of_declaration() -> None:
    """A model sees the operation first, then the issue, then the fields."""
    assert ["op", "id", "body", "toState", "reason", "prURL"] == list(args_schema()["properties"])
    assert NAME == "tracker_write"


# --- result_retryable -------------------------------------------------------------------------------------------------

RETRYABLE = Section("result_retryable", "cases", lambda case: case.expected)


@pytest.mark.parametrize("case", RETRYABLE.cases, ids=names)
def test_what_may_be_sent_again_is_the_table_of_the_seed(case: Case, asserted: Callable) -> None:
    """Every outcome with every category, known or not, is retryable as recorded, and has the recorded JSON."""
    numbers, expected = RETRYABLE.expect(case)
    given = case.input["error"]
    error = None if given is None else ResultError(given["category"], "m")
    result = TrackerResult(case.input["outcome"], Op.CLOSE, "T-1", error)
    assert expected == {"is_retryable": result.is_retryable, "json": result.to_json()}
    asserted(RETRYABLE, case, numbers)


# --- result_roundtrip -------------------------------------------------------------------------------------------------


@attrs.frozen
class Read:
    """What comes of reading one text.

    Attributes:
        fields: Outcome, operation, issue, and category and operation of the error; None when it was refused.
        is_retryable: As in the result.
        raw: The text that was kept.
        again: The JSON that is written for it.
    """

    fields: Any = None
    is_retryable: bool = False
    raw: str | None = None
    again: Any = None


def recorded(case: Case) -> Read | tuple[str, ...]:
    """Put the recorded answer of the seed in our words."""
    seed = case.expected
    if seed.get("is_error"):
        return Read()
    if "fields" in seed:
        return Read(seed["fields"], seed["is_retryable"], seed["raw_json"], parse(seed["remarshalled"]))
    return tuple(seed[key] for key in sorted(seed) if key.startswith("raw_json"))


def read(text: str) -> Read:
    try:
        result = TrackerResult.from_json(text)
    except ValueError:
        return Read()
    error = None if result.error is None else {"category": result.error.category, "op": result.error.op}
    fields = {"error": error, "id": result.id, "op": result.op, "outcome": result.outcome}
    return Read(fields, result.is_retryable, result.raw_json, parse(result.to_json()))


def rewritten(text: str) -> Callable[[Read, Case], Read]:
    """Make the answer that writes ``text``, in which unknown fields are kept."""
    return lambda answer, _: attrs.evolve(answer, again=parse(text))


def unread(error: Any = None, outcome: str = "") -> Callable[[Read, Case], Read]:
    """Make the answer of a text whose keys are not ours: they are unknown fields, and nothing is known."""

    def ours(answer: Read, _: Case) -> Read:
        return attrs.evolve(answer, fields={"error": error, "id": "", "op": "", "outcome": outcome}, is_retryable=False)

    return ours


def of(text: str) -> Callable[[Case], bool]:
    return lambda case: case.input.get("json") == text


KEPT = {
    r'{"outcome":"succeeded","op":"close","id":"T-1","future":{"a":[1,2.50,"\u00e9"]},"z":null}': None,
    ' {"outcome" : "failed" , "op":"close","id":"T-1",'
    '"error":{"category":"timeout","message":"m","op":"close","extra":1}} ': (
        '{"outcome":"failed","op":"close","id":"T-1",'
        '"error":{"category":"timeout","message":"m","op":"close","extra":1}}'
    ),
    '{"Outcome":"succeeded","OP":"close","ID":"x"}': '{"outcome":"","Outcome":"succeeded","OP":"close","ID":"x"}',
    '{"outcome":"failed","Outcome":"succeeded"}': None,
    '{"outcome":"succeeded","RawJSON":"abc","id":"T-1"}': '{"outcome":"succeeded","id":"T-1","RawJSON":"abc"}',
    '{"outcome":"succeeded","-":"abc"}': None,
    '{"outcome":"failed","error":{"Category":"timeout","MESSAGE":"m"}}': (
        '{"outcome":"failed","error":{"category":"","message":"","Category":"timeout","MESSAGE":"m"}}'
    ),
    '{"outcome":"succeeded","n":12345678901234567890123}': None,
    '{"outcome":"succeeded","n":1e999}': None,
}
"""Texts with unknown fields, and how each is written again where it is not as it was read."""

ROUNDTRIP = Section(
    "result_roundtrip",
    "cases",
    recorded,
    (
        Difference(8, of('{"Outcome":"succeeded","OP":"close","ID":"x"}'), unread()),
        Difference(8, of('{"outcome":"failed","Outcome":"succeeded"}'), unread(outcome="failed")),
        Difference(
            8,
            of('{"outcome":"failed","error":{"Category":"timeout","MESSAGE":"m"}}'),
            unread({"category": "", "op": ""}, "failed"),
        ),
        *(Difference(30, of(text), rewritten(again or text)) for text, again in KEPT.items()),
        Difference(22, of(r'{"outcome":"succeeded","id":"\ud800"}'), lambda *_: Read()),
        Difference(50, named("direct_call_keeps_whitespace"), lambda *_: ('{"outcome":"succeeded"}',)),
    ),
)
TEXTS_IN_ARRAY = msgspec.json.Decoder(list[msgspec.Raw])


def ask_roundtrip(case: Case) -> Read | tuple[str | None, ...]:
    given = case.input
    if case.name == "in_array":
        return tuple(TrackerResult.from_json(bytes(raw)).raw_json for raw in TEXTS_IN_ARRAY.decode(given["json"]))
    if case.name == "reuse_same_value":
        text = '{"outcome":"failed","error":{"category":"x","message":"m"},"more":1}'
        first = TrackerResult.from_json(text)
        second = TrackerResult.from_json(given["json_second"])
        assert text == first.raw_json
        assert case.expected["remarshalled"] == second.to_json()
        return (second.raw_json,)
    if case.name == "direct_call_keeps_whitespace":
        return (TrackerResult.from_json(given["json"]).raw_json,)
    return read(given["json"])


@pytest.mark.parametrize("case", ROUNDTRIP.cases, ids=names)
def test_results_are_read_and_written_as_in_the_seed(case: Case, asserted: Callable) -> None:
    """A text is read to the recorded fields and kept, or refused; written again it has what it had."""
    numbers, expected = ROUNDTRIP.expect(case)
    assert expected == ask_roundtrip(case)
    asserted(ROUNDTRIP, case, numbers)


@pytest.mark.parametrize(
    ("section", "counts"),
    [(SCHEMA, {0: 18, 17: 4, 49: 1}), (RETRYABLE, {0: 112}), (ROUNDTRIP, {0: 25, 8: 3, 22: 1, 30: 9, 50: 1})],
    ids=lambda value: getattr(value, "file", None),
)
def test_the_differences_cover_as_many_cases_as_agreed(section: Section, counts: dict[int, int]) -> None:
    """No difference covers more cases, or fewer, than when it was agreed on."""
    assert counts == section.counts()
