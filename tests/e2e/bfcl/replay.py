"""Recorded sessions, run again through one runtime: sessions in parallel, the calls of a session in order."""

import decimal
import json
import sys
from collections.abc import Iterable
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import anyio
import attrs
import mpmath

import harbor_async as ha
from tests.e2e.bfcl.apis import api_class, instances

CORRECTED: Final = (
    {}
    if sys.version_info < (3, 12)
    # The recording was made with Python 3.11. Since 3.12 sum() carries the rounding errors of floats along, and so the
    # deviation of 100, 95, 85, 90, 88 and 92 comes out as what it is, sqrt(212) / 3.
    else {'{"result": 4.85340659285368}': '{"result": 4.853406592853679}'}
)
"""Recorded results that this Python computes more exactly."""


@attrs.frozen
class Answer:
    """One recorded call, and what it gives now.

    Attributes:
        session: The session's name.
        tool: The tool's name.
        args: Its arguments.
        recorded: The result's text in the recording, see ``CORRECTED``.
        result: What the runtime answers to the call as a model's.
        text: What the function gave, as text, taken at once: a later call of the session may change the value.
            Where the arguments were refused, it is what a program's call gives, which is not held to the schema.
    """

    session: str
    tool: str
    args: dict[str, Any]
    recorded: str
    result: ha.ToolResult
    text: str


def load_sessions(path: Path) -> list[dict[str, Any]]:
    """Return the sessions of a file: ``{session, classes, config, calls: [{tool, args, result}]}`` on each line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


async def replay(tools: "Iterable[ha.ToolDescriptor[..., Any]]", sessions: list[dict[str, Any]]) -> list[Answer]:
    """Run all sessions at once and return every answer, in the order in which they came.

    The APIs set the precision of mpmath and of the decimal context; both are as before when this returns.
    """
    answers: list[Answer] = []
    with mpmath.workprec(mpmath.mp.prec), decimal.localcontext():
        async with ha.Runtime(ha.Catalog(tools)) as runtime, anyio.create_task_group() as group:
            for session in sessions:
                group.start_soon(_replay_session, runtime, session, answers)
    return answers


async def _replay_session(runtime: ha.Runtime, session: dict[str, Any], answers: list[Answer]) -> None:
    instances.set({api: _instance(api, session["config"]) for api in session["classes"]})  # this task's own context
    for number, call in enumerate(session["calls"]):
        name, args = call["tool"], call["args"]
        result = await runtime.invoke(name, json.dumps(args), id=f"{session['session']}/{number}")
        if result.error is not None and not result.attempts:
            text = as_text(await runtime.call(runtime.catalog.resolve(name), **args))
        else:
            text = as_text(result.value)
        recorded = CORRECTED.get(call["result"], call["result"])
        answers.append(Answer(session["session"], name, args, recorded, result, text))


def _instance(api: str, config: dict[str, Any]) -> Any:
    instance = api_class(api)()
    if hasattr(instance, "_load_scenario"):  # MathAPI has no state
        instance._load_scenario(deepcopy(config.get(api, {})))
    return instance


def as_text(value: Any) -> str:
    """Return what a function gave as the package's own executor writes it."""
    if isinstance(value, dict):
        try:
            return json.dumps(value)
        except TypeError:  # a number of mpmath: it is written with the precision that its own call has just set
            return str(value)
    return str(value)
