"""``tools``, ``schema``, ``call``, and what is said to wrong usage."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import harbor_async as ha
from tests.e2e.cli import CATALOG, run

FILES = {
    "raises.py": "raise ValueError('boom\\nmore')",
    "syntax.py": "catalog = = 1",
    "exits.py": "import sys; sys.exit('bye')",
    "imports.py": "import no_such_module_anywhere",
    "empty.py": "",
    "calls.jsonl": "",
}


@pytest.fixture
def files(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tools", "missing.py:catalog"], "there is no file 'missing.py'"),
        (["tools", "missing:catalog"], "there is no module 'missing'"),
        (["tools", "raises.py:catalog"], "importing it raised ValueError: boom (raises.py, line 1)"),
        (["tools", "raises:catalog"], "importing it raised ValueError: boom (raises.py, line 1)"),
        (["tools", "syntax.py"], "importing it raised SyntaxError: invalid syntax (syntax.py, line 1)"),
        (["tools", "exits.py"], "importing it raised SystemExit: bye"),
        (["tools", "imports.py"], "importing it raised ModuleNotFoundError: No module named 'no_such_module_anywhere'"),
        (["tools", "empty.py:things"], "empty.py has no attribute 'things'; it holds no Catalog"),
        (["tools", f"{CATALOG}:not_a_catalog"], "is of type list, not a Catalog; its catalogs: catalog"),
        (["tools", "not a name"], "expected module:attribute, or the path of a Python file"),
        (["schema", CATALOG, "ad"], "no tool named 'ad'; did you mean 'add'?"),
        (["call", CATALOG, "zzz", "{}"], "no tool named 'zzz'"),
        (["run", CATALOG, "missing.jsonl"], "cannot read the calls: No such file or directory: missing.jsonl"),
        (["run", CATALOG, "."], "cannot read the calls: Is a directory"),
        (
            ["run", CATALOG, "calls.jsonl", "-o", "no/such/folder"],
            "cannot write the results: No such file or directory",
        ),
        (["run", CATALOG, "calls.jsonl", "-o", "calls.jsonl"], "the results would overwrite the calls"),
        (["run", CATALOG, "calls.jsonl", "--backend", "curio"], "'--backend'"),
        (["run", CATALOG, "calls.jsonl", "--max-running", "0"], "'--max-running'"),
        (["run", CATALOG, "calls.jsonl", "--max-running", "many"], "'--max-running'"),
        (["run", CATALOG, "calls.jsonl", "--timeout", "nan"], "--timeout: expected a finite number of seconds"),
        (["run", CATALOG, "calls.jsonl", "--timeout", "-1"], "--timeout: expected a finite number of seconds"),
        (["run", CATALOG], "CALLS.jsonl"),
        (["walk"], "walk"),
        (["tools", CATALOG, "--loud"], "--loud"),
    ],
    ids=lambda value: " ".join(map(str, value))[-40:] if isinstance(value, list) else "",
)
def test_wrong_usage_is_one_line_and_code_2(files, arguments, words):
    """Wrong usage ends with one line on standard error that says what is wrong, and with code 2."""
    done = run(*arguments, cwd=files)
    said = [line for line in done.stderr.splitlines() if line != "what a catalog prints is no result"]
    assert (2, "", 1) == (done.returncode, done.stdout, len(said)), done.stderr
    assert said[0].startswith("harbor-async: ")
    assert words in said[0]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_full_disk_is_one_line(files, backend):
    """Results that cannot be written end the run with one line."""
    (files / "calls.jsonl").write_text('{"name":"size","arguments":{"text":""}}\n' * 1000)
    done = run("run", CATALOG, "calls.jsonl", "-o", "/dev/full", "--backend", backend, cwd=files)
    assert 2 == done.returncode
    assert "harbor-async: cannot write the results: No space left on device" == done.stderr.splitlines()[-1]


def test_tools_lists_what_is_there():
    """``tools`` shows each tool with its declared side effect and the first line of its description."""
    done = run("tools", CATALOG)
    rows = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    assert ["tool", "side", "effect  description"] == rows[0]
    assert ["add", "-", "Add."] in rows
    assert ["wait", "write", "Say that it has begun, and wait for ever."] in rows
    assert 7 == len(rows)


def test_catalog_of_a_module_in_the_working_directory(tmp_path):
    """``module:attribute`` finds a module of the working directory, and the attribute may be dotted."""
    (tmp_path / "shop.py").write_text("import harbor_async as ha\nclass Shop:\n    tools = ha.Catalog()\n")
    done = run("tools", "shop:Shop.tools", cwd=tmp_path)
    assert (0, 1) == (done.returncode, len(done.stdout.splitlines()))


def test_schema_is_json():
    """``schema`` prints name, description and both schemas as JSON."""
    done = run("schema", CATALOG, "size")
    expected = {
        "name": "size",
        "description": "Say how long a text is.",
        "args_schema": {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
            "additionalProperties": False,
        },
        "out_schema": {"type": "integer"},
    }
    assert expected == json.loads(done.stdout)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_call_runs_one(backend):
    """``call`` prints the one result, and its code tells whether it succeeded."""
    done = run("call", CATALOG, "add", '{"a": 1, "b": 2}', "--backend", backend)
    assert (0, 3) == (done.returncode, json.loads(done.stdout)["value"])
    done = run("call", CATALOG, "add", "-", "--backend", backend, input='{"a": "1"}')
    assert (1, "validation") == (done.returncode, json.loads(done.stdout)["error"]["category"])
    done = run("call", CATALOG, "wait", "", "--backend", backend, "--timeout", "0.05")
    assert (1, "timed_out") == (done.returncode, json.loads(done.stdout)["outcome"])
    done = run("call", CATALOG, "leave", "", "--backend", backend)
    assert (1, "") == (done.returncode, done.stdout)


def test_version():
    """--version prints the version of the package."""
    from importlib.metadata import version

    assert f"{version('harbor-async')}\n" == run("--version").stdout


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_the_extra(missing):
    """Without typer or rich the command says what to install, in one line."""
    program = f"import sys; sys.modules[{missing!r}] = None; from harbor_async.cli import main; sys.exit(main([]))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    message = str(ha.errors.MissingExtraError("the command line", "cli"))
    assert (2, f"harbor-async: {message}\n") == (done.returncode, done.stderr)
