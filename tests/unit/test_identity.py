"""Whose call it is: scopes and approval, checked when the call is made."""

import anyio
import pytest

import harbor_async as ha
from harbor_async import errors

pytestmark = pytest.mark.virtual

READ = {"weather:read"}
ANN = ha.Identity("acme", "ann", "s-1", scopes=READ)
BOB = ha.Identity("acme", "bob", "s-2")

runs: list[int] = []


@ha.tool(scopes=READ)
async def lookup(days: int, context: ha.ToolContext) -> str:
    """Say who asks."""
    runs.append(days)
    return "the program" if context.identity is None else context.identity.user


@pytest.fixture(autouse=True)
def _no_runs() -> None:
    runs.clear()


def call(days: object = 1, id: str = "c") -> ha.ToolCall:
    return ha.ToolCall(id, "lookup", {"days": days})


def runtime(**options: object) -> ha.Runtime:
    return ha.Runtime(ha.Catalog([options.pop("tool", lookup)]), **options)


def test_an_identity_has_names_and_scopes() -> None:
    """An identity takes text for its names, and any collection of text for its scopes."""
    assert ha.Identity("t", "u", "s", "r", scopes=["a", "b"]).scopes == frozenset({"a", "b"})
    assert ha.Identity("t", "u", "s").run is None
    for wrong in (("", "u", "s"), ("t", None, "s"), ("t", "u", 5), ("t", "u", "s", "")):
        with pytest.raises(errors.InvalidToolError, match=r"Identity\.\w+: expected text"):
            ha.Identity(*wrong)
    with pytest.raises(errors.InvalidToolError, match=r"Identity\.scopes"):
        ha.Identity("t", "u", "s", scopes="weather:read")


async def test_a_call_without_an_identity_needs_no_scopes() -> None:
    """Where no identity is named a call is the program's own, so that scopes are not asked."""
    async with runtime() as rt:
        assert "the program" == (await rt.invoke("lookup", {"days": 1})).value
        assert "the program" == await rt.call(lookup, 1)


@pytest.mark.parametrize("way", ["invoke", "invoke_many", "batch", "stream", "runtime"])
async def test_scopes_are_checked_at_the_call(way: str) -> None:
    """An identity without the tool's scopes is rejected, with attempts 0; one that has them is answered (rule 10)."""
    for identity, outcome in ((ANN, ha.Outcome.SUCCEEDED), (BOB, ha.Outcome.REJECTED)):
        async with runtime(identity=identity if way == "runtime" else None) as rt:
            if way in {"invoke", "runtime"}:
                given = {} if way == "runtime" else {"identity": identity}
                result = await rt.invoke("lookup", {"days": 1}, **given)
            elif way == "invoke_many":
                (result,) = await rt.invoke_many([call()], identity=identity)
            elif way == "batch":
                async with rt.batch(identity=identity) as batch:
                    handle = batch.start(call())
                result = await handle.result()
            else:
                async with rt.stream([call()], identity=identity) as stream:
                    (result,) = [item async for item in stream]
        assert outcome == result.outcome
        if identity is BOB:
            assert (ha.ErrorCategory.AUTH_FAILED, 0, "rejected") == (
                result.error.category,
                result.attempts,
                result.stop_reason,
            )
            assert not result.is_retryable
            assert "weather:read" in result.error.message
    assert [1] == runs


async def test_a_callers_identity_stands_before_the_runtimes() -> None:
    """The identity of a call is used in place of the runtime's, in both directions."""
    async with runtime(identity=BOB) as rt:
        assert "ann" == (await rt.invoke("lookup", {"days": 1}, identity=ANN)).value
    async with runtime(identity=ANN) as rt:
        assert ha.Outcome.REJECTED == (await rt.invoke("lookup", {"days": 1}, identity=BOB)).outcome


async def test_scopes_come_before_arguments() -> None:
    """Who may not call a tool learns nothing of its arguments."""
    async with runtime(identity=BOB) as rt:
        result = await rt.invoke("lookup", "rubbish")
    assert (ha.ErrorCategory.AUTH_FAILED, ()) == (result.error.category, result.error.problems)


async def test_a_programs_call_raises_what_is_missing() -> None:
    """rt.call raises ScopeDeniedError with the missing scopes."""
    async with runtime(identity=BOB) as rt:
        with pytest.raises(errors.ScopeDeniedError) as caught:
            await rt.call(lookup, 1)
    assert ("lookup", ("weather:read",)) == (caught.value.tool, caught.value.missing)


def asked(answer: object) -> tuple[ha.ToolDescriptor, list[tuple]]:
    """Return a tool whose approval gives ``answer`` or raises it, and what it was asked."""
    log: list[tuple] = []

    async def approve(call: ha.ToolCall, tool: ha.Tool, identity: ha.Identity | None) -> object:
        log.append((call.id, call.name, call.arguments, tool.name, identity))
        await anyio.sleep(0.1)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return ha.describe(lookup.function, name="lookup", scopes=READ, approve=approve), log


