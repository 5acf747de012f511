import harbor_async as ha
from harbor_async.testing import HANG, Fault, inject, run_virtual

sent: list[str] = []


@ha.tool(side_effect="external", policy=ha.ToolPolicy(timeout=30.0))
async def send_mail(to: str) -> str:
    """Send a mail."""
    sent.append(to)
    return "sent"


async def main() -> None:
    for fault in (ConnectionRefusedError, HANG, Fault(error=ConnectionResetError, after=True)):
        sent.clear()
        async with ha.Runtime(ha.Catalog([inject(send_mail, [fault])])) as rt:
            result = await rt.invoke("send_mail", '{"to": "ann"}')
        ambiguous = result.error is not None and result.error.ambiguous
        print(f"{result.outcome}, attempts={result.attempts}, {sent=}, {ambiguous=}")


if __name__ == "__main__":
    run_virtual(main)  # or run_virtual(main, backend="trio")
