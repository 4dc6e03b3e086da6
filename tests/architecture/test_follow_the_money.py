"""The tables under "Follow the money" in ARCHITECTURE.md say what the flows really do.

Every row is played on books in memory. What it says of functions, legs, tables and tests is
compared with what was called, what was posted, what was drafted and what is there.
"""

import ast
import re
import sys
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from tests.architecture.movements import MOVEMENTS
from tests.architecture.pages import ROOT, SOURCE, section, table_rows

from billfold.ledger.commands import commands

FLOWS_FOLDER = SOURCE / "flows"
STOOD_ON = frozenset({"__init__", "book", "command", "draft", "holdings", "record", "rows", "savepoint"})
"""Modules of `flows` that decide nothing: what the flows stand on."""
ROWS = {row[0]: row[1:] for row in table_rows(section("ARCHITECTURE.md", "Follow the money"))}
_FUNCTION = re.compile(r"`flows/(\w+)\.py` `(\w+)`")


def test_every_movement_is_in_the_table_and_every_row_is_played():
    assert sorted(ROWS) == sorted(MOVEMENTS)


def test_every_flow_is_in_the_table():
    named = {function for row in ROWS.values() for function in _FUNCTION.findall(row[0])}
    flows = {(flow.__module__.rpartition(".")[2], flow.__name__) for flow in rules_of_the_bank()}
    assert flows <= named
    modules = {path.stem for path in FLOWS_FOLDER.glob("*.py")} - STOOD_ON
    modules = {module for module in modules if not module.endswith("_commands")}
    assert modules == {module for module, _ in named}


@pytest.mark.parametrize("movement", MOVEMENTS)
def test_the_functions_of_a_row_are_called(movement):
    named = set(_FUNCTION.findall(ROWS[movement][0]))
    assert named, "the row names no function"
    assert named <= called_by(MOVEMENTS[movement])


@pytest.mark.parametrize("movement", MOVEMENTS)
def test_legs_are_posted_in_the_order_of_the_row(movement):
    posted = ", ".join(MOVEMENTS[movement]().legs) or "none"
    assert re.fullmatch(pattern_of(ROWS[movement][1]), posted), posted


@pytest.mark.parametrize("movement", MOVEMENTS)
def test_the_tables_of_the_row_are_filled(movement):
    filled = ", ".join(MOVEMENTS[movement]().tables) or "none"
    assert ROWS[movement][2] == filled


@pytest.mark.parametrize("movement", MOVEMENTS)
def test_the_test_of_the_row_exists(movement):
    assert ROWS[movement][3].strip("`") in all_tests()


@pytest.mark.parametrize(
    ("cell", "posted"),
    [("`a>b`, `c>d`", "a>b, c>d"), ("`(lot*>b, b>c)*`, `c>d`", "lot>b, lot>b, b>c, lot>b, b>c, c>d"), ("none", "none")],
)
def test_a_row_is_read_as_it_is_written(cell, posted):
    assert re.fullmatch(pattern_of(cell), posted)
    assert not re.fullmatch(pattern_of(cell), posted + ", e>f")
    assert not re.fullmatch(pattern_of(cell), posted[1:])


def rules_of_the_bank():
    """The rules that commands of the bank name."""
    for path in FLOWS_FOLDER.glob("*_commands.py"):
        import_module(f"billfold.ledger.engine.flows.{path.stem}")
    return {kind.rule for kind in commands() if kind.__module__.startswith("billfold.")}


def pattern_of(cell):
    """The legs of a row as a pattern: `lot*` is one leg per lot, `(...)*` once per bill."""
    parts = re.findall(r"\([^)]*\)\*|[^,()]+", cell.replace("`", "").replace(" ", ""))
    patterns = [
        _repeated(", ".join(_leg(leg) for leg in part[1:-2].split(","))) if part.startswith("(") else _leg(part)
        for part in parts
    ]
    return ", ".join(patterns)


def _leg(leg):
    return _repeated(re.escape(leg.replace("*", ""))) if "*" in leg else re.escape(leg)


def _repeated(pattern):
    return rf"{pattern}(?:, {pattern})*"


def called_by(play):
    """The functions of `flows` that run while it is played, as (module, name)."""
    called = set()

    def note(frame, event, _):
        if event == "call":
            path = Path(frame.f_code.co_filename)
            if path.parent == FLOWS_FOLDER:
                called.add((path.stem, frame.f_code.co_name))

    former = sys.getprofile()
    sys.setprofile(note)
    try:
        play()
    finally:
        sys.setprofile(former)
    return called


@cache
def all_tests():
    """The names of all tests there are."""
    return {
        node.name
        for path in (ROOT / "tests").rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }
