"""A function that is stepped to its first wait before it gets its scope sees what one in a plain scope sees.

Random programs are run both ways in virtual time. Two differences are known, and shown below: before its first wait, a
function does not see its deadline in ``current_effective_deadline()`` (``ToolContext.deadline`` tells it); and one that
has blocked the loop past its limit is canceled at its first wait on asyncio too, as it always was on trio.
"""

import contextlib
import os
import sys

import anyio
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import HealthCheck, given, settings

from harbor_async import Catalog, Runtime, ToolContext
from harbor_async.testing import block, run_virtual
from tests.cancellation.programs import observe, plans
from tests.cancellation.ways import make, summary
from tests.support.loops import ALL

EXAMPLES = int(os.environ.get("HARBOR_EXAMPLES", "1000"))
each_loop = pytest.mark.parametrize("options", ALL, ids=str)


def assert_same_both_ways(plan, options):
    """Compare what is seen in both ways; where the loop itself knows several orders, one of them must be common.

    anyio cancels the tasks of a group on asyncio in the order of a set, which no seed fixes.
    """
    seed = 0 if options.get("backend") == "trio" else None

    def run(steps_first):
        return run_virtual(lambda: observe(plan, steps_first=steps_first), seed=seed, **options)

    plain, fast = run(steps_first=False), run(steps_first=True)
    if plain != fast and "group" in repr(plan.program):
        plain = next((seen for _ in range(30) if (seen := run(steps_first=False)) == fast), plain)
    assert plain == fast


many = settings(
    max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck), print_blob=True
)


@pytest.mark.timeout(300)
@many
@given(plans("deadline", "scope", "native"))
def test_on_asyncio_a_late_scope_changes_nothing(plan):
    """Times, exceptions, scopes and results are the same in both ways, on asyncio."""
    assert_same_both_ways(plan, {})


@pytest.mark.timeout(300)
@many
@given(plans("deadline", "scope"))
def test_on_trio_a_late_scope_changes_nothing(plan):
    """The same on trio."""
    assert_same_both_ways(plan, {"backend": "trio"})


@pytest.mark.skipif(sys.version_info < (3, 12), reason="asyncio has eager tasks from Python 3.12")
@pytest.mark.timeout(300)
@many
@given(plans("deadline", "scope", "native"))
def test_with_eager_tasks_a_late_scope_changes_nothing(plan):
    """The same with asyncio's eager tasks."""
    assert_same_both_ways(plan, {"eager": True})


@pytest.mark.virtual
async def test_the_context_tells_the_deadline_that_the_scopes_tell_only_after_a_wait():
    """``ToolContext.deadline`` is right at once, ``current_effective_deadline()`` from the first wait on."""
    seen = []

    async def looks(context: ToolContext):
        seen.append(context.deadline)
        await checkpoint()
        seen.append(anyio.current_effective_deadline())

    async with Runtime(Catalog([make(looks)])) as runtime:
        await runtime.invoke("looks")
        assert [1, 1] == seen
        await runtime.invoke("looks", timeout=0.25)
        assert [1, 1, 0.25, 0.25] == seen


@each_loop
@pytest.mark.parametrize("own", [False, True])
def test_a_function_that_blocks_past_its_limit_is_canceled_at_its_first_wait(options, own):
    """On every loop, in a scope of its own too; the answer is the same in a plain scope."""
    woken = []

    async def blocks():
        with anyio.CancelScope() if own else contextlib.nullcontext():
            block(5)
            try:
                await checkpoint()
            except anyio.get_cancelled_exc_class():
                woken.append("canceled")
                raise

    async def main():
        async with Runtime(Catalog([make(blocks, attempts=1)])) as runtime:
            for runtime._host.backend.steps_first in (True, False):
                assert ("failed", "timeout", 1, "attempts") == summary(await runtime.invoke("blocks"))

    run_virtual(main, **options)
    assert ["canceled"] == woken[:1]
