"""Each rule of ``CatalogConformance`` fails on a catalog that breaks it, and says what is wrong."""

import time

import pytest

from harbor_async import Catalog, describe
from harbor_async.errors import DuplicateToolError, ToolNotFoundError
from harbor_async.testing import CatalogConformance


class Copies(Catalog):
    def resolve(self, name):
        found = super().resolve(name)
        return describe(found.function, name=name)


class AnyCase(Catalog):
    def resolve(self, name):
        return super().resolve(name.strip().lower())


class Nameless(Catalog):
    def resolve(self, name):
        try:
            return super().resolve(name)
        except ToolNotFoundError:
            raise ToolNotFoundError("") from None


class RaisesKeyError(Catalog):
    def resolve(self, name):
        return self._tools[name]


class LastWins(Catalog):
    def register(self, descriptor):
        self._tools = {**self._tools, descriptor.name: descriptor}


class RefusesLate(Catalog):
    def register(self, descriptor):
        is_taken = descriptor.name in self._tools
        self._tools = {**self._tools, descriptor.name: descriptor}
        if is_taken:
            raise DuplicateToolError(descriptor.name)


class TakesFunctions(Catalog):
    def register(self, descriptor):
        super().register(
            describe(descriptor) if callable(descriptor) and not hasattr(descriptor, "tool") else descriptor
        )


class TakesFunctionsInPlace(Catalog):
    def replace(self, descriptors):
        super().replace([item if hasattr(item, "tool") else describe(item) for item in descriptors])


class KeepsFunctions(Catalog):
    def register(self, descriptor):
        if not hasattr(descriptor, "tool"):
            self._tools = {**self._tools, "function": describe(descriptor)}
        super().register(descriptor)


class ForgetsOptions(Catalog):
    def register_func(self, name, function, /, **options):
        return super().register_func(name, function)


class ReturnsAnother(Catalog):
    def register_func(self, name, function, /, **options):
        super().register_func(name, function, **options)
        return describe(function, name=name, **options)


class LeavesAStub(Catalog):
    def register_func(self, name, function, /, **options):
        async def stub():
            pass

        super().register_func(name, stub)
        return super().register_func(name, function, **options)


class OneByOne(Catalog):
    def replace(self, descriptors):
        for descriptor in descriptors:
            super().replace([descriptor])


class Adds(Catalog):
    def replace(self, descriptors):
        self._tools = {**self._tools, **{descriptor.name: descriptor for descriptor in descriptors}}


class AddsAndRefuses(Catalog):
    def replace(self, descriptors):
        unknown = [descriptor for descriptor in descriptors if descriptor.name not in self._tools]
        for descriptor in unknown:
            self.register(descriptor)
        if unknown:
            raise ToolNotFoundError(unknown[0].name)
        super().replace(descriptors)


class KeepsVersions(Catalog):
    def replace(self, descriptors):
        super().replace(descriptors)
        for descriptor in list(descriptors)[:1]:
            self._tools = {**self._tools, f"{descriptor.name}.v2": descriptor}


class FirstCounts(Catalog):
    def replace(self, descriptors):
        super().replace(list(descriptors)[::-1])


class Unsorted(Catalog):
    def list(self, filter=None):
        return [descriptor.tool for descriptor in self if filter is None or filter.matches(descriptor.tool)]


class HidesDeferred(Catalog):
    def list(self, filter=None):
        return [tool for tool in super().list(filter) if filter or tool.loading == "always"]


class Unfiltered(Catalog):
    def list(self, filter=None):
        return super().list()


class SharesItsList(Catalog):
    shared = None

    def list(self, filter=None):
        self.shared = super().list(filter) if self.shared is None else self.shared
        return self.shared


class SearchesNames(Catalog):
    def search(self, query, tags=(), limit=10):
        return [tool for tool in self.list() if query in tool.name][:limit]


class IgnoresTags(Catalog):
    def search(self, query, tags=(), limit=10):
        return super().search(query, (), limit)


class FindsAll(Catalog):
    def search(self, query, tags=(), limit=10):
        return super().search("" if query == "zebra" else query, tags, limit)


class Unbounded(Catalog):
    def search(self, query, tags=(), limit=10):
        return super().search(query, tags, 99)


class SearchesOnce(Catalog):
    found = None

    def search(self, query, tags=(), limit=10):
        self.found = self.found or Catalog(self)
        return Catalog.search(self.found, query, tags, limit)


class SearchesByCount(Catalog):
    found = None

    def search(self, query, tags=(), limit=10):
        if self.found is None or len(self.found) != len(self):
            self.found = Catalog(self)
        return Catalog.search(self.found, query, tags, limit)


