"""Exclusive groups, by name and by function of the arguments. Virtual time."""

import functools

import anyio
import attrs
import pytest

from harbor_async import Catalog, Runtime, ToolCall, ToolContext, describe
from harbor_async.errors import InvalidToolError
from harbor_async.testing import wait_all_tasks_blocked
from tests.unit.limits.support import OK, Log, assert_free, call, make, runtime, summary

pytestmark = pytest.mark.virtual


async def test_the_calls_of_a_group_run_one_by_one_in_their_order():
    """Two tools of one group take turns in the order of the calls, whatever their limits are; a third runs beside."""
    log = Log()
    tools = (
        make(log.work, "click", exclusive="browser"),
        make(log.work, "type", exclusive="browser", max_running=3, weight=2),
        make(log.work, "think"),
    )
    order = ["click", "type", "type", "click", "click", "type"]
    async with runtime(*tools, max_running=4) as rt:
        calls = [call(tool, f"g{n}") for n, tool in enumerate(order)]
        results = await rt.invoke_many([*calls, call("think", "t")])
        assert_free(rt)
    assert [OK] * 7 == [*map(summary, results)]
    assert {f"g{n}": (n, n + 1) for n in range(6)} | {"t": (0, 1)} == log.spans


async def test_a_function_of_the_arguments_gives_the_group():
    """Calls of one group wait for each other, those of another and those of none do not."""
    log = Log()
    tool = make(log.work, exclusive=lambda name, seconds, group: group)
    async with runtime(tool) as rt:
        groups = ["a", "b", None, "a", None, "b", "a"]
        await rt.invoke_many([call("work", str(n), group=group) for n, group in enumerate(groups)])
        assert_free(rt)
    spans = {"0": (0, 1), "1": (0, 1), "2": (0, 1), "4": (0, 1), "3": (1, 2), "5": (1, 2), "6": (2, 3)}
    assert spans == log.spans


async def test_groups_by_name_and_by_function_are_the_same():
    """A tool that names its group waits for one whose function gives that name."""
    log = Log()
    tools = make(log.work, "named", exclusive="a"), make(log.work, "given", exclusive=lambda name, *_: name[0])
    async with runtime(*tools) as rt:
        await rt.invoke_many([call("given", "a1"), call("named", "x"), call("given", "b1"), call("given", "a2")])
    assert {"a1": (0, 1), "b1": (0, 1), "x": (1, 2), "a2": (2, 3)} == log.spans


@attrs.frozen
class Args:
    """An argument object."""

    account: str
    amount: int = 1


async def test_the_function_is_given_what_the_tool_is_given():
    """Positional, keyword-only and default values arrive as the tool gets them, without its context."""
    seen: list[object] = []

    async def pay(account: str, /, amount: int = 1, *, context: ToolContext, note: str = "n") -> None: ...

    async def whole(args: Args, /, context: ToolContext) -> None: ...

    def group(account: str, /, amount: int = 0, *, note: str) -> str:
        seen.append((account, amount, note))
        return account

    def of_whole(args: Args, /) -> str:
        seen.append(args)
        return args.account

    tools = make(pay, exclusive=group), make(whole, exclusive=of_whole)
    async with runtime(*tools) as rt:
        await rt.invoke("pay", {"account": "x"})
        await rt.call(tools[0], "y", 7, note="m")
        await rt.invoke("whole", {"account": "z", "amount": 2})
    assert [("x", 1, "n"), ("y", 7, "m"), Args("z", 2)] == seen


async def test_the_group_is_that_of_the_arguments_that_were_approved():
    """Where approval changes the arguments, the call is in the group of the new ones."""
    log = Log()

    async def approve(*_: object) -> dict[str, str]:
        return {"name": "approved", "group": "a"}

    tools = (
        make(log.work, "free", exclusive=lambda name, seconds, group: group, approve=approve),
        make(log.work, "named", exclusive="a"),
    )
    async with runtime(*tools) as rt:
        await rt.invoke_many([call("named", "first"), call("free", "sent", group="b")])
    assert {"first": (0, 1), "approved": (1, 2)} == log.spans


async def test_a_tool_may_change_its_arguments_though_they_gave_the_group():
    """Each attempt gets fresh arguments, as without a group."""
    seen: list[list[int]] = []

    async def work(items: list[int]) -> None:
        seen.append([*items])
        items.clear()
        if len(seen) < 3:
            raise ConnectionError

    async with runtime(make(work, attempts=3, exclusive=lambda items: str(len(items)))) as rt:
        await rt.invoke("work", {"items": [1, 2]})
    assert [[1, 2]] * 3 == seen


def fails(name: str, *_: object) -> str:
    raise ConnectionError("group of " + name)


async def waits(name: str, *_: object) -> str:
    return name


class WaitsToo:
    async def __call__(self, name: str, *_: object) -> str:
        return name


