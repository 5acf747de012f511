"""What is made passes the types of each provider's own SDK, and what its clients give back is read."""

import json

import httpx2
import pytest

import harbor_async as ha
from harbor_async.export import anthropic, gemini, mcp, openai
from tests.support.sdk import need
from tests.unit.export.test_messages import GOOD, WIRE, response_events
from tests.unit.export.test_rules import without
from tests.unit.export.varied import CATALOG

openai_sdk = need("openai")
anthropic_sdk = need("anthropic")
genai_sdk = need("google.genai")
pydantic = need("pydantic")
mcp_types = need("mcp.types")

CALL = ha.ToolCall("call_1", "weather.lookup", GOOD)
RESULTS = [
    ha.ToolResult("call_1", "weather.lookup", ha.Outcome.SUCCEEDED, value={"temps": [1.5]}),
    ha.ToolResult("call_2", "5.days", ha.Outcome.FAILED, error=ha.Failure(ha.ErrorCategory.NOT_FOUND, "no")),
]


def fits(annotation, value):
    """Check ``value`` against a type of an SDK; a TypedDict takes no keys that it does not know."""
    config = pydantic.ConfigDict(extra="forbid")
    try:
        pydantic.TypeAdapter(annotation, config=config).validate_python(value)
    except pydantic.errors.PydanticUserError:  # of a model, which has a config of its own
        pydantic.TypeAdapter(annotation).validate_python(value)


class Provider:
    """A provider in this process: it keeps the request, and answers with what it is given."""

    def __init__(self, body):
        self.body = body
        self.asked = None
        self.transport = httpx2.MockTransport(self._answer)

    def _answer(self, request):
        self.asked = json.loads(request.content)
        if isinstance(self.body, dict):
            return httpx2.Response(200, json=self.body)
        events = "".join(
            f"event: {event.get('type', '')}\ndata: {json.dumps(event)}\n\n" if "type" in event else
            f"data: {json.dumps(event)}\n\n" for event in self.body
        )  # fmt: skip
        return httpx2.Response(200, text=events, headers={"content-type": "text/event-stream"})

    def openai(self):
        return openai_sdk.OpenAI(api_key="none", http_client=httpx2.Client(transport=self.transport), max_retries=0)

    def anthropic(self):
        http_client = httpx2.Client(transport=self.transport)
        return anthropic_sdk.Anthropic(api_key="none", http_client=http_client, max_retries=0)

    def gemini(self):
        options = genai_sdk.types.HttpOptions(client_args={"transport": self.transport})
        self.client = genai_sdk.Client(api_key="none", http_options=options)  # kept: it closes when nobody holds it
        return self.client


def test_openai_types():
    """OpenAI's SDK knows every key of the tools and of the answers, for both of its APIs."""
    from openai.types import chat, responses

    fits(list[chat.ChatCompletionFunctionToolParam], openai.tools(CATALOG))
    fits(list[responses.FunctionToolParam], openai.tools(CATALOG, api="responses"))
    for tool in openai.tools(CATALOG, api="responses"):
        responses.FunctionTool.model_validate(tool)
    fits(list[chat.ChatCompletionToolMessageParam], openai.answers(RESULTS))
    fits(list[responses.response_input_item_param.FunctionCallOutput], openai.answers(RESULTS, api="responses"))


def test_openai_chat():
    """A completion's objects are read, and the tools arrive as they were made."""
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": WIRE, "arguments": GOOD}}],
    }
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
    head = {"id": "1", "object": "chat.completion", "created": 0, "model": "m"}
    provider = Provider(head | {"choices": [choice]})
    tools = openai.tools(CATALOG)
    completion = provider.openai().chat.completions.create(model="m", messages=[], tools=tools)
    assert tools == provider.asked["tools"]
    assert [CALL] == openai.calls(completion) == openai.calls(completion.choices[0].message)
    assert [CALL] == openai.calls(completion.model_dump())