class FindsReplaced(Catalog):
    def __init__(self):
        super().__init__()
        self.old = Catalog()

    def replace(self, descriptors):
        for descriptor in descriptors:
            self.old.register(self.resolve(descriptor.name))
        super().replace(descriptors)

    def search(self, query, tags=(), limit=10):
        return [*super().search(query, tags, limit), *self.old.search(query, tags, limit)]


class Counts(Catalog):
    def __len__(self):
        return len(self._tools) + 1


class HoldsAll(Catalog):
    def __contains__(self, name):
        return True


class Sorted(Catalog):
    def __iter__(self):
        return iter(sorted(self._tools.values(), key=lambda tool: tool.name))


class InPlace(Catalog):
    def register(self, descriptor):
        self._tools[descriptor.name] = descriptor


class Live(Catalog):
    def __iter__(self):
        seen = []
        while names := [name for name in self._tools if name not in seen]:
            seen.append(names[0])
            yield self._tools[names[0]]


class Unlocked(Catalog):
    def register(self, descriptor):
        tools = dict(self._tools)
        time.sleep(1e-5)
        self._tools = {**tools, descriptor.name: descriptor}


class Fragile(InPlace):
    def __iter__(self):
        for descriptor in self._tools.values():
            time.sleep(0)
            yield descriptor


WRONG = {
    "test_a_tool_is_found_by_its_name": [(Copies, "not the descriptor")],
    "test_names_match_exactly": [
        (AnyCase, r"resolve\('A'\): expected ToolNotFoundError; nothing"),
        (Nameless, "ToolNotFoundError.name: expected 'A'; got ''"),
        (RaisesKeyError, "expected ToolNotFoundError; KeyError was raised"),
    ],
    "test_a_name_is_taken_once": [
        (LastWins, "expected DuplicateToolError; nothing"),
        (RefusesLate, "taken the place of the first"),
    ],
    "test_only_descriptors_are_taken": [
        (TakesFunctions, r"register\(\) of a bare function"),
        (TakesFunctionsInPlace, r"replace\(\) by a bare function"),
        (KeepsFunctions, "what was refused is in the catalog"),
    ],
    "test_a_function_is_described": [(ForgetsOptions, "the tag 'x'"), (ReturnsAnother, "another descriptor")],
    "test_a_bad_function_changes_nothing": [(LeavesAStub, "left a tool behind")],
    "test_tools_are_replaced_all_or_none": [
        (OneByOne, "has replaced a tool"),
        (Adds, "with a name that is not there"),
        (AddsAndRefuses, "has added a tool"),
        (KeepsVersions, "has changed the number"),
        (FirstCounts, "the last must count"),
    ],
    "test_a_list_is_sorted": [(Unsorted, "expected a, b, c; got b, a, c"), (HidesDeferred, "got b, c")],
    "test_a_list_is_filtered": [(Unfiltered, "expected open, tagged; got closed, late")],
    "test_a_list_is_the_callers_own": [(SharesItsList, "has emptied")],
    "test_a_search_finds_words": [
        (SearchesNames, r"search\('invoice'\): got invoice.find"),
        (IgnoresTags, "expected c; got"),
        (FindsAll, "a word that is nowhere"),
    ],
    "test_a_search_is_bounded": [(Unbounded, "another number of tools")],
    "test_a_search_knows_every_change": [
        (SearchesOnce, "does not find what was registered"),
        (SearchesByCount, "does not find what was replaced"),
        (FindsReplaced, "finds what was replaced"),
    ],
    "test_it_is_a_collection": [(Counts, r"len\(\)"), (HoldsAll, "'in'"), (Sorted, "order")],
    "test_a_reader_sees_no_change": [(InPlace, "breaks an iteration"), (Live, "over a, b went over a, b, c")],
    "test_threads_may_write_at_once": [(Unlocked, "are not there"), (Fragile, "was raised")],
}


def suite(kind):
    return type("Suite", (CatalogConformance,), {"make": lambda self: kind()})()


@pytest.mark.parametrize(
    ("rule", "wrong", "message"),
    [pytest.param(rule, *case, id=f"{rule}-{case[0].__name__}") for rule, cases in WRONG.items() for case in cases],
)
def test_a_rule_fails_on_what_breaks_it(rule, wrong, message):
    """A catalog that breaks a rule fails its test, with a message that says what was expected."""
    with pytest.raises(AssertionError, match=message):
        getattr(suite(wrong), rule)()


def test_each_rule_has_a_catalog_that_breaks_it():
    """No rule is without a catalog above on which it fails."""
    assert {name for name in dir(CatalogConformance) if name.startswith("test_")} == set(WRONG)
