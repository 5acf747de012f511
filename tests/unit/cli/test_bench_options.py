"""What the command says to options that make no sense, and to what it misses."""

import subprocess
import sys
from pathlib import Path

import pytest

import harbor_async as ha
from harbor_async.cli._bench import bench
from harbor_async.cli._bench_load import Arrivals, Loop
from harbor_async.cli._usage import UsageError


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rate": 0.0}, "--rate: expected a finite number of calls a second, more than 0; got 0.0"),
        ({"rate": -1.0}, "--rate: expected"),
        ({"rate": float("nan")}, "--rate: expected"),
        ({"rate": float("inf")}, "--rate: expected"),
        ({"rate": 5.0, "in_flight": 5}, "--in-flight is for a closed loop, --rate for an open one"),
        ({"arrivals": Arrivals.POISSON}, "--arrivals needs --rate"),
        ({"duration": 0.0}, "--duration: expected more than 0 seconds"),
        ({"duration": -1.0}, "--duration: expected a finite number of seconds"),
        ({"duration": float("nan")}, "--duration: expected a finite number of seconds"),
        ({"duration": 1.0, "count": 5}, "--duration and --count both say when it ends"),
        ({"warm_up": -1.0}, "--warm-up: expected a finite number of seconds"),
        ({"warm_up": float("inf")}, "--warm-up: expected a finite number of seconds"),
        ({"timeout": -1.0}, "--timeout: expected a finite number of seconds"),
        ({"catalog": "shop.py"}, "which tool of shop.py? 'harbor-async tools' lists what there is"),
        ({"tool": "\udcff"}, "expected a name in UTF-8"),
        ({"json": Path("no/such/folder")}, "cannot write the results: No such file or directory: no/such/folder"),
        ({"html": Path()}, "cannot write the results: Is a directory: ."),
        ({"json": Path("a"), "html": Path("../x/a")}, "--json, --html and --hdr-log: expected another file for each"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, dict) else "",
)
def test_wrong_usage(options, words, tmp_path, monkeypatch):
    """Options that contradict each other or make no sense are named, and nothing is measured."""
    (tmp_path / "x").mkdir()
    monkeypatch.chdir(tmp_path / "x")
    with pytest.raises(UsageError) as caught:
        bench(**options)
    assert words in str(caught.value)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_disk():
    """A log that cannot be written is named before anything is measured."""
    with pytest.raises(UsageError, match="cannot write the results: No space left on device: /dev/full"):
        bench(hdr_log=Path("/dev/full"))


WITHOUT = """
import sys
from harbor_async.cli import main
for package in ("hdrh", "pygal", "psutil"):
    sys.modules[package] = None
    print(main(["bench"]))
    del sys.modules[package]
"""


def test_without_the_extra():
    """Without one of its packages the command says in one line what to install, and its code is 2."""
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True)
    words = "harbor-async bench needs an optional package: pip install 'harbor-async[bench]'"
    assert ("2\n" * 3, f"harbor-async: {words}\n" * 3) == (done.stdout, done.stderr)
    assert words == str(ha.errors.MissingExtraError("harbor-async bench", "bench"))


def test_without_uvloop(monkeypatch):
    """``--backend uvloop`` names its own extra."""
    monkeypatch.setitem(sys.modules, "uvloop", None)
    with pytest.raises(ha.errors.MissingExtraError, match=r"--backend uvloop needs .*harbor-async\[uvloop\]"):
        bench(backend=[Loop.UVLOOP])


def test_other_commands_load_none_of_it():
    """The command line loads no histogram, plot or process library unless this command runs."""
    program = "import sys; from harbor_async.cli import _app; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert set() == {"hdrh", "psutil", "pygal"} & loaded
    assert "typer" in loaded
