"""A client for the official conformance suite: it calls each tool that the server has, with arguments that fit.

The suite runs it with the server's URL as its last argument; the one before names the backend.
"""

import sys
from typing import Any

import anyio

import harbor_async as ha
from harbor_async.providers.mcp import RemoteServers, StreamableHTTP

SAMPLES = {"number": 2, "integer": 2, "string": "text", "boolean": True}


def sample(schema: dict[str, Any]) -> dict[str, Any]:
    """Return an argument object for a flat schema."""
    return {name: SAMPLES[field["type"]] for name, field in schema.get("properties", {}).items()}


async def main(url: str) -> None:
    catalog = ha.Catalog()
    async with RemoteServers(catalog) as servers, ha.Runtime(catalog) as rt:
        await servers.connect(StreamableHTTP(url))
        for tool in catalog.list():
            result = await rt.invoke(tool.name, sample(tool.args_schema))
            sys.stdout.write(f"{tool.name}: {result.outcome}, {result.content}\n")
            if result.error is not None:
                raise SystemExit(1)


anyio.run(main, sys.argv[-1], backend=sys.argv[-2])
