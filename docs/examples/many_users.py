"""Three users of two tenants: places in turns, one who hangs up, and one who counts."""

from collections import Counter

import anyio

import harbor_async as ha


@ha.tool(side_effect=ha.SideEffect.READ, scopes={"reports"})
async def render(page: int) -> str:
    """Render a page of a report."""
    await anyio.sleep(0.4)
    return f"page {page}"


class EventCounter:
    """A sink: it is told everything that happens to the calls of a runtime."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    async def emit(self, event: ha.ToolEvent) -> None:
        self.counts[event.type] += 1


async def serve(rt: ha.Runtime, tenant: str, name: str, patience: float | None = None) -> None:
    """Serve one user; in a server this is the handler of a request, and the scope is canceled when the client goes."""
    who = ha.Identity(tenant, name, f"session of {name}", scopes={"reports"})
    with anyio.move_on_after(patience) as connection:
        result = await rt.invoke("render", {"page": 1}, identity=who, timeout=10.0)
        print(f"{name} got {result.content}")
    if connection.cancelled_caught:
        print(f"{name} hung up")


async def main() -> None:
    counter = EventCounter()
    limits = ha.Limits(max_running=2, max_queued=100, max_running_per_tenant=1)
    async with ha.Runtime(ha.Catalog([render]), limits=limits, sinks=[counter]) as rt:
        async with anyio.create_task_group() as users:
            users.start_soon(serve, rt, "acme", "ann", 0.25)  # seconds until she hangs up
            await anyio.sleep(0.01)
            users.start_soon(serve, rt, "acme", "bob")
            users.start_soon(serve, rt, "initech", "eve")
            await anyio.sleep(0.01)
            now = rt.statistics()
            print(f"{now.running} run, {now.queued} waits")
        await rt.drain(timeout=30.0)  # at the end of a server: take no more, and let end what runs
    print(", ".join(f"{number} {type}" for type, number in sorted(counter.counts.items())))


if __name__ == "__main__":
    anyio.run(main)
