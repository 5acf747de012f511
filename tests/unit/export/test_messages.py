"""Calls out of messages and messages out of results, as plain dicts: for each call of a message there is one answer."""

import json

import msgspec
import pytest

import harbor_async as ha
from harbor_async.export import anthropic, gemini, mcp, openai


@ha.tool(name="weather.lookup", side_effect=ha.SideEffect.READ)
async def lookup(city: str, *, days: int = 1, unit: str | None = "C") -> list[float]:
    """Look up the weather."""
    return [float(days)]


@ha.tool(scopes={"admin"})
async def refused() -> None:
    """Need a scope."""


@ha.tool(policy=ha.ToolPolicy(attempts=1))
async def broken() -> str:
    """Fail."""
    raise ha.ToolError("no such city", category=ha.ErrorCategory.NOT_FOUND)


CATALOG = ha.Catalog([lookup, refused, broken])
WIRE = "weather--lookup"


def chat_call(id, name, arguments):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def chat(*calls):
    return {"role": "assistant", "content": None, "tool_calls": [*calls]}


GOOD = '{"city": "Oslo", "days": 2}'
FAULTY = [
    chat_call("a", WIRE, GOOD),
    chat_call("b", WIRE, '{"city": '),
    chat_call("c", "no.such", "{}"),
    chat_call("d", "refused", ""),
    chat_call("e", "broken", "{}"),
    chat_call("f", None, None),
    {"id": "g", "type": "custom", "custom": {"name": "patch", "input": "*** text"}},
    {"id": "h"},
    chat_call("i", WIRE, 7),
    chat_call("j", WIRE, {"city": "Oslo"}),
    chat_call("a", WIRE, GOOD),
]
"""Calls of a model that has a bad day; two share an id."""


async def answered(calls):
    async with ha.Runtime(CATALOG, identity=ha.Identity("tenant", "user", "session")) as runtime:
        return await runtime.invoke_many(calls)


async def test_openai_one_message_a_call():
    """Chat: each id of a message has one tool message, in order, whatever the model has written."""
    calls = openai.calls(chat(*FAULTY), CATALOG)
    messages = openai.answers(await answered(calls))
    assert [call["id"] for call in FAULTY] == [message["tool_call_id"] for message in messages]
    assert {"tool"} == {message["role"] for message in messages}
    contents = [json.loads(message["content"]) for message in messages]
    assert [2.0] == contents[0] == contents[10]
    words = [content["error"]["category"] if isinstance(content, dict) else None for content in contents]
    assert [
        None, "validation", "not_found", "auth_failed", "not_found", "not_found", "not_found", "not_found",
        "validation", None, None,
    ] == words  # fmt: skip


async def test_openai_responses():
    """Responses: each call id has one output item, and the model's other items are passed over."""
    output = [
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "id": "fc_1", "call_id": "a", "name": WIRE, "arguments": GOOD},
        {"type": "message", "content": []},
        {"type": "custom_tool_call", "call_id": "b", "name": "patch", "input": "text"},
    ]
    for message in (output, {"output": output}):
        calls = openai.calls(message, CATALOG)
        assert [ha.ToolCall("a", "weather.lookup", GOOD), ha.ToolCall("b", "patch", "text")] == calls
    items = openai.answers(await answered(calls), api="responses")
    assert ["a", "b"] == [item["call_id"] for item in items]
    assert {"function_call_output"} == {item["type"] for item in items}


@pytest.mark.parametrize(
    "message", [{}, None, [], "text", {"content": "Hello"}, chat(), {"choices": []}, {"output": []}]
)
def test_no_calls(message):
    """A message without calls gives none, in every dialect, and neither does what is no message."""
    for dialect in (openai, anthropic, gemini):
        assert [] == dialect.calls(message)
        assert [] == dialect.answers([])
    assert [] == mcp.calls(message)


@pytest.mark.parametrize("wrap", [lambda m: m, lambda m: {"choices": [{"index": 0, "message": m}]}])
def test_openai_message_or_completion(wrap):
    """Chat: a message is read by itself and within its completion."""
    assert [ha.ToolCall("1", "weather.lookup", GOOD)] == openai.calls(wrap(chat(chat_call("1", WIRE, GOOD))))


def decoded(arguments, **options):
    (call,) = openai.calls(chat(chat_call("1", WIRE, arguments)), CATALOG, **options)
    return call.arguments


