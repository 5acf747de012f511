"""Bytes to lines."""

from itertools import pairwise

from hypothesis import given, strategies as st

from harbor_async._line import LineSplitter


def split(chunks, limit=100):
    splitter = LineSplitter(limit)
    lines = [line for chunk in chunks for line in splitter.feed(chunk)]
    return [*lines, *splitter.finish()]


@given(
    text=st.binary(max_size=300).map(lambda text: text.replace(b"\xef\xbb\xbf", b"")),
    cuts=st.lists(st.integers(0, 300)),
)
def test_lines_do_not_depend_on_the_chunks(text, cuts):
    """However the bytes arrive, the lines are those of the whole."""
    edges = [0, *sorted(cuts), len(text)]
    chunks = [text[start:end] for start, end in pairwise(edges)]
    lines = text.split(b"\n")
    expected = list(enumerate(lines if lines[-1] else lines[:-1], 1))
    assert expected == split(chunks, 300)


def test_long_line_is_let_go():
    """A line over the limit is None, and the lines round it are as they are."""
    assert [(1, b"a"), (2, None), (3, b"b")] == split([b"a\n", b"x" * 60, b"x" * 60, b"x\nb\n"])
    assert [(1, None)] == split([b"x" * 101])
    assert [(1, b"x" * 100)] == split([b"x" * 100 + b"\n"])


def test_byte_order_mark():
    """A byte order mark before the first line is no part of it, and anywhere else it is."""
    assert [(1, b"{}"), (2, b"\xef\xbb\xbf{}")] == split([b"\xef\xbb", b"\xbf{}\n\xef\xbb\xbf{}"])
