"""A repair in a runtime: what a user's own may do, and in what order it is asked."""

import json

import pytest

import harbor_async as ha
from harbor_async.export import repair


@ha.tool(scopes={"admin"})
async def count(files: list[str]) -> int:
    """Count files."""
    return len(files)


TEXT = '{"files": "[\\"a\\"]"}'
ADMIN = ha.Identity("tenant", "user", "session", scopes={"admin"})


async def invoke(repairer, identity=ADMIN, arguments=TEXT):
    async with ha.Runtime(ha.Catalog([count]), repair=repairer, identity=identity) as runtime:
        return await runtime.invoke("count", arguments)


async def test_own_rules():
    """A function of the user's gets descriptor and arguments, and its repairs are in the result."""
    asked = []

    def own(tool, arguments):
        asked.append((tool, arguments))
        return {"files": ["mine"]}, (ha.Repair("/files", "mine"),)

    result = await invoke(own)
    assert [(count, TEXT)] == asked
    assert (1, (ha.Repair("/files", "mine"),)) == (result.value, result.repairs)


async def test_one_that_raises(caplog):
    """One that raises is logged, and the arguments are taken as they came."""

    def broken(tool, arguments):
        raise RuntimeError("no")

    result = await invoke(broken, arguments='{"files": ["a"]}')
    assert (1, ()) == (result.value, result.repairs)
    assert "repair of the arguments of tool 'count' failed" in caplog.text


async def test_not_before_the_scopes():
    """Whoever lacks the scopes has nothing repaired."""
    asked = []

    def noting(tool, arguments):
        asked.append(arguments)
        return arguments, ()

    result = await invoke(noting, ha.Identity("tenant", "user", "session"))
    assert ha.Outcome.REJECTED is result.outcome
    assert [] == asked


async def test_in_batches_and_streams():
    """Calls of a batch and of a stream are repaired, too, and each attempt gets what was repaired."""
    seen = []

    @ha.tool(policy=ha.ToolPolicy(attempts=2, wait=ha.Backoff(initial=0)))
    async def flaky(files: list[str]) -> int:
        """Fail once."""
        seen.append(files)
        if len(seen) % 2:
            raise ConnectionError
        return len(files)

    calls = [ha.ToolCall("1", "flaky", TEXT)]
    async with ha.Runtime(ha.Catalog([flaky]), repair=repair) as runtime:
        results = await runtime.invoke_many(calls)
        async with runtime.stream(calls) as stream:
            results += [result async for result in stream]
    assert [(ha.Repair("/files", "json_string"),)] * 2 == [result.repairs for result in results]
    assert [["a"]] * 4 == seen


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "null",
        "[]",
        '{"files": ["a"]}',
        {"files": ["[1]"]},
        {"files": {1, 2}},
        {"files": "\ud800"},
        '{"files": "[\\"\\ud800\\"]"}',
        b"\xff",
        "{" * 100,
        '{"files": "' + "[" * 100 + '"}',
        '{"files": "[1e999]"}',
        '{"files": "[1]", "files": "[2]"}',
        7,
    ],
    ids=repr,
)
def test_the_same_object(arguments):
    """Where there is nothing to repair, or no JSON, the arguments come back as the same object."""
    again, repairs = repair(count, arguments)
    assert arguments is again
    assert () == repairs


def test_too_large():
    """Text of more than a million bytes is not looked into."""
    files = json.dumps(["a"] * 300_000)
    arguments = json.dumps({"files": files})
    assert (arguments, ()) == repair(count, arguments)


def test_deep_in_the_arguments():
    """A string is found wherever it stands: in lists, tables, unions and classes that hold themselves."""
    from tests.unit.export.varied import Knot, make

    tool = make("deep", dict[str, list[Knot | None]])
    value = {"k": [None, '{"name": "a"}', {"name": "b", "children": '[{"name": "c"}]'}]}
    again, repairs = repair(tool, {"value": value})
    assert {"k": [None, {"name": "a"}, {"name": "b", "children": [{"name": "c"}]}]} == again["value"]
    assert ["/value/k/1", "/value/k/2/children"] == [each.path for each in repairs]
    assert "[" == value["k"][2]["children"][0]
