"""One of several processes that write to a tracker: ``FILE NUMBER COUNT BACKEND [stop]``.

It prints a line for each answer, as it comes: number, outcome, delivery, attempts. Its keys are its own, and the same
when it runs again.
"""

import json
import os
import signal
import sqlite3
import sys
from random import Random

import anyio
from stamina.instrumentation import set_on_retry_hooks

from harbor_async import Backoff, Catalog, Limits, Runtime, ToolCall, ToolPolicy
from harbor_async.tracker import NAME, tracker_write
from harbor_async.tracker.writers import SQLiteTracker

IN_FLIGHT = 40
WAYS = ["", "", "", "deadline", "handle", "scope"]
SHARED = 20


def arguments_of(number, index):
    """Return what write ``index`` of process ``number`` does: it leaves one entry of its own in the history."""
    name = f"{number}-{index}"
    shared = f"S-{index % SHARED}"
    return (
        {"op": "comment", "id": shared, "body": name},
        {"op": "link_pr", "id": shared, "prURL": name},
        {"op": "close", "id": f"C-{name}", "reason": name},
    )[index % 3]


class Tracker(SQLiteTracker):
    """A tracker whose keys are the names of the writes, so that a process which runs again uses them again."""

    def __init__(self, path):
        super().__init__(path)
        self.names = {}

    async def comment(self, id, body, /, *, key):
        self.names[key] = body
        await super().comment(id, body, key=body)

    async def link_pr(self, id, pr_url, /, *, key):
        await super().link_pr(id, pr_url, key=pr_url)

    async def close(self, id, reason, /, *, key):
        await super().close(id, reason, key=reason)

    async def find_comment(self, id, /, *, key):
        return key in self.names and await super().find_comment(id, key=self.names[key])


class Stopping(sqlite3.Connection):
    """A connection whose process is killed when it commits: before it has, or after."""

    when = ""

    def execute(self, sql, *values):
        if sql == "COMMIT":
            if self.when == "after":
                super().execute(sql)
            os.kill(os.getpid(), signal.SIGKILL)
        return super().execute(sql, *values)


async def main(path, number, count):
    random = Random(os.getpid())
    ways = WAYS if count > len(WAYS) * 10 else [""]
    policy = ToolPolicy(timeout=5.0, attempts=4, wait=Backoff(initial=0.01))
    async with Tracker(path) as tracker:
        catalog = Catalog([tracker_write(tracker, policy=policy)])
        async with (
            Runtime(catalog, limits=Limits(max_running=IN_FLIGHT)) as runtime,
            anyio.create_task_group() as group,
        ):
            for index in range(count):
                call = ToolCall(str(index), NAME, json.dumps(arguments_of(number, index)))
                group.start_soon(write, runtime, call, random.choice(ways), random.uniform(0.0, 0.05))
                await anyio.sleep(0.0005)


async def write(runtime, call, way, seconds):
    """Do one write, which is cut short after so many seconds, in one of the ways in which a call can be, or in none."""
    with anyio.move_on_after(seconds if way == "scope" else 60):
        async with runtime.batch(timeout=seconds if way == "deadline" else None) as batch:
            handle = batch.start(call)
            if way == "handle":
                await anyio.sleep(seconds)
                handle.cancel()
            result = await handle.result()
        delivery = "" if result.error is None else result.error.delivery.value
        answer = f"{call.id} {result.outcome.value} {delivery or '-'} {result.attempts}\n"
        os.write(1, answer.encode())


if __name__ == "__main__":
    path, number, count, backend, *when = sys.argv[1:]
    if when:
        Stopping.when = when[0]
        connect = sqlite3.connect
        sqlite3.connect = lambda *args, **options: connect(*args, factory=Stopping, **options)
    set_on_retry_hooks(())  # it would log each retry
    anyio.run(main, path, int(number), int(count), backend=backend)
