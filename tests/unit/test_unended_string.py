"""A text that ends inside a string costs no more than any other of its size."""

import harbor_async as ha


@ha.tool
async def note(text: str) -> None:
    """Take a note."""


async def test_unended_string_is_refused_at_once():
    """Megabytes of escaped quotes after a quote that nothing closes are a syntax error, found in linear time."""
    arguments = b"[" * 65 + b'"' + b'\\"' * 1_000_000
    async with ha.Runtime(ha.Catalog([note])) as runtime:
        result = await runtime.invoke("note", arguments)
    assert ["too_deep"] == [problem.code for problem in result.error.problems]
    async with ha.Runtime(ha.Catalog([note])) as runtime:
        result = await runtime.invoke("note", b'{"text":' + arguments[64:])
    assert ["syntax"] == [problem.code for problem in result.error.problems]
