"""Envelopes, read and written."""

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from harbor_async import Outcome
from harbor_async.tracker import ResultError, TrackerResult

NOT_EMPTY = st.text(min_size=1, max_size=8)
ERRORS = st.builds(ResultError, st.text(max_size=8), st.text(max_size=8), st.text(max_size=8))
RESULTS = st.builds(TrackerResult, st.text(max_size=8), st.text(max_size=8), st.text(max_size=8), st.none() | ERRORS)


@settings(max_examples=100)
@given(RESULTS)
def test_what_was_written_is_read_again(result: TrackerResult) -> None:
    """Any envelope, with known words or others, survives its way through JSON, and is written alike again."""
    text = result.to_json()
    again = TrackerResult.from_json(text)
    assert (result, text, text) == (again, again.raw_json, again.to_json())


def test_unknown_fields_are_written_as_they_were() -> None:
    """A newer sender's fields keep their place after ours, their spelling and their digits, inside the error, too."""
    text = (
        '{"seq":12345678901234567890123,"outcome":"failed","op":"close","id":"T-1","ratio":2.50,'
        r'"error":{"hint":{"a":[1e999,null]},"category":"new_word","message":"m","op":"close"},"note":"\u00e9"}'
    )
    expected = (
        '{"outcome":"failed","op":"close","id":"T-1",'
        '"error":{"category":"new_word","message":"m","op":"close","hint":{"a":[1e999,null]}},'
        r'"seq":12345678901234567890123,"ratio":2.50,"note":"\u00e9"}'
    )
    assert expected == TrackerResult.from_json(text).to_json()
    assert expected == TrackerResult.from_json(text.encode()).to_json()


def test_the_text_that_was_read_is_kept() -> None:
    """``raw_json`` is the text itself, and no part of what makes two results equal."""
    text = '{"id":"T-1", "outcome":"succeeded"}'
    result = TrackerResult.from_json(f"\n{text} ")
    assert text == result.raw_json
    assert TrackerResult(Outcome.SUCCEEDED, id="T-1") == result
    assert TrackerResult("succeeded").raw_json is None


@pytest.mark.parametrize(
    "text",
    [
        b'{"outcome":"\xff"}',
        '{"outcome":"succeeded","op":["close"]}',
        '{"outcome":"failed","error":{"message":1}}',
        '{"outcome":"failed","x":' + "[" * 100_000 + "]" * 100_000 + "}",
        "",
    ],
    ids=["bytes", "op", "message", "depth", "empty"],
)
def test_what_is_no_envelope_is_a_value_error(text: str | bytes) -> None:
    """Broken bytes, wrong types, absurd depth and nothing at all are refused, with the error that reading has."""
    with pytest.raises(ValueError, match=r"."):
        TrackerResult.from_json(text)


def test_an_ambiguous_error_says_so_to_programs_and_not_in_its_fields() -> None:
    """The JSON of an error has the three fields of the seed."""
    error = ResultError("timeout", "m", "close", ambiguous=True)
    wire = msgspec.json.decode(TrackerResult(Outcome.FAILED, "close", "T-1", error).to_json())
    assert {"category": "timeout", "message": "m", "op": "close"} == wire["error"]
