"""Lines to calls. Not through the command: one test here is one line, and there it would be one process."""

import json

import pytest
from hypothesis import given, strategies as st

from harbor_async.cli._read import read_line


def calls(line, number=7):
    return [(item.call.id, item.call.name, item.call.arguments) for item in read_line(number, line)]


def problems(line, number=7):
    return [
        None if item.problem is None else (item.problem.path, item.problem.code) for item in read_line(number, line)
    ]


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        (b'{"id":"x","name":"f","arguments":{"a": 1}}', b'{"a": 1}'),
        (b'{"id":"x","name":"f","arguments":"{\\"a\\": 1}"}', '{"a": 1}'),
        (b'{"id":"x","type":"function","function":{"name":"f","arguments":"{\\"a\\": 1}"}}', '{"a": 1}'),
        (b'{"id":"x","function":{"name":"f","arguments":{"a": 1}}}', b'{"a": 1}'),
        (b'{"type":"function_call","id":"fc","call_id":"x","name":"f","arguments":"{}","status":"completed"}', "{}"),
        (b'{"type":"tool_use","id":"x","name":"f","input":{"a": 1},"cache_control":null}', b'{"a": 1}'),
        (b' \t{ "id" : "x" , "name" : "f" , "arguments" : { "a": [ 1 , {} ] } } \r', b'{ "a": [ 1 , {} ] }'),
        (b'{"id":"x","name":"f","arguments":{"a":"} , \\" ] {"},"session":3}', b'{"a":"} , \\" ] {"}'),
        (b'{"id":"x","n\\u0061me":"f","arguments":null}', b"null"),
        (b'{"id":"x","name":"f"}', b""),
    ],
)
def test_each_form_gives_the_call_with_its_own_argument_text(line, arguments):
    """Every written form of a call gives id, name and the arguments exactly as they are written."""
    assert [("x", "f", arguments)] == calls(line)
    assert [None] == problems(line)


def test_broken_arguments_reach_the_runtime_untouched():
    """Duplicate keys, NaN and a trailing comma within arguments are left for the runtime's decoder to refuse."""
    for arguments in (b'{"a":1,"a":2}', b'{"a":NaN}', b'{"a":1,}', b"[01]", b"[1}"):
        assert [("x", "f", arguments)] == calls(b'{"id":"x","name":"f","arguments":%s}' % arguments)


def test_ids():
    """An integer id becomes its digits; a missing, null or empty one becomes the number of the line."""
    assert [("12", "f", b"")] == calls(b'{"id":12,"name":"f"}')
    for line in (b'{"name":"f"}', b'{"id":null,"name":"f"}', b'{"id":"","name":"f"}'):
        assert [("line-7", "f", b"")] == calls(line)


def test_message_of_openai():
    """Each tool call of an assistant message is a call; one that lacks something stops no other."""
    line = (
        b'{"role":"assistant","content":null,"tool_calls":['
        b'{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},'
        b'{"id":"b","type":"function","function":{"arguments":"{}"}},'
        b'7,{"type":"function","function":{"name":"g","arguments":""}}]}'
    )
    assert [("a", "f", "{}"), ("b", "", ""), ("line-7.3", "", ""), ("line-7.4", "g", "")] == calls(line)
    assert [None, ("/name", "missing"), ("/name", "missing"), None] == problems(line)


def test_message_of_openai_before_tool_calls():
    """The older ``function_call`` of a message is a call, too."""
    line = b'{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}'
    assert [("line-7.1", "f", "{}")] == calls(line)


