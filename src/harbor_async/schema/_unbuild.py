"""The unbuilder: from the user's objects to what msgspec may encode."""

from decimal import Decimal
from functools import partial

from ._codegen import Module
from ._generic import collected, listed, plain_any, plain_table, sorted_items
from ._plan import Anything, Array, Custom, Leaf, Node, Record, Ref, Row, Table, Tagged, Union


class Unbuilder:
    """Writes the expressions that make encodable values of Python ones."""

    def __init__(self, module: Module) -> None:
        """Write into ``module``."""
        self._module = module
        self._functions: dict[int, str] = {}
        helpers = (plain_any, plain_table, sorted_items, listed, collected)
        module.scope.update({helper.__name__: helper for helper in helpers})

    def is_needed(self, node: Node) -> bool:
        """Return whether msgspec must not, or cannot, encode the Python value as it is."""
        if isinstance(node, Leaf):
            return node.unbuild is not None
        if isinstance(node, (Array, Row, Union)):
            is_set = isinstance(node, Array) and node.make in {set, frozenset}
            return is_set or any(map(self.is_needed, node.children()))
        return True

    def expression(self, node: Node, var: str) -> str:
        """Return the expression that makes the encodable value of the Python value in the variable ``var``."""
        if not self.is_needed(node):
            return var
        if isinstance(node, Leaf):
            return f"{self._module.ref(node.unbuild)}({var})"
        if isinstance(node, Anything):
            return f"plain_any({var})"
        return self._module.nested(partial(self._parts, node), var)

    def _parts(self, node: Node, var: str) -> str:
        if isinstance(node, Custom):
            inner = f"{self._module.ref(node.unstructure)}({var})"
            if not self.is_needed(node.inner):
                return inner
            passed = self._module.name("v")
            return f"[{self.expression(node.inner, passed)} for {passed} in ({inner},)][0]"
        if isinstance(node, Array):
            return self._array(node, var)
        if isinstance(node, Row):
            return self._row(node, var)
        if isinstance(node, Table):
            return self._table(node, var)
        if isinstance(node, Ref):
            return f"{self._record(node.record)}({var})"
        return self._union(tuple(node.children()), var)

    def _array(self, node: Array, var: str) -> str:
        item = self._module.name("v")
        inner = self.expression(node.item, item)
        if node.make in {set, frozenset}:
            items = f"collected({var})"
            return f"sorted_items({items if inner == item else f'[{inner} for {item} in {items}]'})"
        return f"[{inner} for {item} in ({var} if type({var}) is list else listed({var}))]"

    def _row(self, node: Row, var: str) -> str:
        # strict=True: a tuple of another length must not be cut to fit.
        passed = [self._module.name("v") for _ in node.items]
        parts = ", ".join(self.expression(item, name) for item, name in zip(node.items, passed, strict=True))
        return f"[({parts},) for {', '.join(passed)}, in (listed({var}),)][0]"

    def _table(self, node: Table, var: str) -> str:
        if not self.is_needed(node.value):
            return f"plain_table({var})"
        item, key = self._module.name("v"), self._module.name("n")
        inner = self.expression(node.value, item)
        return f"{{{key}: {inner} for {key}, {item} in plain_table({var}).items()}}"

    def _union(self, members: tuple[Node, ...], var: str) -> str:
        needed = [member for member in members if self.is_needed(member)]
        classes = [(self._classes(member), member) for member in _most_derived_first(needed)]
        out = var if len(needed) < len(members) else self.expression(needed[-1], var)
        for kinds, member in classes:
            out = f"({self.expression(member, var)} if {kinds.format(var=var)} else {out})"
        return out

    def _classes(self, node: Node) -> str:
        """Return the condition, with ``{var}`` open, under which a Python value is ``node``'s."""
        module = self._module
        if isinstance(node, Ref) and node.record.style == "typeddict":
            tag = node.record.tag
            if tag is None:
                return "isinstance({var}, dict)"
            key, value = module.ref(tag.name), module.ref(node.record.tag_value)
            return f"isinstance({{var}}, dict) and {{var}}.get({key}) == {value}"
        if isinstance(node, Tagged):
            return " or ".join(f"({self._classes(member)})" for member in node.members)
        if isinstance(node, Ref):
            return f"isinstance({{var}}, {module.ref(node.record.cls)})"
        if isinstance(node, Custom):
            return f"isinstance({{var}}, {module.ref(node.cls)})"
        if isinstance(node, Table):
            return "isinstance({var}, dict)"
        if isinstance(node, Array) and node.make in {set, frozenset}:
            return "isinstance({var}, (set, frozenset))"
        if isinstance(node, (Array, Row)):
            return "isinstance({var}, (list, tuple))"
        return f"isinstance({{var}}, {module.ref(Decimal)})"  # the only leaf that needs an unbuilder

    def _record(self, record: Record) -> str:
        name = self._functions.get(id(record))
        if name is None:
            name = self._functions[id(record)] = self._module.name("unbuild")
            body = self._from_dict(record) if record.style == "typeddict" else self._from_object(record)
            self._module.function(name, "o", body)
        return name

    def _from_object(self, record: Record) -> list[str]:
        fields = record.fields if record.tag is None else (record.tag, *record.fields)
        pairs = [
            f"{self._module.ref(field.wire)}: {self.expression(field.node, f'o.{field.attribute}')}" for field in fields
        ]
        return [f"return {{{', '.join(pairs)}}}"]

    def _from_dict(self, record: Record) -> list[str]:
        fields = record.fields if record.tag is None else (record.tag, *record.fields)
        lines = ["d = {}", "n = len(o)"]
        for field in fields:
            value = self.expression(field.node, "x")
            put = f"d[{self._module.ref(field.wire)}] = {value}"
            key = self._module.ref(field.name)
            if field.is_required:
                lines += [f"x = o[{key}]", put]
            else:
                lines += [f"if {key} in o:", f"    x = o[{key}]", f"    {put}"]
        # A key that the class does not declare must be seen by the check, not dropped.
        return [*lines, "if len(d) != n: raise TypeError('undeclared keys')", "return d"]


def _most_derived_first(nodes: list[Node]) -> list[Node]:
    return sorted(nodes, key=lambda node: len(node.record.cls.__mro__) if isinstance(node, Ref) else 0)
