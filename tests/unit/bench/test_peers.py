"""The page of the peers is made of the committed figures, and every peer has its adapter."""

import json
from pathlib import Path

from bench import peers
from bench.peers import PEERS
from bench.peers.page import FIGURES, PAGE, render

FACTS = {"python": "CPython 3.11.7", "system": "Linux x86_64", "cores": 2, "processor": "any", "load": 0.1}


def make_figures(package, sequence, **batches):
    rows = [{"name": "sequence", "cpu": sequence}, {"name": "memory in flight", "cpu": 2.0, "ours": 5_432.0}]
    rows += [{"name": name.replace("_", ",", 1)[1:].replace("_", " "), "cpu": cpu} for name, cpu in batches.items()]
    return {"versions": {package: "1.2"}, "rows": rows}


def test_each_peer_has_an_adapter():
    """There is one module for each peer, and none besides."""
    folder = Path(peers.__file__).parent / "adapters"
    assert {name.replace("-", "_") for name in PEERS} == {path.stem for path in folder.glob("[!_]*.py")}


def test_render():
    """The cheapest peer comes first; a batch that was not measured leaves its cell empty; who is missing is named."""
    figures = {
        "mcp": make_figures("mcp", 5.234, n1_000_parallel=2.3, n10_000_parallel=2.8),
        "llama-index": make_figures("llama-index-core", 1234.4),
        "fastmcp": make_figures("fastmcp", 4.0),
    }
    page = render({"machine": FACTS, "peers": figures}).splitlines()
    lines = [text for text in page if text.startswith("| ")]
    assert [
        "| fastmcp 1.2 `Tool.run` | yes | 4.0 |  |  | 5.4 |",
        "| mcp 1.2 `MCPServer.call_tool` | yes | 5.2 | 2.3 | 2.8 | 5.4 |",
        "| llama-index 1.2 `FunctionTool.acall` | no | 1234 |  |  | 5.4 |",
    ] == lines[1:]
    (missing,) = (text for text in page if text.startswith("Not measured"))
    assert PEERS.keys() - figures.keys() == set(missing.removesuffix(".").partition(": ")[2].split(", "))


def test_page_shows_the_figures():
    """The committed page is made of the committed figures."""
    assert render(json.loads(FIGURES.read_text(encoding="utf-8"))) == PAGE.read_text(encoding="utf-8")
