"""A state machine drives batches, streams, handles and limits, and a simple model says what must come of it."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from harbor_async import Limits, ToolCall, ToolResult
from tests.property.runtime_driver import ERRORS, Client, Driver
from tests.property.runtime_model import Model
from tests.property.runtime_words import INNER, KINDS, Answer, Call, Owner

T = TypeVar("T")
GROUPS = st.sampled_from(["g", "h", "g", "h", None])
TIMEOUTS = st.sampled_from([None, None, None, 0.0, 2.5, 6.0, 12.0, 18.0])
WAIT_FOR_NOTHING = ["works", "instant", "writes", "unknown"]
OFTEN = ["works", "nests", "nests_alone"]
FEW = 5


class RuntimeMachine(RuleBasedStateMachine):
    """Does the same to a runtime and to the model, and compares them after each rule.

    What is new has its place: a thing that calls share, as a limit or a group, in ``Kind`` and ``Model._admit``; a way
    in which a tool behaves, in ``Kind`` and ``Driver``; a thing that can be done to a call, in a rule below.
    """

    def __init__(self, backend: str) -> None:
        super().__init__()
        self.backend = backend
        self.clients: list[tuple[Client, Owner]] = []
        self.count = 0
        self.driver: Driver | None = None

    @initialize(
        places=st.sampled_from([None, 1, 2, 3]),
        waiting=st.sampled_from([None, None, 0, 1, 3]),
        most=st.sampled_from([None, 1, 2]),
        has_tenants=st.booleans(),
    )
    def open(self, places: int | None, waiting: int | None, most: int | None, has_tenants: bool) -> None:
        most = most if has_tenants else None
        self.tenants = ["a", "b", "c"] if has_tenants else [None]
        # Which of two tenants is next is not predicted, and so not whether its call is too wide for the free places.
        self.names = [*(name for name in KINDS if name != "wide" or not has_tenants), *OFTEN, "unknown", "invalid"]
        # Of two calls that begin at one moment, either may find the last place in the queue.
        self.inner = INNER if waiting is None else WAIT_FOR_NOTHING
        self.driver = Driver(self.backend, Limits(max_running=places, max_queued=waiting, max_running_per_tenant=most))
        self.model = Model(places or math.inf, math.inf if waiting is None else waiting, most)

    # --- rules --------------------------------------------------------------------------------------------------

    def do(self, command: Any, *args: Any) -> Any:
        """Do something to the runtime, and look at what the model does not predict."""
        answer = self.driver.do(command, *args)
        self.model.seen = self.driver.seen
        for client, owner in self.clients:
            owner.got = [result.call_id for result in client.got]
        return answer

    def open_clients(self, *, streams: bool | None = None) -> list[tuple[Client, Owner]]:
        return [
            (client, owner)
            for client, owner in self.clients
            if not owner.is_closed and not owner.is_lost and streams in {None, owner.is_stream}
        ]

    def pick(self, data: st.DataObject, items: Sequence[T]) -> T:
        return items[data.draw(st.integers(0, len(items) - 1))]

    def deadline(self, timeout: float | None) -> float:
        return math.inf if timeout is None else self.model.now + timeout

    def draw_call(self, data: st.DataObject) -> tuple[ToolCall, tuple[str, str, str | None, Any]]:
        """Draw a call, for the runtime and for the model."""
        self.count += 1
        id, name, group = f"c{self.count}", data.draw(st.sampled_from(self.names)), data.draw(GROUPS)
        inner = None
        if name in KINDS and KINDS[name].body == "nests":
            inner = (data.draw(st.sampled_from(self.inner)), data.draw(GROUPS))
        arguments: dict[str, Any] = {"id": id, "group": group, "inner": inner and list(inner)}
        call = ToolCall(id, "works", {"no": "id"}) if name == "invalid" else ToolCall(id, name, arguments)
        return call, (id, name, group, inner)

    @precondition(lambda self: len(self.open_clients()) < FEW)
    @rule(data=st.data(), timeout=TIMEOUTS, successes=st.sampled_from([None, None, 1, 2]))
    def open_batch(self, data: st.DataObject, timeout: float | None, successes: int | None) -> None:
        tenant = data.draw(st.sampled_from(self.tenants))
        client = self.do(self.driver.open_batch, timeout, tenant, successes)
        self.clients.append((client, Owner(self.deadline(timeout), tenant, successes)))

    @precondition(lambda self: len(self.open_clients()) < FEW)
    @rule(data=st.data(), timeout=TIMEOUTS, size=st.integers(0, 6))
    def open_stream(self, data: st.DataObject, timeout: float | None, size: int) -> None:
        tenant = data.draw(st.sampled_from(self.tenants))
        drawn = [self.draw_call(data) for _ in range(size)]
        client = self.do(self.driver.open_stream, [call for call, _ in drawn], timeout, tenant)
        stream = Owner(self.deadline(timeout), tenant, is_stream=True, window=self.model.places)
        stream.source = [told for _, told in drawn]
        self.clients.append((client, stream))
        self.model.open_stream(stream)

    @precondition(lambda self: self.open_clients(streams=False))
    @rule(data=st.data(), size=st.integers(1, 4))
    def start(self, data: st.DataObject, size: int) -> None:
        client, batch = self.pick(data, self.open_clients(streams=False))
        for _ in range(size):
            call, told = self.draw_call(data)
            if batch.is_closed:
                break
            self.do(self.driver.start, client, call)
            self.model.start(batch, *told)

    @precondition(lambda self: self.model.at_gates())
    @rule(data=st.data(), how=st.sampled_from(["ok", "ok", *ERRORS]))
    def release(self, data: st.DataObject, how: str) -> None:
        call = self.pick(data, self.model.at_gates())
        self.do(self.driver.release, call.id, how)
        self.model.release(call, how)

    @precondition(lambda self: any(owner.calls for _, owner in self.open_clients(streams=False)))
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        handles = [
            (handle, call)
            for client, owner in self.open_clients(streams=False)
            for handle, call in zip(client.handles, owner.calls, strict=True)
        ]
        handle, call = self.pick(data, handles)
        self.do(self.driver.cancel, handle)
        self.model.cancel(call)

    @precondition(lambda self: self.open_clients(streams=False))
    @rule(data=st.data())
    def cancel_batch(self, data: st.DataObject) -> None:
        client, batch = self.pick(data, self.open_clients(streams=False))
        self.do(self.driver.cancel, client.opened)
        self.model.cancel_all(batch)

    def readers(self) -> list[tuple[Client, Owner]]:
        return [(client, stream) for client, stream in self.open_clients(streams=True) if not stream.is_pulling]

    @precondition(readers)
    @rule(data=st.data())
    def pull(self, data: st.DataObject) -> None:
        client, stream = self.pick(data, self.readers())
        self.do(self.driver.pull, client)
        self.model.pull(stream)

    @precondition(open_clients)
    @rule(data=st.data(), how=st.sampled_from(["leave", "hang up"]))
    def end(self, data: st.DataObject, how: str) -> None:
        client, owner = self.pick(data, self.open_clients())
        if how == "hang up":
            self.do(self.driver.hang_up, client)
            self.model.lose(owner, "canceled")
        elif not owner.is_pulling and not owner.is_leaving:
            self.do(self.driver.leave, client)
            self.model.leave(owner)

    @rule(seconds=st.sampled_from([0.5, 1.0, 2.0, 4.0, 8.0]))
    def pass_time(self, seconds: float) -> None:
        self.do(self.driver.pass_time, seconds)
        self.model.pass_time(seconds)

    # --- what must hold -----------------------------------------------------------------------------------------

    @invariant()
    def so_many_run_and_wait(self) -> None:
        """What runs and waits is what the model says, tool by tool."""
        if self.driver is None:
            return
        counted = self.driver.runtime.statistics()
        running, waiting = self.model.counts()
        assert running == Counter(counted.running_by_tool)
        assert waiting == Counter(counted.queued_by_tool)
        assert {call.id for call in self.model.calls if call.state == "running"} == self.driver.live

    @invariant()
    def each_call_has_its_answer(self) -> None:
        """Each call has ended when the model says so, with the same answer to all who asked."""
        for client, owner in self.clients:
            assert client.end == (owner.end if owner.is_closed else None)
            if owner.is_stream:
                calls = {call.id: call for call in owner.calls}
                assert owner.taken == owner.got
                assert [calls[id].answer for id in owner.taken] == [told(result) for result in client.got]
            else:
                batch(client, owner.calls)

    def teardown(self) -> None:
        if self.driver is None:
            return
        try:
            for client, _ in self.clients:
                self.do(self.driver.hang_up, client)
            for id in [*self.driver.gates]:  # of those that are shielded
                self.do(self.driver.release, id, "ok")
            counted = self.driver.runtime.statistics()
            assert (0, 0, 0) == (counted.running, counted.queued, counted.threads)
            assert all(client.end is not None for client, _ in self.clients)
        finally:
            self.driver.stop()


def told(result: ToolResult) -> Answer:
    error = result.error
    return Answer(
        result.outcome.value,
        error.category.value if error else result.value,
        result.attempts,
        result.stop_reason,
        result.late,
        error is not None and error.ambiguous,
    )


def batch(client: Client, calls: list[Call]) -> None:
    """Compare the calls of a batch with those of the model."""
    for call, handle, result in zip(calls, client.handles, client.opened.results, strict=True):
        assert (call.state == "done") == handle.done == (result is not None)
        if call.answer is not None:
            assert call.is_unsure or call.answer == told(result)
            assert client.heard[call.id] is result


@pytest.mark.timeout(400)  # for a failure, which takes minutes to shrink
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_runtime_does_what_the_model_says(backend):
    """After each of up to 50 things that are done to it: what runs, what waits, and each answer are as predicted."""
    suppressed = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    options = settings(
        max_examples=100,
        stateful_step_count=50,
        derandomize=True,  # the same programs in each run; a longer search is made by hand
        deadline=None,
        database=None,
        suppress_health_check=suppressed,
    )
    run_state_machine_as_test(lambda: RuntimeMachine(backend), settings=options)