@pytest.mark.parametrize(
    ("group", "message", "error_class"),
    [
        (fails, "group of x", "transient"),
        (lambda *_: 5, "tool 'work': exclusive returned a int, no name of a group", "permanent"),
        (lambda *_: b"g", "tool 'work': exclusive returned a bytes, no name of a group", "permanent"),
        (lambda *_: ["g"], "tool 'work': exclusive returned a list, no name of a group", "permanent"),
        (lambda name, *_: waits(name), "tool 'work': exclusive returned a coroutine, no name of a group", "permanent"),
        (WaitsToo(), "tool 'work': exclusive returned a coroutine, no name of a group", "permanent"),
    ],
    ids=["raises", "int", "bytes", "list", "coroutine", "async instance"],
)
@pytest.mark.parametrize("approved", [False, True])
async def test_a_function_that_gives_no_group_fails_its_call(group, message, error_class, approved):
    """The call is answered as failed without a run, whatever its error means, and nothing may have happened."""
    log = Log()

    async def approve(*_: object) -> bool:
        return True

    tool = make(
        log.work, attempts=3, side_effect="write", exclusive=group, **({"approve": approve} if approved else {})
    )
    async with runtime(tool) as rt:
        for result in [await rt.invoke("work", {"name": "x"}), *await rt.invoke_many([call("work", "x")])]:
            assert ("failed", 0, "permanent") == (result.outcome, result.attempts, result.stop_reason)
            assert message == result.error.message
            assert error_class == result.error.error_class
            assert ("not_sent", False) == (result.error.delivery, result.error.ambiguous)
        if group is fails:
            with pytest.raises(ConnectionError, match="group of x"):
                await rt.call(tool, "x")
        assert_free(rt)
    assert {} == log.spans


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("ask", ["invoke", "call", "invoke_many", "stream"])
@pytest.mark.parametrize("approved", [False, True])
async def test_an_interrupt_in_the_function_leaves_and_leaves_nothing(kind, ask, approved):
    """What interrupts a group function leaves bare, siblings are awaited, and no call is counted as in flight."""
    log = Log()

    async def approve(*_: object) -> bool:
        await anyio.sleep(0.5)
        return True

    def interrupt(name: str, *_: object) -> str | None:
        if name == "x":
            raise kind
        return None

    tool = make(log.work, exclusive=interrupt, **({"approve": approve} if approved else {}))
    async with runtime(tool, make(log.work, "other", exclusive="g")) as rt:
        calls = [call("other", "o"), call("work", "x"), call("other", "p")]

        async def stream() -> None:
            async with rt.stream(calls) as results:
                _ = [result async for result in results]

        ways = {
            "invoke": lambda: rt.invoke("work", {"name": "x"}),
            "call": lambda: rt.call(tool, "x"),
            "invoke_many": lambda: rt.invoke_many(calls),
            "stream": stream,
        }
        with pytest.raises(kind):
            await ways[ask]()
        assert_free(rt)
        assert 0 == await rt.drain(0)


@pytest.mark.parametrize(
    ("exclusive", "reason"),
    [
        ("", "got ''"),
        (5, "got 5"),
        (True, "got True"),
        (b"g", "got b'g'"),
        (["g"], r"got \['g'\]"),
        (waits, "got an async function"),
        (functools.partial(waits, seconds=1), "got an async function"),
        (lambda name: name, "the function does not take the arguments of the tool"),
        (lambda: "g", "the function does not take the arguments of the tool"),
        (lambda name, seconds, group, more: "g", "the function does not take the arguments of the tool"),
        (lambda **values: "g", "the function does not take the arguments of the tool"),
        (lambda *values: "g", None),
        (lambda name, seconds=1, group=None, more=0: "g", None),
        (None, None),
        ("g", None),
    ],
)
def test_what_gives_the_group_is_checked_where_the_tool_is_made(exclusive, reason):
    """A name that is empty, an async function and one of other arguments are refused, naming tool and option."""
    if reason is None:
        assert "work" == describe(Log().work, exclusive=exclusive).name
        return
    with pytest.raises(InvalidToolError, match=rf"tool 'work': exclusive: expected the name of a group, .*; {reason}$"):
        describe(Log().work, exclusive=exclusive)


async def test_a_group_is_one_of_a_runtime():
    """Groups of one name in two runtimes are two groups."""
    log = Log()
    tool = make(log.work, exclusive="g")
    async with Runtime(Catalog([tool])) as one, Runtime(Catalog([tool])) as two, anyio.create_task_group() as group:
        group.start_soon(one.call, tool, "a")
        group.start_soon(two.call, tool, "b")
    assert {"a": (0, 1), "b": (0, 1)} == log.spans


async def test_ten_thousand_groups_leave_nothing():
    """A group that nobody has any more is forgotten."""
    async with runtime(make(Log().work, exclusive=lambda name, *_: name)) as rt:
        await rt.invoke_many([ToolCall("", "work", {"name": str(n), "seconds": n % 2}) for n in range(1_000)])
        assert_free(rt)
        assert [] == [*rt._host.limiter._slots.items()]


async def test_a_group_that_is_free_again_is_taken_by_who_comes():
    """When the last call of a group has ended, a new one begins at once."""
    log = Log()
    async with runtime(make(log.work, exclusive="g")) as rt:
        for name in "ab":
            await rt.invoke("work", {"name": name})
            await wait_all_tasks_blocked()
            await anyio.sleep(1)
    assert {"a": (0, 1), "b": (2, 3)} == log.spans
