"""Types that nobody should write, and that somebody will: each works, or is refused by name when it is registered."""

import dataclasses
import enum
import functools
import sys
import threading
from collections.abc import Callable
from typing import Annotated, Any, Generic, Literal, Self, TypedDict, TypeVar, Union

import attrs
import pytest

from harbor_async import ToolContext
from harbor_async.errors import RegistrationError, SchemaBuildError, UnsupportedTypeError
from harbor_async.schema import Name, derive_schema, register_type
from harbor_async.schema._function import compile_function
from tests.unit.schema.support import decode_as, encode, faults, function_of, problems_of

T = TypeVar("T")


@attrs.define
class Growing(Generic[T]):
    """Each form holds a larger one."""

    value: T
    more: "Growing[list[T]] | None" = None


@attrs.define
class Leaf:
    """Needs a builder."""

    v: int


def nested(make: Callable[[Any], Any], depth: int, inner: Any = Leaf) -> Any:
    """Return ``inner`` within ``depth`` containers."""
    return functools.reduce(lambda tp, _: make(tp), range(depth), inner)


def chain(length: int) -> Any:
    """Return a class that holds a class that holds a class, and so on."""
    tp: Any = int
    for number in range(length):
        tp = attrs.make_class(f"Link{number}", {"v": attrs.field(type=tp)})
    return tp


Endless = Union[int, list["Endless"]]  # noqa: UP007 - a name that is not yet there


class Speaking(int, enum.Enum):
    """An int that has a text as its value."""

    def __new__(cls, number: int) -> Self:
        member = int.__new__(cls, number)
        member._value_ = f"number {number}"
        return member

    ONE = 1


class Wrapped:
    """Registered with a wire type that leads back to it."""


register_type(Wrapped, wire=list[Wrapped], structure=lambda _: Wrapped(), unstructure=lambda _: [])


@pytest.mark.parametrize(
    ("tp", "words"),
    [
        (Growing[int], "Growing has no JSON form; .* has no end"),
        (Generic, "Generic has no JSON form"),
        (nested(lambda tp: list[tp], 400), "nested over 50 levels"),
        (nested(lambda tp: dict[str, tp] | None, 60, int), "nested over 50 levels"),
        (chain(400), "classes are nested too deeply"),
        (Endless, "an alias cannot contain itself|'Endless' cannot be found"),
        (Wrapped, "its wire type leads back to it"),
        (Speaking, "a member is one text or number and has another as its value"),
        (Literal["\ud800"], "no text"),
        (enum.Enum("Half", {"A": "\udc00"}), "no text"),
        (list[ToolContext], "filled in where a parameter of its own"),
        ("foo bar", "SyntaxError"),
        *((TypedDict("Keys", {key: int}), "the wire name") for key in ('"', "\\", "\n", "\x1f", "\ud800")),  # type: ignore[operator]  # made at run time
    ],
)
def test_refused_by_name(tp: Any, words: str) -> None:
    """A type without a JSON form is refused with our own error, as it is and as a parameter."""
    with pytest.raises(RegistrationError, match=words):
        derive_schema(tp)
    with pytest.raises(RegistrationError, match=words):
        function_of(tp)


def test_names_of_the_calling_module() -> None:
    """A name given to derive_schema is looked up in the module that calls, too."""
    assert derive_schema(list[Leaf]) == derive_schema("list[Leaf]")
    with pytest.raises(UnsupportedTypeError, match="an alias cannot contain itself"):
        derive_schema(Endless)


def test_wire_names_are_text_that_needs_no_escape() -> None:
    """The name of a parameter on the wire may hold slashes and tildes, and no quotes."""

    async def fine(a: Annotated[int, Name("a/~b")], b: Annotated[int, Name("$ref")]) -> None: ...

    async def wrong(a: Annotated[int, Name('a"b')]) -> None: ...

    assert [("/a~1~0b", "type")] == faults(fine, '{"a/~b": "x", "$ref": 1}')
    with pytest.raises(SchemaBuildError, match="the wire name"):
        compile_function(wrong)


@pytest.mark.parametrize("depth", [1, 7, 8, 9, 16, 17, 25, 48])
@pytest.mark.parametrize(
    ("make", "wrap"),
    [
        (lambda tp: list[tp], "[{}]"),
        (lambda tp: tuple[tp], "[{}]"),
        (lambda tp: dict[str, tp], '{{"k":{}}}'),
        (lambda tp: tuple[tp, ...], "[{}]"),
    ],
    ids=["list", "row", "dict", "tuple"],
)
def test_deeply_nested_containers(make: Callable[[Any], Any], wrap: str, depth: int) -> None:
    """Containers within containers go there and back; 21 comprehensions in each other would crash Python 3.12."""
    tp = nested(make, depth)
    text = functools.reduce(lambda inner, _: wrap.format(inner), range(depth), '{"v":1}')
    assert text == encode(tp, decode_as(tp, text))
    doubled = text.replace('"v":1', '"v":1,"v":1')
    assert ["duplicate"] == [code for _, code in faults(function_of(tp), f'{{"x":{doubled}}}')]


@attrs.define
class Body:
    """Names a class of its own body, and has a field that is called as its type is."""

    @attrs.define
    class Part:
        n: int

    part: "Part"
    int: "int" = 3
    more: "list[Part] | None" = None


