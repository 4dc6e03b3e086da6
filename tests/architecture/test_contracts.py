"""Limits that `make check` does not measure: no exemption from an import contract, small files, short functions."""

import ast
import tomllib

from tests.architecture.pages import ROOT, SOURCE, text_of

FILE_LINES, FUNCTION_LINES, STORY_LINES = 400, 40, 60
FOLDER_FILES = 15

SOURCES = [
    *SOURCE.rglob("*.py"),
    *(ROOT / "benchmarks").rglob("*.py"),
    *(ROOT / "simulation").rglob("*.py"),
    *(ROOT / "tests").rglob("*.py"),
]


def name_of(path):
    return str(path.relative_to(ROOT))


def test_import_contracts_have_no_ignored_imports():
    contracts = tomllib.loads(text_of("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    assert len(contracts) == 5
    assert not [each["name"] for each in contracts if "ignore_imports" in each]


def test_files_are_small():
    assert not [name_of(path) for path in SOURCES if path.read_text().count("\n") > FILE_LINES]


def test_functions_are_short():
    assert not [name for path in SOURCES for name in long_functions(path)]


def test_folders_of_the_package_are_small():
    folders = {path.parent for path in SOURCE.rglob("*.py")}
    assert not [name_of(each) for each in folders if len(list(each.glob("[!_]*.py"))) > FOLDER_FILES]


def test_changes_for_the_simulation_are_found_once_in_their_files():
    planted = tomllib.loads(text_of("simulation/planted.toml"))["change"]
    assert len({each["name"] for each in planted}) == len(planted) == 40
    assert not [each["name"] for each in planted if text_of(each["file"]).count(each["before"]) != 1]
    for each in planted:
        ast.parse(text_of(each["file"]).replace(each["before"], each["after"]))


def test_declared_patterns_do_not_accept_a_trailing_newline():
    r"""`$` also matches before a trailing newline; `\Z` does not."""
    assert not [f"{name_of(path)} {each.value}" for path in SOURCES for each in patterns_of(path) if "$" in each.value]


def patterns_of(path):
    """Return the patterns of the fields declared in a file."""
    if path.is_relative_to(SOURCE) and "pattern=" in (text := path.read_text()):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.keyword) and node.arg == "pattern" and isinstance(node.value, ast.Constant):
                yield node.value


def long_functions(path):
    """Return the functions of a file that exceed the maximum length."""
    is_rule = "rules" in path.parts or path.stem == "rules" or path.parent.name == "book"
    longest = FUNCTION_LINES if path.is_relative_to(SOURCE) and not is_rule else STORY_LINES
    text = path.read_text()
    if text.count("\n") > longest:
        for node in functions_in(ast.parse(text)):
            assert node.end_lineno is not None
            if node.end_lineno - node.lineno + 1 > longest:
                yield f"{name_of(path)} {node.name}"


def functions_in(block):
    """Yield the functions of a block of statements, without descending into expressions."""
    for each in (*getattr(block, "body", ()), *getattr(block, "orelse", ())):
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            yield each
        yield from functions_in(each)
