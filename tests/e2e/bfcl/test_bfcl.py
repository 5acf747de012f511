"""Real functions and real calls: the BFCL multi-turn APIs, and 200 recorded sessions of them.

The functions are in the package ``bfcl-eval``; ``nox -s bfcl`` makes an environment that holds it. The recording is no
part of this repository: it is looked for in the folder HARBOR_BFCL_DATA, else in ``shared/data`` beside the checkout.
"""

import json
import math
import os
from ast import literal_eval
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
RECORDING = Path(os.environ.get("HARBOR_BFCL_DATA") or ROOT.parent / "shared" / "data") / "bfcl_base.jsonl"

if not RECORDING.is_file():
    pytest.skip(f"no recorded sessions at {RECORDING}; HARBOR_BFCL_DATA names their folder", allow_module_level=True)
pytest.importorskip("bfcl_eval", reason="bfcl-eval is not installed here; nox -s bfcl runs these tests")

from tests.e2e.bfcl import apis, replay  # noqa: E402 - they import the package

WORDS = {"dict": "object", "float": "number"}


@pytest.fixture(scope="module")
def tools():
    return apis.make_tools()


@pytest.fixture(scope="module")
def sessions():
    return replay.load_sessions(RECORDING)


def shape(schema):
    """Return the type of a schema or of a function document: a word, for an array with that of its items."""
    branches = [branch for branch in schema.get("anyOf", []) if branch != {"type": "null"}]
    if "default" in schema and len(branches) == 1:  # the documents say "optional" where we say "or null"
        return shape(branches[0])
    word = WORDS.get(schema["type"], schema["type"])
    return (word, shape(schema["items"])) if word == "array" else word


def outline(parameters):
    """Return what a schema and a function document must agree on: names, types and what is required."""
    types = {name: shape(schema) for name, schema in parameters["properties"].items()}
    return types, set(parameters.get("required", []))


def test_schemas_match_the_function_documents(tools, count):
    """All 128 public functions become tools; parameters, types and what is required are as the package says itself."""
    documents = apis.documented_parameters()
    derived = {tool.name: outline(tool.tool.args_schema) for tool in tools}
    assert {name: outline(document) for name, document in documents.items()} == derived
    assert (128, 128) == (len(documents), len(tools))
    assert all(tool.tool.description != tool.name for tool in tools)
    count(f"{len(tools)} functions registered, {len(derived)} of {len(documents)} as their own documents say")


def test_unannotated(tools):
    """The tools without a result schema are the three functions without a return annotation."""
    assert apis.UNANNOTATED == {tool.name for tool in tools if tool.tool.out_schema is None}


async def test_replay(tools, sessions, count, request):
    """Sessions in parallel, calls in order: each of the 1,142 results is the recorded one."""
    answers = await replay.replay(tools, sessions)
    different = [answer for answer in answers if answer.recorded != answer.text]
    assert [] == different
    assert (200, 1142, 81) == (len(sessions), len(answers), len({answer.tool for answer in answers}))
    order = {session["session"]: [call["tool"] for call in session["calls"]] for session in sessions}
    assert order == {name: [answer.tool for answer in answers if answer.session == name] for name in order}
    # One session after the other would change hands 199 times.
    assert len(answers) / 2 < sum(one.session != other.session for one, other in pairwise(answers))
    flavor = request.node.callspec.params["anyio_backend"]
    refused = sum(answer.result.error is not None for answer in answers)
    calls = f"{len(answers)} calls, {refused} of them refused as a model's and given as a program's"
    count(f"{flavor}: {len(sessions)} sessions, {calls}, {len(different)} differences")


async def test_the_one_call_that_is_refused(tools, sessions, count):
    """One recorded call gives text where its function declares an integer; it alone is refused, and nothing has run."""
    answers = await replay.replay(tools, sessions)
    (refused,) = [answer for answer in answers if answer.result.error is not None]
    assert ("TicketAPI.close_ticket", {"ticket_id": "ticket_001"}) == (refused.tool, refused.args)
    assert 0 == refused.result.attempts
    assert [("/ticket_id", "type")] == [(one.path, one.code) for one in refused.result.error.problems]
    count(f"refused: {refused.tool}, {refused.result.error.message}")


async def test_what_the_model_reads(tools, sessions):
    """The JSON of a result is the recorded value; a number of mpmath travels as a number."""
    answers = await replay.replay(tools, sessions)
    succeeded = [answer for answer in answers if answer.result.error is None]
    numbers = [answer for answer in succeeded if answer.tool == "MathAPI.logarithm"]
    assert 4 == len(numbers)
    for answer in numbers:
        value, base, precision = answer.args.values()
        sent = answer.result.to_wire()["value"]["result"]
        assert pytest.approx(math.log(value) / math.log(base), rel=10**-precision) == sent
    for answer in succeeded:
        if answer not in numbers:
            expected = json.loads(answer.recorded) if answer.recorded[0] == "{" else literal_eval(answer.recorded)
            assert expected == answer.result.to_wire()["value"]


async def test_annotations_that_do_not_hold(sessions, count):
    """Of 56 results that are not as annotated, 52 are refused once checked, after the function has run.

    The other four are numbers of mpmath, which the registered type makes the numbers that were promised.
    """
    answers = await replay.replay(apis.make_tools(unchecked=()), sessions)
    refused = [answer for answer in answers if answer.result.error is not None and answer.result.attempts]
    rescued = [answer for answer in answers if "mpf(" in answer.recorded]
    assert (52, 4) == (len(refused), len(rescued))
    assert apis.DENIED == {answer.tool for answer in refused + rescued}
    assert {"invalid"} == {answer.result.stop_reason for answer in refused}
    rest = [answer for answer in answers if answer not in refused]
    assert [answer.recorded for answer in rest] == [answer.text for answer in rest]
    tally = Counter(answer.tool for answer in refused)
    count(f"refused if all results were checked: {', '.join(f'{n} {name}' for name, n in sorted(tally.items()))}")
