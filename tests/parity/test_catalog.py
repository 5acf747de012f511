"""``catalog.json``: registering, replacing, listing, and which MIME types a tool takes."""

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from harbor_async import Catalog, CatalogFilter, HarborError, ToolDescriptor, ToolExample, describe
from harbor_async.errors import DuplicateToolError, InvalidExampleError, InvalidToolError, ToolNotFoundError
from tests.parity.harness import Case, Difference, Section, load, named, names

WORDS: dict[str | type[HarborError], str] = {
    "ErrToolDuplicateName": "duplicate",
    DuplicateToolError: "duplicate",
    "ErrToolExampleInvalid": "bad example",
    InvalidExampleError: "bad example",
    "ErrToolNotFound": "not found",
    ToolNotFoundError: "not found",
    InvalidToolError: "invalid tool",
}
"""What an error is called here, whoever raised it."""

# --- sequences ------------------------------------------------------------------------------------------------------


async def takes_nothing() -> None: ...
async def takes_a(*, a: Any = None) -> None: ...
async def takes_a_b(*, a: str = "", b: int = 0) -> None: ...


TWO_KEYS = '{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"additionalProperties":false}'
FUNCTIONS = {
    None: takes_nothing,
    '{"type":"object"}': takes_nothing,
    '{"properties":null}': takes_nothing,
    '{"properties":{}}': takes_nothing,
    "{nope": takes_nothing,
    '{"type":"object","properties":{"a":{}},"additionalProperties":true}': takes_a,
    '{"PROPERTIES":{"a":{}}}': takes_a,
    TWO_KEYS: takes_a_b,
}
"""The function whose derived schema has the keys of the seed's hand-written one."""


def make(op: dict[str, Any]) -> ToolDescriptor:
    """Describe what the seed registers; a blank description stays blank, as in a descriptor made by hand."""
    function = FUNCTIONS[op.get("args_schema_json")] if op["callable"] else None
    examples = [ToolExample(args) for args in op.get("examples_args", ())]
    descriptor = describe(function, name=op["name"], examples=examples)
    return attrs.evolve(descriptor, tool=attrs.evolve(descriptor.tool, description=op["description"]))


def resolve(catalog: Catalog, name: str) -> str | None:
    """Return the description of a tool, None if there is none."""
    return catalog.resolve(name).tool.description if name in catalog else None


RUN: dict[str, Callable[[Catalog, dict[str, Any]], Any]] = {
    "register": lambda catalog, op: catalog.register(make(op)),
    "replace": lambda catalog, op: catalog.replace([make(tool | {"op": "replace"}) for tool in op["batch"]]),
    "resolve": lambda catalog, op: resolve(catalog, op["name"]),
    "list_all": lambda catalog, op: [(tool.name, tool.description) for tool in catalog.list()],
    "search": lambda catalog, op: len(catalog.search(op["name"])),
}


def run(catalog: Catalog, op: dict[str, Any]) -> Any:
    """Do one step; an error is its word."""
    try:
        return RUN[op["op"]](catalog, op)
    except HarborError as exc:
        return WORDS[type(exc)]


def recorded_result(result: dict[str, Any]) -> Any:
    """Put the recorded result of one step in the form of ``run``."""
    if "error_is" in result:
        (word,) = result["error_is"]
        return WORDS[word]
    if "tools" in result:
        return [(tool["name"], tool["description"]) for tool in result["tools"]]
    return result.get("count", result.get("description"))


def put(*, first: Any, then: Any = None) -> Callable[[list[Any], Case], list[Any]]:
    """Make our answer: the step at which we differ gives ``first``, a listing after it ``then``."""

    def ours(seed: list[Any], case: Case) -> list[Any]:
        step = next(
            index
            for index, op in enumerate(case.input["ops"])
            if op.get("examples_args") or op.get("batch") or op.get("callable") is False or not op.get("name", "-")
        )
        tail = [then if isinstance(result, list) and then is not None else result for result in seed[step + 1 :]]
        return [*seed[:step], first, *tail]

    return ours


SEQUENCES = Section(
    "catalog",
    "sequences",
    lambda case: [recorded_result(result) for result in case.expected["results"]],
    (
        Difference(
            13,
            named("empty_name", "nil_invoke", "empty_name_and_nil_invoke", "nil_invoke_duplicate"),
            put(first="invalid tool"),
        ),
        Difference(13, named("replace_nil_invoke"), put(first="invalid tool")),
        Difference(33, named("replace_empty_name"), put(first="invalid tool")),
        Difference(
            14,
            named(
                "example_wrong_type_ok",
                "example_no_schema_ok",
                "example_schema_without_properties_ok",
                "example_properties_null_ok",
                "example_malformed_schema_ok",
            ),
            put(first="bad example", then=[]),
        ),
        Difference(14, named("replace_does_not_check_examples"), put(first="bad example", then=[("a", "1")])),
        Difference(36, named("search_without_index"), lambda seed, _: [*seed[:-1], 1]),
    ),
)


