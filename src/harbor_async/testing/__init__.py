"""Tools for testing tools: time and chance that a test decides, on asyncio and trio.

- ``run_virtual(func, *args)`` runs an async function in virtual time.
- ``virtual_backend(name)`` is the same for anyio's pytest plugin.
- ``block(seconds)`` lets virtual time pass as a blocking call would.
- ``wait_all_tasks_blocked()`` waits until all other tasks wait, while time stands still.
- ``cancel_sweep(scenario)`` cancels an async function at every point where it can be canceled.
- ``ScriptedRandom(values)`` is a random source for ``Callable[[], float]``.
"""

from ._chance import ScriptedRandom
from ._deadlock import DeadlockError
from ._sweep import Cut, cancel_sweep
from ._virtual import block, run_virtual, virtual_backend, wait_all_tasks_blocked

__all__ = [
    "Cut",
    "DeadlockError",
    "ScriptedRandom",
    "block",
    "cancel_sweep",
    "run_virtual",
    "virtual_backend",
    "wait_all_tasks_blocked",
]
