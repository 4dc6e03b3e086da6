"""Names of the trade, small files, short functions: what no linter of ours counts.

An exemption stands in a list with its reason. The lists may only get shorter, and one that is
needed no more must go.
"""

import ast
import re
from itertools import chain

import pytest
from tests.architecture.pages import ROOT, SOURCE

BANNED = frozenset(
    {
        "service",
        "services",
        "manager",
        "managers",
        "helper",
        "helpers",
        "util",
        "utils",
        "handler",
        "handlers",
        "processor",
        "processors",
        "data",
        "info",
        "common",
        "base",
        "misc",
    }
)
FILE_LINES, FUNCTION_LINES, FLOW_LINES, DOCSTRING_LINES = 400, 40, 60, 8

NAMED_BY_OTHERS = frozenset(
    {
        "benchmarks/webhook_receivers.py data_received",  # what asyncio calls on a protocol
        "benchmarks/load_generator.py data_received",  # as above
    }
)
LONG_FILES = {
    "tests/payments/on_us/test_routes.py": 421  # one operation, all of its refusals
}
LONG_FUNCTIONS = {
    "benchmarks/reads.py bench_reads": 41,  # one measurement, told in order
    "bills/rules/valuation.py value": 41,  # the hot path of every read: no calls in its loop
    "tests/reference/recorder.py _play_all": 54,  # a story, told in order
}

SOURCES = sorted([*SOURCE.rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")])
TESTS = sorted((ROOT / "tests").rglob("*.py"))
DEFINED = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def name_of(path):
    """The path of a source below the package, of anything else below the root."""
    return str(path.relative_to(SOURCE if path.is_relative_to(SOURCE) else ROOT))


def definitions(path):
    """Every class and function in a file."""
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, DEFINED)]


def words_of(name):
    """The words of a name: `open_bank2` and `OpenBank2` are open and bank2."""
    return {word.lower() for word in re.findall(r"[A-Z]*[a-z0-9]+|[A-Z]+", name)}


def lines_of(path):
    return path.read_text().count("\n")


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_names_are_of_the_trade(path):
    names = [path.stem, *(node.name for node in definitions(path))]
    if path.stem == "__init__":
        names.append(path.parent.name)
    wrong = {f"{name_of(path)} {name}" for name in names if words_of(name) & BANNED}
    assert wrong <= NAMED_BY_OTHERS


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_a_module_says_in_a_few_lines_what_it_is(path):
    said = ast.get_docstring(ast.parse(path.read_text())) or ""
    assert 1 <= len(said.splitlines()) <= DOCSTRING_LINES


@pytest.mark.parametrize("path", [*SOURCES, *TESTS], ids=name_of)
def test_a_file_is_small(path):
    assert lines_of(path) <= LONG_FILES.get(name_of(path), FILE_LINES)


@pytest.mark.parametrize("path", [*SOURCES, *TESTS], ids=name_of)
def test_a_function_is_short(path):
    long = {
        name: lines
        for name, lines in function_lines(path).items()
        if lines > LONG_FUNCTIONS.get(name, allowed_in(path))
    }
    assert not long


@pytest.mark.parametrize("path", [*SOURCES, *TESTS], ids=name_of)
def test_nothing_is_left_for_later(path):
    if path.name != "test_tidy.py":
        assert not re.search(r"\b(TODO|FIXME|XXX|HACK)\b", path.read_text())


@pytest.mark.parametrize("path", [*SOURCES, *TESTS], ids=name_of)
def test_imports_are_absolute(path):
    tree = ast.parse(path.read_text())
    assert not [node.lineno for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]


def test_no_exemption_is_left_over():
    lengths = dict(chain.from_iterable(function_lines(p).items() for p in [*SOURCES, *TESTS]))
    defined = {f"{name_of(path)} {node.name}" for path in SOURCES for node in definitions(path)}
    assert defined >= NAMED_BY_OTHERS
    assert {name: lines_of(path_of(name)) for name in LONG_FILES} == LONG_FILES
    assert {name: lengths.get(name, 0) for name in LONG_FUNCTIONS} == LONG_FUNCTIONS


def path_of(name):
    return ROOT / name if (ROOT / name).exists() else SOURCE / name


def function_lines(path):
    """The length of the longest function of each name in a file."""
    lengths: dict[str, int] = {}
    for node in definitions(path):
        if not isinstance(node, ast.ClassDef):
            name = f"{name_of(path)} {node.name}"
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            lengths[name] = max(length, lengths.get(name, 0))
    return lengths


def allowed_in(path):
    is_a_flow = path.is_relative_to(SOURCE / "flows")
    return FLOW_LINES if is_a_flow or not path.is_relative_to(SOURCE) else FUNCTION_LINES
