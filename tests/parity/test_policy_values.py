"""``policy.json``: the seed's defaults, waits and classes of errors. They need no runtime.

The module behind ``ToolPolicy.harbor`` is looked into where the seed counts in nanoseconds and ours in seconds.
"""

import errno
from collections.abc import Callable, Iterable

import attrs
import pytest

import harbor_async._harbor as harbor
from harbor_async._policy import ToolPolicy
from harbor_async.errors import DuplicateToolError, InvalidArgumentsError, ToolCanceledError, ToolNotFoundError
from tests.parity.harness import Case, Difference, Section, names

# --- resolved -------------------------------------------------------------------------------------------------------

RESOLVED = Section(
    "policy",
    "resolved",
    lambda case: case.expected,
    (
        Difference(
            23,
            lambda case: case.expected.get("validates_input") is False,
            lambda seed, _: seed | {"validates_input": True},
        ),
    ),
)
SECOND = 10**9


def seed_policy(given: dict) -> ToolPolicy:
    """Write the seed's settings as a user of ``ToolPolicy.harbor`` does."""
    return ToolPolicy.harbor(
        timeout_ms=given["timeout_ms"],
        max_retries=given["max_retries"],
        backoff_base=given["backoff_base_ns"] / SECOND,
        backoff_mult=given["backoff_mult"],
        backoff_max=given["backoff_max_ns"] / SECOND,
        retry_on=given["retry_on"],
        validate=given["validate"],
    )


@pytest.mark.parametrize("case", RESOLVED.cases, ids=names)
def test_settings_get_the_defaults_of_the_seed(case: Case, asserted: Callable) -> None:
    """What is not said gets the seed's default, and what is said stays, as recorded."""
    given = {} if "call" in case.input else case.input
    settings = harbor.HarborSettings(**given)
    resolved = harbor.resolve(settings)
    ours = attrs.asdict(resolved) | {
        "is_zero": settings.is_zero,
        "retry_on": list(resolved.retry_on),
        "total_attempts": resolved.attempts,
        "validates_input": True,  # decoding is validation
        "validates_output": resolved.validates_output,
    }
    numbers, expected = RESOLVED.expect(case)
    assert expected == {key: ours[key] for key in expected}
    asserted(RESOLVED, case, numbers)


@pytest.mark.parametrize("case", RESOLVED.cases, ids=names)
def test_the_policy_means_what_the_seed_resolved(case: Case) -> None:
    """``ToolPolicy.harbor`` says in our words what the seed resolved, with the classes that it retries."""
    seed = case.expected
    expected = ToolPolicy(
        timeout=seed["timeout_ms"] / 1000 if seed["timeout_ms"] > 0 else None,
        attempts=seed.get("total_attempts", 4),
        wait=harbor.HarborBackoff(seed["backoff_base_ns"], seed["backoff_mult"], seed["backoff_max_ns"]),
        retry_on=[word for word in seed["retry_on"] if word in {"transient", "timeout", "5xx"}],
        check_output=seed.get("validates_output", True),
        classify=harbor.classify_text if seed["timeout_ms"] > 0 else harbor.classify_text_untimed,
    )
    assert expected == (ToolPolicy.harbor() if "call" in case.input else seed_policy(case.input))


# --- next_backoff ---------------------------------------------------------------------------------------------------

WAITS = Section("policy", "next_backoff", lambda case: case.expected["delay_ns"])


@pytest.mark.parametrize("case", WAITS.cases, ids=names)
def test_waits_are_those_of_the_seed_to_the_nanosecond(case: Case, asserted: Callable) -> None:
    """Each wait is the recorded one, exactly in nanoseconds and to the nearest float in seconds."""
    given = case.input
    wait = harbor.HarborBackoff(given["base_ns"], given["mult"], given["max_ns"])
    u = 0.0 if given["jitter"] is None else given["jitter"]
    numbers, expected = WAITS.expect(case)
    assert expected == wait.delay_ns(given["attempt"], u)
    assert expected / SECOND == wait.delay(given["attempt"], u)
    asserted(WAITS, case, numbers)


# --- classify_error -------------------------------------------------------------------------------------------------


def wrapped(text: str, cause: BaseException) -> RuntimeError:
    """Wrap ``cause`` as ``raise RuntimeError(text) from cause`` does."""
    error = RuntimeError(text)
    error.__cause__ = cause
    return error


EXCEPTIONS: dict[str, Callable[[str], Exception]] = {
    "canceled": ToolCanceledError,
    "canceled_wrapped": lambda text: wrapped(text, ToolCanceledError()),
    "deadline": TimeoutError,
    "deadline_wrapped": lambda text: wrapped(text, TimeoutError()),
    "joined_canceled_deadline": lambda text: ExceptionGroup(text, [ToolCanceledError(), TimeoutError()]),
    "invalid_args": lambda _: InvalidArgumentsError([]),
    "invalid_args_wrapped_status": lambda text: wrapped(text, InvalidArgumentsError([])),
    "not_found_wrapped": lambda text: wrapped(text, ToolNotFoundError("x")),
    "policy_exhausted": RuntimeError,
    "policy_exhausted_wrapping_deadline": lambda text: wrapped(text, TimeoutError()),
    "duplicate_name": lambda _: DuplicateToolError("x"),
    "io_eof": EOFError,
    # Go tells its own deadline from a socket's by type; here the socket's carries an errno
    "os_deadline": lambda text: OSError(errno.ETIMEDOUT, text),
    "timeout_iface_no_word": lambda text: OSError(errno.ETIMEDOUT, text),
    "net_op_econnrefused": lambda text: OSError(errno.ECONNREFUSED, text),
    "os_not_exist": lambda text: OSError(errno.ENOENT, text),
    "os_permission": lambda text: OSError(errno.EACCES, text),
}
CLASSES = Section(
    "policy",
    "classify_error",
    lambda case: (case.expected["with_attempt_timeout"], case.expected["without_attempt_timeout"]),
    (Difference(34, lambda case: case.name == "nil", lambda *_: (None, None)),),
)


def fail_as(case: Case) -> None:
    """Raise what a Python tool raises where the Go tool returned the recorded error; a nil error is no exception."""
    if case.input["text"] is not None:
        raise EXCEPTIONS.get(case.name, RuntimeError)(case.input["text"])


@pytest.mark.parametrize("case", CLASSES.cases, ids=names)
def test_errors_have_the_class_that_the_seed_reads_from_their_text(case: Case, asserted: Callable) -> None:
    """The classifier of ``ToolPolicy.harbor`` gives the recorded class, with an attempt timeout and without."""
    ours: Iterable[str | None] = (None, None)
    try:
        fail_as(case)
    except Exception as error:  # noqa: BLE001 - any exception is input here
        ours = (ToolPolicy.harbor().classify(error), ToolPolicy.harbor(timeout_ms=-1).classify(error))
    numbers, expected = CLASSES.expect(case)
    assert expected == ours
    asserted(CLASSES, case, numbers)


# --- counts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("section", "counts"),
    [(RESOLVED, {0: 27, 23: 4}), (WAITS, {0: 1412}), (CLASSES, {0: 86, 34: 1})],
    ids=lambda value: getattr(value, "key", None),
)
def test_the_differences_cover_as_many_cases_as_agreed(section: Section, counts: dict[int, int]) -> None:
    """No difference covers more cases, or fewer, than when it was agreed on."""
    assert counts == section.counts()
