"""The soak, in a form of two seconds."""

import re

import pytest

from bench import soak


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_short_soak_leaves_nothing(backend, capsys):
    """Every call is answered once, and no task, thread or place is left."""
    status = soak.main(["--backend", backend, "--seconds", "2", "--in-flight", "200"])
    told = capsys.readouterr().out
    assert 0 == status, told
    calls = re.search(r"^([\d,]+) calls", told, re.MULTILINE)
    assert calls is not None
    assert int(calls[1].replace(",", "")) > 100


def test_a_lost_answer_is_seen():
    """A call that was sent and neither answered nor given up is a fault."""
    run = soak.Soak(soak.Ledger(sent=1), 1.0, samples=[1] * 10)
    assert any(fault.startswith("1 calls were sent and 0 answered") for fault in run.faults(threads=0))
