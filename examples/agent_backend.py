"""An agent backend under fire: a thousand agents at once, in one process.

    python examples/agent_backend.py [--backend trio] [--agents 1000] [--seed 7]

The model is scripted, and what stands behind the tools is simulated: slow, flaky, and in one case not to be asked
twice. All else is what a backend does: tenants with scopes of their own, limits, a deadline for each turn, users who
hang up in the middle of one, and somebody who counts.
"""

import argparse
import logging
from collections import Counter
from collections.abc import Iterator
from functools import partial
from random import Random
from typing import Annotated

import anyio
import attrs
from msgspec import Meta

import harbor_async as ha

# --- the tools --------------------------------------------------------------------------------------------------------


def dice(*names: object) -> Random:
    """Return dice that fall for these names as they always do."""
    return Random(repr(names))  # noqa: S311 - chance, no secret


def luck(context: ha.ToolContext) -> Random:
    return dice(context.call_id, context.attempt)


@ha.tool(side_effect="read", policy=ha.ToolPolicy(timeout=0.5, attempts=3, wait=ha.Backoff(initial=0.05)))
async def search(query: str, context: ha.ToolContext, limit: Annotated[int, Meta(ge=1, le=20)] = 5) -> list[str]:
    """Search the web. The index hangs up on one in ten, and on one in thirty it does not answer at all."""
    chance = luck(context)
    await anyio.sleep(60.0 if chance.random() < 0.03 else chance.expovariate(12.0))
    if chance.random() < 0.1:
        raise ConnectionResetError("the index hung up")
    return [f"result {number} for {query}" for number in range(limit)]


@ha.tool(side_effect="read", scopes={"crm:read"}, max_running=60)
async def find_customer(name: str, context: ha.ToolContext) -> dict[str, str]:
    """Find a customer. The database takes no more than 60 queries at once."""
    await anyio.sleep(luck(context).uniform(0.02, 0.06))
    return {"name": name, "mail": f"{name}@example.org"}


@ha.tool(side_effect="write", scopes={"crm:write"}, idempotent=True, exclusive=lambda name, text: f"customer {name}")
async def add_note(name: str, text: str, context: ha.ToolContext) -> str:
    """Add a note to a customer, one after the other. The database knows by its key a note that it has already."""
    await anyio.sleep(luck(context).uniform(0.02, 0.06))
    return f"note {context.idempotency_key[:8]}"


@ha.tool(side_effect="external", scopes={"mail:send"}, policy=ha.ToolPolicy(timeout=0.5))
async def send_mail(to: str, text: str, context: ha.ToolContext) -> str:
    """Send a mail. One in twenty breaks off when the text has left: was it sent? It is not sent again."""
    chance = luck(context)
    await anyio.sleep(chance.uniform(0.05, 0.2))
    if chance.random() < 0.05:
        raise ConnectionResetError("the server hung up")
    return "sent"


CATALOG = ha.Catalog([search, find_customer, add_note, send_mail])
LIMITS = ha.Limits(max_running=200, max_queued=400, max_running_per_tenant=120)
TENANTS = {  # how many of a hundred agents, and what they may do
    "acme": (70, {"crm:read", "crm:write", "mail:send"}),
    "initech": (20, {"crm:read", "crm:write"}),
    "hooli": (10, {"crm:read"}),
}
ARRIVALS = 400.0  # users a second
TURNS = 3
TURN_TIMEOUT = 0.8

# --- the model --------------------------------------------------------------------------------------------------------


@attrs.frozen
class Model:
    """Stands for a language model: it thinks, asks for several tools, and now and then gets one wrong."""

    chance: Random

    async def ask(self, turn: str) -> list[ha.ToolCall]:
        await anyio.sleep(self.chance.uniform(0.2, 0.6))
        return [ha.ToolCall(f"{turn}.{number}", *self.choose()) for number in range(self.chance.randint(2, 5))]

    def choose(self) -> tuple[str, str]:
        who = f"customer{self.chance.randrange(500)}"
        wrong = self.chance.random()
        if wrong < 0.02:
            return "serch", "{}"
        if wrong < 0.04:
            return "search", '{"query": 5, "limit": "ten"}'
        if wrong < 0.05:
            return "search", '{"query": "wea'
        return self.chance.choice(
            [
                ("search", '{"query": "weather"}'),
                ("search", '{"query": "news", "limit": 3}'),
                ("find_customer", f'{{"name": "{who}"}}'),
                ("add_note", f'{{"name": "{who}", "text": "called"}}'),
                ("send_mail", f'{{"to": "{who}@example.org", "text": "hello"}}'),
            ]
        )


