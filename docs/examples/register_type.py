"""A class of your own in a tool's signature."""

import json

import anyio

import harbor_async as ha
from harbor_async.schema import register_type


class Money:
    """An amount in whole cents."""

    def __init__(self, cents: int) -> None:
        self.cents = cents

    @classmethod
    def parse(cls, text: str) -> "Money":
        euros, dot, cents = text.partition(".")
        if not dot or len(cents) != 2:
            raise ValueError("expected an amount with two decimals")
        return cls(int(euros) * 100 + int(cents))

    def __str__(self) -> str:
        return f"{self.cents // 100}.{self.cents % 100:02}"


register_type(Money, wire=str, structure=Money.parse, unstructure=str)


@ha.tool(side_effect=ha.SideEffect.PURE)
async def add_tax(price: Money) -> Money:
    """Add 25 % tax to a price."""
    return Money(price.cents * 125 // 100)


async def main() -> None:
    print(json.dumps(add_tax.tool.args_schema["properties"]))
    async with ha.Runtime(ha.Catalog([add_tax])) as rt:
        print((await rt.invoke("add_tax", '{"price": "10.00"}')).content)
        refused = await rt.invoke("add_tax", '{"price": "ten"}')
        for problem in refused.error.problems if refused.error else ():
            print(problem.path, problem.code)


if __name__ == "__main__":
    anyio.run(main)
