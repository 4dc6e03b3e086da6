"""The rules of the house that no linter knows."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src" / "billfold").rglob("*.py"))
BANNED = {
    "service", "services", "manager", "helper", "helpers", "util", "utils", "handler",
    "processor", "misc",
}  # fmt: skip
NAMED = re.compile(r"`((?:engine|flows|domain|interfaces|kit|tests)/[\w/]+(?:\.py)?)`")
LONG_FILES: dict[str, int] = {}
"""Files over 400 lines: the list may only get shorter."""
LONG_FUNCTIONS: dict[str, int] = {}
"""Functions over 60 lines: the list may only get shorter."""


def name_of(path):
    return str(path.relative_to(ROOT / "src" / "billfold"))


def test_imports_point_down():
    tool = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [tool, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_no_contract_ignores_anything():
    assert "ignore_imports" not in (ROOT / "pyproject.toml").read_text()


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_a_module_is_short_documented_and_named_by_its_trade(path):
    text = path.read_text()
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "says nothing about itself"
    assert text.count("\n") <= LONG_FILES.get(name_of(path), 400)
    assert not set(re.split(r"[_.]", path.stem)) & BANNED
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            allowed = LONG_FUNCTIONS.get(f"{name_of(path)}:{node.name}", 60)
            assert (node.end_lineno or 0) - node.lineno <= allowed, node.name
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            assert not set(node.name.lower().split("_")) & BANNED, node.name
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"


def test_every_noun_says_what_it_owns_and_never_does():
    for facade in (ROOT / "src" / "billfold" / "domain").glob("*/__init__.py"):
        said = ast.get_docstring(ast.parse(facade.read_text())) or ""
        assert "Owns" in said, facade
        assert "Never" in said or "never" in said, facade


def test_pages_are_as_long_as_they_may_be():
    for page, most in (("README.md", 120), ("ARCHITECTURE.md", 250), ("STYLE.md", 150)):
        assert (ROOT / page).read_text().count("\n") <= most


def test_pages_link_to_what_exists():
    for page in (ROOT / "README.md", ROOT / "ARCHITECTURE.md", *(ROOT / "docs").rglob("*.md")):
        for target in re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} -> {target}"
        for path in re.findall(
            r"`((?:engine|flows|domain|interfaces|kit|tests)/[\w/]+(?:\.py)?)`", page.read_text()
        ):
            base = ROOT if path.startswith("tests") else ROOT / "src" / "billfold"
            assert (base / path).exists(), f"{page.name} names {path}"
