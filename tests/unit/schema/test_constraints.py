"""What may stand beside a type in Annotated, and where descriptions come from."""

import enum
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, TypedDict

import annotated_types as at
import attrs
import jsonschema_rs
import pytest
from msgspec import Meta
from typing_extensions import Doc

from harbor_async.errors import InvalidToolError, RegistrationError, SchemaBuildError, UnsupportedTypeError
from harbor_async.schema import derive_schema, register_type
from harbor_async.schema._function import compile_function
from harbor_async.schema._pattern import PatternError, to_python
from tests.unit.schema.support import decode_as, encode, faults_as, function_of, output_problems, problems_of


@pytest.mark.parametrize(
    ("tp", "keywords", "good", "bad"),
    [
        (Annotated[int, Meta(ge=1, le=7)], {"minimum": 1, "maximum": 7}, ["1", "7", "7.0"], ["0", "8"]),
        (Annotated[int, at.Gt(1), at.Lt(3)], {"exclusiveMinimum": 1, "exclusiveMaximum": 3}, ["2"], ["1", "3"]),
        (Annotated[float, at.Interval(ge=0, lt=1)], {"minimum": 0, "exclusiveMaximum": 1}, ["0", "0.5"], ["1", "-0.1"]),
        (Annotated[int, at.MultipleOf(3)], {"multipleOf": 3}, ["0", "-3"], ["1"]),
        (
            Annotated[str, Meta(min_length=1, max_length=2)],
            {"minLength": 1, "maxLength": 2},
            ['"é"', '"😀😀"'],
            ['""', '"abc"'],
        ),
        (Annotated[str, at.Len(2, 2)], {"minLength": 2, "maxLength": 2}, ['"ab"'], ['"a"']),
        (Annotated[str, Meta(pattern="^a+$")], {"pattern": "^a+$"}, ['"aa"'], ['"b"', '"a\\n"']),
        (Annotated[list[int], at.MinLen(1)], {"minItems": 1}, ["[1]"], ["[]"]),
        (Annotated[set[int], at.MaxLen(1)], {"maxItems": 1}, ["[1]"], ["[1,1]"]),
        (Annotated[dict[str, int], at.Len(1, 1)], {"minProperties": 1, "maxProperties": 1}, ['{"a":1}'], ["{}"]),
    ],
)
def test_bounds(tp: Any, keywords: dict[str, Any], good: list[str], bad: list[str]) -> None:
    """Bounds of msgspec and annotated_types are in the schema and are enforced."""
    schema = derive_schema(tp)
    assert keywords == {key: schema[key] for key in keywords}
    for text in good:
        decode_as(tp, text)
    for text in bad:
        assert [("", "value")] == faults_as(tp, text)


def test_bound_messages() -> None:
    """A message says the bounds, not the value."""
    (problem,) = problems_of(function_of(Annotated[int, Meta(ge=1, le=7)]), '{"x": 12345}')
    assert "expected integer: at least 1 and at most 7" == problem.message


@pytest.mark.parametrize(
    ("tp", "value", "message"),
    [
        (Annotated[str, Meta(min_length=2, max_length=3)], '"a"', "expected string: 2 to 3 characters"),
        (Annotated[str, Meta(max_length=1)], '"ab"', "expected string: at most 1 character"),
        (Annotated[list[int], Meta(min_length=1)], "[]", "expected at least 1 item, got 0"),
        (Annotated[list[int], Meta(min_length=2, max_length=2)], "[1]", "expected 2 items, got 1"),
        (Annotated[dict[str, int], Meta(min_length=2)], '{"a":1}', "expected at least 2 keys, got 1"),
        (
            Annotated[str, Meta(min_length=2, pattern="^a")],
            '"b"',
            "expected string: text that matches '^a' and at least 2 characters",
        ),
    ],
)
def test_length_messages(tp: Any, value: str, message: str) -> None:
    """A length that is out of bounds is told as a count of characters, items or keys."""
    (problem,) = problems_of(function_of(tp), f'{{"x":{value}}}')
    assert ("/x", message) == (problem.path, problem.message)


