"""``trackerwrite_run.json`` and ``trackerwrite_json.json``: one call of ``tracker_write``, in every state there is."""

import base64
import json
from collections import Counter
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import attrs
import pytest

from harbor_async.errors import InvalidToolError
from harbor_async.tracker import tracker_write
from tests.parity.harness import Case, Difference, Section, named
from tests.parity.tracker import Answer, ask, failed, from_envelope

NOT_MADE = Answer()
"""The answer of a tool that was refused when it was made."""


def is_nil(case: Case) -> bool:
    """Say whether a case has no tool to call; Python has no pointer that is nil and yet has methods."""
    return case.input.get("tool", "") == "nil (unconfigured)" or case.name == "new/typed_nil_writer"


def is_invisible(case: Case) -> bool:
    """Say whether the id of a case has a character in it that nobody sees."""
    if "args" in case.input:
        return any(mark in case.input["args"]["id"] for mark in "\x00\u200b\ufeff")
    return case.input.get("args_json") in {r'{"op":"close","id":"\u0000"}', r'{"op":"close","id":"\u200b"}'}


# --- trackerwrite_run -------------------------------------------------------------------------------------------------


def recorded_run(case: Case) -> Answer:
    seed = case.expected
    if "result" in seed:
        answer = from_envelope(seed["result"], seed["calls"])
        assert answer.is_retryable == seed["is_retryable"]
        return answer
    return NOT_MADE if seed.get("is_error") else Answer(failure=("panic",), calls=tuple(seed.get("calls", ())))


def category(word: str) -> Callable[[Answer, Case], Answer]:
    """Make the answer of the same call that fails otherwise."""

    def ours(answer: Answer, case: Case) -> Answer:
        args = case.input["args"]
        return failed(word, args["op"], args["id"], answer.calls)

    return ours


def refused(_: Answer, case: Case) -> Answer:
    args = case.input["args"]
    return failed("validation", args["op"], args["id"])


RUN = Section(
    "trackerwrite_run",
    "cases",
    recorded_run,
    (
        Difference(18, lambda case: "args" in case.input and is_invisible(case), refused),
        Difference(19, lambda case: case.name.endswith("/panic"), category("unknown")),
        Difference(
            28,
            lambda case: case.name.endswith(("/cancel_then_plain_error", "/cancel_then_wrapped_deadline")),
            category("canceled"),
        ),
        Difference(29, lambda case: case.name.endswith(("/os_deadline", "/net_timeout_iface")), category("timeout")),
        Difference(49, is_nil, lambda *_: NOT_MADE),
        Difference(51, lambda case: case.input.get("ctx") == "deadline_expired_then_canceled", category("canceled")),
        Difference(52, lambda case: case.name.endswith("/joined_canceled_then_deadline"), category("unknown")),
    ),
)


def grouped(section: Section, *parts: int) -> Any:
    """Parametrize with groups of the cases whose names begin alike; one test for each would take four times as long."""
    groups: dict[str, list[Case]] = {}
    for case in section.cases:
        words = case.name.split("/")
        groups.setdefault("/".join(words[: parts[words[0] in {"matrix", "id"}]]), []).append(case)
    return pytest.mark.parametrize("group", groups.values(), ids=groups.keys())


async def check(section: Section, group: list[Case], sent: Callable[[Case], Any], asserted: Callable) -> None:
    expected, actual = {}, {}
    for case in group:
        numbers, expected[case.name] = section.expect(case)
        if "ctx" in case.input and not is_nil(case):
            actual[case.name] = await ask(case, sent(case))
        else:
            with pytest.raises(InvalidToolError):
                tracker_write(None)
            actual[case.name] = NOT_MADE
        asserted(section, case, numbers)
    assert expected == actual


@grouped(RUN, 2, 3)
async def test_operations_end_as_in_the_seed(group: list[Case], asserted: Callable) -> None:
    """The envelope and the calls of the writer are those recorded, for every operation, capability, field and error."""
    await check(RUN, group, lambda case: case.input["args"], asserted)


# --- trackerwrite_json ------------------------------------------------------------------------------------------------


