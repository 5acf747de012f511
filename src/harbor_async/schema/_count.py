"""The counter: how many keys a decoded document holds."""

from collections.abc import Iterable
from functools import partial

from .._json import count_any
from ._codegen import Module, decoded_types
from ._plan import Anything, Array, Custom, Leaf, Node, Record, Ref, Row, Table
from ._shadow import Shadows


class Counter:
    """Writes the expressions that count the keys of a decoded document."""

    def __init__(self, module: Module, shadows: Shadows) -> None:
        """Write into ``module``."""
        self._module = module
        self._shadows = shadows
        self._functions: dict[int, str] = {}
        module.scope["count_any"] = count_any

    def expression(self, node: Node, var: str) -> str:
        """Return the expression of the number of keys in the decoded value ``var``; ``"0"`` if there can be none."""
        if isinstance(node, Leaf):
            return "0"
        if isinstance(node, Anything):
            return f"count_any({var})"
        return self._module.nested(partial(self._parts, node), var)

    def _parts(self, node: Node, var: str) -> str:
        if isinstance(node, Custom):
            return self.expression(node.inner, var)
        if isinstance(node, Array):
            return self._each(node.item, var, var)
        if isinstance(node, Row):
            return _sum(self.expression(item, f"{var}[{index}]") for index, item in enumerate(node.items))
        if isinstance(node, Table):
            return _sum([f"len({var})", self._each(node.value, f"{var}.values()", var)])
        if isinstance(node, Ref):
            return self._record(node.record, var)
        return self._members(tuple(node.children()), var)

    def _each(self, node: Node, values: str, sized: str) -> str:
        item = self._module.name("v")
        inner = self.expression(node, item)
        if inner.isdecimal():
            return "0" if inner == "0" else f"{inner} * len({sized})"
        if inner == f"count_any({item})":
            return f"sum(map(count_any, {values}))"
        return f"sum([{inner} for {item} in {values}])"

    def _members(self, members: tuple[Node, ...], var: str) -> str:
        out = "0"
        for member in members:
            count = self.expression(member, var)
            if count == "0":
                continue
            types = decoded_types(member, self._shadows)
            is_one = (
                f"is {self._module.ref(types[0])}" if len(types) == 1 else f"in {self._module.ref(frozenset(types))}"
            )
            out = f"({count} if type({var}) {is_one} else {out})"
        return out

    def _record(self, record: Record, var: str) -> str:
        """Return a number for a record of scalars without optional fields, else a call."""
        name = self._functions.get(id(record))
        if name is None:
            name = self._functions[id(record)] = self._module.name("count")
            body = self._body(record)
            if body.isdecimal():
                self._functions[id(record)] = body
                return body
            self._module.function(name, "s", [f"return {body}"])
        return name if name.isdecimal() else f"{name}({var})"

    def _body(self, record: Record) -> str:
        fixed = (record.tag is not None) + sum(field.is_required for field in record.fields)
        parts = [str(fixed)]
        for index, field in enumerate(record.fields):
            var = f"s.f{index}"
            inner = self.expression(field.node, var)
            if field.is_required:
                parts.append(inner)
            elif inner == "0":
                parts.append(f"({var} is not UNSET)")
            else:
                parts.append(f"(0 if {var} is UNSET else 1 + {inner})")
        return _sum(parts)


def _sum(parts: Iterable[str]) -> str:
    fixed = 0
    rest: list[str] = []
    for part in parts:
        if part.isdecimal():
            fixed += int(part)
        else:
            rest.append(part)
    return " + ".join([str(fixed), *rest] if fixed or not rest else rest)
