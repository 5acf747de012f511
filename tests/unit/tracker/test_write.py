"""``TrackerWrite`` and ``tracker_write``: what is asked of them, and what they say."""

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings, strategies as st

from harbor_async import Catalog, Identity, Runtime, ToolPolicy
from harbor_async.errors import InvalidArgumentsError, InvalidToolError
from harbor_async.tracker import (
    NAME,
    Op,
    TrackerArgs,
    TrackerError,
    TrackerResult,
    TrackerWrite,
    args_schema,
    tracker_write,
)
from tests.unit.tracker import memory
from tests.unit.tracker.memory import EFFECT, POLICY, Memory, Readable


class CanLink:
    """A writer that notes what it was given."""

    def __init__(self) -> None:
        self.links: list[tuple[str, str]] = []

    async def link_pr(self, id: str, pr_url: str, *, key: str) -> None:
        self.links.append((id, pr_url))


# --- without a runtime ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "effect"),
    [
        (TrackerArgs(Op.COMMENT, "T-1", body=" hi "), ("comment", "T-1", " hi ")),
        (TrackerArgs(Op.TRANSITION, "T-1", to_state=" Done\n"), ("transition", "T-1", "Done")),
        (TrackerArgs(Op.CLOSE, "T-1", reason=" why "), ("close", "T-1", " why ")),
        (TrackerArgs(Op.CLOSE, "T-1"), ("close", "T-1", "")),
        (TrackerArgs(Op.LINK_PR, " T-1 ", pr_url=" https://x/1 "), ("link_pr", " T-1 ", "https://x/1")),
    ],
    ids=lambda value: value.op.value if isinstance(value, TrackerArgs) else "",
)
async def test_run_does_one_operation(args: TrackerArgs, effect: tuple[str, str, str]) -> None:
    """The writer gets the issue as it is and the field of the operation, of which states and URLs are trimmed."""
    tracker = Memory()
    assert TrackerResult("succeeded", args.op, args.id) == await TrackerWrite(tracker).run(args)
    assert [effect] == tracker.effects


@pytest.mark.parametrize(
    ("args", "op", "id"),
    [
        (TrackerArgs("shut", "T-1"), "shut", "T-1"),
        (TrackerArgs(Op.CLOSE, ""), "close", ""),
        (TrackerArgs(Op.CLOSE, None), "close", ""),
        (TrackerArgs(5, "T-1"), "", "T-1"),
        (TrackerArgs(Op.CLOSE, "T\ud800"), "close", ""),
        (TrackerArgs(Op.CLOSE, "T-1", reason=b"x"), "close", "T-1"),
        (TrackerArgs(Op.COMMENT, "T-1"), "comment", "T-1"),
    ],
    ids=["unknown", "blank", "none", "number", "surrogate", "bytes", "missing"],
)
async def test_run_answers_whatever_it_is_given(args: TrackerArgs, op: str, id: str) -> None:
    """Arguments of any kind get an envelope, which is JSON, and the writer is not asked."""
    tracker = Memory()
    result = await TrackerWrite(tracker).run(args)
    assert ("failed", op, id, "validation", op) == (
        result.outcome,
        result.op,
        result.id,
        result.error.category,
        result.error.op,
    )
    assert result == TrackerResult.from_json(result.to_json())
    assert [] == tracker.keys


@pytest.mark.parametrize(
    "text", ["", "{", b"\xff", "null", "[]", '"close"', '{"op":"close","id":"T-1","x":' + "[" * 9999]
)
async def test_run_json_answers_whatever_it_is_given(text: str | bytes) -> None:
    """No text is too broken for an envelope."""
    result = await TrackerWrite(Memory()).run_json(text)
    assert ("failed", "", "", "validation") == (result.outcome, result.op, result.id, result.error.category)


@pytest.mark.parametrize("more", ['"' + "x" * 5_000_000 + '"', "[" * 64 + "]" * 64], ids=["size", "depth"])
async def test_a_text_over_the_limits_is_not_read_for_its_words(more: str) -> None:
    """Five megabytes, or more than 64 levels, are refused for that, and are not parsed to say what was in them."""
    text = f'{{"op":"close","id":"T-1","reason":"","x":{more}}}'
    result = await TrackerWrite(Memory()).run_json(text)
    assert ("", "validation") == (result.op, result.error.category)


@pytest.mark.virtual
async def test_run_has_a_deadline_and_a_policy() -> None:
    """A deadline ends a call as ``timeout``, unclear where the write had begun; a policy bounds its attempts."""
    tracker = Memory(memory.hang, EFFECT, times=9)
    late = await TrackerWrite(tracker).run(TrackerArgs(Op.CLOSE, "T-1"), timeout=0.5)
    assert ("failed", "timeout", True) == (late.outcome, late.error.category, late.error.ambiguous)
    never = await TrackerWrite(tracker).run_json('{"op":"close","id":"T-1"}', timeout=0)
    assert ("failed", "timeout", False) == (never.outcome, never.error.category, never.error.ambiguous)
    broken = Readable(memory.lose_connection, 0, times=9)
    await TrackerWrite(broken, policy=ToolPolicy(attempts=2, wait=POLICY.wait)).run(TrackerArgs(Op.CLOSE, "T-1"))
    assert 2 == len(broken.keys)


# --- in a catalog -----------------------------------------------------------------------------------------------------


