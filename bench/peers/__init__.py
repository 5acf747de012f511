"""The same work through other packages, each in an environment of its own.

``python -m bench.peers [PEER ...]`` makes the environments under ``build/``, measures, and writes the page
``docs/explanation/peers.md`` with its figures in ``bench/peers/figures.json``.
"""

from typing import Final

import attrs


@attrs.frozen
class Peer:
    """A package that calls tools.

    Attributes:
        path: What is called, as its documentation names it.
        packages: What is installed; the first one is the one whose version is told.
        returns: What the tool returns so that the peer's own way to text is JSON: ``"model"``, ``"dict"``, ``"text"``.
        validates: Whether the arguments are checked against the types.
        many: The largest batch that it is asked for.
    """

    path: str
    packages: tuple[str, ...]
    returns: str = "model"
    validates: bool = True
    many: int = 10_000


PEERS: Final[dict[str, Peer]] = {
    "openai-agents": Peer("FunctionTool.on_invoke_tool", ("openai-agents",), "text"),
    "pydantic-ai": Peer("ToolManager.handle_call", ("pydantic-ai-slim",)),
    "mcp": Peer("MCPServer.call_tool", ("mcp",)),
    "fastmcp": Peer("Tool.run", ("fastmcp",)),
    "autogen": Peer("FunctionTool.run_json", ("autogen-core",)),
    "langchain": Peer("StructuredTool.ainvoke", ("langchain-core",), "dict"),
    "agno": Peer("Model.arun_function_call", ("agno",), "text"),
    "llama-index": Peer("FunctionTool.acall", ("llama-index-core",), "text", validates=False),
    "haystack": Peer("Tool.invoke_async", ("haystack-ai",), "dict", validates=False),
    "semantic-kernel": Peer("Kernel.invoke_function_call", ("semantic-kernel",), "text"),
    "google-adk": Peer("FunctionTool.run_async", ("google-adk",), "dict"),
    "dspy": Peer("Tool.acall", ("dspy",), many=1_000),
}
"""By name, those that are quick to install first."""
