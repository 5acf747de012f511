"""Tools for testing tools, on asyncio and trio: time, chance and faults that a test decides, and suites of tests.

Time and chance:

- ``run_virtual(func, *args)`` runs an async function in virtual time.
- ``virtual_backend(name)`` is the same for anyio's pytest plugin.
- ``block(seconds)`` lets virtual time pass as a blocking call would.
- ``wait_all_tasks_blocked()`` waits until all other tasks wait, while time stands still.
- ``cancel_sweep(scenario)`` cancels an async function at every point where it can be canceled.
- ``ScriptedRandom(values)`` is a random source for ``Callable[[], float]``.

Fakes and faults:

- ``scripted_tool(name, script)`` makes a tool that returns and raises what a script says.
- ``inject(tool, faults)`` makes things go wrong in a tool's attempts, by a list or by ``chance``.
- ``Fault`` is what goes wrong, ``HANG`` one that never ends by itself.
- ``RecordingSink`` keeps the events of a runtime.

Suites, to be subclassed in a test module:

- ``CatalogConformance`` checks a catalog, ``SinkConformance`` an event sink, ``WriterConformance`` a tracker's writer.
"""

from ._catalog_rules import CatalogConformance
from ._chance import ScriptedRandom
from ._deadlock import DeadlockError
from ._fault import HANG, Fault, chance
from ._recording import RecordingSink
from ._scripted import inject, scripted_tool
from ._sink_rules import SinkConformance
from ._sweep import Cut, cancel_sweep
from ._virtual import block, run_virtual, virtual_backend, wait_all_tasks_blocked
from ._writer_rules import WriterConformance

__all__ = [
    "HANG",
    "CatalogConformance",
    "Cut",
    "DeadlockError",
    "Fault",
    "RecordingSink",
    "ScriptedRandom",
    "SinkConformance",
    "WriterConformance",
    "block",
    "cancel_sweep",
    "chance",
    "inject",
    "run_virtual",
    "scripted_tool",
    "virtual_backend",
    "wait_all_tasks_blocked",
]
