"""What the wheel holds."""

import os
import subprocess
import sys
from email import message_from_string
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel that nox built, or one built now, by the project's own build backend."""
    if built := os.environ.get("HARBOR_WHEEL"):
        path = Path(built)
    else:
        folder = tmp_path_factory.mktemp("wheel")
        build = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"
        subprocess.run([sys.executable, "-c", build, str(folder)], cwd=ROOT, check=True, capture_output=True)
        (path,) = folder.glob("*.whl")
    with ZipFile(path) as archive:
        yield archive


def test_holds_the_package_and_nothing_else(wheel):
    """Every file of src/harbor_async is in the wheel, py.typed among them; tests, benchmarks and docs are not."""
    source = ROOT / "src"
    expected = {
        path.relative_to(source).as_posix()
        for path in source.glob("harbor_async/**/*")
        if path.is_file() and path.suffix != ".pyc"
    }
    packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert expected == packed
    assert "harbor_async/py.typed" in packed


def test_metadata_names_license_python_and_extras(wheel):
    """The metadata carries the licence with its text, the least Python, every extra and the console script."""
    names = {Path(name).name: name for name in wheel.namelist() if ".dist-info/" in name}
    metadata = message_from_string(wheel.read(names["METADATA"]).decode())
    assert "Apache-2.0" == metadata["License-Expression"]
    assert ">=3.11" == metadata["Requires-Python"]
    extras = "bench cli http langchain mcp openai-agents otel pydantic-ai schema uvloop"
    assert set(extras.split()) == set(metadata.get_all("Provides-Extra"))
    assert (ROOT / "LICENSE").read_bytes() == wheel.read(names["LICENSE"])
    assert "harbor-async = harbor_async.cli:main" in wheel.read(names["entry_points.txt"]).decode()


def test_plain_dependencies_are_those_of_the_design(wheel):
    """Without an extra, the package needs these and no others."""
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    requirements = message_from_string(wheel.read(name).decode()).get_all("Requires-Dist")
    plain = {item.partition(">")[0] for item in requirements if "extra ==" not in item}
    expected = {"anyio", "attrs", "cattrs", "docstring-parser", "msgspec", "stamina", "trio", "typing-extensions"}
    assert expected == plain