@pytest.mark.parametrize("case", SEQUENCES.cases, ids=names)
def test_a_catalog_changes_as_in_the_seed(case: Case, asserted: Callable) -> None:
    """Each step on a fresh catalog has the recorded result; a step that fails changes nothing."""
    catalog = Catalog()
    numbers, expected = SEQUENCES.expect(case)
    assert expected == [run(catalog, op) for op in case.input["ops"]]
    asserted(SEQUENCES, case, numbers)


# --- listing --------------------------------------------------------------------------------------------------------

FIXTURE = load("catalog")["list_fixture"]


@pytest.fixture
def listed() -> Catalog:
    """Return the seed's catalog of tools, without the one whose loading mode is no mode here."""
    return Catalog(
        describe(
            takes_nothing, name=tool["name"], scopes=tool["auth_scopes"] or (), loading=tool["loading"] or "always"
        )
        for tool in FIXTURE
        if tool["loading"] != "weird"
    )


FILTERS = Section(
    "catalog",
    "list_filters",
    lambda case: case.expected["names"],
    (
        Difference(
            33,
            lambda case: not {"always", "deferred"}.issuperset(case.input["loading_modes"] or ()),
            lambda *_: "invalid tool",
        ),
    ),
)


@pytest.mark.parametrize("case", FILTERS.cases, ids=names)
def test_a_filter_lists_the_tools_of_the_seed(case: Case, listed: Catalog, asserted: Callable) -> None:
    """Scopes, loading modes and name patterns let through the recorded tools; an identity plays no part in it."""
    given = case.input
    ours: Any
    try:
        chosen = CatalogFilter(
            scopes=given["granted_scopes"] or (), loading=given["loading_modes"] or (), name_regex=given["name_regex"]
        )
    except InvalidToolError as exc:
        ours = WORDS[type(exc)]
    else:
        ours = [tool.name for tool in listed.list(chosen)]
    numbers, expected = FILTERS.expect(case)
    assert expected == ours
    asserted(FILTERS, case, numbers)


def test_a_loading_mode_outside_the_list_is_refused() -> None:
    """The tool of the seed's catalog that is missing here cannot be declared."""
    with pytest.raises(InvalidToolError, match="weird"):
        describe(takes_nothing, name="odd.loading", loading="weird")


COPIES = Section(
    "catalog",
    "copy_semantics",
    lambda case: case.expected,
    (
        Difference(
            12,
            named("list_entry_slice_is_shared"),
            lambda seed, _: {"names": [*seed["names"], "s1"], "s1_still_visible": True},
        ),
    ),
)


def change_name(catalog: Catalog) -> dict[str, Any]:
    """Change the first listed tool, list again."""
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        catalog.list(CatalogFilter())[0].name = "changed"
    return {"first_name": catalog.list(CatalogFilter())[0].name}


def change_scopes(catalog: Catalog) -> dict[str, Any]:
    """Change the scopes of a listed tool, list again."""
    read = CatalogFilter(scopes={"x:read"})
    (tool,) = (tool for tool in catalog.list(read) if tool.name == "s1")
    with pytest.raises(TypeError):
        tool.scopes[0] = "HACKED"
    found = [tool.name for tool in catalog.list(read)]
    return {"names": found, "s1_still_visible": "s1" in found}


CHANGES = {"list_entry_field_mutation_does_not_leak": change_name, "list_entry_slice_is_shared": change_scopes}


@pytest.mark.parametrize("case", COPIES.cases, ids=names)
def test_listed_tools_cannot_change_the_catalog(case: Case, listed: Catalog, asserted: Callable) -> None:
    """What a listing gives away is frozen, so that nobody else sees a change."""
    numbers, expected = COPIES.expect(case)
    assert expected == CHANGES[case.name](listed)
    asserted(COPIES, case, numbers)


# --- MIME types -----------------------------------------------------------------------------------------------------

MIME = Section("catalog", "matches_mime", lambda case: case.expected["match"])


@pytest.mark.parametrize("case", MIME.cases, ids=names)
def test_mime_types_match_as_in_the_seed(case: Case, asserted: Callable) -> None:
    """A tool takes a MIME type, or does not, as recorded."""
    descriptor = describe(takes_nothing, handles_mime=case.input["handles_mime"] or ())
    numbers, expected = MIME.expect(case)
    assert expected is descriptor.tool.matches_mime(case.input["mime"])
    asserted(MIME, case, numbers)


@pytest.mark.parametrize(
    ("section", "counts"),
    [
        (SEQUENCES, {0: 21, 13: 5, 14: 6, 33: 1, 36: 1}),
        (FILTERS, {0: 24, 33: 2}),
        (COPIES, {0: 1, 12: 1}),
        (MIME, {0: 17}),
    ],
    ids=lambda value: getattr(value, "key", None),
)
def test_the_differences_cover_as_many_cases_as_agreed(section: Section, counts: dict[int, int]) -> None:
    """No difference covers more cases, or fewer, than when it was agreed on."""
    assert counts == section.counts()