def test_bounds_reach_into_unions() -> None:
    """A bound on an optional type is a bound on the part that can have it."""
    tp = Annotated[int | None, at.Ge(0)]
    assert {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]} == derive_schema(tp)
    assert decode_as(tp, "null") is None
    assert [("", "value")] == faults_as(tp, "-1")


@pytest.mark.parametrize(
    "tp",
    [
        Annotated[str, at.Ge(0)],
        Annotated[int, at.MinLen(1)],
        Annotated[int, Meta(pattern="a")],
        Annotated[bool, at.Ge(0)],
        Annotated[bytes, at.MinLen(1)],
        Annotated[tuple[int, int], at.MinLen(1)],
        Annotated[None, at.Ge(0)],
        Annotated[int, at.Predicate(bool)],
        Annotated[int, Meta(ge=2**64)],
        Annotated[int, at.Ge(0.5)],
        Annotated[float, at.MultipleOf(0.1)],
        Annotated[float, at.Ge(float("nan"))],
        Annotated[str, at.MinLen(-1)],
        Annotated[int, at.Ge("a")],
        Annotated[set[int], at.MinLen(2)],
    ],
    ids=str,
)
def test_bounds_that_make_no_sense(tp: Any) -> None:
    """A bound that the type cannot have, or that schema and decoder would read differently, is refused by name."""
    with pytest.raises(RegistrationError, match="parameter 'x'"):
        function_of(tp)


@pytest.mark.parametrize("mark", ["Plain text.", Doc("Plain text."), Meta(description="Plain text.")])
def test_descriptions_in_annotated(mark: Any) -> None:
    """A plain string, Doc and Meta(description=) describe."""
    assert {"type": "integer", "description": "Plain text."} == derive_schema(Annotated[int, mark])


def test_meta_titles_examples_and_extras() -> None:
    """What only informs goes into the schema as it is."""
    tp = Annotated[int, Meta(title="T", examples=[1], extra_json_schema={"x-unit": "m"})]
    assert {"type": "integer", "title": "T", "examples": [1], "x-unit": "m"} == derive_schema(tp)


def test_unknown_metadata_is_ignored() -> None:
    """What nobody here knows is ignored, as PEP 593 asks."""
    assert {"type": "integer"} == derive_schema(Annotated[int, object(), 3])


GOOGLE = """Search.

    Finds things.

    Args:
        text: What to look for,
            in words.
        limit (int, optional): How many.

    Returns:
        Things.
    """
NUMPY = """Search.

    Finds things.

    Parameters
    ----------
    text : str
        What to look for,
        in words.
    limit : int, optional
        How many.

    Returns
    -------
    str
        Things.
    """
SPHINX = """Search.

    Finds things.

    :param text: What to look for,
        in words.
    :param int limit: How many.
    :returns: Things.
    """