def arguments(case: Case) -> str | bytes:
    """Return the argument text as it was sent."""
    given = case.input
    if "args_json_b64" in given:
        return base64.b64decode(given["args_json_b64"])
    if "args_json" in given:
        return given["args_json"]
    build = given["args_json_build"]
    middle = build.get("repeat", "") * build.get("count", 0) + build.get("repeat2", "") * build.get("count2", 0)
    middle += "".join(build.get("each", "").replace("{i}", str(i)) for i in range(build.get("for_i_in_range", 0)))
    return build["prefix"] + middle + build["suffix"]


def plain(text: str) -> str:
    """Return JSON without the escapes that only Go writes."""
    for character in "<>&\u2028\u2029":
        text = text.replace(f"\\u{ord(character):04x}", character)
    return text


def recorded_json(case: Case) -> Any:
    """Put the recorded answer in our words; a failure whose text was not kept is read off the arguments."""
    seed = case.expected
    calls = seed["calls"]
    if seed.get("is_error"):
        return seed["error_kind"]
    if "output_parsed" in seed:
        answer = from_envelope(seed["output_parsed"], calls)
        return answer if answer.text is None else attrs.evolve(answer, text=seed["output"])
    sent = json.loads(arguments(case))
    if not calls:
        return failed("validation", sent["op"], sent["id"])
    answer = from_envelope({"outcome": "succeeded", **sent}, calls)
    assert seed["output_sha256"] == sha256(answer.text.encode()).hexdigest()
    return answer


def refused_text(_: Answer, case: Case) -> Answer:
    """Make the answer to arguments that do not fit: with the operation and the issue where they can be read."""
    return failed("validation", *readable(arguments(case)))


def readable(sent: str | bytes) -> tuple[str, str]:
    """Return operation and issue if the text is JSON, an object, not nested absurdly, and has each of them once."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        count = Counter(key for key, _ in pairs)
        return {key: value for key, value in pairs if count[key] == 1}

    try:
        text = sent.decode() if isinstance(sent, bytes) else sent
        if text.count("[") > 64:
            return "", ""
        fields = json.loads(text, object_pairs_hook=once, parse_constant=lambda _: 1 / 0)
    except (ValueError, ArithmeticError):
        return "", ""
    values = [fields.get(name) if isinstance(fields, dict) else None for name in ("op", "id")]
    op, id = (value if isinstance(value, str) and "\ud800" not in value else "" for value in values)
    return op, id


def numbered(prefix: str, *numbers: int) -> tuple[str, ...]:
    return tuple(f"{prefix}/{number:02}" for number in numbers)


JSON = Section(
    "trackerwrite_json",
    "cases",
    recorded_json,
    (
        Difference(
            8,
            named(
                *numbered("duplicate", 2, 3, 6, 7, 14, 15, 16),
                *numbered("keycase", 0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 14),
                *numbered("unknown", 0, 1, 3),
                *("big/unknown_array_100k", "big/nesting_1000", "big/nesting_9999", "big/20000_unknown_keys"),
            ),
            refused_text,
        ),
        Difference(9, lambda case: "is_error" in case.expected and not is_nil(case), refused_text),
        Difference(18, is_invisible, refused_text),
        Difference(
            22,
            named(
                *("whitespace/unicode_space_around", "whitespace/vt_ff_around"),
                *numbered("string", 8, 9, 24),
                *("string/invalid_utf8_id", "string/invalid_utf8_surrogate_bytes"),
            ),
            refused_text,
        ),
        Difference(31, named("string/10"), lambda answer, _: attrs.evolve(answer, text=plain(answer.text))),
        Difference(49, is_nil, lambda *_: NOT_MADE),
    ),
)


@grouped(JSON, 1, 1)
async def test_argument_texts_end_as_in_the_seed(group: list[Case], asserted: Callable) -> None:
    """A text of arguments becomes the recorded envelope, byte for byte if it succeeds, and the recorded calls."""
    await check(JSON, group, arguments, asserted)


@pytest.mark.parametrize(
    ("section", "counts"),
    [
        (RUN, {0: 1268, 18: 48, 19: 3, 28: 6, 29: 6, 49: 4, 51: 4, 52: 3}),
        (JSON, {0: 122, 8: 25, 9: 94, 18: 2, 22: 7, 31: 1, 49: 3}),
    ],
    ids=lambda value: getattr(value, "file", None),
)
def test_the_differences_cover_as_many_cases_as_agreed(section: Section, counts: dict[int, int]) -> None:
    """No difference covers more cases, or fewer, than when it was agreed on."""
    assert counts == section.counts()
