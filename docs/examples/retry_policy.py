"""The same failure, met by a reader, a sender that may have sent, and a sender that surely has not."""

import anyio

import harbor_async as ha

at_once = ha.ToolPolicy(timeout=2.0, attempts=3, wait=ha.Backoff(initial=0))


@ha.tool(side_effect=ha.SideEffect.READ, policy=at_once)
async def read_mail(context: ha.ToolContext) -> str:
    """Read the newest mail."""
    if context.attempt < 3:
        raise ConnectionResetError("the server hung up")
    return "a mail"


@ha.tool(side_effect=ha.SideEffect.EXTERNAL, policy=at_once)
async def send_mail(text: str) -> str:
    """Send a mail. The connection breaks after the text has left: nobody knows whether it arrived."""
    raise ConnectionResetError("the server hung up")


@ha.tool(side_effect=ha.SideEffect.EXTERNAL, policy=at_once)
async def queue_mail(context: ha.ToolContext, text: str) -> str:
    """Queue a mail. The other side says no before it takes anything, and when to come back."""
    if context.attempt == 1:
        raise ha.ToolError("the queue is full", category="rate_limited", delivery=ha.Delivery.REFUSED, retry_after=0)
    return "queued"


async def main() -> None:
    async with ha.Runtime(ha.Catalog([read_mail, send_mail, queue_mail])) as rt:
        for name, arguments in [("read_mail", {}), ("send_mail", {"text": "hi"}), ("queue_mail", {"text": "hi"})]:
            result = await rt.invoke(name, arguments)
            ambiguous = result.error is not None and result.error.ambiguous
            print(f"{name}: {result.outcome}, attempts={result.attempts}, {result.stop_reason=}, {ambiguous=}")


if __name__ == "__main__":
    anyio.run(main)