def test_openai_null_means_left_out():
    """Strict: a null is taken away where it can only mean that the key is left out, and stays where it is a value."""
    assert b'{"city":"Oslo","unit":null}' == decoded('{"city": "Oslo", "days": null, "unit": null}')


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        '{"city": null}',
        '{"city": "Oslo", "unit": null}',
        '{"city": "null"}',
        '{"city": "Oslo", "days": null, "days": null}',
        '{"city": "Oslo", "days": null',
        '{"city": "Oslo", "other": null}',
        '{"city": "\\ud800", "days": null}',
        '{"city": 1e999, "days": null}',
        "null",
        "[null]",
    ],
)
def test_openai_text_that_stays(text):
    """Strict: where no null is to be taken away the text stays as the model wrote it, so that its faults are told."""
    assert text == decoded(text)


def test_openai_nulls_stay_unless_strict():
    """Not strict, null is no way to leave a key out: the decoder says so."""
    text = '{"city": "Oslo", "days": null}'
    assert text == decoded(text, strict=False)
    (call,) = openai.calls(chat(chat_call("1", WIRE, text)))
    assert text == call.arguments


def test_openai_auto_knows_which_are_strict():
    """``auto`` takes nulls away only for a tool that can be strict."""

    async def free(table: dict[str, int], days: int = 1) -> None:
        """Take free keys."""

    catalog = ha.Catalog([ha.describe(free)])
    text = '{"table": {}, "days": null}'
    message = chat(chat_call("1", "free", text))
    assert text == openai.calls(message, catalog)[0].arguments
    assert b'{"table":{}}' == openai.calls(message, catalog, strict=True)[0].arguments


def test_openai_stream_of_chat():
    """Chat: the deltas of interleaved calls are joined by their index; other choices and usage are passed over."""

    def chunk(*parts, index=0):
        return {"object": "chat.completion.chunk", "choices": [{"index": index, "delta": {"tool_calls": [*parts]}}]}

    def part(index, arguments, **more):
        return {
            "index": index,
            "function": {"arguments": arguments, **({"name": more.pop("name")} if more else {})},
        } | ({"id": f"call_{index}"} if arguments == "" else {})

    chunks = [
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]},
        chunk(part(0, "", name=WIRE)),
        chunk(part(0, '{"city": "O')),
        chunk(part(1, "", name="refused"), part(0, 'slo", ')),
        chunk(part(0, "wrong"), index=1),
        chunk(part(1, "{}"), part(0, '"days": 2}')),
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
        {"choices": [], "usage": {}},
    ]
    assert [
        ha.ToolCall("call_0", "weather.lookup", GOOD),
        ha.ToolCall("call_1", "refused", "{}"),
    ] == openai.calls(chunks, CATALOG)


