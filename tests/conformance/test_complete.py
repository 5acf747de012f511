"""No reported fault is forgotten: each that belongs here is a test by its id."""

import ast
import json
import re
from pathlib import Path

HERE = Path(__file__).parent


def name_of(case: str) -> str:
    return "test_" + case.lower().replace("-", "_")


def belongs(case: dict[str, str]) -> bool:
    """Say whether a case is one of the runtime's, and not of a service or of writing to a tracker."""
    return not ("MCP" in case["area"] or "tracker writes" in case["area"])


CASES = [json.loads(line) for line in (HERE / "cases.jsonl").read_text().splitlines()]
TESTS = {
    node.name: node
    for path in sorted(HERE.glob("test_cases_*.py"))
    for node in ast.parse(path.read_text()).body
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_")
}


def is_named(test: str, case: str) -> bool:
    """Say whether ``test`` carries the id of ``case``, and not a longer one, as N04b's is to N04's."""
    return test == name_of(case) or test.startswith(name_of(case) + "_")


def test_the_list_is_whole():
    """The list has each of its 97 cases once; 82 of them belong here, by their area."""
    assert 97 == len(CASES) == len({case["id"] for case in CASES})
    assert 82 == sum(map(belongs, CASES))


def test_each_case_is_a_test_by_its_id():
    """A case that belongs here has a test whose name begins with its id."""
    assert [] == [case["id"] for case in CASES if belongs(case) and not any(is_named(t, case["id"]) for t in TESTS)]


def test_each_case_of_mcp_is_a_test_by_its_id():
    """A case of MCP has a test whose name begins with its id, here or among those of clients and servers."""
    names = {
        name
        for folder in (HERE, HERE.parent / "unit" / "providers", HERE.parent / "unit" / "serving")
        for path in folder.glob("test_*.py")
        for name in re.findall(r"^(?:async )?def (test_[a-z0-9_]+)", path.read_text(), re.MULTILINE)
    }
    cases = [case["id"] for case in CASES if "MCP" in case["area"]]
    assert 6 == len(cases)
    assert [] == [case for case in cases if not any(is_named(name, case) for name in names)]


def test_each_test_is_of_a_case():
    """A test in these files is named by the id of a case, so that whoever reads one finds the other."""
    assert [] == [test for test in TESTS if not any(is_named(test, case["id"]) for case in CASES)]


def test_each_case_runs_on_every_event_loop():
    """Each of them is async, and so runs on asyncio, in its debug mode, on uvloop and on trio."""
    assert [] == [name for name, node in TESTS.items() if not isinstance(node, ast.AsyncFunctionDef)]
