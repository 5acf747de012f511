"""The agent backend of the examples, with a thousand agents in virtual time and with some in real time."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from examples import agent_backend
from harbor_async import EventType
from harbor_async.testing import run_virtual

ROOT = Path(__file__).parents[2]
BACKENDS = pytest.mark.parametrize("backend", ["asyncio", "trio"])
LAST = ["completed", "failed", "invalid_args", "policy_exhausted", "canceled", "rejected"]
"""The types of which each call has exactly one event. Source: ``EventType``."""
ENDS = {
    "succeeded",
    "failed / api_request",
    "failed / not_found",
    "failed / validation",
    "rejected / auth_failed",
    "rejected / rate_limited",
    "timed_out / timeout",
}


@pytest.fixture(scope="module", params=["asyncio", "trio"])
def report(request):
    """Return what a thousand agents come to."""
    return run_virtual(agent_backend.run, 1000, 7, backend=request.param)


@pytest.mark.timeout(120)  # ten thousand calls, perhaps on a loaded machine
class TestAThousandAgents:
    def test_each_call_has_one_answer(self, report):
        """Of ten thousand calls each is answered once, but for those whose users hung up meanwhile."""
        assert 9_000 <= report.asked <= 11_000
        unanswered = report.asked - report.by_end.total()
        assert 0 < unanswered <= 5 * report.hung_up  # a turn has five calls at the most
        assert 50 <= report.hung_up <= 150  # a tenth loses patience, some of them too late
        assert report.by_end.total() == sum(counts.total() for counts in report.by_tenant.values())

    def test_each_call_has_one_end(self, report):
        """Each call is told of as begun, and then as ended in one way; the events agree with the answers."""
        events = {type.value: report.events[type] for type in EventType}
        assert report.asked == events["tool.invoked"]
        assert report.asked == sum(events[f"tool.{word}"] for word in LAST)
        answers = {end: report.by_end[end] for end in ENDS}
        assert events["tool.rejected"] >= answers["rejected / auth_failed"] + answers["rejected / rate_limited"]
        assert events["tool.completed"] >= answers["succeeded"]

    def test_everything_happens(self, report):
        """Successes, wrong calls, missing scopes, overload, deadlines, broken services, retries and unclear effects."""
        assert set() == ENDS - set(report.by_end)
        assert report.by_end["succeeded"] > report.asked / 2
        assert report.events["tool.retry"] > 100
        assert 0 < report.ambiguous < 200

    def test_the_limits_hold(self, report):
        """No more than 200 calls run at once, and nearly so many do; the small tenants get on while a large one waits.

        A fifth of the calls of initech are mails, for which it lacks the scope.
        """
        assert 150 < report.peak <= 200
        succeeded = {tenant: counts["succeeded"] / counts.total() for tenant, counts in report.by_tenant.items()}
        timed_out = {tenant: counts["timed_out"] for tenant, counts in report.by_tenant.items()}
        assert succeeded["initech"] > 0.7
        assert timed_out["hooli"] <= timed_out["acme"]

    def test_the_tutorial_shows_it(self, report):
        """The tutorial's numbers are those of the program as it is, where they are large enough to be steady."""
        shown = numbers((ROOT / "docs" / "tutorial" / "agent_backend.txt").read_text())
        actual = numbers("\n".join(report.lines()))
        assert {label for label, number in actual.items() if number >= 100} <= set(shown)
        assert [] == [
            (label, number, actual[label])
            for label, number in shown.items()
            if number >= 100 and not abs(number - actual[label]) <= 0.25 * number
        ]


def numbers(text):
    """Return the numbers of a report by the words that stand behind them."""
    tenant = ""
    found = {}
    for line in text.splitlines():
        tenant = match[1] if (match := re.match(r"  ([a-z]+) ", line)) else ""
        for number, label in re.findall(r"(\d+) ([a-z_./ ]+)", line):
            found[f"{tenant} {label}".strip()] = int(number)
    return found


@BACKENDS
@pytest.mark.timeout(60)  # three turns of the model take a second or two
def test_the_program_runs(backend):
    """Started as a program, in real time, it prints its report and nothing else."""
    command = [sys.executable, ROOT / "examples" / "agent_backend.py", "--backend", backend, "--agents", "40"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "" == done.stderr
    report = numbers(done.stdout)
    assert report["calls were asked for"] == report["tool.invoked"]
    assert report["succeeded"] > 100
