"""A catalog: what is listed to whom, what a search finds, and tools that are changed while calls run."""

import anyio

import harbor_async as ha


@ha.tool(name="mail.read", side_effect=ha.SideEffect.READ, tags={"mail"}, scopes={"mail:read"})
async def read_mail(folder: str = "inbox") -> list[str]:
    """Read the newest messages of a folder."""
    return [f"a message in {folder}"]


@ha.tool(name="mail.send", side_effect=ha.SideEffect.EXTERNAL, tags={"mail"}, scopes={"mail:send"})
async def send_mail(to: str, text: str) -> str:
    """Send a message."""
    return f"sent to {to}"


@ha.tool(name="invoices.find", side_effect=ha.SideEffect.READ, loading=ha.LoadingMode.DEFERRED)
async def find_invoices(customer: str) -> list[str]:
    """Find the invoices of a customer."""
    return [f"an invoice of {customer}"]


async def read_everything(folder: str = "inbox") -> list[str]:
    """Read every message of a folder."""
    return [f"all messages in {folder}"]


async def main() -> None:
    catalog = ha.Catalog([read_mail, send_mail, find_invoices])
    reader = ha.CatalogFilter(scopes={"mail:read"})
    print("listed:  ", [tool.name for tool in catalog.list(reader)])
    print("found:   ", [tool.name for tool in catalog.search("invoice")])

    async with ha.Runtime(catalog) as rt:
        catalog.replace([ha.describe(read_everything, name="mail.read", side_effect=ha.SideEffect.READ)])
        print("replaced:", (await rt.invoke("mail.read")).value)


if __name__ == "__main__":
    anyio.run(main)
