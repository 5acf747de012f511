"""A result as a line."""

import json

import harbor_async as ha
from harbor_async.cli._run import encode_record


def test_success():
    """A success carries id, name, line, the envelope and how it went, in this order."""
    result = ha.ToolResult("1", "f", ha.Outcome.SUCCEEDED, {"a": 1}, attempts=2, elapsed=0.12345678)
    line = encode_record(result, 7)
    expected = (
        b'{"id":"1","name":"f","line":7,"outcome":"succeeded","value":{"a":1},'
        b'"attempts":2,"elapsed":0.123457,"stop_reason":null}\n'
    )
    assert expected == line


def test_half_a_surrogate_pair():
    """A tool's error text that no UTF-8 can say becomes JSON all the same."""
    failure = ha.Failure(ha.ErrorCategory.UNKNOWN, "no \udcff", cause=ValueError())
    result = ha.ToolResult("1", "f", ha.Outcome.FAILED, error=failure, attempts=1, stop_reason="permanent")
    assert "no \udcff" == json.loads(encode_record(result))["error"]["message"]


def test_late_success_says_so():
    """A value that came too late and stands all the same is marked."""
    result = ha.ToolResult("1", "f", ha.Outcome.SUCCEEDED, attempts=1, late=True)
    assert json.loads(encode_record(result))["late"] is True
