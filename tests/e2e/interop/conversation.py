"""What each client says to our server; the clients run as programs of their own and print what they were told."""

import asyncio
import json
import sys

CALLS = {
    "add": ("math.add", {"a": 2, "b": 3}),
    "greet": ("greet", {"name": "Ann", "loud": True}),
    "wrong": ("math.add", {"a": 2, "b": "x"}),
    "boom": ("boom", {}),
}


def converse(talk):
    """Run ``await talk(where)`` for each of the servers in the argument, and print a JSON object of what it returns.

    Args:
        talk: Given ``{"command": […]}`` or ``{"url": …}``, it returns the names of the tools, and for each of ``CALLS``
            its content and whether the client takes it for a failure, or None where a client cannot tell.
    """
    servers = json.loads(sys.argv[1])

    async def main():
        return {name: await talk(where) for name, where in servers.items()}

    sys.stdout.write(json.dumps(asyncio.run(main())))