# --- the backend ------------------------------------------------------------------------------------------------------


@attrs.define
class Report:
    """What has happened. It is an event sink, too."""

    asked: int = 0
    hung_up: int = 0
    peak: int = 0
    by_end: Counter[str] = attrs.field(factory=Counter)
    by_tenant: dict[str, Counter[str]] = attrs.field(factory=lambda: {tenant: Counter() for tenant in TENANTS})
    ambiguous: int = 0
    events: Counter[str] = attrs.field(factory=Counter)

    def count(self, tenant: str, result: ha.ToolResult) -> None:
        end = result.outcome if result.error is None else f"{result.outcome} / {result.error.category}"
        self.by_end[end] += 1
        self.by_tenant[tenant][result.outcome] += 1
        self.ambiguous += result.error is not None and result.error.ambiguous

    async def emit(self, event: ha.ToolEvent) -> None:
        self.events[event.type] += 1

    def lines(self) -> Iterator[str]:
        answered = self.by_end.total()
        yield f"{self.asked} calls were asked for; {answered} were answered:"
        yield from (f"  {number:6} {end}" for end, number in sorted(self.by_end.items()))
        yield f"  {self.asked - answered:6} without an answer, since {self.hung_up} users hung up"
        yield "by tenant:"
        for tenant, counts in self.by_tenant.items():
            yield f"  {tenant:8} " + ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items()))
        yield f"at most {self.peak} ran at once; {self.ambiguous} may have happened, and are not to be sent again"
        yield "events:"
        yield from (f"  {number:6} {type}" for type, number in sorted(self.events.items()))


async def serve(rt: ha.Runtime, agent: str, report: Report) -> None:
    """Serve one user: three turns of the model, each with its tools; less, if the user hangs up."""
    chance = dice(agent)
    tenant = chance.choices([*TENANTS], [share for share, _ in TENANTS.values()])[0]
    who = ha.Identity(tenant, f"user of {agent}", agent, scopes=TENANTS[tenant][1])
    model = Model(chance)
    patience = chance.uniform(0.1, 2.0) if chance.random() < 0.1 else None
    with anyio.move_on_after(patience) as connection:  # in a server: the scope of the request
        for turn in range(TURNS):
            calls = await model.ask(f"{agent}.{turn}")
            report.asked += len(calls)
            for result in await rt.invoke_many(calls, timeout=TURN_TIMEOUT, identity=who):
                report.count(tenant, result)  # a real model would be told: result.content
    report.hung_up += connection.cancelled_caught


async def watch(rt: ha.Runtime, report: Report) -> None:
    """Look every 10 ms how much is going on, as a gauge of a metrics system would."""
    while True:
        report.peak = max(report.peak, rt.statistics().running)
        await anyio.sleep(0.01)


async def run(agents: int, seed: int) -> Report:
    """Serve so many users, most of them at once."""
    report = Report()
    runtime = ha.Runtime(CATALOG, limits=LIMITS, sinks=[report], random=dice(seed).random)
    async with runtime as rt, anyio.create_task_group() as watchers:
        watchers.start_soon(watch, rt, report)
        async with anyio.create_task_group() as users:
            for number in range(agents):
                users.start_soon(serve, rt, f"{seed}.{number}", report)
                await anyio.sleep(1 / ARRIVALS)
        watchers.cancel_scope.cancel()
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--backend", choices=["asyncio", "trio"], default="asyncio")
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    logging.getLogger("stamina").setLevel(logging.ERROR)  # it warns of each retry
    report = anyio.run(partial(run, options.agents, options.seed), backend=options.backend)
    print("\n".join(report.lines()))


if __name__ == "__main__":
    main()
