"""Virtual time, on asyncio, asyncio debug and trio."""

import asyncio
import contextlib
import math
import socket
import subprocess
import sys
import threading
import time

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest

from harbor_async import testing
from harbor_async.testing import DeadlockError, block, run_virtual, virtual_backend

BOTH = pytest.mark.parametrize("backend", ["asyncio", "trio"])


@pytest.mark.virtual
async def test_time_starts_at_zero():
    """A run begins at time 0."""
    assert 0.0 == anyio.current_time()


@pytest.mark.virtual
@pytest.mark.parametrize("delays", [[0.01, 1.0, 0.1, 0.2, 0.3, 1.1], [1e-9, 1e-12], [1e9, 0.1], [3e7, 3e7, 1e-3]])
async def test_a_sleep_ends_exactly_at_its_deadline(delays):
    """After a sleep the clock reads the time before plus the delay, to the last bit, at any magnitude."""
    for delay in delays:
        expected = anyio.current_time() + delay
        await anyio.sleep(delay)
        assert expected == anyio.current_time()


@pytest.mark.virtual
async def test_timers_fire_in_order_each_at_its_own_time():
    """Tasks that sleep at once wake in the order of their deadlines, even a picosecond apart."""
    woken = []

    async def child(delay):
        await anyio.sleep(delay)
        woken.append((delay, anyio.current_time()))

    async with anyio.create_task_group() as group:
        for delay in (5.0, 1.0, 1.0 + 1e-12, 3.5):
            group.start_soon(child, delay)
    assert [(1.0, 1.0), (1.0 + 1e-12, 1.0 + 1e-12), (3.5, 3.5), (5.0, 5.0)] == woken


@pytest.mark.virtual
async def test_a_deadline_passes_at_its_time():
    """A scope's deadline cancels exactly at its time; what ends earlier is not cut."""
    with anyio.move_on_after(3.0) as late:
        await anyio.sleep(4.0)
    with anyio.move_on_after(3.0) as early:
        await anyio.sleep(2.0)
    with pytest.raises(TimeoutError), anyio.fail_after(1.0):
        await anyio.sleep_forever()
    assert (True, False, 6.0) == (late.cancelled_caught, early.cancelled_caught, anyio.current_time())


@pytest.mark.virtual
async def test_an_endless_sleep_is_no_timer():
    """A sleep of infinity does not end, nor does time jump to infinity."""
    with anyio.move_on_after(5.0):
        await anyio.sleep(math.inf)
    assert 5.0 == anyio.current_time()


@pytest.mark.virtual
async def test_time_stands_still_while_a_task_can_run():
    """A timer does not fire while other tasks have work at the present time."""
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.sleep, 1.0)
        for _ in range(100):
            await anyio.lowlevel.checkpoint()
        assert 0.0 == anyio.current_time()


@pytest.mark.virtual(grace=10)
async def test_a_thread_is_not_overtaken_within_the_grace():
    """With a grace longer than a thread's work, the thread's result comes before any timer."""
    with anyio.move_on_after(10.0) as scope:
        await anyio.to_thread.run_sync(time.sleep, 0.01)
    assert (False, 0.0) == (scope.cancelled_caught, anyio.current_time())


@pytest.mark.virtual
async def test_a_thread_without_grace_is_overtaken():
    """Without a grace a timeout passes although a thread is still at work: so abandoned threads can be tested."""
    release = threading.Event()
    with anyio.move_on_after(10.0) as scope:
        await anyio.to_thread.run_sync(release.wait, abandon_on_cancel=True)
    release.set()
    assert (True, 10.0) == (scope.cancelled_caught, anyio.current_time())


@pytest.mark.virtual
async def test_a_thread_is_waited_for_in_real_time_when_no_timer_is_set():
    """Without timers the loop waits for a thread, and the clock stands."""
    await anyio.to_thread.run_sync(time.sleep, 0.01)
    assert 0.0 == anyio.current_time()


@pytest.mark.virtual
async def test_a_thread_calls_into_the_loop():
    """Code that a thread runs in the loop sleeps in virtual time."""

    def work():
        anyio.from_thread.run(anyio.sleep, 7.0)
        return anyio.from_thread.run_sync(anyio.current_time)

    assert 7.0 == await anyio.to_thread.run_sync(work)


