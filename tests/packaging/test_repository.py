"""What every file of the repository must keep to."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_changelog_fragments_have_a_name_and_a_text():
    """Each fragment is named ``<issue>.<kind>.<n>.md`` and says something."""
    shape = re.compile(r"\d+\.(breaking|added|changed|fixed|security)\.\d+\.md")
    fragments = [path for path in (ROOT / "changelog.d").iterdir() if path.name != "README.md"]
    assert [] == [path.name for path in fragments if not shape.fullmatch(path.name)]
    assert [] == [path.name for path in fragments if not path.read_text().strip()]


def test_no_blanket_exemption():
    """Each ``noqa`` and ``type: ignore`` in src carries its rule and its reason."""
    noqa = re.compile(r"# noqa: [A-Z]+\d+(, ?[A-Z]+\d+)* - \S")
    ignore = re.compile(r"# type: ignore\[[a-z-]+(, ?[a-z-]+)*\]  ?# ?\S|# type: ignore\[[a-z-]+(, ?[a-z-]+)*\] - \S")
    bare = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / "src").rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if ("# noqa" in line and not noqa.search(line)) or ("# type: ignore" in line and not ignore.search(line))
    ]
    assert [] == bare


def test_no_machine_path_is_committed():
    """No source, test, document or script names a path of somebody's machine."""
    pattern = re.compile(r"(?<![\w.])/(?:work|root|home|tmp)/[A-Za-z]")
    files = [
        path
        for folder in ("src", "tests", "docs", "examples", "bench", ".ci")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".md", ".toml", ".jsonl", ""} and path.is_file() and "_build" not in path.parts
    ]
    assert [] == [str(path.relative_to(ROOT)) for path in files if pattern.search(path.read_text(errors="replace"))]


def test_each_test_states_its_fact():
    """Every test function has a docstring."""
    silent = [
        f"{path.relative_to(ROOT)}:{node.name}"
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.name.startswith("test_")
        and not ast.get_docstring(node)
    ]
    assert [] == silent
