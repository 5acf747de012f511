"""Lines of JSON to calls: our own form, and the tool calls of OpenAI's and Anthropic's messages.

A line is taken apart without decoding the arguments: the runtime's decoder sees their very text, and refuses what a
lenient reader would have mended (a key that comes twice, NaN). Everything else of the line is decoded strictly, so that
no line passes that is not JSON as a whole: the parts lie between commas, each is a key and a colon and a value, and
each value is decoded by somebody.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import attrs
import msgspec

from .. import _json
from .._line import MAX_LINE_BYTES
from .._results import ToolCall
from ..errors import Problem

_STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?'
"""Without its end it reaches to the end of the text: were it no match, each quote in it would be tried in vain."""
_TOKEN: Final = re.compile(_STRING + rb"|[\[\]{},]", re.DOTALL)
_MEMBER: Final = re.compile(rb"(" + _STRING + rb")[ \t\r\n]*:[ \t\r\n]*", re.DOTALL)
_MAX_DEPTH: Final = 200
_OPEN, _CLOSE, _COMMA = b"[{", b"]}", b","[0]
_KEYS: Final = frozenset({"id", "name", "arguments"})
_FORMS: Final = "a call is {id, name, arguments}, or a tool call or message of OpenAI or Anthropic"


@attrs.frozen(eq=False)
class ReadCall:
    """A call and where it came from.

    Attributes:
        line: The number of its line, from 1.
        call: The call; of one that cannot be read, what is known of it.
        problem: Why it cannot be read.
    """

    line: int
    call: ToolCall
    problem: Problem | None = None


class _BadCallError(Exception):
    def __init__(self, problem: Problem, call_id: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.call_id = call_id


class _NotJSONError(Exception):
    """The line as a whole is no JSON."""


def read_line(number: int, line: bytes | None) -> list[ReadCall]:
    """Read the calls of one line.

    Args:
        number: The line's number, for ids and messages.
        line: Its text; None if it was too long to be kept.

    Returns:
        Its calls in order: several for a message with several, none for a blank line or a message without one.
        A call that lacks something has a problem, and stops no other of its line.
    """
    own_id = f"line-{number}"
    if line is None:
        text = f"line {number} is longer than {MAX_LINE_BYTES} bytes"
        return [ReadCall(number, ToolCall(own_id, ""), Problem("", "too_large", text))]
    line = line.strip(_json.WHITESPACE)
    if not line:
        return []
    try:
        return list(_read(number, line, own_id))
    except _NotJSONError:
        problem = _explain(line)
        text = f"line {number}: {problem.message}"
        return [ReadCall(number, ToolCall(own_id, ""), Problem("", problem.code, text))]


def _read(number: int, line: bytes, own_id: str) -> Iterator[ReadCall]:
    try:
        parts = [(_members(line), own_id)] if line.startswith(b"{") else []
        if not parts:
            text = f"expected an object, got {_json.kind_of(_decode(line))}; {_FORMS}"
            raise _BadCallError(Problem("", "type", text))
        outer = parts[0][0]
        if "tool_calls" in outer or ("role" in outer and not outer.keys() & {"arguments", "input"}):
            parts = [(part, f"{own_id}.{count}") for count, part in enumerate(_parts_of_message(outer), 1)]
    except _BadCallError as exc:
        yield _bad(number, own_id, exc)
        return
    for members, default_id in parts:
        try:
            yield ReadCall(number, _read_call(members, default_id))
        except _BadCallError as exc:
            yield _bad(number, default_id, exc)


def _bad(number: int, default_id: str, error: _BadCallError) -> ReadCall:
    problem = attrs.evolve(error.problem, message=f"line {number}: {error.problem.message}")
    return ReadCall(number, ToolCall(error.call_id or default_id, ""), problem)


def _parts_of_message(message: dict[str, bytes]) -> list[dict[str, bytes]]:
    """Return the calls of a message, each as its raw members."""
    _decode_all(message, "tool_calls", "content", "function_call")
    parts: list[dict[str, bytes]] = []
    for key in ("content", "tool_calls"):
        raw = message.get(key, b"null")
        if not raw.startswith(b"["):
            _decode(raw)
            continue
        for item in _split(raw):
            members = _members(item) if item.startswith(b"{") else {}
            if not members:
                _decode(item)
            if key == "tool_calls" or members.get("type") == b'"tool_use"':
                parts.append(members)
            else:
                _decode_all(members)  # a text, an image, the result of an earlier call
    if message.get("function_call", b"null") != b"null":
        parts.append({"function": message["function_call"]})  # what OpenAI had before tool_calls
    return parts


def _read_call(members: dict[str, bytes], default_id: str) -> ToolCall:
    kind = members.get("type")
    arguments_key = "arguments"
    if "function" in members:
        _decode_all(members, "function")
        function = members["function"]
        if not function.startswith(b"{"):
            text = f"function: expected an object, got {_json.kind_of(_decode(function))}"
            raise _BadCallError(Problem("/function", "type", text))
        call_id = _id(members, "id", default_id)
        members = _members(function)
    elif kind == b'"function_call"':
        call_id = _id(members, "call_id" if "call_id" in members else "id", default_id)
    else:
        arguments_key = "input" if kind == b'"tool_use"' else "arguments"
        call_id = _id(members, "id", default_id)
    others = _decode_all(members, arguments_key)
    name = others.get("name")
    if not isinstance(name, str) or not name:
        text = f"expected the tool's name as text in 'name'; {_FORMS}"
        raise _BadCallError(Problem("/name", "type" if name else "missing", text), call_id)
    if arguments_key not in members and kind is None and (unknown := sorted(members.keys() - _KEYS)):
        # It may be a misspelled "arguments", and the call would run without them.
        text = f"no 'arguments', but an unknown key {_json.show(unknown[0])}; write {{}} for no arguments"
        raise _BadCallError(Problem(_json.point("", unknown[0]), "unknown", text), call_id)
    arguments = members.get(arguments_key, b"")
    return ToolCall(call_id, name, _decode(arguments) if arguments.startswith(b'"') else arguments)


def _id(members: dict[str, bytes], key: str, default: str) -> str:
    raw = members.get(key, b"null")
    value = _decode(raw)
    if isinstance(value, int) and not isinstance(value, bool):
        return raw.decode()
    if isinstance(value, str) or value is None:
        return value or default
    text = f"{key}: expected text or an integer, got {_json.kind_of(value)}"
    raise _BadCallError(Problem(f"/{key}", "type", text))


def _members(data: bytes) -> dict[str, bytes]:
    """Return the members of an object with their values as they are written."""
    members: dict[str, bytes] = {}
    for part in _split(data):
        match = _MEMBER.match(part)
        if match is None or match.end() == len(part):
            raise _NotJSONError
        key = _decode(match[1])
        if key in members:
            text = f"the key {_json.show(key)} comes more than once"
            raise _BadCallError(Problem(_json.point("", key), "duplicate", text))
        members[key] = part[match.end() :]
    return members


def _split(data: bytes) -> list[bytes]:
    """Split the inside of an object or array at its own commas; not recursive, and linear."""
    depth, start, end = 0, 1, -1
    parts: list[bytes] = []
    for token in _TOKEN.finditer(data):
        at = token.start()
        byte = data[at]
        if byte in _OPEN:
            depth += 1
        elif byte in _CLOSE:
            depth -= 1
            if depth == 0:
                end = at
                break
        elif byte == _COMMA and depth == 1:
            parts.append(data[start:at].strip(_json.WHITESPACE))
            start = at + 1
    # The kinds of brackets are checked here for this pair, and for those inside by whoever decodes the parts.
    if end != len(data) - 1 or _OPEN.find(data[0]) != _CLOSE.find(data[end]):
        raise _NotJSONError
    last = data[start:end].strip(_json.WHITESPACE)
    return [*parts, last] if parts or last else []


def _decode_all(members: dict[str, bytes], *kept: str) -> dict[str, Any]:
    return {key: _decode(raw) for key, raw in members.items() if key not in kept}


def _decode(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as exc:
        raise _NotJSONError from exc


def _explain(line: bytes) -> Problem:
    """Return what is wrong with a line that is no JSON."""
    if _json.is_deeper(line, _MAX_DEPTH):
        return _json.too_deep(_MAX_DEPTH)
    try:
        _json.parse(line)
    except _json.DocumentError as exc:
        return exc.problem
    return Problem("", "syntax", "not valid JSON: a text or number that no program can hold")