@pytest.mark.virtual
async def test_a_foreign_thread_wakes_a_task(anyio_backend_name):
    """``call_soon_threadsafe`` and ``run_sync_soon`` of a thread that no backend knows wake the loop."""
    event = anyio.Event()
    if anyio_backend_name == "asyncio":
        call = asyncio.get_running_loop().call_soon_threadsafe
    else:
        import trio

        call = trio.lowlevel.current_trio_token().run_sync_soon
    thread = threading.Timer(0.01, call, [event.set])
    thread.start()
    await event.wait()
    assert 0.0 == anyio.current_time()


@pytest.mark.virtual
async def test_what_has_happened_comes_before_a_jump():
    """Bytes that have arrived are seen before time moves to the next timer."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        ours.send(b"x")
        with anyio.move_on_after(1.0) as scope:
            await anyio.wait_readable(theirs)
    assert (False, 0.0) == (scope.cancelled_caught, anyio.current_time())


@pytest.mark.virtual(patience=0)
async def test_a_watched_socket_is_waited_for():
    """Without timers the loop waits for a socket as long as it takes: it is no deadlock."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        threading.Timer(0.02, ours.send, [b"x"]).start()
        await anyio.wait_readable(theirs)
    assert 0.0 == anyio.current_time()


@pytest.mark.virtual(grace=10)
async def test_sockets_work():
    """A conversation over a real socket takes no virtual time within the grace, and no real grace either."""

    async def serve(stream):
        async with stream:
            await stream.send(await stream.receive())

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, serve)
        with anyio.fail_after(5.0):
            async with await anyio.connect_tcp("127.0.0.1", listener.extra(anyio.abc.SocketAttribute.local_port)) as me:
                await me.send(b"ping")
                assert b"ping" == await me.receive()
        assert 0.0 == anyio.current_time()
        group.cancel_scope.cancel()


@pytest.mark.virtual
async def test_waiting_for_blocked_tasks_takes_no_time():
    """``wait_all_tasks_blocked`` returns when the others wait, before any timer."""
    steps = []

    async def child():
        for step in range(3):
            await anyio.lowlevel.checkpoint()
            steps.append(step)
        await anyio.sleep(0.001)
        steps.append("timer")

    async with anyio.create_task_group() as group:
        group.start_soon(child)
        await testing.wait_all_tasks_blocked()
        assert ([0, 1, 2], 0.0) == (steps, anyio.current_time())


async def test_waiting_for_blocked_tasks_works_in_real_time():
    """``wait_all_tasks_blocked`` is anyio's own where time is real."""
    event = anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(event.wait)
        await testing.wait_all_tasks_blocked()
        assert 1 == event.statistics().tasks_waiting
        event.set()


@pytest.mark.virtual
async def test_a_blocked_loop_lets_time_pass():
    """``block`` moves the clock at once, and a deadline that passes meanwhile is delivered at the next checkpoint."""
    with anyio.move_on_after(1.0) as scope:
        block(2.5)
        after = anyio.current_time()
        await anyio.sleep(1.0)
    assert (2.5, 2.5, True) == (after, anyio.current_time(), scope.cancelled_caught)


async def test_block_needs_virtual_time():
    """``block`` refuses where time is real."""
    with pytest.raises(RuntimeError, match="virtual time"):
        block(1.0)


@pytest.mark.virtual
@pytest.mark.parametrize("seconds", [-1.0, math.inf, math.nan])
async def test_block_refuses_nonsense(seconds):
    """Time does not go back, nor to infinity."""
    with pytest.raises(ValueError, match="seconds"):
        block(seconds)


@BOTH
@pytest.mark.parametrize("debug", [False, True])
def test_run_virtual_returns_the_result(backend, debug):
    """``run_virtual`` passes arguments in and the result out."""

    async def main(delay):
        await anyio.sleep(delay)
        return anyio.current_time()

    assert 86_400.5 == run_virtual(main, 86_400.5, backend=backend, debug=debug)


@BOTH
def test_run_virtual_lets_errors_out(backend):
    """What the function raises leaves as it is."""

    async def main():
        await anyio.sleep(1)
        raise LookupError

    with pytest.raises(LookupError):
        run_virtual(main, backend=backend)