async def test_a_program_may_call_it_too() -> None:
    """``Runtime.call`` takes the arguments as a Python value, and raises what the writer raised."""
    tracker = Memory(memory.fail_before, 0, times=9)
    tool = tracker_write(tracker, policy=ToolPolicy(attempts=1))
    async with Runtime(Catalog([tool])) as runtime:
        with pytest.raises(TrackerError, match="database is locked"):
            await runtime.call(tool, TrackerArgs(Op.CLOSE, "T-1"))
        tracker.times = 0
        assert TrackerResult("succeeded", "close", "T-1") == await runtime.call(tool, TrackerArgs(Op.CLOSE, "T-1"))


async def test_its_answer_is_its_own_when_the_runtime_rejects_a_call() -> None:
    """A call without the scope is answered in the envelope, as ``failed``."""
    tool = tracker_write(Memory(), scopes={"tracker:write"})
    nobody = Identity("t", "u", "s")
    async with Runtime(Catalog([tool]), identity=nobody) as runtime:
        result = await runtime.invoke(NAME, '{"op":"close","id":"T-1"}')
    assert "rejected" == result.outcome
    envelope = TrackerResult.from_json(result.content)
    assert ("failed", "close", "T-1", "auth_failed") == (
        envelope.outcome,
        envelope.op,
        envelope.id,
        envelope.error.category,
    )


@pytest.mark.parametrize(
    "args",
    [TrackerArgs("shut", "T-1"), TrackerArgs(Op.CLOSE, " "), TrackerArgs(Op.CLOSE, "\x00"), TrackerArgs(Op.CLOSE, 5)],
    ids=["op", "blank", "nul", "number"],
)
async def test_a_program_cannot_write_to_no_issue(args: TrackerArgs) -> None:
    """What a program passes is checked for operation and issue, as what a model sends."""
    tracker = Memory()
    tool = tracker_write(tracker)
    async with Runtime(Catalog([tool])) as runtime:
        with pytest.raises(InvalidArgumentsError):
            await runtime.call(tool, args)
    assert [] == tracker.keys


async def test_a_program_may_write_the_operation_as_text() -> None:
    """The words of the operations are their members."""
    tracker = Memory()
    tool = tracker_write(tracker)
    async with Runtime(Catalog([tool])) as runtime:
        await runtime.call(tool, TrackerArgs("transition", "T-1", to_state="Done"))
    assert [("transition", "T-1", "Done")] == tracker.effects


def test_a_model_sees_what_the_writer_can_do() -> None:
    """Description and schema name the operations of the writer and no other, unless all are asked for."""
    tool = tracker_write(CanLink()).tool
    assert "link_pr" in tool.description
    assert "comment" not in tool.description
    assert ["op", "id", "prURL"] == list(tool.args_schema["properties"])
    everything = tracker_write(CanLink(), all_ops=True).tool
    assert args_schema() == everything.args_schema
    assert "comment" in everything.description


def test_it_is_declared_as_what_it_is() -> None:
    """It changes the world outside, and has the name of the seed, unless told another."""
    tool = tracker_write(Memory()).tool
    assert ("tracker_write", "external", True) == (tool.name, tool.side_effect, tool.declares_effect)
    assert "jira" == tracker_write(Memory(), name="jira", description="Write to Jira.").tool.name
    assert "Write to Jira." == tracker_write(Memory(), description="Write to Jira.").tool.description


async def test_link_pr_works_where_the_writer_has_it() -> None:
    """A writer that can do nothing but link pull requests is a writer."""
    tracker = CanLink()
    result = await TrackerWrite(tracker).run(TrackerArgs(Op.LINK_PR, "T-1", pr_url="https://x/1"))
    assert ("succeeded", [("T-1", "https://x/1")]) == (result.outcome, tracker.links)


@pytest.mark.parametrize("writer", [None, object(), {}, "writer"], ids=["none", "object", "dict", "text"])
def test_what_cannot_write_is_refused(writer: Any) -> None:
    """An object without one of the four methods makes no tool."""
    with pytest.raises(InvalidToolError, match="comment, transition, close or link_pr"):
        tracker_write(writer)
    with pytest.raises(InvalidToolError):
        TrackerWrite(writer)


def test_what_keeps_writes_safe_cannot_be_said_anew() -> None:
    """Side effect, idempotence, order and envelope are the tool's own."""
    for option in ("side_effect", "idempotent", "exclusive", "render"):
        with pytest.raises(InvalidToolError, match=option):
            tracker_write(Memory(), **{option: None})


# --- the schema and the decoder ---------------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
ARGUMENTS = st.fixed_dictionaries(
    {"op": st.sampled_from([*Op, "shut"]), "id": TEXT},
    optional={name: TEXT | st.none() for name in ("body", "toState", "reason", "prURL", "more")},
)
VALID = jsonschema_rs.validator_for(args_schema())


@settings(max_examples=150)
@given(ARGUMENTS)
def test_what_fits_the_schema_is_decoded(arguments: dict[str, Any]) -> None:
    """The decoder refuses nothing that the shown schema takes, but an id that is blank or not to be seen."""
    if VALID.is_valid(arguments) and arguments["id"].strip() and not set(arguments["id"]) & set("\x00\u200b\ufeff"):
        (args,) = tracker_write(Memory()).decode(arguments)
        assert (arguments["op"], arguments["id"], arguments.get("toState")) == (args.op, args.id, args.to_state)