def test_message_of_anthropic():
    """The tool_use blocks of a message are calls; its other blocks are not."""
    line = (
        b'{"role":"assistant","content":[{"type":"text","text":"so, [{"},'
        b'{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"b","name":"g","input":{"x":1}}]}'
    )
    assert [("a", "f", b"{}"), ("b", "g", b'{"x":1}')] == calls(line)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b" \t\r",
        b'{"role":"user","content":"hi"}',
        b'{"role":"assistant","content":null,"tool_calls":[]}',
        b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"3"}]}',
    ],
)
def test_line_without_a_call(line):
    """A blank line and a message that asks for no tool hold no call and no fault."""
    assert [] == read_line(7, line)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"no json", ("", "syntax")),
        (b'{"name":"f"', ("", "syntax")),
        (b'{"name":"f"} x', ("", "syntax")),
        (b'{"name":"f",}', ("", "syntax")),
        (b'{"name":"f","arguments":}', ("", "syntax")),
        (b'{"name":"f","arguments":{"a":1]', ("", "syntax")),
        (b'{"name":"f","arguments":"{\\q}"}', ("", "syntax")),
        (b'{"name":"f","arguments":{"a":"x}}', ("", "syntax")),
        (b'{"name":"f","arguments":{},"x":NaN}', ("", "syntax")),
        (b'{"name":"f","arguments":{},"x":[1,}', ("", "syntax")),
        (b"{'name':'f'}", ("", "syntax")),
        (b'{"name":"\\ud800"}', ("", "syntax")),
        (b'{"name":"f\xff"}', ("", "syntax")),
        (b"\x00\x93\xff\xfe", ("", "syntax")),
        (b"\xff\xfe{\x00}\x00", ("", "syntax")),
        (b"[" * 100_000, ("", "too_deep")),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, ("", "too_deep")),
        (b'"' + b'\\"' * 1_000_000, ("", "syntax")),
        (b"{" + b'"' + b'\\"' * 1_000_000, ("", "syntax")),
        (b"[1, 2]", ("", "type")),
        (b"3", ("", "type")),
        (b"{}", ("/name", "missing")),
        (b'{"arguments":{}}', ("/name", "missing")),
        (b'{"name":"f","arguments":{]}}', ("", "syntax")),
        (b'{"name":"","arguments":{}}', ("/name", "missing")),
        (b'{"name":["f"],"arguments":{}}', ("/name", "type")),
        (b'{"id":{},"name":"f"}', ("/id", "type")),
        (b'{"id":true,"name":"f"}', ("/id", "type")),
        (b'{"type":"function","function":"f"}', ("/function", "type")),
        (b'{"name":"f","name":"g","arguments":{}}', ("/name", "duplicate")),
        (b'{"name":"f","arguments":{},"arguments":{}}', ("/arguments", "duplicate")),
        (b'{"name":"f","argument":{}}', ("/argument", "unknown")),
        (None, ("", "too_large")),
    ],
)
def test_bad_line(line, problem):
    """A line that holds no call gets one problem, which names the line and where in it the fault is."""
    (item,) = read_line(7, line)
    assert problem == (item.problem.path, item.problem.code)
    assert ("line-7", "") == (item.call.id, item.call.name)
    assert item.problem.message.startswith("line 7")
    assert "\n" not in item.problem.message


def test_bad_call_keeps_its_id():
    """A call without a name is answered under its own id."""
    (item,) = read_line(7, b'{"id":"x","arguments":{}}')
    assert "x" == item.call.id


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
SPACE = st.sampled_from([None, 1, "\t"])


@given(arguments=st.dictionaries(st.text(), JSON, max_size=4), extra=JSON, is_ascii=st.booleans(), space=SPACE)
def test_any_arguments_are_cut_out_whole(arguments, extra, is_ascii, space):
    """Whatever stands in a call, its arguments are cut out as the text that means the same."""
    line = {"extra": extra, "name": "f", "arguments": arguments, "more": [extra]}
    (item,) = read_line(1, json.dumps(line, ensure_ascii=is_ascii, indent=space).encode())
    assert item.problem is None
    assert arguments == json.loads(item.call.arguments)


@given(st.binary(max_size=200))
def test_rubbish_never_raises(line):
    """Any bytes are read without an exception, and what is no JSON gives a problem."""
    for item in read_line(1, line):
        assert item.problem is not None
