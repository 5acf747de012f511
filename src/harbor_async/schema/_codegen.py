"""The functions that a plan becomes: plain Python text, compiled once at registration.

Three are written from one plan:

- the *builder* makes the user's objects out of decoded shadows, through their real ``__init__``;
- the *counter* (``_count``) says how many keys a decoded document holds, so that a key that came twice cannot hide;
- the *unbuilder* (``_unbuild``) makes what msgspec may encode out of the user's objects, in declaration order.

Where a part of a plan needs no work its expression is the value itself, so that ``list[str]`` costs nothing.
Wire names and users' values never become program text: they are passed in by reference.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from ._plan import NOTHING, Array, Custom, Field, Leaf, Node, Record, Ref, Row, Table, Tagged, Union
from ._sets import FEW, maker
from ._shadow import Shadows

# Python 3.12 and 3.13 crash where over 20 comprehensions stand in each other, and no Python reads 200 parentheses.
_NESTED: Final = 8


class Module:
    """Program text under construction, with the objects that it refers to."""

    def __init__(self) -> None:
        """Begin an empty module."""
        self.lines: list[str] = []
        self.scope: dict[str, Any] = {"UNSET": msgspec.UNSET}
        self._names: dict[Any, str] = {}
        self._tables: dict[str, Mapping[Any, str]] = {}
        self._serial = 0
        self._depth = 0

    def name(self, prefix: str) -> str:
        """Return a name that nothing else has."""
        self._serial += 1
        return f"{prefix}{self._serial}"

    def ref(self, value: Any, prefix: str = "k") -> str:
        """Return the name under which the text sees ``value``."""
        key = (id(value), prefix)
        if key not in self._names:
            name = self._names[key] = self.name(prefix)
            self.scope[name] = value
        return self._names[key]

    def function(self, name: str, params: str, body: Sequence[str]) -> None:
        """Add a function."""
        self.lines.append(f"def {name}({params}):")
        self.lines.extend(f"    {line}" for line in body)

    def nested(self, write: Callable[[str], str], var: str) -> str:
        """Return the expression ``write(var)``; a call of a function of its own, if it stands deep in others."""
        depth = self._depth
        try:
            if depth < _NESTED:
                self._depth += 1
                return write(var)
            self._depth = 0
            name = self.name("part")
            self.function(name, "v0", [f"return {write('v0')}"])
            return f"{name}({var})"
        finally:
            self._depth = depth

    def compile(self) -> Mapping[str, Any]:
        """Run the text and return what it defines."""
        exec(compile("\n".join(self.lines), "<harbor_async schema>", "exec"), self.scope)  # noqa: S102 - our own text: names and numbers only
        for name, table in self._tables.items():
            self.scope[name] = {key: self.scope[function] for key, function in table.items()}
        return self.scope

    def table(self, functions: Mapping[Any, str]) -> str:
        """Return the name of a dict from keys to functions of this module."""
        name = self.name("table")
        self._tables[name] = functions
        return name


def is_builder_needed(node: Node) -> bool:
    """Return whether the Python value differs from the one that msgspec decodes."""
    if isinstance(node, (Ref, Tagged, Custom)):
        return True
    if isinstance(node, Leaf):
        return node.build is not None
    if isinstance(node, Array) and node.make in {set, frozenset}:
        return True
    if isinstance(node, Table) and is_builder_needed(node.key):
        return True
    return any(map(is_builder_needed, node.children()))


class Builder:
    """Writes the expressions that make Python values of decoded ones."""

    def __init__(self, module: Module, shadows: Shadows) -> None:
        """Write into ``module``."""
        self._module = module
        self._shadows = shadows
        self._functions: dict[int, str] = {}

    def expression(self, node: Node, var: str) -> str:
        """Return the expression that makes the Python value of the decoded value in the variable ``var``."""
        if not is_builder_needed(node):
            return var
        if isinstance(node, Leaf):
            return f"{self._module.ref(node.build)}({var})"
        return self._module.nested(partial(self._parts, node), var)

    def _parts(self, node: Node, var: str) -> str:
        if isinstance(node, Custom):
            return f"{self._module.ref(node.structure)}({self.expression(node.inner, var)})"
        if isinstance(node, Array):
            return self._array(node, var)
        if isinstance(node, Row):
            parts = (self.expression(item, f"{var}[{index}]") for index, item in enumerate(node.items))
            return f"({''.join(f'{part}, ' for part in parts)})"
        if isinstance(node, Table):
            item, key = self._module.name("v"), self._module.name("n")
            pair = f"{self.expression(node.key, key)}: {self.expression(node.value, item)}"
            return f"{{{pair} for {key}, {item} in {var}.items()}}"
        if isinstance(node, Ref):
            return f"{self._record(node.record)}({var})"
        if isinstance(node, Tagged):
            functions = {self._shadows.struct(ref.record): self._record(ref.record) for ref in node.members}
            return f"{self._module.table(functions)}[type({var})]({var})"
        assert isinstance(node, Union)  # noqa: S101 - Anything needs no builder
        return self._union(node, var)

    def _array(self, node: Array, var: str) -> str:
        item = self._module.name("v")
        inner = self.expression(node.item, item)
        items = var if inner == item else f"[{inner} for {item} in {var}]"
        if node.make is list:
            return items
        make = node.make.__name__
        if node.make is tuple:
            return f"{make}({items})"
        return f"({make}({items}) if len({var}) <= {FEW} else {self._module.ref(maker(node.make))}({items}))"

    def _union(self, node: Union, var: str) -> str:
        out = var
        for member in reversed(node.members):
            if is_builder_needed(member):
                out = f"({self.expression(member, var)} if {self._test(member, var)} else {out})"
        return out

    def _test(self, node: Node, var: str) -> str:
        """Return the condition that tells ``node`` from the other members of a union, by the decoded value's class."""
        types = decoded_types(node, self._shadows)
        if len(types) == 1:
            return f"type({var}) is {self._module.ref(types[0])}"
        return f"type({var}) in {self._module.ref(frozenset(types))}"

    def _record(self, record: Record) -> str:
        name = self._functions.get(id(record))
        if name is None:
            name = self._functions[id(record)] = self._module.name("build")
            body = self._typeddict(record) if record.style == "typeddict" else self._call(record)
            self._module.function(name, "s", body)
        return name

    def assignments(self, record: Record) -> list[str]:
        """Return the lines that put the value of field *i* into ``a<i>``; UNSET if the class's own default applies."""
        lines: list[str] = []
        for index, field in enumerate(record.fields):
            var = f"a{index}"
            lines.append(f"{var} = s.f{index}")
            value = self.expression(field.node, var)
            if field.is_required:
                if value != var:
                    lines.append(f"{var} = {value}")
                continue
            absent = self._absent(field)
            if absent is not None:
                lines.append(f"if {var} is UNSET: {var} = {absent}")
                if value != var:
                    lines.append(f"else: {var} = {value}")
            elif value != var:
                lines.append(f"if {var} is not UNSET: {var} = {value}")
        return lines

    def _absent(self, field: Field) -> str | None:
        if field.factory is not None:
            return "[]" if field.factory is list else f"{self._module.ref(field.factory)}()"
        if field.default is NOTHING:
            return None
        default = field.default
        return repr(default) if default is None or type(default) in {bool, int} else self._module.ref(default)

    def _tag(self, record: Record) -> str:
        assert record.tag is not None  # noqa: S101 - asked only for tagged records
        node = record.tag.node
        value = record.tag_value
        return self._module.ref(node.build(value) if isinstance(node, Leaf) and node.build else value)

    def _call(self, record: Record) -> list[str]:
        """Return the body that calls the class: by position as far as that goes, then by keyword."""
        lines = self.assignments(record)
        passed: list[str] = []
        late: list[tuple[int, Field]] = []
        by_position = record.tag is None
        for index, field in enumerate(record.fields):
            if not field.is_required and self._absent(field) is None:
                late.append((index, field))
                by_position = False
            elif by_position and not field.is_keyword:
                passed.append(f"a{index}")
            else:
                passed.append(f"{field.name}=a{index}")
        if record.tag is not None:
            passed.append(f"{record.tag.name}={self._tag(record)}")
        make = self._module.ref(record.cls)
        if late:
            lines.append("more = {}")
            lines.extend(f"if a{index} is not UNSET: more[{field.name!r}] = a{index}" for index, field in late)
            passed.append("**more")
        return [*lines, f"return {make}({', '.join(_keywords_last(passed))})"]

    def _typeddict(self, record: Record) -> list[str]:
        lines = [*self.assignments(record), "d = {}"]
        if record.tag is not None:
            lines.append(f"d[{self._module.ref(record.tag.name)}] = {self._tag(record)}")
        for index, field in enumerate(record.fields):
            put = f"d[{self._module.ref(field.name)}] = a{index}"
            lines.append(put if field.is_required else f"if a{index} is not UNSET: {put}")
        return [*lines, "return d"]


def _keywords_last(passed: list[str]) -> list[str]:
    plain = [part for part in passed if "=" not in part and not part.startswith("**")]
    return [*plain, *(part for part in passed if "=" in part), *(part for part in passed if part.startswith("**"))]


def decoded_types(node: Node, shadows: Shadows) -> tuple[Any, ...]:
    """Return the classes that msgspec makes for ``node``."""
    if isinstance(node, Leaf):
        return node.python
    if isinstance(node, (Array, Row)):
        return (tuple if isinstance(node, Row) or node.make is tuple else list,)
    if isinstance(node, Table):
        return (dict,)
    if isinstance(node, Ref):
        return (shadows.struct(node.record),)
    if isinstance(node, Custom):
        return decoded_types(node.inner, shadows)
    return tuple(tp for child in node.children() for tp in decoded_types(child, shadows))
