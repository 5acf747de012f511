"""Any sequence of writes, one after the other or at once, does to the tracker what it does to a model of ten lines."""

import tempfile
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings, strategies as st

from harbor_async import ErrorCategory
from harbor_async.tracker import Issue, TrackerError
from harbor_async.tracker.writers import SQLiteTracker
from tests.unit.tracker.conftest import MEMORY
from tests.unit.tracker.sqlite_files import steps

STATES = ["open", "in_progress", "in_review", "closed"]
MOVES = {
    "open": ["in_progress", "closed"],
    "in_progress": ["open", "in_review", "closed"],
    "in_review": ["in_progress", "closed"],
    "closed": ["open"],
}
OPS = ["comment", "link_pr", "transition", "close"]
WRITES = st.tuples(
    st.sampled_from(OPS),
    st.sampled_from(["A", "B", "C"]),  # C is not there
    st.sampled_from([*STATES, "IN_REVIEW", "nowhere"]),
    st.integers(0, 9),
)


class Model:
    def __init__(self):
        self.state = {"A": "open", "B": "open"}
        self.links = {"A": [], "B": []}
        self.history = {id: [("add", None, "open", "")] for id in "AB"}
        self.done = {}

    def write(self, op, id, text, key):
        """Do a write, and return the category of its failure, or None."""
        if key in self.done:
            return None if self.done[key] == (op, id, text) else ErrorCategory.CONFLICT
        if id not in self.state:
            return ErrorCategory.NOT_FOUND
        now = self.state[id]
        target = {"transition": text.lower(), "close": "closed"}.get(op)
        if target is not None and target not in (now, *MOVES[now]):
            return ErrorCategory.VALIDATION
        self.done[key] = (op, id, text)
        if target is not None and target != now:
            self.state[id] = target
            self.history[id].append((op, now, target, text if op == "close" else ""))
        elif op == "comment" or (op == "link_pr" and text not in self.links[id]):
            self.history[id].append((op, None, None, text))
            if op == "link_pr":
                self.links[id].append(text)
        return None

    def issues(self):
        return tuple(
            Issue(id, id, state, is_closed=state == "closed", links=tuple(self.links[id]))
            for id, state in self.state.items()
        )


async def play(tracker, program, *, at_once):
    """Send all writes; return number and category of failure, or None, of each in the order of their begin."""
    ends = {}
    begun = []

    async def send(index, op, id, text, key):
        begun.append(index)
        try:
            await getattr(tracker, op)(id, text, key=str(key))
        except TrackerError as exc:
            ends[index] = exc.category
        else:
            ends[index] = None

    async with anyio.create_task_group() as group:
        for index, write in enumerate(program):
            if at_once:
                group.start_soon(send, index, *write)
            else:
                await send(index, *write)
    return [(index, ends[index]) for index in begun]


@pytest.mark.parametrize("at_once", [False, True], ids=["in turn", "at once"])
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@given(program=st.lists(WRITES, max_size=30))
@settings(max_examples=60, deadline=None)
def test_any_program(backend, at_once, program):
    """Answers, issues and histories are those of the model, and the file is sound."""
    model = Model()

    async def main():
        with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
            async with await SQLiteTracker.create(Path(folder) / "issues.db") as tracker:
                for id in "AB":
                    await tracker.add(id, id)
                ends = await play(tracker, program, at_once=at_once)
                assert [(index, model.write(*program[index])) for index, _ in ends] == ends
                assert model.issues() == await tracker.list()
                for id in "AB":
                    assert model.history[id] == steps(await tracker.history(id))

    anyio.run(main, backend=backend)
