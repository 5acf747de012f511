"""Whether a failed attempt is followed by another, and after which wait."""

from collections.abc import Callable

from ._categories import Delivery, ErrorClass
from ._classify import Verdict
from ._policy import Backoff, ToolPolicy
from ._results import StopReason
from .errors import sane_wait

_RETRIED_CLASSES = frozenset({ErrorClass.TRANSIENT, ErrorClass.TIMEOUT, ErrorClass.SERVER_ERROR})
_HARMLESS = frozenset({Delivery.NOT_SENT, Delivery.REFUSED})


def plan_retry(
    policy: ToolPolicy,
    error: Exception,
    verdict: Verdict,
    *,
    is_effect: bool,
    attempts: int,
    remaining: float,
    random: Callable[[], float],
) -> float | StopReason:
    """Return the seconds to wait before the next attempt, or why there is none.

    Args:
        policy: The call's policy.
        error: What ended the last attempt.
        verdict: What it means.
        is_effect: Whether the tool declares an effect that may not be repeated blindly.
        attempts: Attempts made so far.
        remaining: Seconds until the call's deadline.
        random: Uniform in [0, 1).
    """
    import stamina  # noqa: PLC0415 - a tenth of what importing the package took; a runtime has it when it is open

    stop = _why_not(policy, error, verdict, is_effect=is_effect)
    if stop is not None:
        return stop
    if not stamina.is_active():
        return "attempts"
    testing = stamina.is_testing()  # then stamina counts, by its own number, and waits are zero
    if not testing and policy.attempts is not None and attempts >= policy.attempts:
        return "attempts"
    wait = 0.0 if testing else _wait(policy, verdict, attempts, random)
    return "deadline" if wait >= remaining else wait


def _why_not(policy: ToolPolicy, error: Exception, verdict: Verdict, *, is_effect: bool) -> StopReason | None:
    rule = policy.retry_on
    if rule is None:
        if verdict.error_class not in _RETRIED_CLASSES:
            return "permanent"
        return "unsafe" if is_effect and verdict.delivery not in _HARMLESS else None
    if isinstance(rule, frozenset):
        is_listed = verdict.error_class in rule or not rule.isdisjoint(type(error).__mro__)
        return None if is_listed else "permanent"
    try:
        return None if rule(error) else "permanent"
    except Exception:  # noqa: BLE001 - a rule that breaks must not lose the answer
        return "permanent"


def _wait(policy: ToolPolicy, verdict: Verdict, attempts: int, random: Callable[[], float]) -> float:
    asked = verdict.retry_after
    if asked is None:
        try:
            wait = sane_wait(policy.wait.delay(attempts, random()))
        except Exception:  # noqa: BLE001 - a wait that breaks must not lose the answer
            wait = None
        return Backoff().delay(attempts, random()) if wait is None else wait
    longest = sane_wait(getattr(policy.wait, "maximum", None))
    return asked if longest is None else min(asked, longest)
