"""What a catalog must do."""

import sys
from threading import Thread
from typing import Any, Unpack

from .._catalog import Catalog, CatalogFilter
from .._categories import LoadingMode
from .._declaration import ToolOptions, describe
from .._descriptor import ToolDescriptor
from ..errors import DuplicateToolError, InvalidToolError, RegistrationError, ToolNotFoundError
from ._rules import MAKE, expect, require


async def _work() -> str:
    """Work."""
    return "done"


def _tool(name: str, /, **options: Unpack[ToolOptions]) -> ToolDescriptor[[], str]:
    options["name"] = name
    return describe(_work, **options)


def _names(tools: Any) -> list[str]:
    return [tool.name for tool in tools]


class CatalogConformance:
    """Checks a catalog, in pytest. No test of it is async.

    ::

        class TestMyCatalog(CatalogConformance):
            def make(self):
                return MyCatalog()
    """

    def make(self) -> Catalog:
        """Return a catalog without tools: a subclass of ``Catalog``, or what has its methods."""
        raise NotImplementedError(MAKE)

    def _make(self, *tools: ToolDescriptor[..., Any]) -> Catalog:
        catalog = self.make()
        for tool in tools:
            catalog.register(tool)
        return catalog

    def test_a_tool_is_found_by_its_name(self) -> None:
        """Return the descriptor that was registered, and no copy."""
        tool = _tool("a.b")
        catalog = self._make(_tool("a"), tool)
        require(catalog.resolve("a.b") is tool, "resolve('a.b') is not the descriptor that was registered")

    def test_names_match_exactly(self) -> None:
        """Refuse a name that differs in letter case or white space, and say which name it was."""
        catalog = self._make(_tool("a"))
        for name in ("A", " a", "a ", "", "b"):
            with expect(ToolNotFoundError, f"resolve({name!r})") as errors:
                catalog.resolve(name)
            found = getattr(errors[0], "name", None)
            require(found == name, f"ToolNotFoundError.name: expected {name!r}; got {found!r}")

    def test_a_name_is_taken_once(self) -> None:
        """Refuse a second tool of one name, and keep the first."""
        first = _tool("a")
        catalog = self._make(first)
        with expect(DuplicateToolError, "register() with a name that is taken"):
            catalog.register(_tool("a"))
        with expect(DuplicateToolError, "register_func() with a name that is taken"):
            catalog.register_func("a", _work)
        require(catalog.resolve("a") is first, "a refused tool has taken the place of the first one")

    def test_only_descriptors_are_taken(self) -> None:
        """Refuse what is no descriptor, a bare function for one."""
        catalog: Any = self._make(_tool("a"))
        with expect(InvalidToolError, "register() of a bare function"):
            catalog.register(_work)
        with expect(InvalidToolError, "replace() by a bare function"):
            catalog.replace([_work])
        require(_names(catalog) == ["a"], "what was refused is in the catalog")

    def test_a_function_is_described(self) -> None:
        """Describe a function under the given name, register it, and return its descriptor."""
        catalog = self.make()
        tool = catalog.register_func("b", _work, tags=["x"])
        require(catalog.resolve("b") is tool, "register_func() returned another descriptor than it registered")
        got = (tool.name, tool.tool.tags)
        require(got == ("b", ("x",)), f"register_func(): expected the name 'b' and the tag 'x'; got {got!r}")

    def test_a_bad_function_changes_nothing(self) -> None:
        """Refuse a function that is no tool, and stay as it was."""

        async def bad(*arguments: int) -> None:
            """Take any number of arguments."""

        catalog = self._make(_tool("a"))
        with expect(RegistrationError, "register_func() of a function with *arguments"):
            catalog.register_func("b", bad)
        require(_names(catalog) == ["a"], "a function that was refused has left a tool behind")

    def test_tools_are_replaced_all_or_none(self) -> None:
        """Replace every tool, or none where one of the names is not there."""
        old, new = _tool("a"), _tool("a")
        catalog = self._make(old, _tool("b"))
        with expect(ToolNotFoundError, "replace() with a name that is not there"):
            catalog.replace([new, _tool("c")])
        require(catalog.resolve("a") is old, "a replace() that was refused has replaced a tool")
        require("c" not in catalog, "a replace() that was refused has added a tool")
        catalog.replace([_tool("a"), new])
        require(catalog.resolve("a") is new, "replace(): of two tools with one name the last must count")
        require(len(catalog) == len(["a", "b"]), "replace() has changed the number of tools")

    def test_a_list_is_sorted(self) -> None:
        """List all tools by their names where there is no filter, deferred ones too."""
        catalog = self._make(_tool("b"), _tool("a", loading="deferred", scopes=["x"]), _tool("c"))
        got = _names(catalog.list())
        require(got == ["a", "b", "c"], f"list(): expected a, b, c; got {', '.join(got)}")

    def test_a_list_is_filtered(self) -> None:
        """List what a filter lets through: by scopes, loading mode, name and tags."""
        catalog = self._make(
            _tool("open"),
            _tool("closed", scopes=["x"]),
            _tool("late", loading="deferred"),
            _tool("tagged", tags=["t", "u"]),
        )
        cases = (
            (CatalogFilter(), ["open", "tagged"]),
            (CatalogFilter(scopes=["x", "y"]), ["closed", "open", "tagged"]),
            (CatalogFilter(loading=[LoadingMode.DEFERRED]), ["late"]),
            (CatalogFilter(name_regex="^o"), ["open"]),
            (CatalogFilter(tags=["t"]), ["tagged"]),
        )
        for given, expected in cases:
            got = _names(catalog.list(given))
            require(got == expected, f"list({given}): expected {', '.join(expected)}; got {', '.join(got)}")

    def test_a_list_is_the_callers_own(self) -> None:
        """Give a list that its receiver may change."""
        catalog = self._make(_tool("a"))
        catalog.list().clear()
        require(len(catalog) == len(catalog.list()) == 1, "clearing a list has emptied the catalog")

    def test_a_search_finds_words(self) -> None:
        """Find tools by a word of the name, the description or the tags, deferred ones too, and not by any other."""
        catalog = self._make(
            _tool("invoice.find", description="Look it up."),
            _tool("b", description="Send an invoice.", loading="deferred"),
            _tool("c", description="Look it up.", tags=["invoice"]),
            _tool("d", description="Rest."),
        )
        got = sorted(_names(catalog.search("invoice")))
        require(got == ["b", "c", "invoice.find"], f"search('invoice'): got {', '.join(got)}")
        got = _names(catalog.search("invoice", tags=["invoice"]))
        require(got == ["c"], f"search('invoice', tags=['invoice']): expected c; got {', '.join(got)}")
        require(catalog.search("zebra") == [], "search() has found a word that is nowhere")

    def test_a_search_is_bounded(self) -> None:
        """Give no more tools than were asked for, and refuse to give none."""
        catalog = self._make(*(_tool(f"work.{number}") for number in range(20)))
        most = 3
        require(len(catalog.search("work", limit=most)) == most, f"search(limit={most}) gave another number of tools")
        with expect(InvalidToolError, "search(limit=0)"):
            catalog.search("work", limit=0)

    def test_a_search_knows_every_change(self) -> None:
        """Find what was registered or replaced since the last search, and not what is gone."""
        catalog = self._make(_tool("a", description="Old."))
        catalog.search("old")
        catalog.register(_tool("b", description="New."))
        require(_names(catalog.search("new")) == ["b"], "search() does not find what was registered since the last one")
        catalog.replace([_tool("a", description="Fresh.")])
        require(_names(catalog.search("fresh")) == ["a"], "search() does not find what was replaced since the last one")
        require(catalog.search("old") == [], "search() finds what was replaced")

    def test_it_is_a_collection(self) -> None:
        """Know how many tools there are and which, and go through them in the order in which their names came."""
        b, a = _tool("b"), _tool("a")
        catalog = self._make(b, a)
        require(len(catalog) == len([b, a]), "len() is not the number of tools")
        require("a" in catalog and "c" not in catalog, "'in' does not tell which names are there")
        require(list(catalog) == [b, a], "iteration does not follow the order in which the names came")

    def test_a_reader_sees_no_change(self) -> None:
        """Let whoever goes through the tools see those that were there when he began."""
        old = _tool("a")
        catalog = self._make(old, _tool("b"))
        reader = iter(catalog)
        first = next(reader)
        catalog.register(_tool("c"))
        catalog.replace([_tool("b")])
        try:
            got = _names([first, *reader])
        except RuntimeError as exc:
            msg = f"a change breaks an iteration: {exc}"
            raise AssertionError(msg) from exc
        require(got == ["a", "b"], f"an iteration that began over a, b went over {', '.join(got)}")

    def test_threads_may_write_at_once(self) -> None:
        """Lose no tool when many threads register at once, and let others read meanwhile."""
        catalog = self._make(_tool("a"))
        shares = [[_tool(f"t{thread}.{number}") for number in range(50)] for thread in range(8)]
        failures: list[Exception] = []

        def work(share: list[ToolDescriptor[..., Any]]) -> None:
            try:
                for tool in share:
                    catalog.register(tool)
                    list(catalog)
                    catalog.resolve("a")
            except Exception as exc:  # noqa: BLE001 - told in the test's own thread
                failures.append(exc)

        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)  # so that they really meet
        try:
            running = [Thread(target=work, args=[share]) for share in shares]
            for thread in running:
                thread.start()
            for thread in running:
                thread.join()
        finally:
            sys.setswitchinterval(interval)
        require(not failures, f"with {len(shares)} threads at work, {failures[:1]!r} was raised")
        lost = [tool.name for share in shares for tool in share if tool.name not in catalog]
        require(not lost, f"{len(shares)} threads registered at once, and {len(lost)} tools are not there")