async def test_approval_sees_the_call_as_it_came() -> None:
    """The hook gets the call before it is decoded, the tool and the identity; True lets it run."""
    tool, log = asked(answer=True)
    async with runtime(tool=tool) as rt:
        result = await rt.invoke("lookup", '{"days": 2}', id="c-7", identity=ANN)
    assert ("ann", 1) == (result.value, result.attempts)
    assert [("c-7", "lookup", '{"days": 2}', "lookup", ANN)] == log
    assert pytest.approx(0.1) == result.elapsed


@pytest.mark.parametrize("answer", [{"days": 5}, '{"days": 5}', b'{"days": 5}'])
async def test_approval_may_change_the_arguments(answer: object) -> None:
    """What the hook returns in place of True is decoded in place of the call's arguments."""
    tool, _ = asked(answer)
    async with runtime(tool=tool) as rt:
        assert "the program" == (await rt.invoke("lookup", "not even JSON")).value
    assert [5] == runs


async def test_changed_arguments_are_validated() -> None:
    """Arguments that the hook gives are checked like any others."""
    tool, _ = asked({"days": "five"})
    async with runtime(tool=tool) as rt:
        result = await rt.invoke("lookup", {"days": 1})
    assert (ha.ErrorCategory.VALIDATION, "/days", 0) == (
        result.error.category,
        result.error.problems[0].path,
        result.attempts,
    )


@pytest.mark.parametrize("answer", [False, None, 1, ValueError("secret"), ha.ToolError("ask your lead")])
async def test_all_but_a_yes_is_a_no(answer: object) -> None:
    """False, nothing, a wrong type and an exception reject the call; only a ToolError's words reach the model."""
    tool, _ = asked(answer)
    async with runtime(tool=tool) as rt:
        result = await rt.invoke("lookup", {"days": 1})
    assert (ha.Outcome.REJECTED, ha.ErrorCategory.AUTH_FAILED, 0) == (
        result.outcome,
        result.error.category,
        result.attempts,
    )
    assert "secret" not in result.error.message
    assert ("ask your lead" in result.error.message) == isinstance(answer, ha.ToolError)
    assert [] == runs


async def test_approval_is_under_the_deadline() -> None:
    """A hook that takes too long is cut at the call's deadline; the call is timed_out with attempts 0."""
    tool, _ = asked(answer=True)
    async with runtime(tool=tool) as rt:
        result = await rt.invoke("lookup", {"days": 1}, timeout=0.05)
    assert (ha.Outcome.TIMED_OUT, 0) == (result.outcome, result.attempts)
    assert pytest.approx(0.05) == result.elapsed


async def test_the_callers_cancellation_leaves_approval() -> None:
    """A caller that goes while the hook is asked gets no answer."""
    tool, _ = asked(answer=True)
    async with runtime(tool=tool) as rt:
        with anyio.move_on_after(0.05) as scope:
            await rt.invoke("lookup", {"days": 1})
    assert scope.cancelled_caught


async def test_a_handle_cancels_approval() -> None:
    """A call that is canceled while the hook is asked is canceled with attempts 0, and its batch goes on."""
    tool, _ = asked(answer=True)
    async with runtime(tool=tool) as rt, rt.batch() as batch:
        first, second = batch.start(call(1)), batch.start(call(2))
        await anyio.sleep(0.05)
        first.cancel()
    assert [("failed", 0), ("succeeded", 1)] == [(result.outcome, result.attempts) for result in batch.results]
    assert second.done


async def test_the_runtime_is_asked_before_the_tool() -> None:
    """Both hooks must agree; the tool's sees the arguments that the runtime's made."""
    tool, log = asked(answer=True)

    async def approve(call: ha.ToolCall, tool: ha.Tool, identity: ha.Identity | None) -> dict[str, int]:
        return {"days": 9}

    async with runtime(tool=tool, approve=approve) as rt:
        await rt.invoke("lookup", {"days": 1})
    assert [{"days": 9}] == [entry[2] for entry in log]
    assert [9] == runs


async def test_approval_holds_no_place() -> None:
    """A call that waits for approval does not keep another from running, and is admitted after it."""
    tool, _ = asked(answer=True)
    free = ha.describe(lookup.function, name="free")
    async with ha.Runtime(ha.Catalog([tool, free]), limits=ha.Limits(max_running=1, max_queued=0)) as rt:
        first, second = await rt.invoke_many([call(), ha.ToolCall("d", "free", {"days": 2})])
    assert ("succeeded", "succeeded") == (first.outcome, second.outcome)
    assert second.elapsed < first.elapsed


async def test_a_tools_own_approval_holds_without_a_runtime() -> None:
    """descriptor.invoke asks the tool's hook, too."""
    tool, log = asked(answer=False)
    assert ha.Outcome.REJECTED == (await tool.invoke({"days": 1})).outcome
    assert 1 == len(log)


async def test_nobody_approves_a_programs_own_call() -> None:
    """rt.call is the program itself, and asks no hook."""
    tool, log = asked(answer=False)
    async with runtime(tool=tool) as rt:
        assert "the program" == await rt.call(tool, 1)
    assert [] == log


def test_an_approval_that_is_no_function_is_refused() -> None:
    """approve= must be callable."""
    with pytest.raises(errors.InvalidToolError, match="approve: expected an async function"):
        ha.describe(lookup.function, approve=True)