def test_openai_chat_stream():
    """A stream's chunks are joined."""
    deltas = [
        {"role": "assistant", "tool_calls": [{"index": 0, "id": "call_1", "type": "function",
                                              "function": {"name": WIRE, "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": GOOD[:9]}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": GOOD[9:]}}]},
        {},
    ]  # fmt: skip
    head = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m"}
    provider = Provider([head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas])
    stream = provider.openai().chat.completions.create(model="m", messages=[], stream=True)
    assert [CALL] == openai.calls([*stream])


def response(output):
    return {"id": "r", "object": "response", "created_at": 0, "model": "m", "output": output, "tools": [],
            "parallel_tool_calls": True, "tool_choice": "auto"}  # fmt: skip


def test_openai_responses():
    """A response's items are read, and the tools arrive as they were made."""
    item = {"type": "function_call", "id": "fc", "call_id": "call_1", "name": WIRE, "arguments": GOOD}
    provider = Provider(response([{"type": "reasoning", "id": "rs", "summary": []}, item]))
    tools = openai.tools(CATALOG, api="responses")
    answer = provider.openai().responses.create(model="m", input="?", tools=tools)
    assert tools == provider.asked["tools"]
    assert [CALL] == openai.calls(answer) == openai.calls(answer.output) == openai.calls(answer.model_dump())


def test_openai_responses_stream():
    """The events of a streamed response are joined."""
    events = [event | {"sequence_number": number} for number, event in enumerate(response_events())]
    events[0]["response"] = response([])
    stream = Provider(events).openai().responses.create(model="m", input="?", stream=True)
    assert [ha.ToolCall("a", "weather.lookup", GOOD)] == openai.calls([*stream])


def test_anthropic_types():
    """Anthropic's SDK knows every key of the tools and of the answers."""
    from anthropic import types

    for strict in (False, "auto"):
        fits(list[types.ToolParam], anthropic.tools(CATALOG, strict=strict))
    fits(list[types.MessageParam], anthropic.answers(RESULTS))


def message_of(*content):
    return {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [*content],
            "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 0, "output_tokens": 0}}  # fmt: skip


def test_anthropic_message():
    """A message's blocks are read, and the tools arrive as they were made."""
    use = {"type": "tool_use", "id": "call_1", "name": WIRE, "input": json.loads(GOOD)}
    provider = Provider(message_of({"type": "text", "text": "I look."}, use))
    tools = anthropic.tools(CATALOG, strict="auto")
    message = provider.anthropic().messages.create(model="m", max_tokens=9, messages=[], tools=tools)
    assert tools == provider.asked["tools"]
    expected = [ha.ToolCall("call_1", "weather.lookup", json.loads(GOOD))]
    assert expected == anthropic.calls(message) == anthropic.calls(message.content)
    assert expected == anthropic.calls(message.model_dump())


@pytest.mark.parametrize("helper", [False, True])
def test_anthropic_stream(helper):
    """A stream's events are joined: those of the API, and those that the SDK's helper adds."""
    use = {"type": "tool_use", "id": "call_1", "name": WIRE, "input": {}}
    events = [
        {"type": "message_start", "message": message_of()},
        {"type": "content_block_start", "index": 0, "content_block": use},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": part}}
          for part in ("", GOOD[:9], GOOD[9:])),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_stop"},
    ]  # fmt: skip
    messages = Provider(events).anthropic().messages
    if helper:
        with messages.stream(model="m", max_tokens=9, messages=[]) as stream:
            assert [CALL] == anthropic.calls([*stream])
    else:
        assert [CALL] == anthropic.calls([*messages.create(model="m", max_tokens=9, messages=[], stream=True)])


@pytest.mark.parametrize("field", ["parameters", "parametersJsonSchema"])
def test_gemini_types(field):
    """Google's SDK, whose models take no key that they do not know, takes declarations and answers."""
    types = genai_sdk.types
    catalog = without(field)
    (tool,) = gemini.tools(catalog, field=field)
    assert len(catalog) == len(types.Tool.model_validate(tool).function_declarations)
    (content,) = gemini.answers(RESULTS)
    first, second = types.Content.model_validate(content).parts
    assert {"output": {"temps": [1.5]}} == first.function_response.response
    assert "error" in second.function_response.response


def gemini_body(*parts):
    return {"candidates": [{"content": {"role": "model", "parts": [*parts]}}]}


@pytest.mark.parametrize("field", ["parameters", "parametersJsonSchema"])
def test_gemini_response(field):
    """A response's parts are read, and the declarations arrive as they were made."""
    part = {"functionCall": {"id": "call_1", "name": "weather.lookup", "args": {"days": 2.0}}}
    provider = Provider(gemini_body({"text": "I look."}, part))
    catalog = without(field)
    tools = gemini.tools(catalog, field=field)
    config = genai_sdk.types.GenerateContentConfig(
        tools=tools, automatic_function_calling=genai_sdk.types.AutomaticFunctionCallingConfig(disable=True)
    )
    answer = provider.gemini().models.generate_content(model="m", contents="?", config=config)
    arrived = provider.asked["tools"][0]["functionDeclarations"]
    assert [each["name"] for each in tools[0]["functionDeclarations"]] == [each["name"] for each in arrived]
    expected = [ha.ToolCall("call_1", "weather.lookup", {"days": 2.0})]
    assert expected == gemini.calls(answer) == gemini.calls(answer.candidates[0].content)
    assert expected == gemini.calls(answer.model_dump())


def test_gemini_stream():
    """The calls of a stream come in their order."""
    bodies = [gemini_body({"functionCall": {"name": name, "args": {}}}) for name in ("a", "b")]
    stream = Provider(bodies).gemini().models.generate_content_stream(model="m", contents="?")
    assert ["a", "b"] == [call.name for call in gemini.calls([*stream])]


def test_mcp_types():
    """The MCP SDK takes tools, calls and results."""
    for tool in mcp.tools(CATALOG) + mcp.tools(CATALOG, wrap=True):
        mcp_types.Tool.model_validate(tool)
    for answer in mcp.answers(RESULTS, CATALOG):
        mcp_types.CallToolResult.model_validate(answer)
    params = mcp_types.CallToolRequestParams(name="weather.lookup", arguments={"city": "Oslo"})
    expected = [ha.ToolCall("", "weather.lookup", {"city": "Oslo"})]
    assert expected == mcp.calls(params)
    assert expected == mcp.calls(mcp_types.CallToolRequest(method="tools/call", params=params))