def response_events(arguments=GOOD, done=True):
    item = {"type": "function_call", "id": "fc", "call_id": "a", "name": WIRE}
    middle = len(arguments) // 2
    yield {"type": "response.created", "response": {"output": []}}
    yield {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message"}}
    yield {"type": "response.output_item.added", "output_index": 1, "item": {**item, "arguments": ""}}
    for delta in (arguments[:middle], arguments[middle:]):
        yield {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": delta}
    if done:
        yield {"type": "response.output_item.done", "output_index": 0, "item": {"type": "message"}}
        yield {"type": "response.output_item.done", "output_index": 1, "item": {**item, "arguments": arguments}}


@pytest.mark.parametrize("done", [True, False])
def test_openai_stream_of_responses(done):
    """Responses: deltas are joined, also of a stream that broke off; a finished item counts as it is."""
    assert [ha.ToolCall("a", "weather.lookup", GOOD)] == openai.calls([*response_events(done=done)], CATALOG)


def test_openai_stream_that_broke_off():
    """Responses: arguments that were cut stay cut, for the decoder to refuse."""
    events = [*response_events()][:4]
    (call,) = openai.calls(events, CATALOG)
    assert GOOD[: len(GOOD) // 2] == call.arguments


ANTHROPIC = [
    {"type": "text", "text": "I look."},
    {"type": "tool_use", "id": "a", "name": WIRE, "input": {"city": "Oslo", "days": 2}},
    {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
    {"type": "tool_use", "id": "b", "name": "refused", "input": {}},
    {"type": "tool_use", "id": "c", "name": "no_such", "input": "text"},
]


async def test_anthropic():
    """Anthropic: all results go back in one user message, a block for each id, failures marked."""
    for message in (ANTHROPIC, {"role": "assistant", "content": ANTHROPIC}):
        calls = anthropic.calls(message, CATALOG)
        assert ["weather.lookup", "refused", "no_such"] == [call.name for call in calls]
    (message,) = anthropic.answers(await answered(calls))
    assert "user" == message["role"]
    assert ["a", "b", "c"] == [block["tool_use_id"] for block in message["content"]]
    assert [None, True, True] == [block.get("is_error") for block in message["content"]]
    assert [2.0] == json.loads(message["content"][0]["content"])


@pytest.mark.parametrize("parts", [['{"city": "O', 'slo", "days": 2}'], ["", GOOD], []])
def test_anthropic_stream(parts):
    """Anthropic: partial JSON is joined; a block without any has no arguments."""
    events = [
        {"type": "message_start", "message": {"content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "I look."}},
        {"type": "content_block_start", "index": 1,
         "content_block": {"type": "tool_use", "id": "a", "name": WIRE, "input": {}}},
        *({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": part}}
          for part in parts),
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    ]  # fmt: skip
    assert [ha.ToolCall("a", "weather.lookup", "".join(parts) if parts else {})] == anthropic.calls(events, CATALOG)


def gemini_response(*calls):
    parts = [{"text": "I look.", "thought": True}, *({"functionCall": call} for call in calls)]
    return {"candidates": [{"content": {"role": "model", "parts": parts}}]}


async def test_gemini():
    """Gemini: all results go back in one content, under the name and id of the call; ints are ints again."""
    calls = gemini.calls(
        gemini_response(
            {"name": "weather.lookup", "args": {"city": "Oslo", "days": 2.0}},
            {"name": "refused", "id": "b"},
            {"name": "weather.lookup", "args": {"city": 5.0}},
        ),
        CATALOG,
    )
    assert [
        ha.ToolCall("", "weather.lookup", {"city": "Oslo", "days": 2}),
        ha.ToolCall("b", "refused", ""),
        ha.ToolCall("", "weather.lookup", {"city": 5.0}),
    ] == calls
    assert isinstance(calls[0].arguments["days"], int)
    (content,) = gemini.answers(await answered(calls))
    responses = [part["functionResponse"] for part in content["parts"]]
    assert "user" == content["role"]
    assert ["weather.lookup", "refused", "weather.lookup"] == [response["name"] for response in responses]
    assert [None, "b", None] == [response.get("id") for response in responses]
    assert {"output": [2.0]} == responses[0]["response"]
    assert "rejected" == responses[1]["response"]["error"]["outcome"]
    assert "/city" == responses[2]["response"]["error"]["error"]["problems"][0]["path"]


def test_gemini_stream():
    """Gemini: the calls of a stream's responses come in their order."""
    first, second = {"name": "refused"}, {"name": "weather.lookup", "args": {"city": "Oslo"}}
    calls = gemini.calls([gemini_response(first), gemini_response(), gemini_response(second)], CATALOG)
    assert ["refused", "weather.lookup"] == [call.name for call in calls]


def pieces(*calls):
    return [gemini_response(call) for call in calls]


PIECES = [
    {"name": "weather.lookup", "id": "a", "willContinue": True},
    {"partialArgs": [{"jsonPath": "$.city", "stringValue": "O", "willContinue": True}], "willContinue": True},
    {
        "partialArgs": [
            {"jsonPath": "$.city", "stringValue": "slo"},
            {"jsonPath": "$.days", "numberValue": 2.0},
            {"jsonPath": "$.unit", "nullValue": "NULL_VALUE"},
        ],
        "willContinue": True,
    },
]


def test_gemini_partial_arguments():
    """Gemini: the pieces of arguments are joined until their call says that it does not go on."""
    calls = gemini.calls(pieces(*PIECES, {}, {"name": "refused"}), CATALOG)
    arguments = {"city": "Oslo", "days": 2, "unit": None}
    assert [ha.ToolCall("a", "weather.lookup", arguments), ha.ToolCall("", "refused", "")] == calls


async def test_gemini_partial_arguments_that_broke_off():
    """Gemini: a call that says that it goes on, and does not, is refused: what came is not what was meant."""
    calls = gemini.calls(pieces(*PIECES), CATALOG)
    (result,) = await answered(calls)
    assert ("a", ha.ErrorCategory.VALIDATION) == (result.call_id, result.error.category)
    assert "not valid JSON" in result.error.message


@pytest.mark.parametrize(
    ("paths", "arguments"),
    [
        (["$.a.b", "$.a.c"], {"a": {"b": "x", "c": "x"}}),
        (["$.a[0]", "$.a[1]", "$.a[1]"], {"a": ["x", "xx"]}),
        (["$.a[0].b", "$['c d'][0]", '$["e.f"]'], {"a": [{"b": "x"}], "c d": ["x"], "e.f": "x"}),
        (["$.a[7]"], {"a": [], "$.a[7]": "x"}),
        (["$.a", "$.a.b"], {"a": "x", "$.a.b": "x"}),
        (["a", "$", "$..a", "$.*[?@]"], {"a": "x", "$": "x", "$..a": "x", "$.*[?@]": "x"}),
    ],
)
def test_gemini_paths(paths, arguments):
    """Gemini: a path leads through objects and arrays; one that leads nowhere stays, as a key that nobody knows."""
    call = {"name": "t", "partialArgs": [{"jsonPath": path, "stringValue": "x"} for path in paths]}
    assert [ha.ToolCall("", "t", arguments)] == gemini.calls(gemini_response(call))


@pytest.mark.parametrize(
    "message",
    [
        gemini_response({"name": "refused"}),
        gemini_response({"name": "refused"})["candidates"][0]["content"],
        gemini_response({"name": "refused"})["candidates"][0]["content"]["parts"],
    ],
)
def test_gemini_forms(message):
    """Gemini: a response, its content and that one's parts are read alike."""
    assert [ha.ToolCall("", "refused", "")] == gemini.calls(message)


async def test_mcp():
    """MCP: a request is a call; its result has text, the value as JSON, and the envelope of a failure as an error."""
    requests = [
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        for name, arguments in (("weather.lookup", {"city": "Oslo"}), ("broken", None), ("no such", {}))
    ]
    calls = [call for request in requests for call in mcp.calls(request, CATALOG)]
    assert ha.ToolCall("1", "weather.lookup", {"city": "Oslo"}) == calls[0]
    results = await answered(calls)
    first, second, third = mcp.answers(results, CATALOG)
    assert {
        "content": [{"type": "text", "text": "[1.0]"}],
        "structuredContent": [1.0],
        "isError": False,
    } == first
    assert second["isError"] is third["isError"] is True
    assert {"category": "not_found", "message": "no such city"} == json.loads(second["content"][0]["text"])["error"]
    assert {"result": [1.0]} == mcp.answers(results, CATALOG, wrap=True)[0]["structuredContent"]
    assert "structuredContent" not in mcp.answers(results)[0]


def test_mcp_wrapped_schema():
    """MCP before 2026-07-28: a result that is no object is described as one, its references leading below."""
    out = b'{"type":"array","items":{"$ref":"#/$defs/A"},"$defs":{"A":{"type":"integer"}}}'
    tool = ha.Tool(name="t", description="d", args_schema=b'{"type":"object"}', out_schema=out)
    schema = mcp.tool(tool, wrap=True)["outputSchema"]
    assert {"$ref": "#/properties/result/$defs/A"} == schema["properties"]["result"]["items"]
    assert msgspec.json.decode(out) == mcp.tool(tool)["outputSchema"]


@pytest.mark.parametrize(
    ("effect", "idempotent", "hints"),
    [
        (ha.SideEffect.PURE, False, {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True,
                                     "openWorldHint": False}),
        (ha.SideEffect.READ, False, {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True}),
        (ha.SideEffect.WRITE, False, {"readOnlyHint": False, "destructiveHint": True}),
        (ha.SideEffect.WRITE, True, {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True}),
        (ha.SideEffect.EXTERNAL, False, {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True}),
        (ha.SideEffect.STATEFUL, False, {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": False}),
        (None, False, {}),
    ],
)  # fmt: skip
def test_mcp_annotations(effect, idempotent, hints):
    """MCP: the declared side effect gives the hints; nothing declared, nothing said."""

    async def nothing() -> None:
        """Do nothing."""

    options = {} if effect is None else {"side_effect": effect}
    assert hints == mcp.annotations(ha.describe(nothing, idempotent=idempotent, **options).tool)


def result_of(id):
    return ha.ToolResult(id, "weather.lookup", ha.Outcome.SUCCEEDED, value="fine")


def test_calls_without_a_result_are_answered():
    """A message of which some calls have no result, their turn having been cut, is answered for each call, in order."""
    calls = [ha.ToolCall(id, "weather.lookup") for id in ("a", "b", "a", "c")]
    messages = openai.answers([result_of("c"), result_of("a")], calls)
    assert ["a", "b", "a", "c"] == [message["tool_call_id"] for message in messages]
    assert ["fine", "fine"] == [messages[0]["content"], messages[3]["content"]]
    error = json.loads(messages[1]["content"])["error"]
    assert ("canceled", True) == (error["category"], error["ambiguous"])
    (message,) = anthropic.answers([result_of("c")], calls)
    assert ["a", "b", "a", "c"] == [block["tool_use_id"] for block in message["content"]]
    (content,) = gemini.answers([], calls)
    assert 4 == len(content["parts"])


def test_gemini_own_words():
    """Gemini: what a tool says of its failure in its own words, and not as JSON, is text."""
    failure = ha.Failure(ha.ErrorCategory.UNKNOWN, "no")
    result = ha.ToolResult("", "t", ha.Outcome.FAILED, error=failure, _encoded=b"in its own words")
    (content,) = gemini.answers([result])
    assert {"error": "in its own words"} == content["parts"][0]["functionResponse"]["response"]
