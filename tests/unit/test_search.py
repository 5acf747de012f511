"""``Catalog.search``: what is found, in what order, and when the index is built anew."""

import gc
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

from harbor_async import Catalog, LoadingMode, describe
from harbor_async.errors import InvalidToolError


async def nothing() -> None:
    pass


def make(name, description="", tags=(), loading=LoadingMode.ALWAYS):
    return describe(nothing, name=name, description=description or name, tags=tags, loading=loading)


CATALOG = Catalog(
    [
        make("mail.send", "Deliver a message to somebody.", ["post"]),
        make("getInvoiceByID", "Look a bill up."),
        make("calendar", "Plan meetings, and send invitations by mail."),
        make("letters", "Write on paper.", ["mail"]),
        make("hidden", "Archive old invoices.", loading=LoadingMode.DEFERRED),
    ]
)


def found(query, **options):
    return [tool.name for tool in CATALOG.search(query, **options)]


def test_a_name_counts_more_than_a_tag_and_a_tag_more_than_a_description():
    """Of three tools that hold a word, the one named so comes first, then the one tagged so."""
    assert ["mail.send", "letters", "calendar"] == found("mail")


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("meeting", ["calendar"]),
        ("sending", ["mail.send", "calendar"]),
        ("arch", ["hidden"]),
        ("INVITATION", ["calendar"]),
        ("invoice", ["getInvoiceByID", "hidden"]),
        ("paper bill", ["getInvoiceByID", "letters"]),
        ("nobody", []),
    ],
)
def test_words_are_found(query, names):
    """A word is found in any inflection and letter case, by its beginning, and inside a name; any word is enough."""
    assert sorted(names) == sorted(found(query))


@pytest.mark.parametrize(
    "query", ['"', "mail OR", "NOT", "a* b*", "name:mail", "(", "mail NEAR", "\x00", "'; DROP", "é"]
)
def test_a_query_is_words_and_never_syntax(query):
    """What SQLite's query language would read as an operator, or as an error, is a word or nothing."""
    assert set(found(query)) <= {tool.name for tool in CATALOG.list()} | {"hidden"}


def test_without_a_word_every_tool_is_there():
    """A query without words gives the tools by name, deferred ones included."""
    assert ["calendar", "getInvoiceByID", "hidden", "letters", "mail.send"] == found("  ?! ")


def test_tags_and_limit_narrow():
    """A tool must have all the tags, and no more than ``limit`` come."""
    assert ["mail.send"] == found("mail", tags=["post"])
    assert [] == found("mail", tags=["post", "mail"])
    assert ["mail.send", "letters"] == found("mail", limit=2)


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, "1"])
def test_a_limit_is_a_positive_int(limit):
    """Any other limit is refused."""
    with pytest.raises(InvalidToolError, match="limit"):
        CATALOG.search("mail", limit=limit)


def test_a_change_is_found():
    """The next search after a change knows it."""
    catalog = Catalog([make("one")])
    assert [] == catalog.search("two")
    catalog.register(make("two"))
    assert ["two"] == [tool.name for tool in catalog.search("two")]
    catalog.replace([make("two", "Now about three.")])
    assert ["two"] == [tool.name for tool in catalog.search("three")]


def test_any_thread_may_search():
    """Sixteen threads that search at once each get the same answer."""
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: found("mail"), range(200)))
    assert [found("mail")] * 200 == answers


def test_an_index_closes_itself():
    """An index that nobody needs any more leaves no open database, of which Python 3.13 would warn."""
    catalog = Catalog([make("one")])
    catalog.search("one")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del catalog
        gc.collect()
    assert [] == [str(warning.message) for warning in caught if issubclass(warning.category, ResourceWarning)]
