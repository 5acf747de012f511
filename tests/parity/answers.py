"""What comes of one call with an argument text, recorded and here, in one form."""

import base64
import json
from typing import Any

import attrs

from harbor_async import Catalog, Runtime, ToolDescriptor
from harbor_async.errors import InvalidArgumentsError, InvalidOutputError
from tests.parity.harness import Case


@attrs.frozen
class Answer:
    """What comes of one call.

    Attributes:
        ended: ``value``, ``invalid_args``, ``invalid_output``, ``exhausted``, or ``unsupported`` when the tool was
            refused.
        calls: How often the function ran.
        saw: What it was given, as JSON; None where that is its result, too.
        value: Its result, as JSON.
        paths: JSON pointers to what is wrong with the arguments, at the object where a key is missing or too many;
            None where the seed recorded none.
    """

    ended: str
    calls: int = 0
    saw: Any = None
    value: Any = None
    paths: tuple[str, ...] | None = None


def exact(value: Any) -> Any:
    """Return JSON in a form in which equal means equal: the order of keys counts, and true is not 1."""
    if isinstance(value, dict):
        return ("object", [(key, exact(item)) for key, item in value.items()])
    if isinstance(value, list):
        return [exact(item) for item in value]
    return ("boolean", value) if isinstance(value, bool) else value


def parse(text: str | None) -> Any:
    return None if text is None else exact(json.loads(text))


def recorded(case: Case) -> Answer:
    """Put the recorded answer of the seed in our words."""
    seed = case.expected
    if "register_error" in seed:
        return Answer("unsupported")
    saw, value = parse(seed.get("fn_saw_json")), parse(seed.get("value_json"))
    if "error_is" not in seed:
        return Answer("value", seed["fn_calls"], None if saw == value else saw, value)
    ended = {"ErrToolInvalidArgs": "invalid_args", "ErrToolPolicyExhausted": "exhausted"}[seed["error_is"][0]]
    paths = None if seed["stage"] == "output_validation" else seed.get("violation_paths")
    return Answer(ended, seed["fn_calls"], saw, None, None if paths is None else tuple(paths))


def arguments(case: Case) -> str | bytes:
    """Return the arguments as they were sent."""
    given = case.input
    return base64.b64decode(given["args_b64"]) if "args_b64" in given else given["args"]


async def ask(tool: ToolDescriptor, sent: str | bytes, seen: list[Any], *, like: Answer) -> Answer:
    """Call a tool and say what came of it, leaving out what the seed did not record either.

    Args:
        tool: What to call.
        sent: The argument text.
        seen: Where the function puts what it is given, as JSON.
        like: The answer that is expected.
    """
    async with Runtime(Catalog([tool])) as runtime:
        result = await runtime.invoke(tool.name, sent)
    assert result.attempts == len(seen)
    saw = exact(seen[-1]) if seen and like.saw is not None else None
    failure = result.error
    if failure is None:
        return Answer("value", len(seen), saw, exact(result.to_wire()["value"]))
    if isinstance(failure.cause, InvalidArgumentsError):
        assert ("failed", "validation") == (result.outcome, failure.category)
        paths = {at(problem.path, problem.code) for problem in failure.problems}
        return Answer("invalid_args", len(seen), saw, None, None if like.paths is None else tuple(sorted(paths)))
    if isinstance(failure.cause, InvalidOutputError):
        assert ("failed", "unknown", False) == (result.outcome, failure.category, result.is_retryable)
        return Answer("invalid_output", len(seen), saw)
    assert result.stop_reason == "attempts"
    return Answer("exhausted", len(seen), saw)


def took_as_long(case: Case, seconds: float) -> bool:
    """Say whether a call took the recorded time, or one in the recorded range."""
    recorded_ns = case.expected.get("elapsed_virtual_ns", 0)
    if isinstance(recorded_ns, int):
        return recorded_ns == round(seconds * 1e9)
    return recorded_ns["at_least"] <= round(seconds * 1e9) < recorded_ns["less_than"]


def at(path: str, code: str) -> str:
    """Return the place as the seed's validator names it: a missing or unknown key is a fault of its object."""
    return path.rpartition("/")[0] if code in {"missing", "unknown"} else path