@BOTH
@pytest.mark.parametrize("shield", [False, True])
def test_a_deadlock_is_an_error_that_names_the_waits(backend, shield):
    """Tasks that nothing can wake end with an error that says where each waits; what they hold is given back."""
    ended = []

    async def wait_for_ever():
        try:
            with anyio.CancelScope(shield=shield):
                await anyio.Event().wait()
        finally:
            ended.append("child")

    async def main():
        await anyio.sleep(1)
        async with anyio.create_task_group() as group:
            group.start_soon(wait_for_ever, name="the waiter")
            with anyio.CancelScope(shield=shield):
                await anyio.Event().wait()

    with pytest.raises(DeadlockError, match="the waiter") as info:
        run_virtual(main, backend=backend, patience=0.05)  # idle threads of earlier tests may live
    assert 2 == len(info.value.waiting)
    assert [True] == [
        "in main" in line or "<locals>.main" in line for line in info.value.waiting if "waiter" not in line
    ]
    assert ["child"] == ended


@BOTH
def test_a_deadlock_cannot_be_swallowed(backend):
    """A program that hides the error from its caller ends with it all the same."""

    async def main():
        with contextlib.suppress(Exception):
            await anyio.Event().wait()

    with pytest.raises(DeadlockError):
        run_virtual(main, backend=backend, patience=0.05)


@BOTH
def test_a_deadlock_beside_an_idle_thread_ends_after_the_patience(backend):
    """Where a thread lives that might wake a task, the error comes after ``patience``."""

    async def main():
        await anyio.to_thread.run_sync(int)
        await anyio.Event().wait()

    with pytest.raises(DeadlockError):
        run_virtual(main, backend=backend, patience=0.05)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with 3.12")
def test_eager_tasks_run_in_virtual_time():
    """With eager tasks a child has begun when its maker goes on, and times are exact."""

    async def main():
        times = []

        async def child():
            times.append("begun")
            await anyio.sleep(2.5)
            times.append(anyio.current_time())

        task = asyncio.create_task(child())
        assert ["begun"] == times
        await task
        return times

    assert ["begun", 2.5] == run_virtual(main, eager=True)


def test_the_executor_shuts_down_in_real_time():
    """The timeout with which asyncio joins its executor is no virtual one, or every run would warn."""

    async def main():
        loop = asyncio.get_running_loop()
        loop.run_in_executor(None, time.sleep, 0.02)
        await anyio.sleep(1)

    run_virtual(main)


def order_on_trio(seed):
    """Return the order in which canceled tasks end: without a seed it hangs on where they lie in memory."""
    order = []

    async def child(number):
        try:
            await anyio.sleep_forever()
        finally:
            order.append(number)

    async def main():
        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(child, number)
            await anyio.sleep(1)
            group.cancel_scope.cancel()

    run_virtual(main, backend="trio", seed=seed)
    return order


def test_a_seed_fixes_the_order_on_trio():
    """The same seed gives the same order of ready tasks, other seeds give others."""
    first = order_on_trio(1)
    memory = [bytearray(size) for size in range(0, 20_000, 7)]
    assert first == order_on_trio(1)
    assert 5 == len({tuple(order_on_trio(seed)) for seed in range(5)})
    del memory


def test_a_seed_leaves_the_hosts_chance_alone():
    """A seeded run puts trio's own switches back."""
    from trio._core import _run

    before = (_run._ALLOW_DETERMINISTIC_SCHEDULING, _run._r.getstate())
    order_on_trio(7)
    assert before == (_run._ALLOW_DETERMINISTIC_SCHEDULING, _run._r.getstate())


@pytest.mark.parametrize(
    ("backend", "options"),
    [("curio", {}), ("asyncio", {"grace": -1}), ("trio", {"patience": math.nan})]
    + ([("asyncio", {"eager": True})] if sys.version_info < (3, 12) else []),
)
def test_nonsense_is_refused(backend, options):
    """An unknown backend, a negative or undefined time, and eager tasks before 3.12 get a clear error."""
    with pytest.raises(ValueError, match=r"expected|from"):
        virtual_backend(backend, **options)


@BOTH
def test_a_deadlock_without_threads_ends_at_once(backend):
    """Where no thread lives, nobody needs patience."""
    program = (
        "import anyio, harbor_async.testing as t\n"
        "async def main(): await anyio.Event().wait()\n"
        "try:\n"
        f"    t.run_virtual(main, backend={backend!r}, patience=1e6)\n"
        "except t.DeadlockError:\n"
        "    print('ended')\n"
    )
    run = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert ("ended\n", "") == (run.stdout, run.stderr)


def test_asyncio_users_do_not_load_trio():
    """Virtual time on asyncio works without importing trio."""
    program = (
        "import sys, anyio, harbor_async.testing as t\nt.run_virtual(anyio.sleep, 1)\nsys.exit('trio' in sys.modules)\n"
    )
    assert 0 == subprocess.run([sys.executable, "-c", program], check=False).returncode