@pytest.mark.parametrize("doc", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_docstring_styles(doc: str) -> None:
    """Google, NumPy and Sphinx docstrings give the tool's description and each parameter's."""

    async def search(text: str, limit: int = 3) -> str:
        return text

    search.__doc__ = doc
    schema = compile_function(search)
    assert "Search.\n\nFinds things." == schema.description
    properties = schema.args_schema["properties"]
    assert ["What to look for,", "in words."] == [
        line.strip() for line in properties["text"]["description"].split("\n")
    ]
    assert "How many." == properties["limit"]["description"]


def test_descriptions_have_an_order() -> None:
    """Annotated wins over attrs metadata, and that over the docstring."""

    @attrs.define
    class Query:
        """A query.

        Attributes:
            a: doc a
            b: doc b
            c: doc c
        """

        a: Annotated[int, "marked a"] = attrs.field(metadata={"description": "meta a"})
        b: int = attrs.field(metadata={"description": "meta b"})
        c: int

    properties = derive_schema(Query)["properties"]
    assert ["marked a", "meta b", "doc c"] == [properties[name]["description"] for name in "abc"]


def test_class_docstrings_describe_fields() -> None:
    """Attributes sections of dataclasses, TypedDicts and base classes describe their fields."""

    @dataclass
    class Base:
        """Base.

        Attributes:
            a: The a.
            b: The b.
        """

        a: int
        b: int = field(metadata={"description": "More."})

    @dataclass
    class Derived(Base):
        """Derived.

        Parameters
        ----------
        c
            The c.
        """

        c: int

    class Movie(TypedDict):
        """A movie.

        Attributes:
            title: Its name.
        """

        title: str

    properties = derive_schema(Derived)["properties"]
    assert ["The a.", "More.", "The c."] == [properties[name]["description"] for name in "abc"]
    assert "Its name." == derive_schema(Movie)["properties"]["title"]["description"]


def test_the_docstring_library_is_imported_late() -> None:
    """Importing the package, and describing a function with one line of docstring, load no docstring parser."""
    program = (
        "import sys, harbor_async.schema\n"
        "from harbor_async.schema._function import compile_function\n"
        "def f(x: int):\n    'One line.'\n"
        "compile_function(f)\n"
        "assert 'docstring_parser' not in sys.modules\n"
        "assert 'trio' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    "pattern",
    [
        "^a+$",
        r"^\d{2,3}$",
        r"[\w.-]+@\w+",
        r"(?:a|b)*?c",
        r"(?=a)a",
        r"(?<!x)y",
        r"^[^\s\]]+$",
        r"\u00e9\x41",
        "é|😀",
        r"a\/b",
        ".",
    ],
)
@pytest.mark.parametrize(
    "text", ["a", "aa\n", "12", "١٢", "a@b", "é", "😀", "abc", "y", "xy", "\x1f", "\u00a0", "a/b", "\n", "\u2028", "_"]
)
def test_patterns_mean_the_same(pattern: str, text: str) -> None:
    r"""A pattern that is taken means in Python what it means in ECMA-262: \d and \w are ASCII, $ is the very end."""
    import re

    expected = jsonschema_rs.validator_for({"pattern": pattern}).is_valid(text)
    assert expected == (re.search(to_python(pattern), text) is not None)


@pytest.mark.parametrize(
    "pattern",
    [
        r"a\Z", r"\Aa", "(?P<n>a)", "(?i)a", "(?#c)a", "a*+", "(?>a)", "(?(1)a|b)", r"(a)\1", "a{,3}", "a{", "a}", "a]",
        "[]a]", "[^]", "[[a]]", "[a&&b]", r"\p{L}", r"\a", r"\01", r"\u{41}", "a**", "(", "[a", "a\\",
        r"[\D]", r"\q", "*a",
    ],
)  # fmt: skip
def test_patterns_that_differ_are_refused(pattern: str) -> None:
    """A pattern that Python and ECMA-262 read differently, or that is none, is refused."""
    with pytest.raises(PatternError):
        to_python(pattern)


def test_refused_patterns_name_the_parameter() -> None:
    """The refusal of a pattern says where it stands."""
    with pytest.raises(SchemaBuildError, match=r"parameter 'x'.*pattern"):
        function_of(Annotated[str, Meta(pattern=r"a\Z")])


class Version:
    """A class that somebody else wrote."""

    def __init__(self, major: int) -> None:
        if major > 9:
            raise ValueError(f"no version {major}")
        self.major = major

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and other.major == self.major

    __hash__ = None  # type: ignore[assignment]


def test_registered_types() -> None:
    """A registered type has the schema of its wire type, is checked as such, and goes through its hooks both ways."""

    class Url:
        def __init__(self, text: str) -> None:
            self.text = text

    with pytest.raises(UnsupportedTypeError, match="register_type"):
        derive_schema(Url)
    register_type(
        Url, wire=Annotated[str, Meta(min_length=3)], structure=Url, unstructure=lambda url: url.text, format="uri"
    )
    assert {"type": "string", "minLength": 3, "format": "uri"} == derive_schema(Url)
    assert "a:b" == decode_as(Url, '"a:b"').text
    assert [("", "value")] == faults_as(Url, '"a"')
    assert [("", "type")] == faults_as(Url, "1")
    assert '["a:b",null]' == encode(list[Url | None], [Url("a:b"), None])
    assert '{"u":"a:b"}' == encode(Any, {"u": Url("a:b")})
    assert [("", "value")] == [(p.path, p.code) for p in output_problems(Url, Url("a"))]


def test_registered_types_inside_others() -> None:
    """A registered type may stand in classes, containers and unions, and travel as an object."""
    register_type(
        Version, wire=dict[str, int], structure=lambda d: Version(d["major"]), unstructure=lambda v: {"major": v.major}
    )

    @attrs.define
    class Release:
        version: Version
        old: list[Version] = attrs.field(factory=list)

    text = '{"version": {"major": 1}, "old": [{"major": 2}]}'
    release = decode_as(Release, text)
    assert Release(Version(1), [Version(2)]) == release
    assert text.replace(" ", "") == encode(Release, release)
    (problem,) = problems_of(function_of(Release), '{"x": {"version": {"major": 12345}}}')
    assert ("/x/version", "value", "no version <value>") == (problem.path, problem.code, problem.message)
    (problem,) = problems_of(function_of(Release), '{"x": {"version": {}}}')
    assert ("/x/version", "value") == (problem.path, problem.code)


def test_registration_keeps_described_tools() -> None:
    """Registering again changes what is described later, and no tool that exists."""

    class Unit:
        def __init__(self, text: Any) -> None:
            self.text = text

    register_type(Unit, wire=str, structure=Unit, unstructure=lambda unit: unit.text)
    before = function_of(Unit)
    register_type(Unit, wire=int, structure=Unit, unstructure=lambda unit: unit.text)
    (unit,) = before.decode('{"x": "a"}', 100, 9)
    assert "a" == unit.text
    assert 5 == decode_as(Unit, "5").text


def test_hooks_of_cattrs_tell_where() -> None:
    """A structure hook that is itself cattrs has its places in the pointer."""
    import cattrs

    @attrs.define
    class Inner:
        n: int

    class Outer:
        def __init__(self, inners: list[Inner]) -> None:
            self.inners = inners

    register_type(
        Outer,
        wire=list[dict[str, Any]],
        structure=lambda value: Outer(cattrs.structure(value, list[Inner])),
        unstructure=lambda outer: cattrs.unstructure(outer.inners),
    )
    assert [("/1/n", "value")] == faults_as(Outer, '[{"n": 1}, {"n": "secret"}]')


@pytest.mark.parametrize(
    "options",
    [
        {"type": 3, "wire": str, "structure": str, "unstructure": str},
        {"type": PurePosixPath, "wire": str, "structure": None, "unstructure": str},
        {"type": PurePosixPath, "wire": str, "structure": str, "unstructure": "str"},
    ],
)
def test_registration_is_checked(options: dict[str, Any]) -> None:
    """A type that is no class and hooks that cannot be called are refused at once."""
    with pytest.raises(InvalidToolError, match="register_type"):
        register_type(**options)


def test_a_wire_type_without_form_is_refused() -> None:
    """A wire type that has no JSON form itself is refused where the type is used."""
    register_type(PurePosixPath, wire=complex, structure=PurePosixPath, unstructure=str)
    with pytest.raises(UnsupportedTypeError, match="wire type of PurePosixPath"):
        derive_schema(list[PurePosixPath])


def test_registered_enums_and_paths() -> None:
    """Any class can be registered, Path and enums included."""

    class Odd(enum.Enum):
        A = 1
        B = "b"

    register_type(Path, wire=str, structure=Path, unstructure=str, format="path")
    register_type(Odd, wire=str, structure=lambda name: Odd[name], unstructure=lambda odd: odd.name)
    assert Path("/a") == decode_as(Path, '"/a"')
    assert '"/a"' == encode(Path, Path("/a")) == encode(Any, Path("/a"))
    assert Odd.A is decode_as(Odd, '"A"')
    assert [("", "value")] == faults_as(Odd, '"C"')
