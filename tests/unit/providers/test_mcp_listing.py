"""The tools of MCP servers in a catalog."""

import logging
from typing import Any

import anyio
import pytest

import harbor_async as ha
from harbor_async.errors import InvalidToolError
from harbor_async.providers.mcp import RemoteServers
from tests.unit.providers.peer import OBJECT, Peer, RefusalError, text

pytestmark = pytest.mark.virtual

ADD = {
    "name": "add",
    "title": "Adder",
    "description": "Add two numbers.",
    "inputSchema": {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]},
    "outputSchema": {"type": "object", "properties": {"sum": {"type": "number"}}},
}


def named(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "inputSchema": OBJECT} for name in names]


def names(catalog: ha.Catalog) -> list[str]:
    return [tool.name for tool in catalog.list()]


async def test_a_remote_tool_is_a_tool_as_any_other():
    """Name with prefix, description, schemas, source and transport are there, and it is found by a search."""
    catalog = ha.Catalog()
    async with RemoteServers(catalog) as servers:
        server = await servers.connect(Peer(ADD), prefix="calc.")
        (tool,) = catalog.list()
        assert ("calc.add",) == server.tools
        assert ("calc.add", "Add two numbers.", "peer", "mcp") == (
            tool.name,
            tool.description,
            tool.source,
            tool.transport,
        )
        assert (ADD["inputSchema"], ADD["outputSchema"]) == (tool.args_schema, tool.out_schema)
        assert [tool] == catalog.search("numbers")
    assert [] == catalog.list()


async def test_options_are_said_of_each_tool():
    """Policy, scopes and whatever else describe() takes hold for all tools of a server; ``source`` names it."""
    catalog = ha.Catalog()
    policy = ha.ToolPolicy(attempts=1)
    async with RemoteServers(catalog) as servers:
        server = await servers.connect(
            Peer(*named("a", "b")), policy=policy, scopes=["far"], side_effect="read", source="shop"
        )
        assert "shop" == server.name
        assert [(policy, {"far"}, "read", "shop")] * 2 == [
            (tool.policy, tool.scopes, tool.side_effect, tool.source) for tool in catalog.list()
        ]


@pytest.mark.parametrize("filter", [ha.CatalogFilter(name_regex="^far[.]a"), lambda tool: tool.name != "far.b"])
async def test_a_filter_chooses_tools(filter: Any):
    """A CatalogFilter or a function of the tool says which are taken."""
    catalog = ha.Catalog()
    async with RemoteServers(catalog) as servers:
        await servers.connect(Peer(*named("a", "b")), prefix="far.", filter=filter)
        assert ["far.a"] == names(catalog)


@pytest.mark.parametrize(
    ("hints", "expected"),
    [
        ({}, ("external", True, False)),
        ({"readOnlyHint": True}, ("read", False, False)),
        ({"readOnlyHint": True, "openWorldHint": False}, ("pure", False, False)),
        ({"idempotentHint": True}, ("external", True, True)),
        ({"destructiveHint": False, "openWorldHint": False}, ("stateful", True, False)),
    ],
)
async def test_hints_are_believed_of_a_trusted_server_alone(hints: dict[str, bool], expected: tuple[str, bool, bool]):
    """Side effect and idempotence follow the hints where they are trusted; else each tool has an effect."""
    tool = {**ADD, "annotations": hints}
    for trusted in (True, False):
        catalog = ha.Catalog()
        async with RemoteServers(catalog) as servers:
            await servers.connect(Peer(tool), trusted=trusted)
            (seen,) = catalog.list()
        said = (seen.side_effect, seen.declares_effect, seen.is_idempotent)
        assert (expected if trusted else ("external", True, False)) == said


async def test_all_pages_of_a_long_list_are_read():
    """The list comes by two; all seven are there."""
    catalog = ha.Catalog()
    peer = Peer(*named(*"abcdefg"))
    async with RemoteServers(catalog) as servers:
        await servers.connect(peer)
    assert 4 == len(peer.of("tools/list"))


async def test_a_list_without_end_is_no_list():
    """A server whose pages never end cannot be connected."""
    peer = Peer()

    async def endless(_: Any) -> Any:
        return {"tools": [], "nextCursor": "0"}

    peer._list = endless  # type: ignore[method-assign]
    async with RemoteServers(ha.Catalog()) as servers:
        with pytest.raises(ha.ToolError, match="more than 200 pages"):
            await servers.connect(peer)


async def test_what_cannot_be_a_tool_is_left_out(caplog: pytest.LogCaptureFixture):
    """A broken schema and a name that is taken cost that tool alone, and the log says so."""
    taken = ha.describe(anyio.sleep, name="taken", description="ours")
    catalog = ha.Catalog([taken])
    broken = {"name": "broken", "inputSchema": {"type": "object", "properties": {"a": {"type": "objekt"}}}}
    peer = Peer(*named("good", "taken"), broken)
    with caplog.at_level(logging.WARNING, "harbor_async.providers.mcp"):
        async with RemoteServers(catalog) as servers:
            server = await servers.connect(peer)
            assert ("good",) == server.tools
            assert taken is catalog.resolve("taken")
    assert ["taken"] == names(catalog)
    assert {"taken", "broken"} == {record.args[1] for record in caplog.records}