def test_names_of_a_class_body() -> None:
    """A string annotation sees the classes of the class's own body, and no value of a field."""
    schema = derive_schema(Body)
    assert {"type": "integer", "default": 3} == schema["properties"]["int"]
    assert Body(Body.Part(1), more=[]) == decode_as(Body, '{"part":{"n":1},"more":[]}')


class Store(Generic[T]):
    """Its methods speak of its type parameter."""

    async def put(self, item: T, *, many: list[T] | None = None) -> T:
        return item

    async def __call__(self, item: T) -> T:
        return item


class Numbers(Store[int]):
    """Says which."""


@pytest.mark.parametrize(
    "fn",
    [
        Numbers().put,
        Numbers(),
        Store[int](),
        Store[int]().put,
        functools.partial(Numbers().put, many=None),
        functools.partial(Store[int]()),
    ],
)
def test_methods_of_generic_classes(fn: Any) -> None:
    """A type parameter that the class, or the object, has settled is settled in its methods."""
    schema = compile_function(fn)
    assert {"type": "integer"} == schema.args_schema["properties"]["item"]
    assert {"type": "integer"} == schema.out_schema


def test_methods_of_an_open_generic_class() -> None:
    """A type parameter that nobody has settled takes anything."""
    assert {} == compile_function(Store().put).args_schema["properties"]["item"]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="PEP 695 syntax")
def test_type_parameters_hide_globals() -> None:
    """A type parameter in a string annotation is the class's own, although the module has a T, too."""
    scope = {"attrs": attrs, "T": T}
    exec("@attrs.define\nclass Box[T]:\n    v: T\n    next: 'Box[T] | None' = None", scope)
    box = scope["Box"]
    schema = derive_schema(box[int])
    assert [{"$ref": "#/$defs/Box_int"}, {"type": "null"}] == schema["properties"]["next"]["anyOf"]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="PEP 695 syntax")
def test_aliases_of_literals_join() -> None:
    """Literals behind a type statement are joined with those beside it."""
    scope: dict[str, Any] = {}
    exec("from typing import Literal\ntype Letters = Literal['a', 'b']", scope)
    schema = derive_schema(scope["Letters"] | Literal["c"] | None)
    assert [{"type": "string", "enum": ["a", "b", "c"]}, {"type": "null"}] == schema["anyOf"]


@pytest.mark.parametrize("interrupt", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_interrupts_leave(interrupt: type[BaseException]) -> None:
    """What is no Exception leaves a validator as it is; it is no problem of an argument."""

    def stop(_: object, __: object, ___: object) -> None:
        raise interrupt

    @attrs.define
    class Stopping:
        n: int = attrs.field(validator=stop)

    with pytest.raises(interrupt):
        decode_as(list[Stopping], '[{"n": 1}]')


class UnreadableError(Exception):
    """Cannot be told."""

    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (StopIteration("no more"), "no more"),
        (RecursionError("too deep"), "too deep"),
        (KeyError("secret"), "refused: KeyError"),
        (ValueError(), "refused: ValueError"),
        (UnreadableError("x"), "refused: UnreadableError"),
        (
            UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad start"),
            "'utf-8' codec can't decode byte 0xff in position 0: bad start",
        ),
        (ExceptionGroup("several", [ValueError("one")]), "several (1 sub-exception)"),
        (OSError(2, "No such file"), "[Errno 2] No such file"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_odd_exceptions_of_validators(error: Exception, message: str) -> None:
    """Whatever a validator raises becomes a problem of its object."""

    def refuse(_: object, __: object, ___: object) -> None:
        raise error

    @dataclasses.dataclass
    class Item:
        n: int

        def __post_init__(self) -> None:
            refuse(None, None, None)

    (problem,) = problems_of(function_of(list[Item]), '{"x": [{"n": 7}]}')
    assert ("/x/0", "value", message) == (problem.path, problem.code, problem.message)


def test_registration_from_many_threads() -> None:
    """Types and functions may be registered from many threads at once."""
    failed: list[Exception] = []

    def work() -> None:
        try:
            for _ in range(10):

                class Own:
                    pass

                register_type(Own, wire=int, structure=lambda _: Own(), unstructure=lambda _: 1)
                holder = attrs.make_class("Holder", {"own": attrs.field(type=Own), "leaf": attrs.field(type=Leaf)})
                text = '[{"own":1,"leaf":{"v":2}}]'
                assert text == encode(list[holder], decode_as(list[holder], text))
                assert text == encode(Any, decode_as(list[holder], text))
        except Exception as exc:  # noqa: BLE001 - told below, in the test's own thread
            failed.append(exc)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == failed


def test_a_form_may_change() -> None:
    """A type that is registered again travels in its new form; a tool described before keeps the old one."""

    @attrs.frozen
    class Money:
        cents: int

    register_type(Money, wire=int, structure=Money, unstructure=lambda money: money.cents)
    before = function_of(Money, Money)
    register_type(Money, wire=str, structure=lambda text: Money(int(text)), unstructure=lambda money: str(money.cents))
    after = function_of(Money | None, dict[str, Money])
    assert (Money(5),) == before.decode('{"x": 5}', 1000, 9)
    assert (Money(5),) == after.decode('{"x": "5"}', 1000, 9)
    assert b"5" == before.encode(Money(5), True)
    assert b'{"k":"5"}' == after.encode({"k": Money(5)}, True)


def test_context_is_no_type_of_a_document() -> None:
    """A context stands alone as a parameter, never within a type."""
    with pytest.raises(UnsupportedTypeError, match="parameter 'x'"):
        function_of(dict[str, ToolContext])
