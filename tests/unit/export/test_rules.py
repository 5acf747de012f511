"""What each exporter makes of 60 varied tools keeps every rule of its provider, as ``rules`` writes them out."""

import pytest

import harbor_async as ha
from harbor_async.errors import ExportError, InvalidToolError
from harbor_async.export import anthropic, gemini, mcp, openai
from tests.unit.export import rules
from tests.unit.export.varied import CATALOG, TOOLS

REFUSED = {
    "openai": {"any", "table", "tables"},
    "anthropic": {"any", "knot", "link", "table", "tables"},
    "parameters": {"any", "empty", "knot", "link", "table", "tables"},
    "parametersJsonSchema": set(),
}
"""Tools that a dialect cannot say: free keys, any value, recursion, and for ``parameters`` an object without keys."""


def convert(dialect, schema):
    match dialect:
        case "openai":
            return openai.schema(schema)
        case "anthropic":
            return anthropic.schema(schema)
        case _:
            return gemini.schema(schema, field=dialect)


def without(dialect):
    return ha.Catalog(tool for tool in TOOLS if tool.name not in REFUSED[dialect])


@pytest.mark.parametrize("dialect", REFUSED)
def test_refused(dialect):
    """A dialect refuses exactly the tools that it has no words for, each with a path and a reason."""
    refused = {}
    for tool in CATALOG.list():
        try:
            convert(dialect, tool.args_schema)
        except ExportError as exc:
            refused[tool.name] = exc.refusals
    assert REFUSED[dialect] == set(refused)
    assert all(each.path and each.reason for refusals in refused.values() for each in refusals)


def test_openai_strict_on_demand():
    """With ``auto`` every tool is there, strict where it can be, and each keeps OpenAI's rules."""
    functions = [tool["function"] for tool in openai.tools(CATALOG)]
    assert [] == rules.check_openai(functions)
    assert len(CATALOG) == len(functions)
    assert {openai.to_wire(name) for name in REFUSED["openai"]} == {f["name"] for f in functions if not f["strict"]}


def test_openai_responses():
    """For Responses a tool is flat, and has the same parts."""
    chat, flat = openai.tools(CATALOG), openai.tools(CATALOG, api="responses")
    assert [{"type": "function", **tool["function"]} for tool in chat] == flat


@pytest.mark.parametrize("strict", [True, False])
def test_openai(strict):
    """All strict, or none, the tools keep OpenAI's rules."""
    catalog = without("openai") if strict else CATALOG
    functions = [tool["function"] for tool in openai.tools(catalog, strict=strict)]
    assert [] == rules.check_openai(functions)
    assert {strict} == {function["strict"] for function in functions}


def test_openai_strict_refuses():
    """All of them strict, tools that cannot be are refused together, by name."""
    with pytest.raises(ExportError, match="OpenAI strict: tool 'any' at /properties/value") as raised:
        openai.tools(CATALOG, strict=True)
    assert REFUSED["openai"] == {refusal.tool for refusal in raised.value.refusals}


def test_anthropic():
    """None strict, the tools keep Anthropic's rules."""
    tools = anthropic.tools(CATALOG)
    assert [] == rules.check_anthropic(tools)
    assert len(CATALOG) == len(tools)


def test_anthropic_auto():
    """With ``auto`` as many are strict as a request has room for, and no more."""
    tools = anthropic.tools(CATALOG, strict="auto")
    assert [] == rules.check_anthropic(tools)
    assert 20 == sum("strict" in tool for tool in tools)


def test_anthropic_strict_in_parts():
    """All strict, few enough of them keep Anthropic's rules."""
    names = sorted(tool.name for tool in without("anthropic"))
    for start in range(0, len(names), 15):
        part = ha.Catalog(tool for tool in TOOLS if tool.name in names[start : start + 15])
        assert [] == rules.check_anthropic(anthropic.tools(part, strict=True))


def test_anthropic_strict_refuses():
    """More strict tools than a request has room for are refused, with the number."""
    with pytest.raises(ExportError, match="59 strict tools in a request; at most 20 are allowed"):
        anthropic.tools(without("anthropic"), strict=True)


@pytest.mark.parametrize("field", ["parameters", "parametersJsonSchema"])
def test_gemini(field):
    """In either field the declarations keep Gemini's rules."""
    catalog = without(field)
    (tool,) = gemini.tools(catalog, field=field)
    declarations = tool["functionDeclarations"]
    assert [] == rules.check_gemini(declarations)
    assert len(catalog) == len(declarations)
    assert all(field in each for each in declarations if each["name"] != gemini.to_wire("wetter.köln"))


def test_mcp():
    """Each tool keeps MCP's rules, and its schemas are the tool's own."""
    tools = mcp.tools(CATALOG)
    assert [] == rules.check_mcp(tools)
    assert [tool.args_schema for tool in CATALOG.list()] == [tool["inputSchema"] for tool in tools]
    assert [tool.out_schema for tool in CATALOG.list()] == [tool["outputSchema"] for tool in tools]


def test_filter():
    """A filter is that of the catalog."""
    filter = ha.CatalogFilter(name_regex="^text")
    names = [tool.name for tool in CATALOG.list(filter)]
    assert 8 > len(names) > 2
    assert names == [tool["name"] for tool in mcp.tools(CATALOG, filter)]
    assert len(names) == len(openai.tools(CATALOG, filter)) == len(anthropic.tools(CATALOG, filter))
    assert len(names) == len(gemini.tools(CATALOG, filter)[0]["functionDeclarations"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: openai.tools(CATALOG, strict="yes"), "strict: expected True or False or 'auto'; got 'yes'"),
        (lambda: openai.tools(CATALOG, strict=1), "strict: expected True or False or 'auto'; got 1"),
        (lambda: openai.tools(CATALOG, api="x"), "api: expected 'chat' or 'responses'; got 'x'"),
        (lambda: openai.calls({}, strict="yes"), "strict: expected"),
        (lambda: openai.answers([], api="x"), "api: expected"),
        (lambda: anthropic.tools(CATALOG, strict=None), "strict: expected"),
        (lambda: gemini.tools(CATALOG, field="x"), "field: expected 'parameters' or 'parametersJsonSchema'; got 'x'"),
        (lambda: gemini.schema({}, field="x"), "field: expected"),
    ],
)
def test_no_such_word(call, message):
    """An option that is none of its words is refused, with those that there are."""
    with pytest.raises(InvalidToolError) as raised:
        call()
    assert str(raised.value).startswith(message)


def test_the_checker_checks():
    """The rules catch what our own schemas would break if they were sent as they are."""
    for check, wrap in (
        (rules.check_openai, lambda t: {"name": "x", "strict": True, "parameters": t.args_schema}),
        (rules.check_anthropic, lambda t: {"name": "x", "strict": True, "input_schema": t.args_schema}),
        (rules.check_gemini, lambda t: {"name": "x", "parameters": t.args_schema}),
        (rules.check_gemini, lambda t: {"name": "x", "parametersJsonSchema": t.args_schema}),
    ):
        assert check([wrap(CATALOG.resolve("short.default").tool)])