async def test_a_broken_out_schema_leaves_the_result_unchecked():
    """Such a tool can be called; nothing is said of its result."""
    catalog = ha.Catalog()
    peer = Peer({**ADD, "outputSchema": {"type": "object", "$ref": "https://a.example/b"}})
    async with RemoteServers(catalog) as servers, ha.Runtime(catalog) as rt:
        await servers.connect(peer)
        assert None is catalog.resolve("add").tool.out_schema
        assert {"a": 1} == (await rt.invoke("add", {"a": 1})).value


async def test_a_server_without_tools_has_none():
    """What says that it has no tools is not asked for them."""
    peer = Peer()
    peer.capabilities = {}
    async with RemoteServers(ha.Catalog()) as servers:
        server = await servers.connect(peer)
        assert () == server.tools
    assert [] == peer.of("tools/list")


async def test_a_changed_list_is_followed_in_one_step():
    """New tools come, old ones go, all at once; one that is as it was keeps its descriptor."""
    catalog = ha.Catalog()
    peer = Peer(*named("a", "b"))
    async with RemoteServers(catalog) as servers:
        server = await servers.connect(peer)
        kept = catalog.resolve("a")
        seen: list[list[str]] = []
        catalog.subscribe(lambda: seen.append(names(catalog)))
        peer.tools = [*named("a", "c"), ADD]
        peer.tell("notifications/tools/list_changed")
        peer.tell("notifications/tools/list_changed")
        await anyio.sleep(1)
        assert [["a", "add", "c"]] == seen
        assert ("a", "c", "add") == server.tools
        assert kept is catalog.resolve("a")


async def test_somebody_else_may_take_a_tool_out():
    """What a program has removed or replaced by itself does not disturb a later change or the end."""
    catalog = ha.Catalog()
    peer = Peer(*named("a", "b"))
    async with RemoteServers(catalog) as servers:
        await servers.connect(peer)
        catalog.change(remove=["a"])
        peer.tools = named("b", "c")
        peer.tell("notifications/tools/list_changed")
        await anyio.sleep(1)
        assert ["b", "c"] == names(catalog)
        catalog.change(remove=["c"])
    assert [] == names(catalog)


async def test_r111_each_tool_that_is_listed_can_be_called():
    """R111: while the list changes all the time, each name of one listing answers, or is surely gone."""
    catalog = ha.Catalog()
    peer = Peer(*named("a", "b"))
    rounds = [named("a", "c"), named("b", "c"), named("a", "b")] * 2

    async def on_call(params: Any) -> Any:
        await anyio.sleep(0.01)
        if params["name"] not in {tool["name"] for tool in peer.tools}:
            raise RefusalError(-32602, "Unknown tool")
        return text(params["name"])

    peer.on_call = on_call
    async with RemoteServers(catalog) as servers, ha.Runtime(catalog) as rt:
        await servers.connect(peer)
        for tools in rounds:
            listed = names(catalog)
            assert 2 == len(listed)
            results = await rt.invoke_many([ha.ToolCall("", name, {}) for name in listed])
            assert listed == [result.value for result in results]
            peer.tools = tools
            peer.tell("notifications/tools/list_changed")
            stale = await rt.invoke_many([ha.ToolCall("", name, {}) for name in listed])
            assert {"succeeded", "failed"} >= {result.outcome for result in stale}
            await anyio.sleep(1)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"name": "x"}, "use prefix= for names"),
        ({"speed": 1}, "unknown option speed"),
        ({"prefix": 1}, "expected text for prefix="),
        ({"filter": 1}, "for filter="),
        ({"connect_timeout": -1}, "connect_timeout"),
    ],
)
async def test_a_bad_option_is_refused_before_anything_is_opened(options: Any, word: str):
    """It is an error of whoever wrote it, and nothing is begun."""
    peer = Peer()
    async with RemoteServers(ha.Catalog()) as servers:
        with pytest.raises(InvalidToolError, match=word):
            await servers.connect(peer, **options)
    assert 0 == peer.opened


async def test_an_option_that_no_tool_can_have_leaves_them_out(caplog: pytest.LogCaptureFixture):
    """What describe() refuses of a tool is told in the log, and the server has no tools."""
    with caplog.at_level(logging.WARNING, "harbor_async.providers.mcp"):
        async with RemoteServers(ha.Catalog()) as servers:
            server = await servers.connect(Peer(), side_effect="odd")
            assert () == server.tools
    assert "side_effect" in caplog.text
